// Standard containers over a buddy: by memory resource and by allocator.

#include "support.hpp"

#include <algorithm>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace {

Memory<1 << 20> memory;

TEST(MemoryResource, ServesContainers) {
    nbbs::buddy arena(memory.region(64));
    nbbs::memory_resource resource(arena);
    {
        std::pmr::vector<int> numbers(&resource);
        std::pmr::unordered_map<int, std::pmr::string> names(&resource);
        for (int number = 0; number < 2000; number++) {
            numbers.push_back(number);
            names.emplace(number, std::string(40, static_cast<char>('a' + number % 26)));
        }
        EXPECT_TRUE(memory.contains(numbers.data()));
        EXPECT_TRUE(memory.contains(names.at(7).data()));
        for (int number = 0; number < 2000; number += 2) {
            names.erase(number);
        }
        EXPECT_EQ(std::string_view(names.at(1999)), std::string(40, static_cast<char>('a' + 1999 % 26)));
        EXPECT_EQ(numbers[1234], 1234);
        EXPECT_TRUE(arena.try_audit());
    }
    expect_empty(arena);
}

TEST(MemoryResource, TakesWholeUnitsAndNoMore) {
    nbbs::buddy arena(memory.region(64));
    nbbs::memory_resource resource(arena);
    void* some = resource.allocate(65 * 3, 8);
    EXPECT_EQ(arena.stats().used_units, 4u);
    resource.deallocate(some, 65 * 3, 8);
    void* nothing = resource.allocate(0, 1);
    EXPECT_EQ(arena.stats().used_units, 1u);
    resource.deallocate(nothing, 0, 1);
    expect_empty(arena);
}

TEST(MemoryResource, LargeAlignments) {
    nbbs::buddy arena(memory.region(64));
    nbbs::memory_resource resource(arena);
    for (std::size_t align = 1; align <= 4096; align *= 2) {
        void* some = resource.allocate(200, align);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(some) % align, 0u) << align;
        resource.deallocate(some, 200, align);
    }
    // Of a base that is aligned to 64 at most.
    nbbs::buddy odd(nbbs::region{memory.bytes + 64, sizeof memory.bytes - 64, 64});
    nbbs::memory_resource there(odd);
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_ALIGNMENT, [&] { there.deallocate(there.allocate(1, 128), 1, 128); });
    expect_empty(arena);
}

TEST(MemoryResource, ThrowsBadAllocAndSaysWhy) {
    nbbs::buddy arena(memory.region(64));
    nbbs::memory_resource resource(arena);
    std::pmr::vector<char> bytes(&resource);
    EXPECT_THROW(bytes.resize(sizeof memory.bytes + 1), std::bad_alloc);
    bytes.resize(sizeof memory.bytes);
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_EXHAUSTED, [&] { resource.deallocate(resource.allocate(1), 1); });
    nbbs::buddy none(64);
    nbbs::memory_resource nowhere(none);
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_NO_MEMORY, [&] { nowhere.deallocate(nowhere.allocate(1), 1); });
}

TEST(MemoryResource, WrongFreesAreRefusedAndReported) {
    Misuse misuse;
    nbbs::buddy arena(memory.region(64));
    EXPECT_TRUE(arena.set_hook(Misuse::note, &misuse));
    nbbs::memory_resource resource(arena);
    const std::size_t dropped = nbbs::dropped_frees();
    void* some = resource.allocate(100);
    resource.deallocate(some, 300);
    resource.deallocate(&misuse, 8);
    resource.deallocate(some, 100);
    resource.deallocate(some, 100);
    EXPECT_EQ(nbbs::dropped_frees() - dropped, 3u);
    nbbs::allocator<int> allocator(arena);
    int* const numbers = allocator.allocate(100);
    allocator.deallocate(numbers, 1);
    allocator.deallocate(numbers, 100);
    EXPECT_EQ(nbbs::dropped_frees() - dropped, 4u);
    ASSERT_EQ(misuse.seen.size(), 4u);
    EXPECT_EQ(misuse.seen[0].code, static_cast<std::uint32_t>(NBBS_CODE_WRONG_LENGTH));
    EXPECT_EQ(misuse.seen[1].code, static_cast<std::uint32_t>(NBBS_CODE_FOREIGN_ADDRESS));
    EXPECT_EQ(misuse.seen[2].code, static_cast<std::uint32_t>(NBBS_CODE_NOT_ALLOCATED));
    expect_empty(arena);
}

TEST(MemoryResource, IsEqualWhereOneCanFreeForTheOther) {
    static Memory<4096> elsewhere;
    nbbs::buddy arena(memory.region(64)), other(elsewhere.region(64));
    const nbbs::buddy lane = arena.on(1);
    EXPECT_EQ(nbbs::memory_resource(arena), nbbs::memory_resource(arena));
    EXPECT_EQ(nbbs::memory_resource(arena), nbbs::memory_resource(lane));
    EXPECT_NE(nbbs::memory_resource(arena), nbbs::memory_resource(other));
    EXPECT_NE(nbbs::memory_resource(arena), *std::pmr::new_delete_resource());
    EXPECT_EQ(nbbs::allocator<int>(arena), nbbs::allocator<char>(lane));
    EXPECT_NE(nbbs::allocator<int>(arena), nbbs::allocator<int>(other));
    arena.alloc_at(0, 16);
    // An arena within a block of another, and their bases are the same.
    const nbbs::buddy inner(nbbs::region{memory.region(64).base, 16 * 64, 64});
    EXPECT_EQ(inner.base(), arena.base());
    EXPECT_NE(nbbs::memory_resource(arena), nbbs::memory_resource(inner));
    EXPECT_NE(nbbs::memory_resource(inner), nbbs::memory_resource(lane));
    EXPECT_NE(nbbs::allocator<int>(arena), nbbs::allocator<int>(inner));
    // One arena, mapped twice.
    static Memory<1024> here, there;
    alignas(64) std::byte words[NBBS_METADATA_BYTES(16)];
    const nbbs::buddy first(here.region(64), {words, sizeof words});
    const nbbs::buddy second(there.region(64), {words, sizeof words}, nbbs::initial::attached);
    EXPECT_NE(nbbs::allocator<int>(first), nbbs::allocator<int>(second));
}

template <class T>
using list = std::list<T, nbbs::allocator<T>>;
template <class T>
using vector = std::vector<T, nbbs::allocator<T>>;

TEST(Allocator, ServesContainers) {
    nbbs::buddy arena(memory.region(32));
    {
        vector<int> numbers(arena);
        list<int> nodes(arena);
        std::map<int, int, std::less<>, nbbs::allocator<std::pair<const int, int>>> squares(arena);
        for (int number = 0; number < 1000; number++) {
            numbers.push_back(number);
            nodes.push_front(number);
            squares[number] = number * number;
        }
        nodes.sort();
        EXPECT_TRUE(std::equal(nodes.begin(), nodes.end(), numbers.begin(), numbers.end()));
        EXPECT_EQ(squares.at(31), 961);
        EXPECT_TRUE(memory.contains(&nodes.front()));
        EXPECT_TRUE(memory.contains(&squares.at(0)));
    }
    expect_empty(arena);
}

TEST(Allocator, MovesWithItsContainerAndStaysOnCopy) {
    static Memory<1 << 16> elsewhere;
    nbbs::buddy arena(memory.region(32)), other(elsewhere.region(32));
    vector<int> numbers({1, 2, 3}, arena), copies(other);
    copies = numbers;
    EXPECT_TRUE(elsewhere.contains(copies.data()));
    numbers.swap(copies);
    EXPECT_TRUE(elsewhere.contains(numbers.data()));
    const int* before = numbers.data();
    copies = std::move(numbers);
    EXPECT_EQ(copies.data(), before);
    EXPECT_EQ(arena.stats().used_units, 0u);
}

TEST(Allocator, RefusesWhatNoMemoryHas) {
    nbbs::buddy arena(memory.region(32));
    nbbs::allocator<std::uint64_t> words(arena);
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_TOO_LONG, [&] { words.deallocate(words.allocate(SIZE_MAX / 8 + 1), 1); });
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_SIZE,
                                  [&] { words.deallocate(words.allocate(sizeof memory.bytes), 1); });
    struct alignas(2048) wide {};
    nbbs::allocator<wide> wides(words);
    wide* some = wides.allocate(1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(some) % 2048, 0u);
    wides.deallocate(some, 1);
    expect_empty(arena);
}

}  // namespace
