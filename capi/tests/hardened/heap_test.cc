// Heaps of a library that was built with -DNBBS_HEAP_CHECKS=poison;quarantine;shuffle.
#include <gtest/gtest.h>
#include <nbbs.h>

#include <algorithm>
#include <vector>

namespace {

struct Heap {
    std::vector<unsigned char> memory;
    nbbs_heap *handle = nullptr;

    Heap() : memory(nbbs_heap_bytes(1, 4 << 20)) {
        EXPECT_EQ(nbbs_heap_create(memory.data(), memory.size(), 1, &handle, nullptr), NBBS_CODE_OK);
    }
    Heap(const Heap &) = delete;

    operator nbbs_heap *() const { return handle; }

    nbbs_heap_statistics stats() const {
        nbbs_heap_statistics statistics{};
        EXPECT_EQ(nbbs_heap_stats(handle, &statistics, nullptr), NBBS_CODE_OK);
        return statistics;
    }
};

std::vector<unsigned char *> alloc(nbbs_heap *heap, size_t blocks, size_t bytes) {
    std::vector<unsigned char *> found(blocks);
    for (auto &block : found) block = static_cast<unsigned char *>(nbbs_heap_malloc(heap, bytes));
    return found;
}

}  // namespace

TEST(HardenedHeap, FindsWritesAfterAFree) {
    Heap heap;
    // So many that the first has waited long enough once half are free, and that the others hold on to its slab.
    const auto blocks = alloc(heap, 1000, 100);
    unsigned char *block = blocks[0];
    for (size_t at = 0; at < blocks.size(); at += 2) {
        ASSERT_EQ(nbbs_heap_free(heap, blocks[at], nullptr), NBBS_CODE_OK);
    }
    static_cast<volatile unsigned char *>(block)[50]++;
    EXPECT_EQ(heap.stats().damaged, 0u);
    const auto others = alloc(heap, 2000, 100);
    EXPECT_EQ(std::count(others.begin(), others.end(), block), 0) << "it is nobody's any more";
    EXPECT_EQ(heap.stats().damaged, 1u);
}

TEST(HardenedHeap, RefusesASecondFreeAtOnce) {
    Heap heap;
    const auto blocks = alloc(heap, 100, 100);
    for (auto *block : blocks) EXPECT_EQ(nbbs_heap_free(heap, block, nullptr), NBBS_CODE_OK);
    for (auto *block : blocks) EXPECT_EQ(nbbs_heap_free(heap, block, nullptr), NBBS_CODE_NO_BLOCK);
    EXPECT_EQ(heap.stats().refused, 100u);
}

TEST(HardenedHeap, HandsOutWhatWasFreedLaterAndInNoOrder) {
    Heap heap;
    const auto blocks = alloc(heap, 48, 64);
    size_t rises = 0;
    for (size_t at = 1; at < blocks.size(); at++) rises += blocks[at - 1] < blocks[at];
    // Like tosses of 47 coins: fewer than 8 or more than 39 come up once in a million.
    EXPECT_GE(rises, 8u);
    EXPECT_LE(rises, 39u);
    EXPECT_EQ(nbbs_heap_free(heap, blocks[0], nullptr), NBBS_CODE_OK);
    const auto others = alloc(heap, 200, 64);
    EXPECT_EQ(std::count(others.begin(), others.end(), blocks[0]), 0);
}
