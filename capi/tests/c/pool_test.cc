// Objects of one size.

#include <atomic>
#include <cstdlib>
#include <set>

#include "support.h"

namespace {

// Where a pool's memory comes from, counted.
struct Counted {
    std::atomic<long> blocks{0};
    std::atomic<size_t> bytes{0};
    size_t most = SIZE_MAX;

    nbbs_source source() {
        return {[](void *context, size_t bytes, size_t align) -> void * {
                    auto *counted = static_cast<Counted *>(context);
                    if (counted->bytes + bytes > counted->most) return nullptr;
                    counted->blocks++, counted->bytes += bytes;
                    return std::aligned_alloc(align, (bytes + align - 1) / align * align);
                },
                [](void *context, void *block, size_t bytes, size_t) {
                    auto *counted = static_cast<Counted *>(context);
                    counted->blocks--, counted->bytes -= bytes;
                    std::free(block);
                },
                this};
    }
};

nbbs_pool_config config_of(size_t size, size_t align, size_t limit) {
    nbbs_pool_config config{};
    config.size = size, config.align = align, config.limit = limit;
    return config;
}

nbbs_pool *make(const nbbs_pool_config &config, const nbbs_source *source = nullptr) {
    nbbs_pool *pool = nullptr;
    nbbs_error error{};
    EXPECT_EQ(nbbs_pool_create(&config, source, &pool, &error), NBBS_CODE_OK) << text_of(error);
    return pool;
}

void *alloc(nbbs_pool *pool) {
    void *object = nullptr;
    nbbs_error error{};
    EXPECT_EQ(nbbs_pool_alloc(pool, &object, &error), NBBS_CODE_OK) << text_of(error);
    return object;
}

TEST(Pool, ObjectsAreApartAlignedAndTheirHolders) {
    for (size_t size : {1, 3, 8, 24, 48, 100, 4096}) {
        for (size_t align : {0, 1, 8, 64, 4096}) {
            nbbs_pool *pool = make(config_of(size, align, 300));
            size_t stride = nbbs_pool_stride(pool);
            EXPECT_GE(stride, size);
            std::set<uintptr_t> places;
            for (int count = 0; count < 300; count++) {
                void *object = alloc(pool);
                std::memset(object, count, size);
                EXPECT_EQ(reinterpret_cast<uintptr_t>(object) % (align ? align : 1), 0u);
                places.insert(reinterpret_cast<uintptr_t>(object));
                EXPECT_TRUE(nbbs_pool_is_valid(pool, object));
            }
            uintptr_t before = 0;
            for (uintptr_t place : places) {
                EXPECT_GE(place - before, size);
                before = place;
            }
            EXPECT_EQ(nbbs_pool_len(pool), 300u);
            nbbs_pool_destroy(pool);
        }
    }
}

TEST(Pool, GrowsAndShrinksByChunks) {
    Counted counted;
    nbbs_source source = counted.source();
    nbbs_pool_config config = config_of(40, 8, 0);
    config.chunk = 100, config.reserve = 150;
    nbbs_pool *pool = make(config, &source);
    EXPECT_EQ(nbbs_pool_capacity(pool), 200u);
    EXPECT_EQ(nbbs_pool_limit(pool), SIZE_MAX);
    std::vector<void *> objects;
    for (int count = 0; count < 1000; count++) objects.push_back(alloc(pool));
    EXPECT_EQ(nbbs_pool_capacity(pool), 1000u);
    for (void *object : objects) EXPECT_EQ(nbbs_pool_free(pool, object, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_shrink(pool), 800u);
    EXPECT_EQ(nbbs_pool_capacity(pool), 200u);
    EXPECT_EQ(nbbs_pool_free(pool, objects[999], nullptr), NBBS_CODE_FOREIGN_ADDRESS) << "its chunk has gone";
    EXPECT_EQ(nbbs_pool_reserve(pool, 500, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_capacity(pool), 500u);
    nbbs_pool_destroy(pool);
    EXPECT_EQ(counted.blocks, 0);
    EXPECT_EQ(counted.bytes, 0u);
}

TEST(Pool, SaysWhatItHas) {
    Counted memory;
    nbbs_source source = memory.source();
    nbbs_pool_config config = config_of(24, 8, 0);
    config.chunk = 100;
    nbbs_pool *pool = make(config, &source);
    const auto stats = [pool] {
        nbbs_pool_statistics found{};
        EXPECT_EQ(nbbs_pool_stats(pool, &found, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(found.objects + found.kept + found.free, found.capacity);
        EXPECT_EQ(found.objects, nbbs_pool_len(pool));
        EXPECT_EQ(found.capacity, nbbs_pool_capacity(pool));
        return found;
    };
    EXPECT_EQ(stats().capacity, 0u);
    const size_t of_itself = memory.bytes - stats().bookkeeping;
    std::vector<void *> objects;
    for (int number = 0; number < 250; number++) objects.push_back(alloc(pool));
    nbbs_pool_local local;
    ASSERT_EQ(nbbs_pool_local_create(&local, pool, 5, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_local_free(&local, objects.back(), nullptr), NBBS_CODE_OK);
    EXPECT_EQ(stats().objects, 249u);
    EXPECT_EQ(stats().kept, 1u);
    EXPECT_EQ(stats().free, 50u);
    EXPECT_EQ(stats().chunks, 3u);
    EXPECT_EQ(stats().bytes, 300u * 24);
    EXPECT_EQ(stats().bytes + stats().bookkeeping + of_itself, memory.bytes);
    nbbs_pool_local_destroy(&local);
    objects.pop_back();
    for (void *object : objects) EXPECT_EQ(nbbs_pool_free(pool, object, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_shrink(pool), 300u);
    EXPECT_EQ(stats().capacity, 0u);
    EXPECT_EQ(stats().bytes, 0u);
    EXPECT_EQ(stats().peak_capacity, 300u);
    EXPECT_EQ(nbbs_pool_stats(pool, nullptr, nullptr), NBBS_CODE_NULL);
    nbbs_pool_destroy(pool);
    EXPECT_EQ(memory.bytes, 0u);
}

TEST(Pool, GrowsAheadOfDemand) {
    nbbs_pool_config config = config_of(16, 16, 1000);
    config.chunk = 128, config.ahead = 100;
    nbbs_pool *pool = make(config);
    for (int count = 0; count < 65; count++) alloc(pool);
    EXPECT_EQ(nbbs_pool_capacity(pool), 256u);
    nbbs_pool_destroy(pool);
}

TEST(Pool, EndsAtItsLimitAndItsSource) {
    nbbs_pool *pool = make(config_of(16, 0, 70));
    EXPECT_EQ(nbbs_pool_limit(pool), 70u);
    for (int count = 0; count < 70; count++) alloc(pool);
    void *object = nullptr;
    expect_refusal(NBBS_CODE_FULL, "all 70 objects that the pool may have are allocated",
                   [&](nbbs_error *e) { return nbbs_pool_alloc(pool, &object, e); });
    EXPECT_EQ(object, nullptr);
    nbbs_pool_destroy(pool);

    Counted counted;
    counted.most = 40000;
    nbbs_source source = counted.source();
    pool = make(config_of(16, 0, 0), &source);
    nbbs_code code;
    while ((code = nbbs_pool_alloc(pool, &object, nullptr)) == NBBS_CODE_OK) {
    }
    EXPECT_EQ(code, NBBS_CODE_SOURCE_EMPTY);
    expect_refusal(NBBS_CODE_SOURCE_EMPTY, "the source has no 4096 bytes at a multiple of 4096",
                   [&](nbbs_error *e) { return nbbs_pool_alloc(pool, &object, e); });
    EXPECT_EQ(nbbs_pool_len(pool), nbbs_pool_capacity(pool));
    nbbs_pool_destroy(pool);
    EXPECT_EQ(counted.blocks, 0);
    counted.most = 100;
    nbbs_pool_config config = config_of(16, 0, 0);
    EXPECT_EQ(nbbs_pool_create(&config, &source, &pool, nullptr), NBBS_CODE_SOURCE_EMPTY);
    counted.most = 9000, config.reserve = 10000;
    EXPECT_EQ(nbbs_pool_create(&config, &source, &pool, nullptr), NBBS_CODE_SOURCE_EMPTY);
    EXPECT_EQ(counted.blocks, 0) << "nothing is left behind";
}

TEST(Pool, WhatIsNotAlignedGoesBack) {
    static int blocks;
    alignas(64) static char memory[1 << 16];
    const nbbs_source misaligned = {
        [](void *, size_t, size_t) -> void * { return blocks++, memory + 1; },
        [](void *, void *block, size_t, size_t) { blocks -= block == memory + 1; }, nullptr};
    nbbs_pool_config config = config_of(16, 0, 0);
    config.reserve = 1;
    nbbs_pool *pool = nullptr;
    EXPECT_EQ(nbbs_pool_create(&config, &misaligned, &pool, nullptr), NBBS_CODE_SOURCE_EMPTY);
    EXPECT_EQ(blocks, 0);
}

// How many objects come with the first.
size_t first_chunk(size_t size, size_t limit, const nbbs_source *source = nullptr) {
    nbbs_pool *pool = make(config_of(size, 1, limit), source);
    EXPECT_EQ(nbbs_pool_capacity(pool), 0u);
    alloc(pool);
    size_t slots = nbbs_pool_capacity(pool);
    nbbs_pool_destroy(pool);
    return slots;
}

TEST(Pool, ChunksThatNobodyChose) {
    EXPECT_EQ(first_chunk(16, 0), 4096u);
    EXPECT_EQ(first_chunk(1000, 0), 1048u);
    EXPECT_EQ(first_chunk(100000, 0), 64u);
    EXPECT_EQ(first_chunk(16, 70), 70u);
    // A source of the program's may have little.
    Counted counted;
    nbbs_source source = counted.source();
    EXPECT_EQ(first_chunk(1, 0, &source), 4096u);
    EXPECT_EQ(first_chunk(16, 0, &source), 256u);
    EXPECT_EQ(first_chunk(1000, 0, &source), 4u);
    EXPECT_EQ(first_chunk(10000, 0, &source), 1u);
    EXPECT_EQ(first_chunk(64, 3, &source), 3u);
    EXPECT_EQ(counted.blocks, 0);
}

TEST(Pool, BadFreesAreRefusedAndReported) {
    nbbs_pool *pool = make(config_of(48, 16, 0)), *other = make(config_of(48, 16, 0));
    std::vector<nbbs_error> misuse;
    auto note = [](void *context, const nbbs_error *error) {
        static_cast<std::vector<nbbs_error> *>(context)->push_back(*error);
    };
    EXPECT_EQ(nbbs_pool_set_hook(pool, note, &misuse, nullptr), NBBS_CODE_OK);
    auto *object = static_cast<char *>(alloc(pool)), *foreign = static_cast<char *>(alloc(other));
    EXPECT_EQ(nbbs_pool_free(pool, nullptr, nullptr), NBBS_CODE_OK);
    for (int inside : {1, 16, 47}) {
        EXPECT_EQ(nbbs_pool_free(pool, object + inside, nullptr), NBBS_CODE_INSIDE_UNIT);
        EXPECT_FALSE(nbbs_pool_is_valid(pool, object + inside));
    }
    EXPECT_EQ(nbbs_pool_free(pool, foreign, nullptr), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(nbbs_pool_free(pool, &pool, nullptr), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(nbbs_pool_free(pool, reinterpret_cast<void *>(1), nullptr), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(nbbs_pool_free(pool, reinterpret_cast<void *>(UINTPTR_MAX), nullptr), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(nbbs_pool_free(pool, object + 48, nullptr), NBBS_CODE_NO_OBJECT);
    EXPECT_EQ(misuse.size(), 8u);
    EXPECT_EQ(nbbs_pool_len(pool), 1u);
    EXPECT_EQ(nbbs_pool_free(pool, object, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_free(pool, object, nullptr), NBBS_CODE_NO_OBJECT);
    EXPECT_FALSE(nbbs_pool_is_valid(pool, object));
    EXPECT_FALSE(nbbs_pool_is_valid(pool, nullptr));
    EXPECT_TRUE(nbbs_pool_is_valid(other, foreign));
    nbbs_pool_destroy(pool);
    nbbs_pool_destroy(other);
}

TEST(Pool, LivesInOneBlock) {
    for (size_t limit : {1u, 63u, 64u, 65u, 1000u, 5000u}) {
        for (size_t size : {1, 7, 48, 200}) {
            for (size_t align : {1, 8, 256}) {
                nbbs_pool_config config = config_of(size, align, limit);
                size_t bytes = nbbs_pool_bytes(&config);
                ASSERT_NE(bytes, 0u);
                for (size_t shift : {0, 1, 8}) {
                    // What lies around the block stays as it was.
                    std::vector<uint8_t> memory(bytes + shift + 1, 0xa5);
                    nbbs_pool *pool = nullptr;
                    nbbs_error error{};
                    ASSERT_EQ(nbbs_pool_create_in(&config, &memory[shift], bytes, &pool, &error), NBBS_CODE_OK)
                        << text_of(error);
                    std::set<void *> objects;
                    void *object;
                    while (nbbs_pool_alloc(pool, &object, &error) == NBBS_CODE_OK) {
                        std::memset(object, 0, size);
                        EXPECT_TRUE(objects.insert(object).second);
                        EXPECT_EQ(reinterpret_cast<uintptr_t>(object) % align, 0u);
                    }
                    EXPECT_EQ(error.code, static_cast<uint32_t>(NBBS_CODE_FULL));
                    EXPECT_EQ(objects.size(), limit);
                    EXPECT_EQ(nbbs_pool_shrink(pool), 0u);
                    EXPECT_EQ(nbbs_pool_free(pool, &memory[0], nullptr), NBBS_CODE_FOREIGN_ADDRESS);
                    for (void *each : objects) EXPECT_EQ(nbbs_pool_free(pool, each, nullptr), NBBS_CODE_OK);
                    EXPECT_EQ(nbbs_pool_len(pool), 0u);
                    EXPECT_EQ(nbbs_pool_shrink(pool), 0u);
                    nbbs_pool_destroy(pool);
                    EXPECT_EQ(memory[bytes + shift], 0xa5);
                    if (shift > 0) {
                        EXPECT_EQ(memory[0], 0xa5);
                    }
                }
                std::vector<uint8_t> small(size * limit);
                nbbs_pool *pool = nullptr;
                EXPECT_EQ(nbbs_pool_create_in(&config, small.data(), small.size(), &pool, nullptr),
                          NBBS_CODE_TOO_SHORT);
            }
        }
    }
}

TEST(Pool, WhatCannotBeOneIsRefused) {
    nbbs_pool *pool = nullptr;
    char memory[100];
    nbbs_pool_config config = config_of(0, 1, 10);
    EXPECT_EQ(nbbs_pool_create(&config, nullptr, &pool, nullptr), NBBS_CODE_SIZE);
    EXPECT_EQ(nbbs_pool_bytes(&config), 0u);
    config = config_of(SIZE_MAX, 1, 10);
    EXPECT_EQ(nbbs_pool_create(&config, nullptr, &pool, nullptr), NBBS_CODE_SIZE);
    config = config_of(SIZE_MAX / 100, 1, 1000);
    EXPECT_EQ(nbbs_pool_create(&config, nullptr, &pool, nullptr), NBBS_CODE_SIZE);
    EXPECT_EQ(nbbs_pool_create_in(&config, memory, SIZE_MAX, &pool, nullptr), NBBS_CODE_SIZE);
    config = config_of(8, 8, 10);
    EXPECT_EQ(nbbs_pool_create_in(&config, memory, SIZE_MAX, &pool, nullptr), NBBS_CODE_SIZE);
    config = config_of(8, 3, 10);
    EXPECT_EQ(nbbs_pool_create(&config, nullptr, &pool, nullptr), NBBS_CODE_ALIGNMENT);
    config = config_of(8, 8, 10);
    config.chunk = SIZE_MAX;
    expect_refusal(NBBS_CODE_SETTING, "the setting chunk is " + std::to_string(SIZE_MAX) + ": it must be at most 16777216",
                   [&](nbbs_error *error) { return nbbs_pool_create(&config, nullptr, &pool, error); });
    for (const size_t limit : {size_t{0}, SIZE_MAX}) {
        config = config_of(8, 8, limit);
        EXPECT_EQ(nbbs_pool_bytes(&config), 0u);
        const std::string range = "1 to " + std::to_string(SIZE_MAX / 64);
        expect_refusal(NBBS_CODE_SETTING, "the setting limit is " + std::to_string(limit) + ": it must be from " + range,
                       [&](nbbs_error *error) {
                           return nbbs_pool_create_in(&config, memory, sizeof memory, &pool, error);
                       });
    }
    nbbs_source none{};
    expect_refusal(NBBS_CODE_NULL, "nbbs_pool_create: the function in argument 2 is null",
                   [&](nbbs_error *error) { return nbbs_pool_create(&config, &none, &pool, error); });
    expect_refusal(NBBS_CODE_NULL, "nbbs_pool_create: argument 3 is a null pointer",
                   [&](nbbs_error *error) { return nbbs_pool_create(&config, nullptr, nullptr, error); });
    EXPECT_EQ(nbbs_pool_create(nullptr, nullptr, &pool, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_create_in(&config, nullptr, 100, &pool, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(pool, nullptr);
    void *object;
    EXPECT_EQ(nbbs_pool_alloc(nullptr, &object, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_free(nullptr, memory, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_clear(nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_reserve(nullptr, 1, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_set_hook(nullptr, nullptr, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_len(nullptr), 0u);
    EXPECT_EQ(nbbs_pool_capacity(nullptr), 0u);
    EXPECT_EQ(nbbs_pool_limit(nullptr), 0u);
    EXPECT_EQ(nbbs_pool_stride(nullptr), 0u);
    EXPECT_EQ(nbbs_pool_shrink(nullptr), 0u);
    EXPECT_FALSE(nbbs_pool_is_valid(nullptr, memory));
    nbbs_pool_destroy(nullptr);
    pool = make(config_of(8, 8, 10));
    EXPECT_EQ(nbbs_pool_alloc(pool, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_len(pool), 0u) << "nothing was allocated for nobody";
    EXPECT_EQ(nbbs_pool_each(pool, nullptr, nullptr, nullptr), NBBS_CODE_NULL);
    nbbs_pool_destroy(pool);
}

TEST(Pool, VisitsAndClears) {
    nbbs_pool *pool = make(config_of(sizeof(long), alignof(long), 0));
    long sum = 0;
    for (long number = 1; number <= 3000; number++) *static_cast<long *>(alloc(pool)) = number;
    auto add = [](void *sum, void *object) { *static_cast<long *>(sum) += *static_cast<long *>(object); };
    EXPECT_EQ(nbbs_pool_each(pool, add, &sum, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(sum, 3000 * 3001 / 2);
    auto drop = [](void *pool, void *object) {
        EXPECT_EQ(nbbs_pool_free(static_cast<nbbs_pool *>(pool), object, nullptr), NBBS_CODE_OK);
    };
    EXPECT_EQ(nbbs_pool_each(pool, drop, pool, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_len(pool), 0u);
    void *object = alloc(pool);
    EXPECT_EQ(nbbs_pool_clear(pool, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_len(pool), 0u);
    EXPECT_GE(nbbs_pool_capacity(pool), 3000u);
    EXPECT_EQ(nbbs_pool_free(pool, object, nullptr), NBBS_CODE_NO_OBJECT);
    nbbs_pool_destroy(pool);
}

TEST(Pool, RefusesToReserveWhatCannotBe) {
    nbbs_error error;
    nbbs_pool_config config = config_of(64, 64, 0);
    config.reserve = SIZE_MAX;
    nbbs_pool *pool = nullptr;
    EXPECT_EQ(nbbs_pool_create(&config, nullptr, &pool, &error), NBBS_CODE_SETTING);
    EXPECT_EQ(error.value, SIZE_MAX);
    EXPECT_EQ(error.limit, std::min<uint64_t>(SIZE_MAX / 2 / 64, 4096 * (uint64_t{0x80000000} - 8)))
        << "of 4096 objects each, the table has room for so many chunks";
    EXPECT_EQ(error.detail, uint32_t{NBBS_SETTING_RESERVE});
    config.limit = 5000, config.reserve = 5001;
    expect_refusal(NBBS_CODE_SETTING, "the setting reserve is 5001: it must be at most 5000", [&](nbbs_error *into) {
        return nbbs_pool_create(&config, nullptr, &pool, into);
    });
    pool = make(config_of(64, 64, 5000));
    EXPECT_EQ(nbbs_pool_reserve(pool, SIZE_MAX, &error), NBBS_CODE_OBJECTS);
    expect_refusal(NBBS_CODE_OBJECTS, "5001 objects are asked for, and the pool may have 5000",
                   [&](nbbs_error *into) { return nbbs_pool_reserve(pool, 5001, into); });
    EXPECT_EQ(nbbs_pool_capacity(pool), 0u) << "nothing has changed";
    EXPECT_EQ(nbbs_pool_reserve(pool, 5000, &error), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_capacity(pool), 5000u);
    nbbs_pool_destroy(pool);
}

TEST(Pool, FromManyThreads) {
    nbbs_pool_config config = config_of(64, 8, 0);
    config.chunk = 128;
    nbbs_pool *pool = make(config);
    on_threads([&](int number) {
        Random random(number);
        std::vector<Owned> held;
        for (int step = 0; step < 20000; step++) {
            if (held.size() < 300 && random(2) == 0) {
                held.push_back({static_cast<uint64_t *>(alloc(pool)), 8});
                held.back().take(number);
            } else if (!held.empty()) {
                std::swap(held[random(held.size())], held.back());
                EXPECT_TRUE(held.back().is_of(number));
                EXPECT_EQ(nbbs_pool_free(pool, held.back().words, nullptr), NBBS_CODE_OK);
                held.pop_back();
            }
            if (step % 5000 == 0) nbbs_pool_shrink(pool);
        }
        for (auto &each : held) EXPECT_EQ(nbbs_pool_free(pool, each.words, nullptr), NBBS_CODE_OK);
    });
    EXPECT_EQ(nbbs_pool_len(pool), 0u);
    nbbs_pool_destroy(pool);
}

}  // namespace
