// A thread's own slots of a pool.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>

#include "support.h"

namespace {

nbbs_pool *make(size_t size, size_t limit, size_t chunk = 128) {
    nbbs_pool_config config{};
    config.size = size, config.align = 8, config.limit = limit, config.chunk = chunk;
    nbbs_pool *pool = nullptr;
    EXPECT_EQ(nbbs_pool_create(&config, nullptr, &pool, nullptr), NBBS_CODE_OK);
    return pool;
}

// A local, which ends with its scope.
struct Local {
    nbbs_pool_local of;
    explicit Local(const nbbs_pool *pool, size_t most = 0) {
        EXPECT_EQ(nbbs_pool_local_create(&of, pool, most, nullptr), NBBS_CODE_OK);
    }
    Local(const Local &) = delete;
    ~Local() { nbbs_pool_local_destroy(&of); }

    void *alloc() {
        void *object = nullptr;
        nbbs_error error{};
        EXPECT_EQ(nbbs_pool_local_alloc(&of, &object, &error), NBBS_CODE_OK) << text_of(error);
        return object;
    }
    nbbs_code free(void *object) { return nbbs_pool_local_free(&of, object, nullptr); }
    size_t kept() const { return nbbs_pool_local_kept(&of); }
};

TEST(Local, KeepsSlotsThatAreNotObjects) {
    nbbs_pool *pool = make(48, 0);
    {
        Local local(pool);
        EXPECT_EQ(local.kept(), 0u);
        void *object = local.alloc();
        EXPECT_EQ(local.kept(), 63u);
        EXPECT_EQ(nbbs_pool_len(pool), 1u) << "what is kept is nobody's object";
        EXPECT_TRUE(nbbs_pool_is_valid(pool, object));
        EXPECT_FALSE(nbbs_pool_is_valid(pool, static_cast<char *>(object) + 48));
        std::set<void *> seen;
        auto see = [](void *seen, void *each) { static_cast<std::set<void *> *>(seen)->insert(each); };
        EXPECT_EQ(nbbs_pool_each(pool, see, &seen, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(seen, std::set<void *>{object});
        EXPECT_EQ(local.free(object), NBBS_CODE_OK);
        EXPECT_EQ(local.kept(), 64u);
        EXPECT_EQ(nbbs_pool_len(pool), 0u);
        EXPECT_FALSE(nbbs_pool_is_valid(pool, object));
        EXPECT_EQ(local.alloc(), object) << "what was freed last comes first";
        EXPECT_EQ(nbbs_pool_shrink(pool), 0u) << "its chunk is held by what is kept";
        EXPECT_EQ(nbbs_pool_free(pool, object, nullptr), NBBS_CODE_OK) << "an object like any other";
        EXPECT_EQ(nbbs_pool_local_flush(&local.of, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(local.kept(), 0u);
        EXPECT_EQ(nbbs_pool_shrink(pool), 128u);
        void *last = local.alloc();
        EXPECT_EQ(local.free(last), NBBS_CODE_OK);
    }
    EXPECT_EQ(nbbs_pool_shrink(pool), 128u) << "its end gives everything back";
    nbbs_pool_destroy(pool);
}

TEST(Local, ObjectsAreApartAndCountedHoweverTheyCome) {
    for (size_t size : {8, 24, 100}) {
        nbbs_pool *pool = make(size, 0);
        Local local(pool);
        std::set<uintptr_t> places;
        std::vector<void *> objects;
        for (int count = 0; count < 1000; count++) {
            void *object = nullptr;
            if (count % 3 == 0) {
                EXPECT_EQ(nbbs_pool_alloc(pool, &object, nullptr), NBBS_CODE_OK);
            } else {
                object = local.alloc();
            }
            std::memset(object, count, size);
            EXPECT_TRUE(places.insert(reinterpret_cast<uintptr_t>(object)).second);
            objects.push_back(object);
        }
        uintptr_t before = 0;
        for (uintptr_t place : places) {
            EXPECT_GE(place - before, size);
            before = place;
        }
        EXPECT_EQ(nbbs_pool_len(pool), 1000u);
        for (size_t at = 0; at < objects.size(); at++) {
            nbbs_code code = at % 2 ? local.free(objects[at]) : nbbs_pool_free(pool, objects[at], nullptr);
            EXPECT_EQ(code, NBBS_CODE_OK);
            EXPECT_LE(local.kept(), 128u);
            EXPECT_EQ(nbbs_pool_len(pool), 999 - at);
        }
        EXPECT_EQ(nbbs_pool_local_flush(&local.of, nullptr), NBBS_CODE_OK);
        nbbs_pool_shrink(pool);
        EXPECT_EQ(nbbs_pool_capacity(pool), 0u) << "no slot is lost";
        nbbs_pool_destroy(pool);
    }
}

TEST(Local, KeepsNoMoreThanItMay) {
    nbbs_pool *pool = make(16, 0);
    for (size_t most : {1u, 2u, 7u, 64u, 65u, 128u}) {
        Local local(pool, most);
        std::vector<void *> objects;
        for (int count = 0; count < 200; count++) {
            objects.push_back(local.alloc());
            EXPECT_LT(local.kept(), most);
        }
        for (void *object : objects) {
            EXPECT_EQ(local.free(object), NBBS_CODE_OK);
            EXPECT_LE(local.kept(), most);
            EXPECT_GT(local.kept(), 0u);
        }
    }
    nbbs_pool_local local;
    expect_refusal(NBBS_CODE_SETTING, "the setting most is 129: it must be at most 128",
                   [&](nbbs_error *e) { return nbbs_pool_local_create(&local, pool, 129, e); });
    nbbs_pool_destroy(pool);
}

// What one keeps nobody else gets; with a limit the usual local keeps a 64th of it.
TEST(Local, APoolIsFullForOthersButNotForWhoKeeps) {
    nbbs_pool *pool = make(16, 64 * 5);
    Local keeper(pool), other(pool);
    EXPECT_EQ(keeper.free(keeper.alloc()), NBBS_CODE_OK);
    EXPECT_EQ(keeper.kept(), 5u);
    std::vector<void *> objects;
    void *object = nullptr;
    while (nbbs_pool_local_alloc(&other.of, &object, nullptr) == NBBS_CODE_OK) objects.push_back(object);
    EXPECT_EQ(objects.size(), 64u * 5 - 5);
    expect_refusal(NBBS_CODE_FULL, "all 320 objects that the pool may have are allocated",
                   [&](nbbs_error *e) { return nbbs_pool_local_alloc(&other.of, &object, e); });
    EXPECT_EQ(nbbs_pool_alloc(pool, &object, nullptr), NBBS_CODE_FULL);
    for (int count = 0; count < 5; count++) objects.push_back(keeper.alloc());
    EXPECT_EQ(nbbs_pool_local_alloc(&keeper.of, &object, nullptr), NBBS_CODE_FULL);
    EXPECT_EQ(nbbs_pool_len(pool), 64u * 5);
    for (void *each : objects) EXPECT_EQ(other.free(each), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_len(pool), 0u);
    Local last(pool, 64);
    EXPECT_NE(last.alloc(), nullptr);
    nbbs_pool *tiny = make(16, 3);
    {
        Local one(tiny);
        EXPECT_EQ(one.free(one.alloc()), NBBS_CODE_OK);
        EXPECT_EQ(one.kept(), 1u);
    }
    nbbs_pool_destroy(tiny);
    nbbs_pool_local_destroy(&keeper.of), nbbs_pool_local_destroy(&other.of), nbbs_pool_local_destroy(&last.of);
    nbbs_pool_destroy(pool);
}

TEST(Local, BadFreesAreRefusedWhoeverKeepsTheSlot) {
    nbbs_pool *pool = make(48, 0), *foreign_pool = make(48, 0);
    std::vector<nbbs_error> misuse;
    auto note = [](void *context, const nbbs_error *error) {
        static_cast<std::vector<nbbs_error> *>(context)->push_back(*error);
    };
    EXPECT_EQ(nbbs_pool_set_hook(pool, note, &misuse, nullptr), NBBS_CODE_OK);
    {
        Local local(pool), other(pool), foreign_local(foreign_pool);
        auto *object = static_cast<char *>(local.alloc()), *foreign = static_cast<char *>(foreign_local.alloc());
        EXPECT_EQ(local.free(nullptr), NBBS_CODE_OK);
        EXPECT_EQ(local.free(object + 8), NBBS_CODE_INSIDE_UNIT);
        EXPECT_EQ(local.free(object + 48), NBBS_CODE_NO_OBJECT) << "kept";
        EXPECT_EQ(local.free(object + 56), NBBS_CODE_NO_OBJECT) << "inside what is kept";
        EXPECT_EQ(local.free(foreign), NBBS_CODE_FOREIGN_ADDRESS);
        EXPECT_EQ(local.free(&pool), NBBS_CODE_FOREIGN_ADDRESS);
        EXPECT_EQ(local.free(reinterpret_cast<void *>(1)), NBBS_CODE_FOREIGN_ADDRESS);
        EXPECT_EQ(misuse.size(), 6u);
        EXPECT_EQ(local.free(object), NBBS_CODE_OK);
        const size_t kept = local.kept();
        EXPECT_EQ(local.free(object), NBBS_CODE_NO_OBJECT);
        EXPECT_EQ(other.free(object), NBBS_CODE_NO_OBJECT);
        EXPECT_EQ(nbbs_pool_free(pool, object, nullptr), NBBS_CODE_NO_OBJECT);
        EXPECT_EQ(local.kept(), kept);
        EXPECT_EQ(other.kept(), 0u);
        EXPECT_EQ(nbbs_pool_local_flush(&local.of, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(local.free(object), NBBS_CODE_NO_OBJECT);
        EXPECT_EQ(nbbs_pool_shrink(pool), 128u);
        EXPECT_EQ(local.free(object), NBBS_CODE_FOREIGN_ADDRESS) << "its chunk has gone";
        EXPECT_EQ(misuse.size(), 11u);
    }
    nbbs_pool_destroy(pool);
    nbbs_pool_destroy(foreign_pool);
}

// A local that knows the chunk tells an object's beginning from its inside, whatever its size.
TEST(Local, KnowsWhereObjectsBegin) {
    for (size_t size : {1u, 2u, 3u, 8u, 24u, 40u, 96u, 100u, 4097u}) {
        nbbs_pool_config config{};
        config.size = size, config.chunk = 70;
        nbbs_pool *pool = nullptr;
        ASSERT_EQ(nbbs_pool_create(&config, nullptr, &pool, nullptr), NBBS_CODE_OK);
        Local local(pool);
        std::vector<char *> objects;
        for (int count = 0; count < 70; count++) objects.push_back(static_cast<char *>(local.alloc()));
        std::sort(objects.begin(), objects.end());
        EXPECT_EQ(local.free(objects[35]), NBBS_CODE_OK) << "from here on it knows the chunk";
        for (int number : {0, 1, 34, 69}) {
            for (size_t offset = 1; offset < size; offset++) {
                EXPECT_EQ(local.free(objects[number] + offset), NBBS_CODE_INSIDE_UNIT) << number << " of " << size;
            }
        }
        for (char *beside : {objects[0] - size, objects[69] + size, objects[0] - 1}) {
            EXPECT_EQ(local.free(beside), NBBS_CODE_FOREIGN_ADDRESS) << size;
        }
        EXPECT_EQ(local.kept(), 1u);
        for (int number = 0; number < 70; number++) {
            EXPECT_EQ(local.free(objects[number]), number == 35 ? NBBS_CODE_NO_OBJECT : NBBS_CODE_OK);
        }
        EXPECT_EQ(nbbs_pool_len(pool), 0u);
        nbbs_pool_local_destroy(&local.of);
        nbbs_pool_destroy(pool);
    }
}

// Chunks at places of the test's choice.
struct Places {
    alignas(4096) char memory[3][4096];
    int next[3];
    int given = 0;
    nbbs_source source() {
        return {[](void *context, size_t bytes, size_t align) -> void * {
                    auto *places = static_cast<Places *>(context);
                    if (align < 2048) return std::aligned_alloc(align, (bytes + align - 1) / align * align);
                    return places->memory[places->next[places->given++]];
                },
                [](void *context, void *block, size_t, size_t) {
                    auto *places = static_cast<Places *>(context);
                    auto *at = static_cast<char *>(block);
                    if (at < places->memory[0] || at >= places->memory[2] + 4096) std::free(block);
                },
                this};
    }
};

// A local that knows a chunk must not take what lies there later, or elsewhere, for what was there.
TEST(Local, ForgetsChunksThatHaveGone) {
    static Places places;
    places.next[0] = 0, places.next[1] = 1, places.next[2] = 0;
    nbbs_pool_config config{};
    config.size = 32, config.align = 32, config.chunk = 64;
    nbbs_source source = places.source();
    nbbs_pool *pool = nullptr;
    ASSERT_EQ(nbbs_pool_create(&config, &source, &pool, nullptr), NBBS_CODE_OK);
    {
        Local local(pool);
        void *old = local.alloc();
        EXPECT_EQ(local.free(old), NBBS_CODE_OK) << "from here on it knows the chunk";
        EXPECT_EQ(nbbs_pool_local_flush(&local.of, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(nbbs_pool_shrink(pool), 64u);
        void *here = local.alloc();  // the same slots, elsewhere
        EXPECT_EQ(here, places.memory[1]);
        EXPECT_EQ(local.free(old), NBBS_CODE_FOREIGN_ADDRESS);
        std::set<void *> all{here};
        for (int count = 0; count < 64; count++) all.insert(local.alloc());  // and others at the old place
        EXPECT_EQ(all.size(), 65u);
        EXPECT_EQ(all.count(old), 1u);
        for (void *object : all) EXPECT_EQ(local.free(object), NBBS_CODE_OK);
        for (void *object : all) EXPECT_EQ(local.free(object), NBBS_CODE_NO_OBJECT);
    }
    EXPECT_EQ(nbbs_pool_len(pool), 0u);
    nbbs_pool_destroy(pool);
}

TEST(Local, OfAPoolInOneBlock) {
    nbbs_pool_config config{};
    config.size = 40, config.align = 8, config.limit = 300;
    std::vector<char> memory(nbbs_pool_bytes(&config));
    nbbs_pool *pool = nullptr;
    ASSERT_EQ(nbbs_pool_create_in(&config, memory.data(), memory.size(), &pool, nullptr), NBBS_CODE_OK);
    Local local(pool, 64);
    std::set<void *> objects;
    for (int count = 0; count < 300; count++) objects.insert(local.alloc());
    EXPECT_EQ(objects.size(), 300u);
    EXPECT_EQ(*objects.rbegin(), static_cast<char *>(*objects.begin()) + 299 * 40);
    EXPECT_EQ(local.free(memory.data()), NBBS_CODE_FOREIGN_ADDRESS);
    for (void *object : objects) EXPECT_EQ(local.free(object), NBBS_CODE_OK);
    for (void *object : objects) EXPECT_EQ(local.free(object), NBBS_CODE_NO_OBJECT);
    EXPECT_EQ(nbbs_pool_len(pool), 0u);
}

TEST(Local, ClearLeavesWhatIsKept) {
    nbbs_pool *pool = make(16, 128, 128);
    Local local(pool, 64);
    void *object = local.alloc();
    EXPECT_EQ(nbbs_pool_clear(pool, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_len(pool), 0u);
    EXPECT_EQ(local.kept(), 63u);
    EXPECT_EQ(local.free(object), NBBS_CODE_NO_OBJECT);
    std::set<void *> all;
    for (int count = 0; count < 128; count++) all.insert(local.alloc());
    EXPECT_EQ(all.size(), 128u);
    nbbs_pool_local_destroy(&local.of);
    nbbs_pool_destroy(pool);
}

TEST(Local, WhatCannotBeOneIsRefused) {
    nbbs_pool *pool = make(16, 0);
    nbbs_pool_local local;
    void *object = nullptr;
    EXPECT_EQ(nbbs_pool_local_create(nullptr, pool, 0, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_local_create(&local, nullptr, 0, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_local_alloc(nullptr, &object, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_local_free(nullptr, &local, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_local_flush(nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_local_kept(nullptr), 0u);
    nbbs_pool_local_destroy(nullptr);
    ASSERT_EQ(nbbs_pool_local_create(&local, pool, 0, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_local_alloc(&local, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_pool_local_kept(&local), 0u) << "nothing was allocated for nobody";
    nbbs_pool_local_destroy(&local);
    EXPECT_EQ(nbbs_pool_local_alloc(&local, &object, nullptr), NBBS_CODE_NULL) << "it has ended";
    EXPECT_EQ(nbbs_pool_local_kept(&local), 0u);
    nbbs_pool_local_destroy(&local);
    nbbs_pool_destroy(pool);
}

// Chunks one after another, without a gap.
struct InARow {
    char *next, *end;
    static void *alloc(void *context, size_t bytes, size_t align) {
        auto *row = static_cast<InARow *>(context);
        char *block = row->next + (-reinterpret_cast<uintptr_t>(row->next) & (align - 1));
        if (bytes > static_cast<size_t>(row->end - block)) return nullptr;
        row->next = block + bytes;
        return block;
    }
};

// The slots that the last word of a chunk does not have are where the next chunk's are.
TEST(Local, GivesBackSlotsOfChunksThatLieSideBySide) {
    for (size_t slots : {1u, 16u, 85u, 128u, 1365u}) {
        std::vector<char> memory(1 << 20);
        InARow row{memory.data(), memory.data() + memory.size()};
        nbbs_source source{InARow::alloc, nullptr, &row};
        nbbs_pool_config config{};
        config.size = 24, config.align = 8, config.chunk = slots, config.limit = 3 * slots;
        nbbs_pool *pool = nullptr;
        ASSERT_EQ(nbbs_pool_create(&config, &source, &pool, nullptr), NBBS_CODE_OK);
        Local local(pool, 64);
        for (int round = 0; round < 3; round++) {
            std::set<void *> objects;
            for (size_t count = 0; count < config.limit; count++) objects.insert(local.alloc());
            EXPECT_EQ(objects.size(), config.limit) << "each once";
            // From the lowest address to the highest: from chunk to chunk.
            for (void *object : objects) EXPECT_EQ(local.free(object), NBBS_CODE_OK);
            EXPECT_EQ(nbbs_pool_local_flush(&local.of, nullptr), NBBS_CODE_OK);
            EXPECT_EQ(nbbs_pool_len(pool), 0u);
        }
        EXPECT_EQ(nbbs_pool_shrink(pool), config.limit) << "no slot is lost";
        nbbs_pool_local_destroy(&local.of);
        nbbs_pool_destroy(pool);
    }
}

TEST(Local, FromManyThreads) {
    nbbs_pool *pool = make(64, 0);
    std::atomic<void *> table[64] = {};
    on_threads([&](int number) {
        Random random(number);
        Local local(pool, number == 0 ? 5 : 0);
        std::vector<Owned> held;
        for (int step = 0; step < 20000; step++) {
            if (held.size() < 200 && random(2) == 0) {
                held.push_back({static_cast<uint64_t *>(local.alloc()), 8});
                held.back().take(number);
            } else if (!held.empty()) {
                std::swap(held[random(held.size())], held.back());
                EXPECT_TRUE(held.back().is_of(number));
                // Some are freed by others, some without a local.
                void *object = held.back().words;
                held.pop_back();
                if (random(4) == 0) object = table[random(64)].exchange(object, std::memory_order_acq_rel);
                nbbs_code code = random(8) == 0 ? nbbs_pool_free(pool, object, nullptr) : local.free(object);
                EXPECT_EQ(code, NBBS_CODE_OK);
            }
            if (step % 4000 == 0) nbbs_pool_shrink(pool);
        }
        for (auto &each : held) EXPECT_EQ(local.free(each.words), NBBS_CODE_OK);
    });
    for (auto &object : table) EXPECT_EQ(nbbs_pool_free(pool, object, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_pool_len(pool), 0u);
    nbbs_pool_shrink(pool);
    EXPECT_EQ(nbbs_pool_capacity(pool), 0u) << "no slot is lost";
    nbbs_pool_destroy(pool);
}

}  // namespace
