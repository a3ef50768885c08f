// nbbs::heap, heap_resource and heap_allocator.
#include "support.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace {

// Whether nothing is in use, once the only cache is empty.
void expect_whole(const nbbs::heap& heap) {
    heap.trim();
    const auto audit = heap.try_audit();
    EXPECT_TRUE(audit) << audit.error().message();
    EXPECT_EQ(heap.stats().free, heap.stats().bytes);
}

}  // namespace

TEST(Heap, OwnsItsMemoryOrLivesInYours) {
    nbbs::heap own(1 << 20, 1);
    EXPECT_GE(own.stats().bytes, 1u << 20);
    std::vector<std::byte> place(nbbs::heap::bytes_for(1, 100'000));
    nbbs::heap given({place.data(), place.size()}, 1);
    void* block = given.alloc(1000, 256);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 256, 0u);
    EXPECT_GE(block, place.data());
    EXPECT_TRUE(given.contains(block));
    EXPECT_FALSE(own.contains(block));
    EXPECT_GE(given.usable_size(block), 1000u);
    given.free(block);
    given.free(nullptr);
    expect_whole(given);
    nbbs::heap moved(std::move(own));
    EXPECT_EQ(own.handle(), nullptr);
    EXPECT_FALSE(own.try_alloc(1));
    own = std::move(moved);
    own.free(own.alloc(10));
    expect_whole(own);
}

TEST(Heap, HasCachesForCallsThatOnlyNest) {
    nbbs::heap heap(1 << 20, 1);
    std::size_t number = 0;
    EXPECT_TRUE(heap.set_nested_cpu([](void* of) { return *static_cast<std::size_t*>(of); }, &number));
    heap.free(heap.alloc(100));
    number = 1;
    EXPECT_EQ(heap.trim(), 0u) << "it shares no cache";
    number = 0;
    EXPECT_GT(heap.trim(), 0u);
    expect_whole(heap);
}

TEST(Heap, SaysWhyNot) {
    nbbs::heap heap(100'000, 1);
    Misuse misuse;
    EXPECT_TRUE(heap.set_hook(Misuse::note, &misuse));
    EXPECT_EQ(heap.try_alloc(1 << 20).error().message(), "the heap has no 1048576 bytes at a multiple of 16");
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_HEAP_FULL, [&] { static_cast<void>(heap.alloc(1 << 20)); });
    const std::size_t dropped = nbbs::dropped_frees();
    nbbs::heap_allocator<int>(heap).deallocate(nullptr, 1);
    EXPECT_EQ(nbbs::dropped_frees(), dropped);
    int own = 0;
    nbbs::heap_allocator<int>(heap).deallocate(&own, 1);
    nbbs::heap_resource(heap).deallocate(&own, 1);
    EXPECT_EQ(nbbs::dropped_frees() - dropped, 2u);
    EXPECT_EQ(heap.stats().refused, 2u);
    misuse.seen.clear();
    void* block = heap.alloc(100);
    heap.free(block);
    expect_throw<nbbs::error>(NBBS_CODE_NO_BLOCK, [&] { heap.free(block); });
    EXPECT_EQ(heap.try_free(&own).error().code(), NBBS_CODE_NOT_OF_HEAP);
    EXPECT_EQ(misuse.seen.size(), 2u);
    for (const std::size_t bytes : {std::size_t{0}, SIZE_MAX}) {
        try {
            nbbs::heap none(bytes, 1);
            ADD_FAILURE() << "a heap of " << bytes << " bytes";
        } catch (const nbbs::error& thrown) {
            EXPECT_EQ(thrown.code(), NBBS_CODE_SIZE);
            EXPECT_EQ(thrown.why().value(), bytes);
            const auto most = static_cast<std::size_t>(thrown.why().limit());
            EXPECT_NE(nbbs::heap::bytes_for(1, most), 0u);
            EXPECT_EQ(nbbs::heap::bytes_for(1, most + 1), 0u);
        }
    }
    expect_throw<nbbs::error>(NBBS_CODE_SETTING, [] { nbbs::heap(10, SIZE_MAX); });
    std::byte little[100];
    expect_throw<nbbs::error>(NBBS_CODE_TOO_SHORT, [&] { nbbs::heap({little, sizeof little}, 1); });
    expect_throw<nbbs::error>(NBBS_CODE_TOO_SHORT, [&] { heap.add({little, sizeof little}); });
    std::vector<std::byte> more(2 << 20);
    heap.add({more.data(), more.size()});
    EXPECT_TRUE(heap.try_alloc(1 << 20));
}

TEST(Heap, SaysWhatMemoryThereWasNot) {
    if (!kCanBePoor) {
        GTEST_SKIP();
    }
    const Poor poor(std::uint64_t{1} << 36);
    const std::size_t most = std::size_t{1} << (sizeof(void*) * 5);
    try {
        nbbs::heap none(most, 1);
        ADD_FAILURE() << "a heap of " << most << " bytes";
    } catch (const nbbs::bad_alloc& thrown) {
        EXPECT_EQ(thrown.code(), NBBS_CODE_SOURCE_EMPTY);
        EXPECT_EQ(thrown.why().value(), nbbs::heap::bytes_for(1, most));
        EXPECT_EQ(thrown.why().message(), thrown.what());
    }
}

TEST(Heap, ResizesBlocks) {
    nbbs::heap heap(1 << 20, 1);
    auto* block = static_cast<unsigned char*>(heap.resize(nullptr, 100));
    std::memset(block, 7, 100);
    void* const behind = heap.alloc(100);
    block = static_cast<unsigned char*>(heap.resize(block, 5000));
    EXPECT_GE(heap.usable_size(block), 5000u);
    EXPECT_EQ(std::count(block, block + 100, 7), 100);
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_HEAP_FULL, [&] { static_cast<void>(heap.resize(block, 2 << 20)); });
    EXPECT_EQ(heap.resize(block, 5000), block);
    expect_throw<nbbs::error>(NBBS_CODE_INSIDE_UNIT, [&] { static_cast<void>(heap.resize(block + 16, 1)); });
    EXPECT_EQ(heap.try_resize(block, SIZE_MAX).code(), NBBS_CODE_SIZE);
    heap.free(block);
    heap.free(behind);
    expect_whole(heap);
}

TEST(Heap, ShowsWhatIsInUse) {
    nbbs::heap heap(4 << 20, 1);
    void* const large = heap.alloc(2 << 20);
    void* const small = heap.alloc(40);
    EXPECT_NE(heap.profile().find("2097152"), std::string::npos) << heap.profile();
    EXPECT_EQ(heap.profile().size(), nbbs_heap_profile(heap.handle(), nullptr, 0));
    std::size_t shown = 0;
    heap.walk([&](const nbbs_heap_block& block) {
        // The others are what the cache keeps.
        if (block.address == large || block.address == small) {
            shown++;
            heap.free(block.address);
        }
    });
    EXPECT_EQ(shown, 2u);
    heap.trim();
    heap.walk([](const nbbs_heap_block&) { ADD_FAILURE() << "nothing is in use"; });
    std::size_t asked = 0;
    const auto page = [&](void* pages, std::size_t bytes) {
        EXPECT_TRUE(heap.contains(pages));
        std::memset(pages, 0, bytes);
        asked += bytes;
        return true;
    };
    EXPECT_GE(heap.discard(4096, page), std::size_t{2} << 20);
    EXPECT_GE(asked, std::size_t{2} << 20);
    static_cast<void>(heap.alloc(1));
    EXPECT_THROW(heap.walk([](const nbbs_heap_block&) { throw 7; }), int);
    nbbs::heap moved(std::move(heap));
    expect_throw<nbbs::error>(NBBS_CODE_NULL, [&] { heap.walk([](const nbbs_heap_block&) {}); });
    EXPECT_EQ(heap.profile(), "");
}

TEST(Heap, IsAMemoryResource) {
    nbbs::heap heap(4 << 20, 1);
    nbbs::heap other(1 << 20, 1);
    {
        nbbs::heap_resource resource(heap);
        nbbs::heap_resource same(heap);
        nbbs::heap_resource foreign(other);
        EXPECT_TRUE(resource.is_equal(same));
        EXPECT_FALSE(resource.is_equal(foreign));
        EXPECT_FALSE(resource.is_equal(*std::pmr::new_delete_resource()));
        EXPECT_EQ(&resource.of(), &heap);
        std::pmr::unordered_map<int, std::pmr::string> names(&resource);
        for (int number = 0; number < 1000; number++) {
            names.emplace(number, std::string(static_cast<std::size_t>(number), 'x'));
        }
        for (int number = 0; number < 1000; number++) {
            EXPECT_EQ(names.at(number).size(), static_cast<std::size_t>(number));
        }
        EXPECT_TRUE(heap.contains(&names.at(5)));
        void* aligned = resource.allocate(100, 4096);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 4096, 0u);
        resource.deallocate(aligned, 100, 4096);
        expect_throw<nbbs::bad_alloc>(NBBS_CODE_HEAP_FULL, [&] { static_cast<void>(resource.allocate(8 << 20)); });
    }
    expect_whole(heap);
    EXPECT_EQ(heap.stats().refused, 0u);
}

TEST(Heap, IsAnAllocator) {
    nbbs::heap heap(4 << 20, 1);
    nbbs::heap other(1 << 20, 1);
    {
        using numbers = std::vector<int, nbbs::heap_allocator<int>>;
        nbbs::heap_allocator<int> allocator(heap);
        EXPECT_TRUE(allocator == nbbs::heap_allocator<long>(allocator));
        EXPECT_TRUE(allocator != nbbs::heap_allocator<int>(other));
        numbers some(heap);
        for (int number = 0; number < 100'000; number++) {
            some.push_back(number);
        }
        EXPECT_TRUE(heap.contains(some.data()));
        numbers moved(other);
        moved = std::move(some);
        EXPECT_TRUE(moved.get_allocator() == allocator);
        EXPECT_EQ(moved.back(), 99'999);
        std::map<int, int, std::less<>, nbbs::heap_allocator<std::pair<const int, int>>> tree(heap);
        tree[1] = 2;
        expect_throw<nbbs::bad_alloc>(NBBS_CODE_TOO_LONG,
                                      [&] { static_cast<void>(allocator.allocate(SIZE_MAX / 2)); });
    }
    expect_whole(heap);
    expect_whole(other);
}
