// The same from many threads: whoever holds memory writes to it without any synchronisation.

#include "support.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

namespace {

constexpr std::size_t kUnitBytes = 64;
Memory<1 << 17> memory;

Owned owned(const nbbs::block& block) {
    return {static_cast<std::uint64_t*>(block.data()), block.size_bytes() / sizeof(std::uint64_t)};
}

TEST(Threads, BlocksAreNobodyElses) {
    nbbs::buddy arena(memory.region(kUnitBytes));
    on_threads([&](int number) {
        const auto mark = static_cast<std::uint64_t>(number);
        Random random(mark);
        std::vector<nbbs::block> held;
        for (int step = 0; step < 10000; step++) {
            if (held.size() < 60 && random(2) == 0) {
                auto got = random(2) != 0 ? nbbs::block::try_of_order(arena, static_cast<std::uint32_t>(random(5)))
                                          : nbbs::block::try_of_units(arena, 1 + random(40));
                if (got) {
                    owned(*got).take(mark);
                    held.push_back(*std::move(got));
                }
            } else if (!held.empty()) {
                std::swap(held[random(held.size())], held.back());
                EXPECT_TRUE(owned(held.back()).is_of(mark));
                if (held.back().units() > 1 && random(4) == 0) {
                    if (auto rest = held.back().try_split_off(held.back().units() / 2)) {
                        held.push_back(*std::move(rest));
                    }
                } else {
                    held.pop_back();
                }
            }
        }
    });
    expect_empty(arena);
}

TEST(Threads, ContainersShareAResource) {
    nbbs::buddy arena(memory.region(kUnitBytes));
    nbbs::memory_resource resource(arena);
    on_threads([&](int number) {
        const nbbs::buddy lane = arena.on(static_cast<std::size_t>(number));
        for (int round = 0; round < 20; round++) {
            std::pmr::vector<int> mine(&resource);
            std::vector<std::pmr::string, nbbs::allocator<std::pmr::string>> texts(lane);
            for (int step = 0; step < 100; step++) {
                mine.push_back(number);
                texts.emplace_back(std::string(30, static_cast<char>('a' + number)), &resource);
            }
            EXPECT_EQ(std::count(mine.begin(), mine.end(), number), 100);
            EXPECT_EQ(texts[50], std::pmr::string(30, static_cast<char>('a' + number)));
        }
    });
    expect_empty(arena);
}

// An object that knows whose it is, and that it is whole.
struct Marked {
    std::uint64_t mark, twice;
    explicit Marked(std::uint64_t of) : mark(of), twice(2 * of) {}
    ~Marked() { mark = ~std::uint64_t{0}; }
};

TEST(Threads, ObjectsAreNobodyElses) {
    nbbs::pool_config config;
    config.chunk = 64;
    nbbs::pool<Marked> pool(config);
    on_threads([&](int number) {
        const auto mark = static_cast<std::uint64_t>(number);
        Random random(mark);
        std::vector<Marked*> held;
        for (int step = 0; step < 20000; step++) {
            if (held.size() < 200 && random(2) == 0) {
                held.push_back(pool.allocate(mark));
                ASSERT_NE(held.back(), nullptr);
            } else if (!held.empty()) {
                std::swap(held[random(held.size())], held.back());
                EXPECT_TRUE(held.back()->mark == mark && held.back()->twice == 2 * mark);
                EXPECT_TRUE(pool.is_valid(held.back()));
                EXPECT_TRUE(pool.deallocate(held.back()));
                held.pop_back();
            }
        }
        for (Marked* object : held) {
            EXPECT_TRUE(pool.deallocate(object));
        }
    });
    EXPECT_EQ(pool.length(), 0u);
}

TEST(Threads, ObjectsAreFreedByOthers) {
    nbbs::pool<Marked> pool;
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
        }
    });
    EXPECT_LE(pool.length(), table.size());
}

TEST(Threads, TheLimitHoldsForAllTogether) {
    nbbs::pool_config config;
    config.limit = 500;
    config.chunk = 64;
    nbbs::pool<std::uint64_t> pool(config);
    std::atomic<int> got{0};
    on_threads([&](int number) {
        while (pool.allocate(static_cast<std::uint64_t>(number)) != nullptr) {
            got++;
        }
    });
    EXPECT_EQ(got, 500);
    EXPECT_EQ(pool.length(), 500u);
}

}  // namespace
