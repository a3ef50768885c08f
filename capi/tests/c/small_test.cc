// nbbs_small_*: heaps for little memory.
#include "support.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

namespace {

// A heap in memory that is not zero, and the misuse that it was told of.
struct Small {
    size_t unit;
    std::vector<unsigned char> memory;
    nbbs_small *handle = nullptr;
    std::vector<nbbs_error> misuse;

    explicit Small(size_t bytes, size_t of = 32) : unit(of), memory(nbbs_small_bytes(bytes, of), 0xa5) {
        nbbs_error error{};
        EXPECT_EQ(nbbs_small_create(memory.data(), memory.size(), unit, &handle, &error), NBBS_CODE_OK)
            << text_of(error);
        EXPECT_EQ(nbbs_small_set_hook(handle, note, this, nullptr), NBBS_CODE_OK);
    }
    Small(const Small &) = delete;

    operator nbbs_small *() const { return handle; }

    unsigned char *alloc(size_t bytes, size_t align = 1) const {
        void *block = nullptr;
        nbbs_error error{};
        EXPECT_EQ(nbbs_small_alloc(handle, bytes, align, &block, &error), NBBS_CODE_OK) << text_of(error);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % std::max(align, size_t{16}), 0u);
        EXPECT_TRUE(nbbs_small_contains(handle, block));
        return static_cast<unsigned char *>(block);
    }
    size_t size_of(const void *block) const {
        size_t bytes = 0;
        EXPECT_EQ(nbbs_small_size_of(handle, block, &bytes, nullptr), NBBS_CODE_OK);
        return bytes;
    }
    nbbs_small_statistics stats() const {
        nbbs_small_statistics statistics{};
        EXPECT_EQ(nbbs_small_stats(handle, &statistics, nullptr), NBBS_CODE_OK);
        return statistics;
    }
    // The blocks that a walk shows, with their bytes.
    std::vector<std::pair<void *, size_t>> shown() const {
        std::vector<std::pair<void *, size_t>> shown;
        const auto show = [](void *context, const nbbs_heap_block *block) {
            EXPECT_EQ(block->size_class, size_t{NBBS_HEAP_CLASSES});
            static_cast<decltype(shown) *>(context)->emplace_back(block->address, block->size);
        };
        EXPECT_EQ(nbbs_small_walk(handle, show, &shown, nullptr), NBBS_CODE_OK);
        return shown;
    }
    void expect_empty() const {
        const auto statistics = stats();
        EXPECT_EQ(statistics.blocks, 0u);
        EXPECT_EQ(statistics.free, statistics.bytes);
        EXPECT_EQ(statistics.largest_free, statistics.bytes);
        EXPECT_TRUE(shown().empty());
    }
    static void note(void *context, const nbbs_error *error) {
        static_cast<Small *>(context)->misuse.push_back(*error);
    }
};

const std::vector<size_t> kUnits = {16, 32, 64};
const std::vector<size_t> kSizes = {0, 1, 16, 17, 100, 1000, 5000};

}  // namespace

TEST(Small, GivesMemoryOfAnySizeAndAlignment) {
    for (const size_t unit : kUnits) {
        Small heap(256 << 10, unit);
        std::vector<std::pair<void *, size_t>> held;
        for (const size_t size : kSizes) {
            for (size_t align = 1; align <= 4096; align *= 2) {
                auto *block = heap.alloc(size, align);
                memset(block, 7, size);
                EXPECT_EQ(heap.size_of(block), std::max(unit, (size + unit - 1) / unit * unit));
                held.emplace_back(block, heap.size_of(block));
            }
        }
        std::sort(held.begin(), held.end());
        EXPECT_EQ(heap.shown(), held);
        size_t used = 0;
        for (const auto &each : held) used += each.second;
        const auto statistics = heap.stats();
        EXPECT_EQ(statistics.blocks, held.size());
        EXPECT_EQ(statistics.bytes, statistics.free + used);
        EXPECT_LE(statistics.largest_free, statistics.free);
        for (const auto &each : held) EXPECT_EQ(nbbs_small_free(heap, each.first, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(nbbs_small_free(heap, nullptr, nullptr), NBBS_CODE_OK);
        EXPECT_TRUE(heap.misuse.empty());
        heap.expect_empty();
    }
}

TEST(Small, LivesWhereItIsPut) {
    for (const size_t unit : kUnits) {
        for (const size_t wanted : {1, 1000, 5000}) {
            for (size_t skip = 0; skip < 130; skip++) {
                const size_t bytes = nbbs_small_bytes(wanted, unit);
                const auto memory = std::make_unique<unsigned char[]>(bytes + skip);
                memset(memory.get(), 0xff, bytes + skip);
                nbbs_small *heap = nullptr;
                ASSERT_EQ(nbbs_small_create(memory.get() + skip, bytes, unit, &heap, nullptr), NBBS_CODE_OK);
                nbbs_small_statistics statistics{};
                ASSERT_EQ(nbbs_small_stats(heap, &statistics, nullptr), NBBS_CODE_OK);
                EXPECT_GE(statistics.bytes, wanted);
                EXPECT_EQ(statistics.largest_free, statistics.bytes);
                void *block = nullptr;
                ASSERT_EQ(nbbs_small_alloc(heap, statistics.bytes, 1, &block, nullptr), NBBS_CODE_OK);
                EXPECT_GE(static_cast<unsigned char *>(block), memory.get() + skip);
                EXPECT_LE(static_cast<unsigned char *>(block) + statistics.bytes, memory.get() + skip + bytes);
                memset(block, 0, statistics.bytes);
                EXPECT_EQ(nbbs_small_free(heap, block, nullptr), NBBS_CODE_OK);
            }
        }
        EXPECT_EQ(nbbs_small_bytes(0, unit), 0u) << "that would have no unit";
        EXPECT_EQ(nbbs_small_bytes(SIZE_MAX, unit), 0u);
    }
    EXPECT_EQ(nbbs_small_bytes(1000, 24), 0u);
}

TEST(Small, IsNotMadeOfTooLittle) {
    alignas(64) unsigned char memory[100];
    nbbs_small *heap = nullptr;
    const auto make = [&](void *at, size_t bytes, size_t unit) {
        return [&heap, at, bytes, unit](nbbs_error *error) {
            return nbbs_small_create(at, bytes, unit, &heap, error);
        };
    };
    const std::string needed = std::to_string(nbbs_small_bytes(1, 32));
    expect_refusal(NBBS_CODE_TOO_SHORT, "memory of 100 bytes: " + needed + " are needed", make(memory, 100, 32));
    expect_refusal(NBBS_CODE_TOO_SHORT, "memory of 0 bytes: " + needed + " are needed", make(memory, 0, 32));
    for (const size_t unit : {0, 8, 24, 128}) {
        expect_refusal(NBBS_CODE_SETTING, "the setting unit is " + std::to_string(unit) + ": it must be 16, 32 or 64",
                       make(memory, 100, unit));
    }
    expect_refusal(NBBS_CODE_NULL, "nbbs_small_create: argument 1 is a null pointer", make(nullptr, 1000, 32));
    expect_refusal(NBBS_CODE_NULL, "nbbs_small_create: argument 4 is a null pointer", [&](nbbs_error *error) {
        return nbbs_small_create(memory, sizeof memory, 32, nullptr, error);
    });
    EXPECT_EQ(make(memory, SIZE_MAX, 32)(nullptr), NBBS_CODE_SIZE);
    EXPECT_EQ(heap, nullptr);
    void *block = nullptr;
    EXPECT_EQ(nbbs_small_alloc(nullptr, 1, 1, &block, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_small_free(nullptr, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_FALSE(nbbs_small_contains(nullptr, memory));
}

TEST(Small, SaysWhatItCannotGive) {
    Small heap(10000);
    void *block = nullptr;
    const auto take = [&](size_t bytes, size_t align) {
        return [&heap, &block, bytes, align](nbbs_error *error) {
            return nbbs_small_alloc(heap, bytes, align, &block, error);
        };
    };
    expect_refusal(NBBS_CODE_HEAP_FULL, "the heap has no 20000 bytes at a multiple of 64", take(20000, 64));
    EXPECT_TRUE(heap.misuse.empty()) << "an ordinary answer";
    expect_refusal(NBBS_CODE_ALIGNMENT, "an alignment of 24: it must be a power of two up to 4611686018427387904",
                   take(1, 24));
    expect_refusal(NBBS_CODE_SIZE, "a size of 18446744073709551615 bytes: it must be from 1 to 9223372036854775792",
                   take(SIZE_MAX, 1));
    EXPECT_EQ(heap.misuse.size(), 2u);
    EXPECT_EQ(nbbs_small_malloc(heap, SIZE_MAX), nullptr);
    EXPECT_EQ(nbbs_small_calloc(heap, SIZE_MAX / 2 + 1, 2), nullptr);
    EXPECT_EQ(nbbs_small_calloc(heap, 5000, 4), nullptr);
    EXPECT_EQ(nbbs_small_aligned_alloc(heap, 3, 3), nullptr);
    EXPECT_EQ(heap.misuse.size(), 5u) << "all but what there is no memory for";
    EXPECT_EQ(block, nullptr);
    const auto none = [](void *, const nbbs_heap_block *) {};
    EXPECT_EQ(nbbs_small_alloc(heap, 1, 1, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_small_resize(heap, nullptr, 1, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_small_size_of(heap, nullptr, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_small_stats(heap, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_small_walk(heap, nullptr, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_small_walk(nullptr, none, nullptr, nullptr), NBBS_CODE_NULL);
    heap.expect_empty();
}

TEST(Small, Resizes) {
    for (const size_t unit : kUnits) {
        Small heap(64 << 10, unit);
        for (const size_t from : kSizes) {
            for (const size_t to : kSizes) {
                void *block = nullptr;
                ASSERT_EQ(nbbs_small_resize(heap, &block, from, nullptr), NBBS_CODE_OK);
                memset(block, 9, from);
                void *const first = block;
                void *const behind = heap.alloc(1);
                ASSERT_EQ(nbbs_small_resize(heap, &block, to, nullptr), NBBS_CODE_OK);
                const bool stays = to <= std::max(from + unit - 1, unit) / unit * unit;
                EXPECT_EQ(block == first, stays) << from << " to " << to;
                EXPECT_EQ(heap.size_of(block), std::max(unit, (to + unit - 1) / unit * unit));
                const auto *kept = static_cast<unsigned char *>(block);
                const size_t both = std::min(from, to);
                EXPECT_EQ(std::count(kept, kept + both, 9), static_cast<ptrdiff_t>(both));
                void *same = block;
                EXPECT_EQ(nbbs_small_resize(heap, &same, 1 << 20, nullptr), NBBS_CODE_HEAP_FULL);
                EXPECT_EQ(same, block);
                EXPECT_EQ(nbbs_small_free(heap, behind, nullptr), NBBS_CODE_OK);
                EXPECT_EQ(nbbs_small_free(heap, block, nullptr), NBBS_CODE_OK);
                expect_refusal(NBBS_CODE_NO_BLOCK, "nothing is allocated at " + hex(block), [&](nbbs_error *error) {
                    return nbbs_small_resize(heap, &same, 10, error);
                });
            }
        }
        EXPECT_EQ(heap.misuse.size(), kSizes.size() * kSizes.size());
        heap.expect_empty();
    }
}

TEST(Small, IsShapedAsMalloc) {
    for (const size_t unit : kUnits) {
        Small heap(64 << 10, unit);
        for (const size_t size : kSizes) {
            auto *dirty = static_cast<unsigned char *>(nbbs_small_malloc(heap, 3 * size));
            ASSERT_NE(dirty, nullptr);
            EXPECT_GE(nbbs_small_usable_size(heap, dirty), 3 * size);
            memset(dirty, 0xee, 3 * size);
            EXPECT_EQ(nbbs_small_free(heap, dirty, nullptr), NBBS_CODE_OK);
            auto *zeroed = static_cast<unsigned char *>(nbbs_small_calloc(heap, size, 3));
            EXPECT_EQ(zeroed, dirty);
            EXPECT_EQ(std::count(zeroed, zeroed + 3 * size, 0), static_cast<ptrdiff_t>(3 * size));
            EXPECT_EQ(nbbs_small_free(heap, zeroed, nullptr), NBBS_CODE_OK);
            heap.alloc(1);
            void *aligned = nbbs_small_aligned_alloc(heap, 256, size);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % 256, 0u);
            EXPECT_EQ(nbbs_small_free(heap, aligned, nullptr), NBBS_CODE_OK);
            auto *block = static_cast<unsigned char *>(nbbs_small_realloc(heap, nullptr, size));
            memset(block, 9, size);
            block = static_cast<unsigned char *>(nbbs_small_realloc(heap, block, size + 1000));
            ASSERT_NE(block, nullptr);
            EXPECT_EQ(std::count(block, block + size, 9), static_cast<ptrdiff_t>(size));
            EXPECT_EQ(nbbs_small_realloc(heap, block, 1 << 20), nullptr);
            EXPECT_EQ(nbbs_small_usable_size(heap, block), heap.size_of(block));
            EXPECT_EQ(nbbs_small_free(heap, block, nullptr), NBBS_CODE_OK);
            EXPECT_EQ(heap.misuse.size(), 0u);
        }
        EXPECT_EQ(nbbs_small_usable_size(heap, nullptr), 0u);
        EXPECT_EQ(heap.misuse.size(), 0u);
        EXPECT_EQ(nbbs_small_usable_size(heap, &heap), 0u);
        EXPECT_EQ(heap.misuse.size(), 1u);
        EXPECT_EQ(nbbs_small_malloc(nullptr, 1), nullptr);
    }
}

TEST(Small, RefusesWrongFrees) {
    Small heap(10000);
    unsigned char *block = heap.alloc(1000);
    unsigned char own = 0;
    const auto free_of = [&heap](void *wrong) {
        return [&heap, wrong](nbbs_error *error) { return nbbs_small_free(heap, wrong, error); };
    };
    expect_refusal(NBBS_CODE_INSIDE_UNIT, "address " + hex(block + 8) + " is inside what begins at " + hex(block),
                   free_of(block + 8));
    expect_refusal(NBBS_CODE_INSIDE_UNIT, "address " + hex(block + 32) + " is inside a block that begins before it",
                   free_of(block + 32));
    expect_refusal(NBBS_CODE_NOT_OF_HEAP, "address " + hex(&own) + " is in no memory of the heap, which has 1 region",
                   free_of(&own));
    expect_refusal(NBBS_CODE_NO_BLOCK, "nothing is allocated at " + hex(block + 1024), free_of(block + 1024));
    EXPECT_EQ(heap.size_of(block), 1024u);
    EXPECT_EQ(nbbs_small_free(heap, block, nullptr), NBBS_CODE_OK);
    expect_refusal(NBBS_CODE_NO_BLOCK, "nothing is allocated at " + hex(block), free_of(block));
    EXPECT_EQ(heap.misuse.size(), 5u);
    heap.expect_empty();
}

TEST(Small, ShowsWhatMayBeFreed) {
    Small heap(10000, 16);
    for (const size_t size : kSizes) heap.alloc(size);
    EXPECT_EQ(heap.stats().blocks, kSizes.size());
    const auto free = [](void *context, const nbbs_heap_block *block) {
        EXPECT_EQ(nbbs_small_free(*static_cast<Small *>(context), block->address, nullptr), NBBS_CODE_OK);
    };
    EXPECT_EQ(nbbs_small_walk(heap, free, &heap, nullptr), NBBS_CODE_OK);
    heap.expect_empty();
}

TEST(Small, ServesThreads) {
    Small heap(64 << 10, 16);
    std::atomic<int> running{kThreads};
    std::thread watcher([&] {
        while (running > 0) {
            const auto statistics = heap.stats();
            EXPECT_LE(statistics.largest_free, statistics.free);
            EXPECT_LE(statistics.free + statistics.blocks * heap.unit, statistics.bytes);
            for (const auto &[block, bytes] : heap.shown()) {
                EXPECT_TRUE(nbbs_small_contains(heap, block));
                EXPECT_TRUE(nbbs_small_contains(heap, static_cast<unsigned char *>(block) + bytes - 1));
            }
        }
    });
    on_threads([&](int number) {
        Random random(number);
        std::vector<Owned> held;
        const uint64_t mark = 1 + number;
        for (int round = 0; round < 20000; round++) {
            const size_t words = 1 + random(random(8) == 0 ? 300 : 30);
            void *block = nullptr;
            if (nbbs_small_alloc(heap, words * 8, 8, &block, nullptr) == NBBS_CODE_OK) {
                held.push_back({static_cast<uint64_t *>(block), words});
                held.back().take(mark);
            }
            if (held.size() > 30) {
                std::swap(held[random(held.size())], held.back());
                EXPECT_TRUE(held.back().is_of(mark)) << "handed out twice";
                EXPECT_EQ(nbbs_small_free(heap, held.back().words, nullptr), NBBS_CODE_OK);
                held.pop_back();
            }
        }
        for (const Owned &each : held) EXPECT_EQ(nbbs_small_free(heap, each.words, nullptr), NBBS_CODE_OK);
        running--;
    });
    watcher.join();
    EXPECT_TRUE(heap.misuse.empty());
    heap.expect_empty();
}
