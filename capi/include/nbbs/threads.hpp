/* A local for each thread and pool: made at first use, ended with the thread or with the pool, whichever goes first. Part
 * of nbbs.hpp.
 *
 *   home    what a pool's locals have in common; stays until the pool and all threads that had a local have let go
 *   local   a thread's slots of a pool; in the list of its home, which its lock guards
 *   seat    a thread's hold on a home, and its local there; in the thread's list, which nobody else touches
 *   near    the locals that a thread used last, found without a search
 *
 * A thread that ends gives its locals back, under the lock, unless the pool has ended; a pool that ends takes its threads'
 * locals away, under the lock, and leaves them their seats, which they clear away later. As a seat holds its home, no
 * other pool can have a home at that address, and what is near never belongs to another pool.
 */

#ifndef NBBS_THREADS_HPP
#define NBBS_THREADS_HPP

#include "local.hpp"

#include <atomic>
#include <mutex>
#include <new>

namespace nbbs::detail {

/// How many locals a thread has near.
inline constexpr std::size_t near_places = 16;

struct own_local {
    nbbs_pool_local slots{};
    own_local* next = nullptr;
    own_local** link = nullptr;
};

class home {
public:
    home(nbbs_pool* of, std::size_t most) noexcept : pool(of), most_(most), place(next_place()) {}

    /// A local of this pool; null: there is no memory for one.
    own_local* join() noexcept {
        own_local* const made = new (std::nothrow) own_local;
        if (made == nullptr || nbbs_pool_local_create(&made->slots, pool, most_, nullptr) != NBBS_CODE_OK) {
            delete made;
            return nullptr;
        }
        const std::lock_guard<std::mutex> guard(lock_);
        made->next = first_;
        made->link = &first_;
        if (first_ != nullptr) {
            first_->link = &made->next;
        }
        first_ = made;
        holders_.fetch_add(1, std::memory_order_relaxed);
        return made;
    }

    /// The end of the local's thread.
    void leave(own_local* local) noexcept {
        {
            const std::lock_guard<std::mutex> guard(lock_);
            if (!ended_.load(std::memory_order_relaxed)) {
                nbbs_pool_local_destroy(&local->slots);
                *local->link = local->next;
                if (local->next != nullptr) {
                    local->next->link = local->link;
                }
                delete local;
            }
        }
        let_go();
    }

    /// The end of the pool, which nobody uses any more. What its locals keep goes with it.
    void end() noexcept {
        {
            const std::lock_guard<std::mutex> guard(lock_);
            ended_.store(true, std::memory_order_relaxed);
            while (first_ != nullptr) {
                delete std::exchange(first_, first_->next);
            }
        }
        let_go();
    }

    bool has_ended() const noexcept { return ended_.load(std::memory_order_relaxed); }

    nbbs_pool* const pool;

private:
    static std::size_t next_place() noexcept {
        static std::atomic<std::size_t> next{0};
        return next.fetch_add(1, std::memory_order_relaxed) % near_places;
    }

    void let_go() noexcept {
        // What the others did with it comes before its end.
        if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete this;
        }
    }

    const std::size_t most_;
    std::mutex lock_;
    own_local* first_ = nullptr;
    std::atomic<bool> ended_{false};
    /// The pool, and each seat.
    std::atomic<std::size_t> holders_{1};

public:
    /// Where threads have it near.
    const std::size_t place;
};

struct seat {
    home* of;
    own_local* local;
    seat* next;
};

/// Keeps nothing and knows no chunk, so that whoever asks it goes on to `local_of`; is never written to.
inline nbbs_pool_local nobodys_local{};

struct near_local {
    const home* of = nullptr;
    nbbs_pool_local* local = &nobodys_local;
};

/// What a thread has: without a constructor or destructor, so that it is there from the beginning to the end.
struct thread_locals {
    near_local near[near_places];
    seat* seats = nullptr;
    /// The thread is ending, and has given its locals back.
    bool over = false;

    near_local& near_of(const home* of) noexcept { return near[of->place]; }

    /// Takes out the seats for which `is_one` holds.
    template <class Is>
    void clear_away(Is is_one) noexcept {
        for (seat** link = &seats; *link != nullptr;) {
            seat* const here = *link;
            if (!is_one(*here)) {
                link = &here->next;
                continue;
            }
            *link = here->next;
            if (near_local& shown = near_of(here->of); shown.of == here->of) {
                shown = near_local{};
            }
            here->of->leave(here->local);
            delete here;
        }
    }

    /// The seat at a home, which is the first from now on: pools in use at the same time are found at once, wherever they
    /// are to be near.
    seat* first_at(const home* of) noexcept {
        for (seat** link = &seats; *link != nullptr; link = &(*link)->next) {
            if (seat* const found = *link; found->of == of) {
                *link = found->next;
                found->next = seats;
                return seats = found;
            }
        }
        return nullptr;
    }

    seat* seat_at(const home* of) const noexcept {
        seat* found = seats;
        while (found != nullptr && found->of != of) {
            found = found->next;
        }
        return found;
    }
};

inline thread_local thread_locals mine;

/// Ends with its thread.
struct thread_end {
    ~thread_end() {
        mine.clear_away([](const seat&) { return true; });
        mine.over = true;
    }
};

/// The calling thread's local of a pool, which is made if there is none; null: the thread is ending, or there is no memory.
inline nbbs_pool_local* local_of(home* of) noexcept {
    if (of == nullptr || mine.over) {
        return nullptr;
    }
    seat* found = mine.first_at(of);
    if (found == nullptr) {
        static thread_local thread_end at_the_end;
        static_cast<void>(at_the_end);
        mine.clear_away([](const seat& each) { return each.of->has_ended(); });
        own_local* const local = of->join();
        if (local == nullptr) {
            return nullptr;
        }
        found = new (std::nothrow) seat{of, local, mine.seats};
        if (found == nullptr) {
            of->leave(local);
            return nullptr;
        }
        mine.seats = found;
    }
    mine.near_of(of) = {of, &found->local->slots};
    return &found->local->slots;
}

}  // namespace nbbs::detail

#endif
