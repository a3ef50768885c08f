// nbbs::small_heap and small_resource.
#include "support.hpp"

#include <algorithm>
#include <map>

namespace {

alignas(16) std::byte memory[16 << 10];

void expect_whole(const nbbs::small_heap& heap) {
    EXPECT_EQ(heap.stats().blocks, 0u);
    EXPECT_EQ(heap.stats().free, heap.stats().bytes);
}

}  // namespace

TEST(Small, GivesTakesBackAndResizes) {
    nbbs::small_heap heap({memory, sizeof memory}, 16);
    EXPECT_LE(nbbs::small_heap::bytes_for(heap.stats().bytes, 16), sizeof memory + 200);
    auto* block = static_cast<unsigned char*>(heap.alloc(100, 64));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0u);
    EXPECT_TRUE(heap.contains(block));
    EXPECT_EQ(heap.usable_size(block), 112u);
    std::memset(block, 7, 100);
    void* const behind = heap.alloc(1);
    auto* const moved = static_cast<unsigned char*>(heap.resize(block, 1000));
    EXPECT_NE(moved, block);
    EXPECT_EQ(std::count(moved, moved + 100, 7), 100);
    const nbbs::small_heap same = heap;
    std::size_t shown = 0;
    same.walk([&](const nbbs_heap_block& each) {
        shown += each.size;
        same.free(each.address);
    });
    EXPECT_EQ(shown, 1008u + 16);
    EXPECT_FALSE(heap.try_free(behind));
    expect_whole(heap);
}

TEST(Small, SaysWhyNot) {
    expect_throw<nbbs::error>(NBBS_CODE_SETTING, [] { nbbs::small_heap none({memory, sizeof memory}, 8); });
    nbbs::small_heap heap;
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_NULL, [&] { static_cast<void>(heap.alloc(1)); });
    EXPECT_EQ(heap.try_create({memory, 10}).code(), NBBS_CODE_TOO_SHORT);
    EXPECT_EQ(heap.handle(), nullptr);
    EXPECT_TRUE(heap.try_create({memory, sizeof memory}));
    Misuse misuse;
    EXPECT_TRUE(heap.set_hook(Misuse::note, &misuse));
    void* const block = heap.alloc(100);
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_HEAP_FULL, [&] { static_cast<void>(heap.alloc(1 << 20)); });
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_HEAP_FULL, [&] { static_cast<void>(heap.resize(block, 1 << 20)); });
    EXPECT_TRUE(misuse.seen.empty());
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_ALIGNMENT, [&] { static_cast<void>(heap.alloc(1, 3)); });
    heap.free(block);
    expect_throw<nbbs::error>(NBBS_CODE_NO_BLOCK, [&] { heap.free(block); });
    expect_throw<nbbs::error>(NBBS_CODE_NO_BLOCK, [&] { static_cast<void>(heap.resize(block, 5)); });
    EXPECT_EQ(misuse.seen.size(), 3u);
    EXPECT_THROW((static_cast<void>(heap.alloc(1)), heap.walk([](const nbbs_heap_block&) { throw 7; })), int);
}

TEST(Small, IsAMemoryResource) {
    nbbs::small_heap heap({memory, sizeof memory});
    const nbbs::small_heap same = heap;
    {
        nbbs::small_resource resource(heap);
        EXPECT_TRUE(resource.is_equal(nbbs::small_resource(same)));
        EXPECT_FALSE(resource.is_equal(*std::pmr::new_delete_resource()));
        std::pmr::map<int, std::pmr::string> names(&resource);
        for (int number = 0; number < 20; number++) {
            names.emplace(number, "a string that is too long for its own place");
        }
        EXPECT_TRUE(heap.contains(&names.at(5)));
        const std::size_t dropped = nbbs::dropped_frees();
        resource.deallocate(&names, 1);
        EXPECT_EQ(nbbs::dropped_frees() - dropped, 1u);
    }
    expect_whole(heap);
}
