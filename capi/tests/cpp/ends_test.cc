// Threaded pools and threads, in either order of their ends.

#include "support.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

namespace {

// An object that knows whose it is, and that it is whole.
struct Marked {
    std::uint64_t mark, twice;
    explicit Marked(std::uint64_t of) : mark(of), twice(2 * of) {}
    ~Marked() { mark = ~std::uint64_t{0}; }
};

// A thread that does what it is told, and waits.
class Worker {
public:
    Worker() : thread_([this] { work(); }) {}
    ~Worker() { end(); }

    template <class Work>
    void operator()(Work work) {
        std::unique_lock<std::mutex> guard(lock_);
        todo_ = [work] { work(); };
        changed_.notify_all();
        changed_.wait(guard, [this] { return !todo_; });
    }
    void end() {
        if (thread_.joinable()) {
            {
                const std::lock_guard<std::mutex> guard(lock_);
                over_ = true;
            }
            changed_.notify_all();
            thread_.join();
        }
    }

private:
    void work() {
        std::unique_lock<std::mutex> guard(lock_);
        while (!over_) {
            if (todo_) {
                todo_();
                todo_ = nullptr;
                changed_.notify_all();
            }
            changed_.wait(guard, [this] { return over_ || todo_; });
        }
    }

    std::mutex lock_;
    std::condition_variable changed_;
    std::function<void()> todo_;
    bool over_ = false;
    std::thread thread_;
};

TEST(Ends, AThreadGivesBackWhatItKept) {
    nbbs::threaded_pool<std::uint64_t> pool;
    std::uint64_t* object = nullptr;
    std::thread([&] {
        object = pool.allocate(1u);
        EXPECT_EQ(pool.kept(), 63u);
        EXPECT_EQ(pool.shrink(), 0u) << "an object is there";
        EXPECT_TRUE(pool.deallocate(pool.allocate(2u)));
        EXPECT_GT(pool.kept(), 0u);
    }).join();
    EXPECT_EQ(pool.length(), 1u);
    EXPECT_EQ(pool.kept(), 0u);
    EXPECT_TRUE(pool.deallocate(object));
    EXPECT_EQ(pool.kept(), 1u);
    EXPECT_GT(pool.shrink(), 0u);
    EXPECT_EQ(pool.capacity(), 0u) << "a thread that has ended keeps nothing";
}

TEST(Ends, APoolGoesBeforeItsThreads) {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int count = 0; count < kThreads; count++) {
        workers.push_back(std::make_unique<Worker>());
    }
    for (int round = 0; round < 50; round++) {
        nbbs::threaded_pool<Marked> pool;
        for (auto& worker : workers) {
            (*worker)([&] {
                EXPECT_EQ(pool.kept(), 0u) << "nothing of a pool before it, at the same place";
                Marked* object = pool.allocate(7u);
                EXPECT_EQ(object->twice, 14u);
                EXPECT_TRUE(pool.deallocate(object));
                EXPECT_EQ(pool.kept(), 64u);
                static_cast<void>(pool.allocate(8u));
            });
        }
        EXPECT_EQ(pool.length(), workers.size());
    }
    nbbs::threaded_pool<Marked> last;
    for (auto& worker : workers) {
        (*worker)([&] { EXPECT_TRUE(last.deallocate(last.allocate(9u))); });
        worker->end();
    }
    EXPECT_EQ(last.length(), 0u);
    last.shrink();
    EXPECT_EQ(last.capacity(), 0u);
}

// Threads end while the pool does: neither waits for the other to be done before.
TEST(Ends, BothAtTheSameTime) {
    for (int round = 0; round < 200; round++) {
        auto pool = std::make_unique<nbbs::threaded_pool<Marked>>();
        std::atomic<int> done{0};
        std::vector<std::thread> threads;
        for (int count = 0; count < kThreads; count++) {
            threads.emplace_back([&] {
                EXPECT_TRUE(pool->deallocate(pool->allocate(1u)));
                // Release pairs with the acquire below: the pool is used no more.
                done.fetch_add(1, std::memory_order_release);
            });
        }
        while (done.load(std::memory_order_acquire) < kThreads) {
            std::this_thread::yield();
        }
        pool.reset();
        for (auto& thread : threads) {
            thread.join();
        }
    }
}

// Uses a pool when its thread's locals have gone already: it was there before them, so it goes after them.
struct Late {
    nbbs::threaded_pool<Marked>* pool = nullptr;
    Marked* object = nullptr;
    ~Late() {
        if (pool != nullptr) {
            EXPECT_EQ(pool->kept(), 0u);
            EXPECT_TRUE(pool->deallocate(object));
            EXPECT_EQ(pool->deallocate(object).code(), NBBS_CODE_NO_OBJECT);
            EXPECT_TRUE(pool->deallocate(pool->allocate(3u)));
            EXPECT_EQ(pool->kept(), 0u) << "nobody would give it back any more";
        }
    }
};

TEST(Ends, AThreadMayUseAPoolToItsVeryEnd) {
    nbbs::threaded_pool<Marked> pool;
    std::thread([&] {
        thread_local Late late;
        late.pool = &pool;
        late.object = pool.allocate(2u);
    }).join();
    EXPECT_EQ(pool.length(), 0u);
    pool.shrink();
    EXPECT_EQ(pool.capacity(), 0u);
}

TEST(Ends, ManyPoolsAndManyThreads) {
    std::array<nbbs::threaded_pool<Marked>, 20> pools;
    for (int round = 0; round < 5; round++) {
        on_threads([&](int number) {
            const auto mark = static_cast<std::uint64_t>(number);
            Random random(mark);
            std::vector<std::pair<std::size_t, Marked*>> held;
            for (int step = 0; step < 4000; step++) {
                if (held.size() < 300 && random(2) == 0) {
                    const std::size_t at = random(pools.size());
                    held.emplace_back(at, pools[at].allocate(mark));
                    ASSERT_NE(held.back().second, nullptr);
                } else if (!held.empty()) {
                    std::swap(held[random(held.size())], held.back());
                    const auto [at, object] = held.back();
                    EXPECT_TRUE(object->mark == mark && object->twice == 2 * mark);
                    EXPECT_TRUE(pools[at].deallocate(object));
                    held.pop_back();
                }
            }
            for (const auto& [at, object] : held) {
                EXPECT_TRUE(pools[at].deallocate(object));
            }
        });
    }
    for (auto& pool : pools) {
        EXPECT_EQ(pool.length(), 0u);
        pool.shrink();
        EXPECT_EQ(pool.capacity(), 0u) << "no slot is lost";
    }
}

// More pools than a thread has near, and so some that are not.
TEST(Ends, WhatIsKeptIsKnownOfPoolsThatAreNotNear) {
    std::array<nbbs::threaded_pool<Marked>, nbbs::detail::near_places + 1> pools;
    for (auto& pool : pools) {
        EXPECT_TRUE(pool.deallocate(pool.allocate(4u)));
    }
    for (auto& pool : pools) {
        EXPECT_EQ(pool.kept(), 64u);
        pool.flush();
        EXPECT_EQ(pool.kept(), 0u);
    }
}

TEST(Ends, ObjectsAreFreedByOthers) {
    nbbs::threaded_pool<Marked> pool;
    std::array<std::atomic<Marked*>, 64> table{};
    on_threads([&](int number) {
        Random random(static_cast<std::uint64_t>(number));
        for (int step = 0; step < 20000; step++) {
            // Release: the object's bytes go to whoever takes it out; acquire: theirs come here.
            Marked* other = table[random(table.size())].exchange(pool.allocate(random(1000)),
                                                                 std::memory_order_acq_rel);
            if (other != nullptr) {
                EXPECT_EQ(other->twice, 2 * other->mark);
                EXPECT_TRUE(pool.deallocate(other));
            }
            if (step % 5000 == 0) {
                pool.shrink();
            }
        }
    });
    EXPECT_LE(pool.length(), table.size());
    for (auto& object : table) {
        EXPECT_TRUE(pool.deallocate(object));
    }
    pool.shrink();
    EXPECT_EQ(pool.capacity(), 0u);
}

TEST(Ends, TheLimitHoldsForAllTogether) {
    nbbs::pool_config config;
    config.limit = 500;
    config.chunk = 64;
    nbbs::threaded_pool<std::uint64_t> pool(config);
    std::atomic<std::size_t> got{0};
    on_threads([&](int number) {
        while (pool.allocate(static_cast<std::uint64_t>(number)) != nullptr) {
            got++;
        }
    });
    // Who was refused kept none; the others may have kept some at that time.
    EXPECT_LE(got, 500u);
    EXPECT_GE(got, 500u - (kThreads - 1) * 7u);
    while (pool.allocate(9u) != nullptr) {
        got++;
    }
    EXPECT_EQ(got, 500u) << "threads that have ended keep nothing";
}

}  // namespace
