// Arenas from many threads: whoever holds units writes to their memory without any synchronisation.

#include <atomic>

#include "support.h"

namespace {

constexpr uint64_t kUnits = 2048, kWords = 4;  // words of memory a unit

struct Shared {
    Arena arena{kUnits};
    std::vector<uint64_t> memory = std::vector<uint64_t>(kUnits * kWords);

    Owned owned(uint64_t index, uint64_t units) { return {&memory[index * kWords], units * kWords}; }
};

TEST(Threads, BlocksAndRunsAreNobodyElses) {
    Shared shared;
    on_threads([&](int number) {
        Random random(number);
        struct Held {
            uint64_t index, units;
        };
        std::vector<Held> held;
        const nbbs_arena *arena = shared.arena;
        for (int step = 0; step < 20000; step++) {
            uint64_t index, units;
            if (held.size() < 60 && random(2) == 0) {
                uint32_t order = random(5);
                units = random(2) ? 1ull << order : 1 + random(40);
                bool got = units == 1ull << order ? nbbs_alloc(arena, order, &index, nullptr) == NBBS_CODE_OK
                                                  : nbbs_alloc_units(arena, units, &index, nullptr) == NBBS_CODE_OK;
                if (!got) continue;
                shared.owned(index, units).take(number);
                held.push_back({index, units});
            } else if (!held.empty()) {
                std::swap(held[random(held.size())], held.back());
                Held &last = held.back();
                EXPECT_TRUE(shared.owned(last.index, last.units).is_of(number));
                if (last.units > 1 && random(4) == 0) {
                    if (nbbs_shrink(arena, last.index, last.units - 1, nullptr) == NBBS_CODE_OK) last.units--;
                    continue;
                }
                EXPECT_EQ(nbbs_free_units(arena, last.index, last.units, nullptr), NBBS_CODE_OK);
                held.pop_back();
            }
        }
        for (auto &each : held) EXPECT_EQ(nbbs_free(arena, each.index, nullptr, nullptr), NBBS_CODE_OK);
    });
    EXPECT_TRUE(shared.arena.misuse.empty());
    shared.arena.expect_empty();
}

TEST(Threads, BatchesLanesAndReservations) {
    Shared shared;
    on_threads([&](int number) {
        nbbs_arena lane;
        ASSERT_EQ(nbbs_on(shared.arena, number, &lane, nullptr), NBBS_CODE_OK);
        for (int step = 0; step < 2000; step++) {
            uint64_t blocks[50];
            size_t got = 0, done = 0;
            nbbs_alloc_batch(&lane, step % 2, blocks, 50, &got, nullptr);
            for (size_t at = 0; at < got; at++) shared.owned(blocks[at], 1 << step % 2).take(number);
            uint64_t start = 8 * static_cast<uint64_t>(number);
            if (nbbs_reserve(&lane, start, start + 8, nullptr) == NBBS_CODE_OK) {
                EXPECT_EQ(nbbs_release(&lane, start, start + 8, nullptr), NBBS_CODE_OK);
            }
            for (size_t at = 0; at < got; at++) {
                EXPECT_TRUE(shared.owned(blocks[at], 1 << step % 2).is_of(number));
            }
            EXPECT_EQ(nbbs_free_batch(&lane, step % 2, blocks, got, &done, nullptr), NBBS_CODE_OK);
        }
    });
    shared.arena.expect_empty();
}

// Nothing else orders what the holders write.
TEST(Threads, MemoryPassesByFreeAndAllocAlone) {
    Arena arena(1);
    uint64_t unit = arena.alloc(0), memory = 0;
    on_threads([&](int number) {
        uint64_t own = unit;
        while (number != 0 && nbbs_alloc(arena, 0, &own, nullptr) != NBBS_CODE_OK) std::this_thread::yield();
        memory++;
        EXPECT_EQ(nbbs_free(arena, own, nullptr, nullptr), NBBS_CODE_OK);
    });
    EXPECT_EQ(memory, static_cast<uint64_t>(kThreads));
}

TEST(Threads, OnlyOneOfManyFreesSucceeds) {
    Arena arena(kUnits);
    ASSERT_EQ(nbbs_set_hook(&arena.handle, nullptr, nullptr, nullptr), NBBS_CODE_OK);
    for (int round = 0; round < 200; round++) {
        uint64_t block = arena.alloc(round % 8);
        std::atomic<int> freed{0};
        on_threads([&](int) { freed += nbbs_free(arena, block, nullptr, nullptr) == NBBS_CODE_OK; });
        EXPECT_EQ(freed, 1);
    }
    arena.expect_empty();
}

TEST(Threads, LookingOnDisturbsNobody) {
    Shared shared;
    std::atomic<bool> done{false};
    std::thread watcher([&] {
        uint8_t map[kUnits];
        while (!done) {
            nbbs_statistics stats = shared.arena.stats();
            EXPECT_EQ(stats.free_units + stats.used_units + stats.reserved_units, kUnits);
            EXPECT_EQ(nbbs_occupancy_map(shared.arena, 0, map, sizeof map, nullptr, nullptr), NBBS_CODE_OK);
        }
    });
    on_threads([&](int number) {
        for (int step = 0; step < 20000; step++) {
            uint64_t index;
            if (nbbs_alloc(shared.arena, step % 6, &index, nullptr) != NBBS_CODE_OK) continue;
            shared.owned(index, 1).take(number);
            EXPECT_EQ(nbbs_free_sized(shared.arena, index, step % 6, nullptr), NBBS_CODE_OK);
        }
    });
    done = true;
    watcher.join();
    shared.arena.expect_empty();
}

}  // namespace
