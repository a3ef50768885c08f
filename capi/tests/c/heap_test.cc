// nbbs_heap_*: heaps in memory of the caller's.
#include "support.h"

#include <algorithm>
#include <atomic>
#include <memory>

namespace {

// A heap in memory that is not zero, and the misuse that it was told of. Looked at in full when it ends.
struct Heap {
    size_t caches;
    std::vector<unsigned char> memory;
    nbbs_heap *handle = nullptr;
    std::vector<nbbs_error> misuse;
    static inline std::atomic<size_t> cpu{0};

    explicit Heap(size_t bytes, size_t of = 2) : caches(of), memory(nbbs_heap_bytes(of, bytes), 0xa5) {
        nbbs_error error{};
        EXPECT_EQ(nbbs_heap_create(memory.data(), memory.size(), caches, &handle, &error), NBBS_CODE_OK)
            << text_of(error);
        EXPECT_EQ(nbbs_heap_set_hook(handle, note, this, nullptr), NBBS_CODE_OK);
    }
    Heap(const Heap &) = delete;

    operator nbbs_heap *() const { return handle; }

    // Which CPU runs is what the test says from now on.
    void be_on_cpus() {
        EXPECT_EQ(nbbs_heap_set_cpu(handle, [](void *context) { return static_cast<Heap *>(context)->cpu.load(); },
                                    this, nullptr),
                  NBBS_CODE_OK);
    }
    nbbs_heap_statistics stats() const {
        nbbs_heap_statistics statistics{};
        EXPECT_EQ(nbbs_heap_stats(handle, &statistics, nullptr), NBBS_CODE_OK);
        return statistics;
    }
    // In order, and nothing in use, once all caches are empty.
    void expect_whole() {
        be_on_cpus();
        for (cpu = 0; cpu < caches; cpu++) nbbs_heap_trim(handle);
        cpu = 0;
        nbbs_error error{};
        EXPECT_EQ(nbbs_heap_audit(handle, &error), NBBS_CODE_OK) << text_of(error);
        EXPECT_EQ(stats().free, stats().bytes);
    }
    static void note(void *context, const nbbs_error *error) {
        static_cast<Heap *>(context)->misuse.push_back(*error);
    }
};

void *alloc(nbbs_heap *heap, size_t bytes, size_t align) {
    void *block = nullptr;
    nbbs_error error{};
    EXPECT_EQ(nbbs_heap_alloc(heap, bytes, align, &block, &error), NBBS_CODE_OK) << text_of(error);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % align, 0u);
    EXPECT_TRUE(nbbs_heap_contains(heap, block));
    return block;
}

const std::vector<size_t> kSizes = {0, 1, 16, 100, 1000, 5000, 32768, 32769, 100000};

}  // namespace

TEST(Heap, GivesMemoryOfAnySizeAndAlignment) {
    Heap heap(4 << 20);
    std::vector<void *> blocks;
    for (size_t size : kSizes) {
        for (size_t align = 1; align <= 8192; align *= 2) {
            void *block = alloc(heap, size, align);
            memset(block, 7, size);
            size_t usable = 0;
            ASSERT_EQ(nbbs_heap_size_of(heap, block, &usable, nullptr), NBBS_CODE_OK);
            EXPECT_GE(usable, size);
            EXPECT_EQ(nbbs_heap_usable_size(heap, block), usable);
            blocks.push_back(block);
        }
    }
    std::sort(blocks.begin(), blocks.end());
    EXPECT_EQ(std::adjacent_find(blocks.begin(), blocks.end()), blocks.end());
    for (void *block : blocks) EXPECT_EQ(nbbs_heap_free(heap, block, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_heap_free(heap, nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_TRUE(heap.misuse.empty());
    heap.expect_whole();
}

TEST(Heap, LivesWhereItIsPut) {
    // Wherever it begins in a page.
    for (size_t caches : {0, 1, 3}) {
        const size_t most = nbbs_heap_bytes(caches, 100000) + 4096;
        const auto memory = std::make_unique<unsigned char[]>(most);
        for (size_t skip = 0; skip < 4096; ++skip) {
            const bool large = skip % 61 == 0;
            const size_t wanted = large ? 100000 : skip % 2 ? 4096 : 8192, bytes = nbbs_heap_bytes(caches, wanted);
            memset(memory.get(), 0xff, bytes + skip);
            nbbs_heap *heap = nullptr;
            ASSERT_EQ(nbbs_heap_create(memory.get() + skip, bytes, caches, &heap, nullptr), NBBS_CODE_OK);
            nbbs_heap_statistics statistics{};
            ASSERT_EQ(nbbs_heap_stats(heap, &statistics, nullptr), NBBS_CODE_OK);
            ASSERT_GE(statistics.bytes, wanted) << "at " << skip;
            EXPECT_EQ(statistics.free, statistics.bytes);
            EXPECT_GE(statistics.largest_free, large ? 65536u : 4096u);
            void *block = nbbs_heap_malloc(heap, 50);
            EXPECT_GE(static_cast<unsigned char *>(block), memory.get() + skip);
            EXPECT_LE(static_cast<unsigned char *>(block) + 50, memory.get() + skip + bytes);
            EXPECT_EQ(nbbs_heap_free(heap, block, nullptr), NBBS_CODE_OK);
        }
    }
    EXPECT_EQ(nbbs_heap_bytes(SIZE_MAX, 1), 0u);
    EXPECT_EQ(nbbs_heap_bytes(1, 0), 0u) << "that would have no unit";
    EXPECT_EQ(nbbs_heap_bytes(1, SIZE_MAX), 0u);
}

TEST(Heap, IsNotMadeOfTooLittle) {
    alignas(16) unsigned char memory[1000];
    nbbs_heap *heap = nullptr;
    const std::string needed = std::to_string(nbbs_heap_bytes(1, 1));
    expect_refusal(NBBS_CODE_TOO_SHORT, "memory of 1000 bytes: " + needed + " are needed",
                   [&](nbbs_error *error) { return nbbs_heap_create(memory, sizeof memory, 1, &heap, error); });
    expect_refusal(NBBS_CODE_NULL, "nbbs_heap_create: argument 1 is a null pointer",
                   [&](nbbs_error *error) { return nbbs_heap_create(nullptr, 1 << 20, 1, &heap, error); });
    expect_refusal(NBBS_CODE_NULL, "nbbs_heap_create: argument 4 is a null pointer",
                   [&](nbbs_error *error) { return nbbs_heap_create(memory, sizeof memory, 1, nullptr, error); });
    EXPECT_EQ(nbbs_heap_create(memory, SIZE_MAX, 1, &heap, nullptr), NBBS_CODE_SIZE);
    nbbs_error error{};
    EXPECT_EQ(nbbs_heap_create(memory, sizeof memory, SIZE_MAX, &heap, &error), NBBS_CODE_SETTING);
    EXPECT_EQ(error.detail, uint32_t{NBBS_SETTING_CACHES});
    EXPECT_NE(nbbs_heap_bytes(static_cast<size_t>(error.limit), 1), 0u);
    EXPECT_EQ(nbbs_heap_bytes(static_cast<size_t>(error.limit) + 1, 1), 0u);
    EXPECT_EQ(heap, nullptr);
    EXPECT_EQ(nbbs_heap_free(nullptr, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_heap_malloc(nullptr, 1), nullptr);
    EXPECT_EQ(nbbs_heap_trim(nullptr), 0u);
    EXPECT_FALSE(nbbs_heap_contains(nullptr, memory));
}

TEST(Heap, SaysWhatItCannotGive) {
    Heap heap(1 << 20);
    void *block = nullptr;
    const auto take = [&](size_t bytes, size_t align) {
        return [&heap, &block, bytes, align](nbbs_error *error) {
            return nbbs_heap_alloc(heap, bytes, align, &block, error);
        };
    };
    expect_refusal(NBBS_CODE_HEAP_FULL, "the heap has no 2000000 bytes at a multiple of 64", take(2000000, 64));
    EXPECT_TRUE(heap.misuse.empty()) << "an ordinary answer";
    expect_refusal(NBBS_CODE_ALIGNMENT, "an alignment of 24: it must be a power of two up to 4611686018427387904",
                   take(1, 24));
    expect_refusal(NBBS_CODE_ALIGNMENT, "an alignment of 0: it must be a power of two up to 4611686018427387904",
                   take(1, 0));
    expect_refusal(NBBS_CODE_SIZE,
                   "a size of 18446744073709551615 bytes: it must be from 1 to 9223372036854775792", take(SIZE_MAX, 1));
    EXPECT_EQ(heap.misuse.size(), 3u);
    for (const size_t align : {size_t{1}, size_t{16}, size_t{64}}) {
        nbbs_error error;
        EXPECT_EQ(take(SIZE_MAX, align)(&error), NBBS_CODE_SIZE);
        EXPECT_EQ(take(static_cast<size_t>(error.limit), align)(nullptr), NBBS_CODE_HEAP_FULL) << "within the limit, at " << align;
    }
    EXPECT_EQ(nbbs_heap_malloc(heap, SIZE_MAX), nullptr);
    EXPECT_EQ(nbbs_heap_calloc(heap, SIZE_MAX / 2 + 1, 2), nullptr);
    EXPECT_EQ(nbbs_heap_aligned_alloc(heap, 3, 3), nullptr);
    EXPECT_EQ(block, nullptr);
    heap.expect_whole();
}

TEST(Heap, RefusesWrongFrees) {
    Heap heap(1 << 20);
    auto *slot = static_cast<unsigned char *>(alloc(heap, 100, 1));
    auto *run = static_cast<unsigned char *>(alloc(heap, 100000, 1));
    unsigned char own = 0;
    const auto free_of = [&heap](void *block) {
        return [&heap, block](nbbs_error *error) { return nbbs_heap_free(heap, block, error); };
    };
    expect_refusal(NBBS_CODE_INSIDE_UNIT, "address " + hex(slot + 8) + " is inside what begins at " + hex(slot),
                   free_of(slot + 8));
    expect_refusal(NBBS_CODE_INSIDE_UNIT, "address " + hex(run + 8) + " is inside what begins at " + hex(run),
                   free_of(run + 8));
    expect_refusal(NBBS_CODE_INSIDE_UNIT, "address " + hex(run + 1024) + " is inside a block that begins before it",
                   free_of(run + 1024));
    expect_refusal(NBBS_CODE_NOT_OF_HEAP, "address " + hex(&own) + " is in no memory of the heap, which has 1 region",
                   free_of(&own));
    for (auto *block : {slot, run}) {
        EXPECT_EQ(nbbs_heap_free(heap, block, nullptr), NBBS_CODE_OK);
        expect_refusal(NBBS_CODE_NO_BLOCK, "nothing is allocated at " + hex(block), free_of(block));
        nbbs_heap_trim(heap);
        expect_refusal(NBBS_CODE_NO_BLOCK, "nothing is allocated at " + hex(block), free_of(block));
    }
    EXPECT_EQ(heap.misuse.size(), 8u);
    EXPECT_EQ(heap.stats().refused, 8u);
    EXPECT_EQ(nbbs_heap_realloc(heap, run, 5), nullptr);
    EXPECT_EQ(nbbs_heap_usable_size(heap, run), 0u);
    size_t bytes = 0;
    EXPECT_EQ(nbbs_heap_size_of(heap, nullptr, &bytes, nullptr), NBBS_CODE_NULL);
    heap.expect_whole();
}

TEST(Heap, AuditsWhatCachesKeep) {
    Heap heap(1 << 20);
    heap.be_on_cpus();
    void *block = alloc(heap, 100, 1);
    alloc(heap, 100, 1);
    EXPECT_EQ(nbbs_heap_free(heap, block, nullptr), NBBS_CODE_OK);
    heap.cpu = 1;
    EXPECT_EQ(nbbs_heap_free(heap, block, nullptr), NBBS_CODE_OK) << "another cache does not see it";
    nbbs_error error{};
    EXPECT_EQ(nbbs_heap_audit(heap, &error), NBBS_CODE_HEAP_BROKEN);
    EXPECT_EQ(text_of(error), "a cache keeps " + hex(block) + ", which is no slot or run in use, or kept twice");
    EXPECT_TRUE(heap.misuse.empty());
    heap.cpu = 0;
}

TEST(Heap, IsShapedAsMalloc) {
    Heap heap(4 << 20);
    for (size_t size : kSizes) {
        auto *dirty = static_cast<unsigned char *>(nbbs_heap_malloc(heap, size));
        ASSERT_NE(dirty, nullptr);
        memset(dirty, 0xee, size);
        EXPECT_EQ(nbbs_heap_free(heap, dirty, nullptr), NBBS_CODE_OK);
        auto *zeroed = static_cast<unsigned char *>(nbbs_heap_calloc(heap, size, 3));
        ASSERT_NE(zeroed, nullptr);
        EXPECT_EQ(std::count(zeroed, zeroed + 3 * size, 0), static_cast<ptrdiff_t>(3 * size));
        EXPECT_EQ(nbbs_heap_free(heap, zeroed, nullptr), NBBS_CODE_OK);
        void *aligned = nbbs_heap_aligned_alloc(heap, 256, size);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % 256, 0u);
        EXPECT_EQ(nbbs_heap_free(heap, aligned, nullptr), NBBS_CODE_OK);
        for (size_t to : kSizes) {
            auto *block = static_cast<unsigned char *>(nbbs_heap_realloc(heap, nullptr, size));
            memset(block, 9, size);
            block = static_cast<unsigned char *>(nbbs_heap_realloc(heap, block, to));
            ASSERT_NE(block, nullptr);
            EXPECT_GE(nbbs_heap_usable_size(heap, block), to);
            const size_t kept = std::min(size, to);
            EXPECT_EQ(std::count(block, block + kept, 9), static_cast<ptrdiff_t>(kept));
            EXPECT_EQ(nbbs_heap_realloc(heap, block, 64 << 20), nullptr);
            void *same = block;
            EXPECT_EQ(nbbs_heap_resize(heap, &same, 64 << 20, nullptr), NBBS_CODE_HEAP_FULL);
            EXPECT_EQ(same, block);
            EXPECT_EQ(nbbs_heap_free(heap, block, nullptr), NBBS_CODE_OK);
        }
    }
    EXPECT_EQ(nbbs_heap_usable_size(heap, nullptr), 0u);
    EXPECT_TRUE(heap.misuse.empty());
    heap.expect_whole();
}

TEST(Heap, Grows) {
    Heap heap(4096);
    EXPECT_EQ(nbbs_heap_malloc(heap, 500000), nullptr);
    std::vector<std::vector<unsigned char>> more;
    for (int region = 0; region < 7; region++) {
        more.emplace_back(1 << 20, 0xa5);
        EXPECT_EQ(nbbs_heap_add(heap, more.back().data(), more.back().size(), nullptr), NBBS_CODE_OK);
        EXPECT_NE(nbbs_heap_malloc(heap, 500000), nullptr);
    }
    expect_refusal(NBBS_CODE_REGIONS, "a heap has at most 8 regions", [&](nbbs_error *error) {
        static std::vector<unsigned char> eighth(1 << 20);
        return nbbs_heap_add(heap, eighth.data(), eighth.size(), error);
    });
    Heap other(1 << 20);
    unsigned char *const inside = static_cast<unsigned char *>(alloc(other, 1000, 1));
    nbbs_error refused{};
    EXPECT_EQ(nbbs_heap_add(other, inside, 4 << 20, &refused), NBBS_CODE_OVERLAP);
    EXPECT_EQ(refused.value, reinterpret_cast<uintptr_t>(inside));
    EXPECT_TRUE(refused.limit < refused.value && refused.value < refused.other);
    EXPECT_EQ(nbbs_heap_free(other, inside, nullptr), NBBS_CODE_OK);
    other.expect_whole();
    std::vector<unsigned char> small(1024);
    EXPECT_EQ(nbbs_heap_add(heap, small.data(), small.size(), nullptr), NBBS_CODE_TOO_SHORT);
    EXPECT_EQ(nbbs_heap_add(heap, nullptr, 1024, nullptr), NBBS_CODE_NULL);
}

TEST(Heap, SaysWhatItsMemoryIsUsedFor) {
    Heap heap(1 << 20);
    void *slot = alloc(heap, 100, 1);
    alloc(heap, 100000, 1);
    const auto statistics = heap.stats();
    EXPECT_EQ(statistics.runs, 98u << 10);
    EXPECT_EQ(statistics.bytes, statistics.free + statistics.runs + statistics.slots + statistics.free_slots);
    const auto *of = std::find_if(statistics.classes, statistics.classes + NBBS_HEAP_CLASSES,
                                  [](const nbbs_heap_class &each) { return each.slabs > 0; });
    EXPECT_EQ(of->size, 112u);
    EXPECT_EQ(of->slabs, 1u);
    EXPECT_EQ(of->free, 0u) << "the cache keeps them";
    EXPECT_EQ(nbbs_heap_trim(heap), 0u);
    EXPECT_EQ(heap.stats().classes[6].used, 1u);
    EXPECT_EQ(nbbs_heap_free(heap, slot, nullptr), NBBS_CODE_OK);
    EXPECT_GT(nbbs_heap_trim(heap), 0u);
    EXPECT_EQ(nbbs_heap_stats(heap, nullptr, nullptr), NBBS_CODE_NULL);
}

TEST(Heap, ShowsWhatIsInUse) {
    Heap heap(4 << 20);
    std::vector<void *> held, shown;
    for (size_t size : kSizes) held.push_back(alloc(heap, size, 1));
    nbbs_heap_trim(heap);
    const auto show = [](void *context, const nbbs_heap_block *block) {
        static_cast<std::vector<void *> *>(context)->push_back(block->address);
        // The first slots of more than a unit are runs in a small heap.
        EXPECT_EQ(block->size_class == NBBS_HEAP_CLASSES, block->size > 1024);
    };
    EXPECT_EQ(nbbs_heap_walk(heap, show, &shown, nullptr), NBBS_CODE_OK);
    std::sort(shown.begin(), shown.end());
    std::sort(held.begin(), held.end());
    EXPECT_EQ(shown, held);
    EXPECT_EQ(nbbs_heap_walk(heap, nullptr, nullptr, nullptr), NBBS_CODE_NULL);

    std::string text(nbbs_heap_profile(heap, nullptr, 0), 'x');
    EXPECT_EQ(nbbs_heap_profile(heap, text.data(), text.size() + 1), text.size());
    EXPECT_NE(text.find("\"slots of 1024 bytes\""), std::string::npos) << text;
    char cut[5];
    EXPECT_EQ(nbbs_heap_profile(heap, cut, sizeof cut), text.size());
    EXPECT_EQ(std::string(cut), text.substr(0, 4));
    EXPECT_EQ(nbbs_heap_profile(nullptr, cut, sizeof cut), 0u);
}

TEST(Heap, HasFreePagesTakenBack) {
    Heap heap(4 << 20);
    auto *block = static_cast<unsigned char *>(alloc(heap, 1 << 20, 1));
    memset(block, 7, 1 << 20);
    const auto clear = [](void *context, void *pages, size_t bytes) {
        memset(pages, 0, bytes);
        *static_cast<size_t *>(context) += bytes;
        return true;
    };
    size_t taken = 0;
    for (size_t page : {0, 3, 1000}) EXPECT_EQ(nbbs_heap_discard(heap, page, clear, &taken), 0u);
    EXPECT_EQ(taken, 0u) << "they are no powers of two";
    EXPECT_GT(nbbs_heap_discard(heap, 4096, clear, &taken), 2u << 20);
    EXPECT_EQ(block[1 << 19], 7) << "it is held";
    nbbs_heap_free(heap, block, nullptr);
    taken = 0;
    EXPECT_GE(nbbs_heap_discard(heap, 4096, clear, &taken), 1u << 20);
    EXPECT_GE(taken, 1u << 20);
    EXPECT_EQ(nbbs_heap_discard(heap, 4096, nullptr, nullptr), 0u);
    // What is zero need not be cleared: it is found as it was left.
    auto *zeroed = static_cast<unsigned char *>(nbbs_heap_calloc(heap, 1, 2 << 20));
    EXPECT_EQ(std::count(zeroed, zeroed + (2 << 20), 0), 2 << 20);
    nbbs_heap_free(heap, zeroed, nullptr);
    heap.expect_whole();
}

// A thread for each cache, whose number is its own, and one whose number has none.
TEST(Heap, ServesThreadsWithCachesOfTheirOwn) {
    static thread_local size_t number = 0;
    Heap heap(8 << 20, 3);
    const auto cpu = [](void *) { return number; };
    ASSERT_EQ(nbbs_heap_set_nested_cpu(heap, cpu, nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_heap_set_nested_cpu(nullptr, cpu, nullptr, nullptr), NBBS_CODE_NULL);
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < 4; thread++) {
        threads.emplace_back([&heap, thread] {
            number = thread;
            std::vector<size_t *> held;
            for (size_t round = 0; round < 20000; round++) {
                const size_t bytes = sizeof(size_t) + round * 37 % 2000;
                held.push_back(static_cast<size_t *>(alloc(heap, bytes, 16)));
                *held.back() = thread;
                if (held.size() < 20) continue;
                std::swap(held[round % 19], held.back());
                EXPECT_EQ(*held.back(), thread);
                EXPECT_EQ(nbbs_heap_free(heap, held.back(), nullptr), NBBS_CODE_OK);
                held.pop_back();
            }
            for (size_t *block : held) EXPECT_EQ(nbbs_heap_free(heap, block, nullptr), NBBS_CODE_OK);
        });
    }
    for (std::thread &thread : threads) thread.join();

    // What the number without a cache frees, all find.
    for (number = 0; number < 3; number++) nbbs_heap_trim(heap);
    EXPECT_EQ(nbbs_heap_free(heap, alloc(heap, 100, 16), nullptr), NBBS_CODE_OK);
    EXPECT_GT(nbbs_heap_trim(heap), 0u);
    number = 0;
    EXPECT_EQ(nbbs_heap_free(heap, alloc(heap, 100, 16), nullptr), NBBS_CODE_OK);
    number = 3;
    EXPECT_EQ(nbbs_heap_trim(heap), 0u);
    // Where any calls may meet, it shares the first cache.
    EXPECT_EQ(nbbs_heap_set_cpu(heap, cpu, nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_GT(nbbs_heap_trim(heap), 0u);
    // If nobody says on which CPU calls run, they may meet in any way again.
    ASSERT_EQ(nbbs_heap_set_nested_cpu(heap, nullptr, nullptr, nullptr), NBBS_CODE_OK);
    on_threads([&](int own) {
        for (int round = 0; round < 20000; round++) {
            auto *block = static_cast<int *>(alloc(heap, 64, 16));
            *block = own;
            std::this_thread::yield();
            EXPECT_EQ(*block, own);
            EXPECT_EQ(nbbs_heap_free(heap, block, nullptr), NBBS_CODE_OK);
        }
    });
    nbbs_heap_trim(heap);
    EXPECT_TRUE(heap.misuse.empty());
    heap.expect_whole();
}

TEST(Heap, ServesThreads) {
    Heap heap(32 << 20);
    on_threads([&](int number) {
        Random random(number);
        std::vector<Owned> held;
        const uint64_t mark = 1 + number;
        for (int round = 0; round < 20000; round++) {
            const size_t words = 1 + random(random(8) == 0 ? 8000 : 100);
            if (auto *block = static_cast<uint64_t *>(nbbs_heap_malloc(heap, words * 8))) {
                held.push_back({block, words});
                held.back().take(mark);
            }
            if (held.size() > 50) {
                std::swap(held[random(held.size())], held.back());
                ASSERT_TRUE(held.back().is_of(mark)) << "handed out twice";
                ASSERT_EQ(nbbs_heap_free(heap, held.back().words, nullptr), NBBS_CODE_OK);
                held.pop_back();
            }
        }
        for (const Owned &each : held) nbbs_heap_free(heap, each.words, nullptr);
    });
    EXPECT_TRUE(heap.misuse.empty());
    heap.expect_whole();
}
