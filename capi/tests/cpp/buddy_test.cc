// Arenas of units, and what their functions return and throw.

#include "support.hpp"

#include <algorithm>
#include <numeric>

namespace {

TEST(Buddy, HandlesThatAreKeptHaveTheAddresses) {
    Memory<4096> memory;
    const nbbs::buddy arena(memory.region(64));
    nbbs::buddy lane;
    EXPECT_TRUE(lane.try_create(arena, 3));
    EXPECT_TRUE(lane.same_memory(arena));
    arena.free_bytes(lane.alloc_bytes(100), 100);
    expect_empty(arena);
    EXPECT_EQ(lane.try_create(nbbs::buddy(), 3).code(), NBBS_CODE_NO_ARENA);
    EXPECT_EQ(lane.base(), nullptr);
}

TEST(Buddy, AllocatesByOrderAndFrees) {
    nbbs::buddy arena(1000);
    EXPECT_EQ(arena.units(), 1000u);
    EXPECT_EQ(arena.max_order(), 9u);
    const std::uint64_t block = arena.alloc(3);
    EXPECT_EQ(block % 8, 0u);
    EXPECT_EQ(arena.order_of(block), 3u);
    EXPECT_EQ(arena.free(block), 8u);
    arena.free_sized(arena.alloc(5), 5);
    expect_empty(arena);
}

TEST(Buddy, HasLanesOfItsOwn) {
    nbbs::buddy arena(1 << 18);
    alignas(64) static std::uint64_t lanes[NBBS_LANE_BYTES(64) / 8];
    expect_throw<nbbs::error>(NBBS_CODE_TOO_SHORT, [&] { arena.set_lanes({lanes, 64}); });
    arena.set_lanes({lanes, sizeof lanes});
    const std::uint64_t one = arena.on(0).alloc(0), other = arena.on(16).alloc(0);
    EXPECT_NE(one >> 12, other >> 12);
    arena.free(one);
    arena.free(other);
    expect_empty(arena);
}

TEST(Buddy, RefusesByResultOrException) {
    nbbs::buddy arena(64);
    const nbbs::result<std::uint64_t> none = arena.try_alloc(7);
    EXPECT_FALSE(none);
    EXPECT_EQ(none.code(), NBBS_CODE_ORDER_TOO_LARGE);
    EXPECT_EQ(none.error().value(), 7u);
    EXPECT_EQ(none.error().limit(), 6u);
    EXPECT_EQ(none.error().message(), text_of(none.error().values()));
    EXPECT_EQ(arena.try_alloc(7).value_or(99), 99u);
    EXPECT_EQ(none.value_or(99), 99u);
    expect_throw<nbbs::error>(NBBS_CODE_ORDER_TOO_LARGE, [&] { arena.alloc(7); });
    EXPECT_THROW(arena.free(3), std::runtime_error);
    arena.alloc(6);
    EXPECT_EQ(arena.try_alloc(0).code(), NBBS_CODE_EXHAUSTED);
}

TEST(Buddy, RunsAreExactAndChangeInPlace) {
    nbbs::buddy arena(256);
    const std::uint64_t run = arena.alloc_units(37);
    EXPECT_EQ(arena.len_of(run), 37u);
    arena.grow(run, 50);
    arena.shrink(run, 20);
    const std::uint64_t rest = arena.split_off(run, 5);
    EXPECT_EQ(rest, run + 5);
    EXPECT_EQ(arena.len_of(rest), 15u);
    arena.free_part(rest, rest + 5, rest + 10);
    EXPECT_EQ(arena.stats().used_units, 15u);
    expect_throw<nbbs::error>(NBBS_CODE_WRONG_LENGTH, [&] { arena.free_units(run, 6); });
    arena.free_units(run, 5);
    arena.free(rest);
    arena.free(rest + 10);

    const std::uint64_t block = arena.alloc(4);
    arena.split(block, 2);
    for (std::uint64_t part = 0; part < 16; part += 4) {
        arena.free_sized(block + part, 2);
    }
    expect_empty(arena);
}

TEST(Buddy, PlacesBatchesAndReservations) {
    nbbs::buddy arena(256);
    arena.reserve(0, 64);
    arena.alloc_at(64, 3);
    expect_throw<nbbs::error>(NBBS_CODE_IN_USE, [&] { arena.alloc_at(66, 1); });
    nbbs::request last{};
    last.units = 5;
    last.order = 3;
    last.start = 64;
    last.end = 128;
    last.top_down = true;
    EXPECT_EQ(arena.alloc(last), 120u);
    std::vector<std::uint64_t> blocks(20);
    EXPECT_EQ(arena.alloc_batch(1, blocks.data(), blocks.size()), 20u);
    std::size_t done = 99;
    EXPECT_TRUE(arena.try_free_batch(1, blocks.data(), blocks.size(), &done));
    EXPECT_EQ(done, 20u);
    expect_throw<nbbs::error>(NBBS_CODE_NOT_ALLOCATED, [&] { arena.free_batch(1, blocks.data(), 1); });
    arena.free(64);
    arena.free(120);
    arena.release(0, 64);
    expect_empty(arena);
}

TEST(Buddy, HasAddressesOfARegion) {
    static Memory<4096 * 4> memory;
    nbbs::buddy arena(memory.region(64));
    EXPECT_EQ(arena.units(), 256u);
    EXPECT_EQ(arena.unit_bytes(), 64u);
    EXPECT_EQ(arena.base(), memory.bytes);
    void* some = arena.alloc_bytes(100, 128);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(some) % 128, 0u);
    EXPECT_EQ(arena.address_of(arena.index_of(some)), some);
    arena.resize_bytes(some, 300);
    EXPECT_EQ(arena.stats().used_units, 5u);
    expect_throw<nbbs::error>(NBBS_CODE_FOREIGN_ADDRESS, [&] { arena.free_bytes(&arena); });
    arena.free_bytes(some, 300);
    expect_empty(arena);
    EXPECT_EQ(nbbs::buddy(8).try_alloc_bytes(1).code(), NBBS_CODE_NO_MEMORY);
}

TEST(Buddy, BookkeepingWhereTheCallerSays) {
    alignas(64) static std::uint64_t words[NBBS_METADATA_BYTES(512) / 8];
    const nbbs::metadata place{words, sizeof words};
    nbbs::buddy first(512, place, nbbs::initial::reserved);
    EXPECT_EQ(first.try_alloc(0).code(), NBBS_CODE_EXHAUSTED);
    first.release(0, 512);
    const std::uint64_t block = first.alloc(2);
    nbbs::buddy second(512, place, nbbs::initial::attached);
    EXPECT_EQ(second.free(block), 4u);
    const nbbs::buddy lane = second.on(7);
    lane.free(lane.alloc(1));
    expect_empty(first);

    nbbs::buddy small;
    EXPECT_EQ(small.try_create(512, nbbs::metadata{words, 8}).code(), NBBS_CODE_TOO_SHORT);
    EXPECT_EQ(small.try_alloc(0).code(), NBBS_CODE_NO_ARENA);
}

// An arena that is made at run time where it was declared, before anything else runs.
nbbs::buddy global;

TEST(Buddy, MayBeMadeLaterAndAnew) {
    EXPECT_EQ(global.try_alloc(0).code(), NBBS_CODE_NO_ARENA);
    EXPECT_EQ(global.units(), 0u);
    EXPECT_TRUE(global.try_create(64));
    EXPECT_TRUE(global.try_alloc(6));
    EXPECT_TRUE(global.try_create(128));
    expect_empty(global);
    EXPECT_EQ(global.try_create(0).code(), NBBS_CODE_UNITS);
    EXPECT_EQ(global.try_alloc(0).code(), NBBS_CODE_NO_ARENA);
    static Memory<4096> memory;
    EXPECT_EQ(global.try_create(memory.region(48)).code(), NBBS_CODE_SIZE);
    EXPECT_TRUE(global.try_create(64));
    EXPECT_EQ(global.try_create(memory.region(0)).error().message(),
              "a size of 0 bytes: it must be a power of two up to " + std::to_string(SIZE_MAX / 2 + 1));
    EXPECT_EQ(global.units(), 0u) << "nothing is left of what was there";
    EXPECT_EQ(global.try_create(memory.region(8192)).error().message(), "memory of 4096 bytes: 8192 are needed");
    expect_throw<nbbs::error>(NBBS_CODE_UNITS, [] { nbbs::buddy none(std::uint64_t{0}); });
    const auto too_many = global.try_create((std::uint64_t{1} << 40) + 1);
    EXPECT_EQ(too_many.error().message(), "an arena cannot have 1099511627777 units: it has 1 to 1099511627776");
}

TEST(Buddy, SaysWhatMemoryThereWasNot) {
    if (!kCanBePoor) {
        GTEST_SKIP();
    }
    const Poor poor(std::uint64_t{1} << 36);
    const std::uint64_t units = std::uint64_t{1} << 40;
    const nbbs::refusal why = nbbs::buddy().try_create(units).error();
    EXPECT_EQ(why.code(), NBBS_CODE_SOURCE_EMPTY);
    EXPECT_GE(why.value(), nbbs_metadata_bytes(units));
    EXPECT_EQ(why.message(), "the source has no " + std::to_string(why.value()) + " bytes at a multiple of 64");
}

TEST(Buddy, IsLookedAt) {
    nbbs::buddy arena(100);
    arena.reserve(90, 100);
    arena.alloc_at(0, 1);
    std::uint64_t units = 0, next = 0;
    arena.walk([&](const nbbs::piece& piece) {
        EXPECT_EQ(piece.index, next);
        next += piece.units;
        units += piece.kind == NBBS_PIECE_KIND_FREE ? piece.units : 0;
    });
    EXPECT_EQ(next, 100u);
    EXPECT_EQ(units, arena.stats().free_units);
    std::vector<std::uint8_t> map(100);
    EXPECT_EQ(arena.occupancy_map(0, map.data(), map.size()), 100u);
    EXPECT_EQ(std::accumulate(map.begin(), map.end(), 0), 11 * 255);
    EXPECT_EQ(arena.order_bound(), 5);
    EXPECT_TRUE(arena.has_free(5));
    EXPECT_FALSE(arena.has_free(6));
    EXPECT_GT(arena.audit().words, 0u);
    EXPECT_EQ(nbbs_units(arena.handle()), 100u);
    EXPECT_EQ(arena.count_free(), 89u);
    arena.mend();
    expect_throw<nbbs::error>(NBBS_CODE_NO_ARENA, [] { nbbs::buddy().mend(); });
}

TEST(Buddy, ExceptionsEndAWalkAndPassNoC) {
    nbbs::buddy arena(64);
    arena.alloc(0);
    int visits = 0;
    const auto walk = [&] { arena.walk([&](const nbbs::piece&) { throw ++visits; }); };
    EXPECT_THROW(walk(), int);
    EXPECT_EQ(visits, 1);
    nbbs::buddy none;
    expect_throw<nbbs::error>(NBBS_CODE_NO_ARENA, [&] { none.walk([](const nbbs::piece&) {}); });
}

TEST(Buddy, TellsOfMisuse) {
    Misuse misuse;
    nbbs::buddy arena(64);
    EXPECT_TRUE(arena.set_hook(Misuse::note, &misuse));
    EXPECT_FALSE(arena.try_free(5));
    EXPECT_FALSE(arena.try_alloc_at(64, 1));
    ASSERT_EQ(misuse.seen.size(), 2u);
    EXPECT_EQ(misuse.seen[0].code, static_cast<std::uint32_t>(NBBS_CODE_NOT_ALLOCATED));
}

}  // namespace
