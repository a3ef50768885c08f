// Caches in front of an arena: what they keep, what goes past them, what they refuse.

#include "support.h"

namespace {

constexpr size_t kCpus = 4;

// An arena with caches for a few CPUs.
struct Cached {
    Arena arena;
    alignas(64) uint64_t words[NBBS_CACHE_BYTES(kCpus) / 8];

    explicit Cached(uint64_t units, const nbbs_cache_config *config = nullptr) : arena(units) {
        memset(words, 0xff, sizeof words);
        nbbs_error error{};
        EXPECT_EQ(nbbs_cache_create(&arena.handle, words, sizeof words, config, &error), NBBS_CODE_OK) << text_of(error);
    }

    uint64_t alloc(size_t cpu, uint32_t order) const {
        uint64_t index = ~0ull;
        nbbs_error error{};
        EXPECT_EQ(nbbs_cache_alloc(arena, cpu, order, &index, &error), NBBS_CODE_OK) << text_of(error);
        return index;
    }
    void free_sized(size_t cpu, uint64_t index, uint32_t order) const {
        nbbs_error error{};
        EXPECT_EQ(nbbs_cache_free_sized(arena, cpu, index, order, &error), NBBS_CODE_OK) << text_of(error);
    }
    void drain() const {
        for (size_t cpu = 0; cpu < kCpus; cpu++) EXPECT_EQ(nbbs_cache_drain(arena, cpu, nullptr), NBBS_CODE_OK);
    }
};

TEST(Cache, KeepsBlocksOfItsCpu) {
    Cached cached(1 << 12);
    EXPECT_EQ(nbbs_cache_cpus(cached.arena), kCpus);
    const uint64_t block = cached.alloc(1, 2);
    EXPECT_EQ(block % 4, 0u);
    // Half of 64 units, of which one block is in use.
    EXPECT_EQ(cached.arena.stats().cached_units, 28u);
    EXPECT_EQ(cached.arena.stats().used_units, 4u);
    EXPECT_EQ(cached.arena.stats().used_blocks[2], 1u);
    cached.free_sized(3, block, 2);
    EXPECT_EQ(cached.alloc(3, 2), block);
    uint64_t units = 99;
    EXPECT_EQ(nbbs_cache_free(cached.arena, 0, block, &units, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(units, 4u);
    EXPECT_EQ(cached.alloc(0, 2), block);
    cached.free_sized(0, block, 2);
    EXPECT_EQ(nbbs_cache_audit(cached.arena, nullptr), NBBS_CODE_OK);
    cached.drain();
    cached.arena.expect_empty();
}

TEST(Cache, IsAnOptionOfTheHandle) {
    Cached cached(1 << 12);
    nbbs_arena cpu;
    ASSERT_EQ(nbbs_on(cached.arena, 2, &cpu, nullptr), NBBS_CODE_OK);
    uint64_t block = ~0ull;
    ASSERT_EQ(nbbs_alloc(&cpu, 0, &block, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(cached.arena.stats().cached_units, 31u);
    ASSERT_EQ(nbbs_free_sized(&cpu, block, 0, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(cached.arena.stats().cached_units, 32u);
    ASSERT_EQ(nbbs_alloc(&cpu, 0, &block, nullptr), NBBS_CODE_OK);
    ASSERT_EQ(nbbs_free(&cpu, block, nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(cached.arena.stats().cached_units, 32u);
    // It is the cache of CPU 2, and of no other.
    EXPECT_EQ(cached.alloc(2, 0), block);
    cached.free_sized(2, block, 0);
    // A handle of no CPU goes past.
    block = cached.arena.alloc(0);
    EXPECT_EQ(cached.arena.stats().cached_units, 32u);
    EXPECT_EQ(nbbs_free(cached.arena, block, nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(cached.arena.stats().cached_units, 32u);
    cached.drain();
    cached.arena.expect_empty();
}

TEST(Cache, LanesThatAreNoCpuGoPast) {
    Cached cached(1 << 12);
    for (const size_t lane : {size_t{kCpus}, SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 2, SIZE_MAX - 1, SIZE_MAX}) {
        nbbs_arena far{};
        ASSERT_EQ(nbbs_on(cached.arena, lane, &far, nullptr), NBBS_CODE_OK);
        uint64_t block = ~0ull;
        ASSERT_EQ(nbbs_alloc(&far, 0, &block, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(cached.arena.stats().cached_units, 0u) << lane;
        ASSERT_EQ(nbbs_free_sized(&far, block, 0, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(cached.arena.stats().cached_units, 0u) << lane;
    }
    cached.arena.expect_empty();
}

TEST(Cache, OtherOrdersAndOtherCpusGoPast) {
    Cached cached(1 << 12);
    const uint64_t large = cached.alloc(0, 10), far = cached.alloc(kCpus, 0);
    EXPECT_EQ(cached.arena.stats().cached_units, 0u);
    cached.free_sized(0, large, 10);
    cached.free_sized(kCpus, far, 0);
    cached.arena.expect_empty();
}

TEST(Cache, ConfigurationsSayWhatIsKept) {
    nbbs_cache_config config{};
    config.blocks[0] = 8;
    config.blocks[1] = NBBS_CACHE_NONE;
    config.blocks[6] = 4;
    config.large_order = 10;
    config.large_blocks = 4;
    Cached cached(1 << 13, &config);
    cached.alloc(0, 0);
    EXPECT_EQ(cached.arena.stats().cached_units, 3u);
    cached.alloc(0, 1);
    EXPECT_EQ(cached.arena.stats().cached_units, 3u);
    cached.alloc(0, 2);
    EXPECT_EQ(cached.arena.stats().cached_units, 3u + 20u);
    cached.alloc(0, 6);
    EXPECT_EQ(cached.arena.stats().cached_units, 3u + 20u + 64u);
    cached.alloc(0, 10);
    EXPECT_EQ(cached.arena.stats().cached_units, 3u + 20u + 64u + 1024u);
    cached.alloc(0, 9);
    EXPECT_EQ(cached.arena.stats().cached_units, 3u + 20u + 64u + 1024u);
}

TEST(Cache, KeepsNoMoreThanAnEighthIfAsked) {
    const nbbs_cache_config small = nbbs_cache_config_for_arena(1 << 12, kCpus);
    uint64_t units = 0;
    for (uint32_t order = 0; order < 9; order++) {
        units += small.blocks[order] == NBBS_CACHE_NONE ? 0 : uint64_t{small.blocks[order]} << order;
    }
    EXPECT_EQ(small.large_blocks, NBBS_CACHE_NONE);
    EXPECT_GT(units, 0u);
    EXPECT_LE(units * kCpus, (1u << 12) / 8);
    Cached cached(1 << 12, &small);
    const nbbs_cache_config large = nbbs_cache_config_for_arena(1 << 20, kCpus);
    EXPECT_EQ(large.blocks[0], 64u);
    EXPECT_EQ(large.large_blocks, 2u);
}

TEST(Cache, RefusesImpossibleConfigurations) {
    Cached cached(1 << 12);
    const auto give = [&](const nbbs_cache_config &config) {
        return [&](nbbs_error *error) {
            return nbbs_cache_create(&cached.arena.handle, cached.words, sizeof cached.words, &config, error);
        };
    };
    nbbs_cache_config config{};
    config.blocks[3] = 65;
    expect_refusal(NBBS_CODE_SETTING, "the setting blocks[3] is 65: it must be at most 64", give(config));
    config = {};
    config.blocks[8] = 17;
    expect_refusal(NBBS_CODE_SETTING, "the setting blocks[8] is 17: it must be at most 16", give(config));
    config = {};
    config.large_blocks = 18;
    expect_refusal(NBBS_CODE_SETTING, "the setting large_blocks is 18: it must be at most 16", give(config));
    config = {};
    config.large_order = 41;
    expect_refusal(NBBS_CODE_SETTING, "the setting large_order is 41: it must be from 9 to 40", give(config));
    config.large_order = 8;
    expect_refusal(NBBS_CODE_SETTING, "the setting large_order is 8: it must be from 9 to 40", give(config));
    const auto of_bytes = [&](void *memory, size_t bytes) {
        return [=, &cached](nbbs_error *error) {
            return nbbs_cache_create(&cached.arena.handle, memory, bytes, nullptr, error);
        };
    };
    expect_refusal(NBBS_CODE_TOO_SHORT, "memory of 2943 bytes: 2944 are needed", of_bytes(cached.words, 2943));
    expect_refusal(NBBS_CODE_NULL, "nbbs_cache_create: argument 2 is a null pointer", of_bytes(nullptr, 2944));
    EXPECT_EQ(nbbs_cache_cpus(cached.arena), kCpus);
    EXPECT_EQ(nbbs_cache_bytes(kCpus), NBBS_CACHE_BYTES(kCpus));
    EXPECT_EQ(nbbs_cache_bytes(SIZE_MAX), 0u);
}

TEST(Cache, AttachesToCachesInUse) {
    Cached cached(1 << 12);
    const uint64_t block = cached.alloc(1, 0);
    cached.free_sized(1, block, 0);
    Arena &arena = cached.arena;
    nbbs_arena other;
    ASSERT_EQ(nbbs_attach(&other, arena.metadata.data(), arena.metadata.size() * 8, 1 << 12, nullptr), NBBS_CODE_OK);
    ASSERT_EQ(nbbs_cache_attach(&other, cached.words, sizeof cached.words, nullptr, nullptr), NBBS_CODE_OK);
    uint64_t again = ~0ull;
    EXPECT_EQ(nbbs_cache_alloc(&other, 1, 0, &again, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(again, block);
}

TEST(Cache, ARefusalGivesBackFirst) {
    Cached cached(64);
    const uint64_t block = cached.alloc(0, 0);
    cached.free_sized(0, block, 0);
    EXPECT_EQ(cached.alloc(0, 6), 0u);
    cached.free_sized(0, 0, 6);
    cached.drain();
    // What another CPU keeps is in use until that was asked.
    cached.free_sized(1, cached.alloc(1, 0), 0);
    expect_refusal(NBBS_CODE_EXHAUSTED, "no 64 units that fit the request are free", [&](nbbs_error *error) {
        uint64_t index;
        return nbbs_cache_alloc(cached.arena, 0, 6, &index, error);
    });
    const uint64_t other = cached.alloc(1, 0);
    EXPECT_EQ(cached.arena.stats().cached_units, 0u);
    EXPECT_EQ(nbbs_free(cached.arena, other, nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(cached.alloc(0, 6), 0u);
}

TEST(Cache, AsksAndDrainsOthers) {
    Cached cached(1 << 12);
    for (size_t cpu = 0; cpu < kCpus; cpu++) cached.free_sized(cpu, cached.alloc(cpu, 0), 0);
    EXPECT_EQ(nbbs_cache_ask(cached.arena, 0, nullptr), NBBS_CODE_OK);
    const uint64_t block = cached.alloc(0, 0);
    EXPECT_EQ(cached.arena.stats().cached_units, 3 * 32u);
    EXPECT_EQ(nbbs_free(cached.arena, block, nullptr, nullptr), NBBS_CODE_OK);
    int barriers = 0;
    const auto barrier = [](void *count) { ++*static_cast<int *>(count); };
    EXPECT_EQ(nbbs_cache_drain_all(cached.arena, barrier, &barriers, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(barriers, 1);
    expect_refusal(NBBS_CODE_NULL, "nbbs_cache_drain_all: argument 2 is a null pointer", [&](nbbs_error *error) {
        return nbbs_cache_drain_all(cached.arena, nullptr, nullptr, error);
    });
    EXPECT_EQ(nbbs_cache_recover(cached.arena, 0, nullptr), NBBS_CODE_OK);
    cached.arena.expect_empty();
}

TEST(Cache, RefusesWhatItCanTell) {
    Cached cached(1 << 12);
    const uint64_t block = cached.alloc(0, 1);
    const auto free_sized = [&](uint64_t index, uint32_t order) {
        return [&cached, index, order](nbbs_error *error) {
            return nbbs_cache_free_sized(cached.arena, 0, index, order, error);
        };
    };
    const std::string at = "unit " + std::to_string(block);
    cached.free_sized(0, block, 1);
    expect_refusal(NBBS_CODE_NOT_ALLOCATED, at + " is not allocated", free_sized(block, 1));
    EXPECT_EQ(free_sized(block + 1, 1)(nullptr), NBBS_CODE_MISALIGNED);
    EXPECT_EQ(free_sized(1 << 12, 1)(nullptr), NBBS_CODE_OUT_OF_RANGE);
    EXPECT_EQ(cached.arena.misuse.size(), 3u);
    // Believed, and counted when it goes back.
    cached.free_sized(0, 4000, 0);
    cached.drain();
    EXPECT_EQ(nbbs_cache_refused(cached.arena), 1u);
    cached.arena.expect_empty();
}

TEST(Cache, ChecksEveryFreeIfAsked) {
    nbbs_cache_config config{};
    config.checked = 1;
    Cached cached(1 << 12, &config);
    const uint64_t first = cached.alloc(0, 0), second = cached.alloc(0, 0);
    cached.free_sized(0, first, 0);
    cached.free_sized(0, second, 0);
    EXPECT_EQ(nbbs_cache_free_sized(cached.arena, 1, first, 0, nullptr), NBBS_CODE_NOT_ALLOCATED);
    EXPECT_EQ(nbbs_cache_free_sized(cached.arena, 0, 4000, 0, nullptr), NBBS_CODE_NOT_ALLOCATED);
    cached.drain();
    EXPECT_EQ(nbbs_cache_refused(cached.arena), 0u);
}

TEST(Cache, AuditsWhatIsKept) {
    Cached cached(1 << 12);
    const uint64_t block = cached.alloc(2, 0);
    cached.free_sized(2, block, 0);
    EXPECT_EQ(nbbs_free(cached.arena, block, nullptr, nullptr), NBBS_CODE_OK);
    nbbs_error error{};
    EXPECT_EQ(nbbs_cache_audit(cached.arena, &error), NBBS_CODE_CACHE_BROKEN);
    EXPECT_EQ(text_of(error),
              "CPU 2 keeps a block of order 0 at unit " + std::to_string(block) + " that is not its own");
}

TEST(Cache, HandlesThatWereNeverMadeAreRefused) {
    nbbs_arena none{};
    uint64_t index = 7;
    EXPECT_EQ(nbbs_cache_alloc(&none, 0, 0, &index, nullptr), NBBS_CODE_NO_ARENA);
    EXPECT_EQ(index, 7u);
    EXPECT_EQ(nbbs_cache_drain(&none, 0, nullptr), NBBS_CODE_NO_ARENA);
    EXPECT_EQ(nbbs_cache_cpus(&none), 0u);
    EXPECT_EQ(nbbs_cache_refused(nullptr), 0u);
    uint64_t words[NBBS_CACHE_BYTES(1) / 8];
    EXPECT_EQ(nbbs_cache_create(&none, words, sizeof words, nullptr, nullptr), NBBS_CODE_NO_ARENA);
}

// Each thread is a CPU; what one allocates another frees.
TEST(Cache, BlocksAreNobodyElses) {
    constexpr uint64_t units = 1 << 12, words = 4;
    Cached cached(units);
    std::vector<uint64_t> memory(units * words);
    on_threads([&](int number) {
        nbbs_arena cpu;
        ASSERT_EQ(nbbs_on(cached.arena, number, &cpu, nullptr), NBBS_CODE_OK);
        Random random(number);
        std::vector<std::pair<uint64_t, uint32_t>> held;
        for (int step = 0; step < 40000; step++) {
            if (held.size() < 200 && random(2) == 0) {
                uint64_t index;
                const uint32_t order = random(4);
                if (nbbs_alloc(&cpu, order, &index, nullptr) != NBBS_CODE_OK) continue;
                Owned{&memory[index * words], words << order}.take(number);
                held.emplace_back(index, order);
            } else if (!held.empty()) {
                std::swap(held[random(held.size())], held.back());
                const auto [index, order] = held.back();
                held.pop_back();
                EXPECT_TRUE((Owned{&memory[index * words], words << order}.is_of(number)));
                EXPECT_EQ(nbbs_free_sized(&cpu, index, order, nullptr), NBBS_CODE_OK);
            }
            if (random(500) == 0) nbbs_cache_ask(&cpu, random(kCpus), nullptr);
        }
        for (const auto &[index, order] : held) EXPECT_EQ(nbbs_free(&cpu, index, nullptr, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(nbbs_cache_drain(&cpu, number, nullptr), NBBS_CODE_OK);
    });
    EXPECT_TRUE(cached.arena.misuse.empty());
    EXPECT_EQ(nbbs_cache_refused(cached.arena), 0u);
    cached.arena.expect_empty();
}

}  // namespace
