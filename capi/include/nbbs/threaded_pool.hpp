/* Objects of one type, with free slots of each thread's own. Part of nbbs.hpp. */

#ifndef NBBS_THREADED_POOL_HPP
#define NBBS_THREADED_POOL_HPP

#include "pool.hpp"
#include "threads.hpp"

namespace nbbs {

/// A pool in which each thread keeps free slots of its own, up to 128, and so allocates and frees mostly without a
/// read-modify-write and without a call. A thread's are made at its first use, and given back when it ends.
///
///     nbbs::threaded_pool<widget> widgets;
///     widget* one = widgets.allocate(1, "first");
///     widgets.deallocate(one).value();  // on any thread
///
/// Not for signal handlers: one may have interrupted a call of the same thread's. The first use by a thread, its end, and
/// the pool's, take a lock; nothing else does. So not in a child of `fork`, where another thread may have had it, unless that
/// executes a program. Nor for a thread's first use in a destructor of `pthread_key_create`, after which nothing gives back
/// what it kept before the pool ends; nor below a global `operator new`, which the first use calls. A `pool<T>` does for all of
/// these.
///
/// What threads keep is free, but for themselves only: with a limit, others may be refused while there are so many slots
/// left as all threads together keep. `length` does not count it.
template <class T>
class threaded_pool {
public:
    using value_type = T;
    using size_type = std::size_t;
    using pointer = T*;
    using const_pointer = const T*;

    /// Frees an object of a pool; `dropped_frees` counts what is refused.
    struct deleter {
        void operator()(T* object) const noexcept { detail::drop(free_in(of, of->place, object)); }
        detail::home* of = nullptr;
    };
    /// An object that frees itself, on any thread. The pool has to be there still; it may have been moved.
    using box = std::unique_ptr<T, deleter>;

    /// A pool with chunks from `malloc`, of which each thread keeps at most `most` free slots, up to 128; 0: 128, or a 64th
    /// of the limit. Throws `nbbs::error`.
    explicit threaded_pool(const pool_config& config = {}, std::size_t most = 0) : threaded_pool(most, pool<T>(config)) {}
    /// A pool with chunks from `chunks`, as `pool<T>` has.
    threaded_pool(const pool_config& config, std::pmr::memory_resource* chunks, std::size_t most = 0)
        : threaded_pool(most, pool<T>(config, chunks)) {}
    /// A pool of exactly `config.limit` objects, all of it in `place`.
    threaded_pool(const pool_config& config, storage place, std::size_t most = 0)
        : threaded_pool(most, pool<T>(config, place)) {}
    /// Bytes for that.
    static std::size_t bytes_for(const pool_config& config) noexcept { return pool<T>::bytes_for(config); }

    threaded_pool(threaded_pool&& from) noexcept
        : objects_(std::move(from.objects_)), home_(std::exchange(from.home_, nullptr)), place_(from.place_) {}
    threaded_pool& operator=(threaded_pool&& from) noexcept {
        threaded_pool moved(std::move(from));
        std::swap(objects_, moved.objects_);
        std::swap(home_, moved.home_);
        std::swap(place_, moved.place_);
        return *this;
    }
    /// Destroys the objects that are left, and gives the memory back. Nobody else is using the pool any more; threads that
    /// have used it may go on, or end at the same time.
    ~threaded_pool() {
        if (home_ != nullptr) {
            clear();
            home_->end();
        }
    }

    /// `pool::allocate`.
    template <class... Arguments>
    [[nodiscard]] NBBS_HOT T* allocate(Arguments&&... arguments) noexcept(
        std::is_nothrow_constructible_v<T, Arguments...>) {
        nbbs_pool_local& own = near(home_, place_);
        void* const slot = detail::has_kept(own) ? detail::take_kept(own) : take_more().value_or(nullptr);
        return slot == nullptr ? nullptr : construct(slot, std::forward<Arguments>(arguments)...);
    }

    /// `pool::try_allocate`.
    template <class... Arguments>
    [[nodiscard]] result<T*> try_allocate(Arguments&&... arguments) noexcept(
        std::is_nothrow_constructible_v<T, Arguments...>) {
        const result<void*> slot = take();
        if (!slot) {
            return slot.error();
        }
        return construct(*slot, std::forward<Arguments>(arguments)...);
    }

    /// `pool::make`.
    template <class... Arguments>
    [[nodiscard]] box make(Arguments&&... arguments) {
        void* const slot = detail::had(take());
        return box(construct(slot, std::forward<Arguments>(arguments)...), deleter{home_});
    }

    /// `pool::deallocate`, on any thread, which keeps the slot. Wrong and double frees are refused in the same way,
    /// whichever thread keeps the slot; but of two threads that free the same object at the very same time neither may be,
    /// and then its slot may be handed out twice, and after its chunk has gone.
    NBBS_HOT result<void> deallocate(T* object) noexcept { return free_in(home_, place_, object); }

    /// Gives back what the calling thread keeps.
    void flush() noexcept {
        if (nbbs_pool_local* const own = detail::local_of(home_)) {
            nbbs_pool_local_flush(own, nullptr);
        }
    }
    /// Slots that the calling thread keeps.
    std::size_t kept() const noexcept {
        const detail::seat* const own = detail::mine.seat_at(home_);
        return own == nullptr ? 0 : own->local->slots.kept;
    }

    /// The functions of `pool<T>` of these names, with what they ask of callers.
    [[nodiscard]] bool is_valid(const T* object) const noexcept { return objects_.is_valid(object); }
    template <class Visit>
    void each(Visit&& visit) {
        objects_.each(std::forward<Visit>(visit));
    }
    std::size_t length() const noexcept { return objects_.length(); }
    nbbs_pool_statistics stats() const noexcept { return objects_.stats(); }
    std::size_t capacity() const noexcept { return objects_.capacity(); }
    std::size_t limit() const noexcept { return objects_.limit(); }
    result<void> try_reserve(std::size_t objects) noexcept { return objects_.try_reserve(objects); }
    void reserve(std::size_t objects) { objects_.reserve(objects); }
    result<void> set_hook(nbbs_hook hook, void* context) noexcept { return objects_.set_hook(hook, context); }
    void clear() noexcept { objects_.clear(); }

    /// `pool::shrink`, after `flush`. What other threads keep holds its chunks.
    std::size_t shrink() noexcept {
        flush();
        return objects_.shrink();
    }

private:
    threaded_pool(std::size_t most, pool<T> objects) : objects_(std::move(objects)) {
        // What the threads' locals will be, tried out.
        const typename pool<T>::local one(objects_, most);
        home_ = new detail::home(objects_.pool_, most);
        place_ = home_->place;
    }

    /// The calling thread's local, if it is near.
    NBBS_HOT static nbbs_pool_local& near(const detail::home* of, std::size_t place) noexcept {
        const detail::near_local& shown = detail::mine.near[place];
        return __builtin_expect(shown.of == of, 1) ? *shown.local : detail::nobodys_local;
    }

    result<void*> take() noexcept {
        nbbs_pool_local& own = near(home_, place_);
        return detail::has_kept(own) ? result<void*>(detail::take_kept(own)) : take_more();
    }

    NBBS_COLD result<void*> take_more() noexcept {
        if (nbbs_pool_local* const own = detail::local_of(home_)) {
            return detail::take_more(*own);
        }
        return detail::get<void*>(nbbs_pool_alloc, objects_.pool_);
    }

    NBBS_HOT static result<void> free_in(detail::home* of, std::size_t place, T* object) noexcept {
        return detail::destroy(near(of, place), object, [&] { return free_slowly(of, object); });
    }

    NBBS_COLD static result<void> free_slowly(detail::home* of, T* object) noexcept {
        if (nbbs_pool_local* const own = detail::local_of(of)) {
            return detail::destroy_slowly(*own, object);
        }
        return detail::destroy(of == nullptr ? nullptr : of->pool, object);
    }

    template <class... Arguments>
    NBBS_HOT T* construct(void* slot, Arguments&&... arguments) {
        const auto free = [this](void* unmade) { return nbbs_pool_free(objects_.pool_, unmade, nullptr); };
        return detail::construct<T>(slot, free, std::forward<Arguments>(arguments)...);
    }

    pool<T> objects_;
    detail::home* home_ = nullptr;
    /// `home_->place`.
    std::size_t place_ = 0;
};

}  // namespace nbbs

#endif
