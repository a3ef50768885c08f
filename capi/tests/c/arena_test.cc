// Arenas by unit index: every function, and what each refuses.

#include "support.h"

#include <algorithm>

TEST(Arena, NeedsAsMuchMetadataAsItSays) {
    for (uint64_t units : {1ull, 31ull, 32ull, 513ull, 8192ull, 100000ull, 1ull << 18, (1ull << 20) + 7}) {
        size_t bytes = nbbs_metadata_bytes(units);
        std::vector<uint64_t> metadata(bytes / 8);
        nbbs_arena arena;
        EXPECT_EQ(nbbs_create(&arena, metadata.data(), bytes, units, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(nbbs_units(&arena), units);
        EXPECT_EQ(1ull << nbbs_max_order(&arena) <= units, true);
        EXPECT_EQ(nbbs_create(&arena, metadata.data(), bytes - 1, units, nullptr), NBBS_CODE_TOO_SHORT);
    }
    EXPECT_EQ(nbbs_metadata_bytes(0), 0u);
    EXPECT_EQ(nbbs_metadata_bytes((1ull << 40) + 1), 0u);
    EXPECT_EQ(nbbs_metadata_bytes(UINT64_MAX), 0u);
}

TEST(Arena, StaticBoundIsNeverTooSmallAndTight) {
    for (uint64_t units = 1; units < 1ull << 40; units += units / 50 + 1) {
        size_t bytes = nbbs_metadata_bytes(units), bound = NBBS_METADATA_BYTES(units);
        ASSERT_LE(bytes, bound) << units;
        ASSERT_LE(bound, bytes + bytes / 50 + 2048) << units;
    }
}

TEST(Arena, RefusesWhatCannotBeOne) {
    alignas(64) uint64_t metadata[128];
    nbbs_arena arena;
    using Make = nbbs_code (*)(nbbs_arena *, void *, size_t, uint64_t, nbbs_error *);
    const std::pair<Make, std::string> makes[] = {
        {nbbs_create, "nbbs_create"}, {nbbs_create_reserved, "nbbs_create_reserved"}, {nbbs_attach, "nbbs_attach"}};
    for (const auto &[make_one, name] : makes) {
        const Make make = make_one;
        std::memset(metadata, 0, sizeof metadata);
        expect_refusal(NBBS_CODE_NULL, name + ": argument 1 is a null pointer",
                       [&](nbbs_error *e) { return make(nullptr, metadata, sizeof metadata, 32, e); });
        expect_refusal(NBBS_CODE_NULL, name + ": argument 2 is a null pointer",
                       [&](nbbs_error *e) { return make(&arena, nullptr, sizeof metadata, 32, e); });
        expect_refusal(NBBS_CODE_UNITS, "an arena cannot have 0 units: it has 1 to 1099511627776",
                       [&](nbbs_error *e) { return make(&arena, metadata, sizeof metadata, 0, e); });
        expect_refusal(NBBS_CODE_UNITS, "an arena cannot have 18446744073709551615 units: it has 1 to 1099511627776",
                       [&](nbbs_error *e) { return make(&arena, metadata, sizeof metadata, UINT64_MAX, e); });
        expect_refusal(NBBS_CODE_TOO_SHORT,
                       "memory of 1024 bytes: " + std::to_string(nbbs_metadata_bytes(1 << 20)) + " are needed",
                       [&](nbbs_error *e) { return make(&arena, metadata, sizeof metadata, 1 << 20, e); });
        expect_refusal(NBBS_CODE_SIZE, "a size of 18446744073709551615 bytes: it must be from 1 to 9223372036854775807",
                       [&](nbbs_error *e) { return make(&arena, metadata, SIZE_MAX, 32, e); });
        EXPECT_EQ(make(&arena, reinterpret_cast<char *>(metadata) + 4, sizeof metadata - 8, 32, nullptr),
                  NBBS_CODE_POINTER_MISALIGNED);
        EXPECT_EQ(make(&arena, metadata, sizeof metadata, 32, nullptr), NBBS_CODE_OK);
    }
}

TEST(Arena, HasLanesOfItsOwn) {
    Arena arena(1 << 18);
    alignas(64) static uint64_t lanes[NBBS_LANE_BYTES(64) / 8];
    std::memset(lanes, 0xff, sizeof lanes);
    EXPECT_EQ(nbbs_lane_bytes(64), sizeof lanes);
    EXPECT_EQ(nbbs_lane_bytes(SIZE_MAX), 0u);
    EXPECT_EQ(nbbs_lanes_for(1 << 18, 16), 0u);
    EXPECT_EQ(nbbs_lanes_for(1 << 18, 48), 64u);
    EXPECT_EQ(nbbs_lanes_for(1 << 14, 256), 16u);
    expect_refusal(NBBS_CODE_NULL, "nbbs_set_lanes: argument 2 is a null pointer",
                   [&](nbbs_error *e) { return nbbs_set_lanes(&arena.handle, nullptr, sizeof lanes, e); });
    expect_refusal(NBBS_CODE_TOO_SHORT, "memory of 255 bytes: 256 are needed",
                   [&](nbbs_error *e) { return nbbs_set_lanes(&arena.handle, lanes, 255, e); });
    EXPECT_EQ(nbbs_set_lanes(&arena.handle, reinterpret_cast<char *>(lanes) + 4, 256, nullptr), NBBS_CODE_POINTER_MISALIGNED);
    nbbs_arena none{};
    EXPECT_EQ(nbbs_set_lanes(&none, lanes, sizeof lanes, nullptr), NBBS_CODE_NO_ARENA);

    // In the metadata there are 16: the first is the one behind the last, too.
    auto first = [&](size_t lane) {
        nbbs_arena on;
        uint64_t index = ~0ull;
        EXPECT_EQ(nbbs_on(&arena.handle, lane, &on, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(nbbs_alloc(&on, 0, &index, nullptr), NBBS_CODE_OK);
        return index;
    };
    EXPECT_EQ(first(16) / 32, first(0) / 32);
    ASSERT_EQ(nbbs_set_lanes(&arena.handle, lanes, sizeof lanes, nullptr), NBBS_CODE_OK);
    std::vector<uint64_t> words;
    for (size_t lane = 0; lane < 64; lane++) words.push_back(first(lane) >> 12);
    std::sort(words.begin(), words.end());
    for (size_t lane = 0; lane < 64; lane++) EXPECT_EQ(words[lane], lane);
}

TEST(Arena, HandleThatWasNeverMadeIsRefused) {
    nbbs_arena arena{};
    uint64_t index = 7;
    EXPECT_EQ(nbbs_alloc(&arena, 0, &index, nullptr), NBBS_CODE_NO_ARENA);
    EXPECT_EQ(nbbs_alloc(nullptr, 0, &index, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(index, 7u);
    expect_refusal(NBBS_CODE_NO_ARENA, "nbbs_len_of: the handle at " + hex(&arena) + " is of no arena",
                   [&](nbbs_error *e) { return nbbs_len_of(&arena, 0, &index, e); });
    auto *const crooked = reinterpret_cast<nbbs_arena *>(reinterpret_cast<char *>(&arena) + 4);
    expect_refusal(NBBS_CODE_POINTER_MISALIGNED,
                   "nbbs_mend: address " + hex(crooked) + " is not a multiple of 8",
                   [&](nbbs_error *e) { return nbbs_mend(crooked, e); });
    EXPECT_EQ(nbbs_free(&arena, 0, nullptr, nullptr), NBBS_CODE_NO_ARENA);
    EXPECT_EQ(nbbs_units(&arena), 0u);
    EXPECT_EQ(nbbs_max_order(nullptr), 0u);
    EXPECT_EQ(nbbs_order_bound(&arena), -1);
    EXPECT_EQ(nbbs_count_free(&arena), 0u);
    EXPECT_FALSE(nbbs_has_free(&arena, 0));
    EXPECT_EQ(nbbs_mend(&arena, nullptr), NBBS_CODE_NO_ARENA);
}

TEST(Arena, AllocatesEveryOrderAndFindsItAgain) {
    Arena arena(1 << 12);
    for (uint32_t order = 0; order <= 12; order++) {
        uint64_t index = arena.alloc(order);
        EXPECT_EQ(index % (1ull << order), 0u);
        uint32_t found = 99;
        EXPECT_EQ(nbbs_order_of(arena, index, &found, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(found, order);
        EXPECT_EQ(arena.len_of(index), 1ull << order);
        uint64_t units = 99;
        EXPECT_EQ(nbbs_free(arena, index, &units, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(units, 1ull << order);
    }
    arena.expect_empty();
    uint64_t index;
    expect_refusal(NBBS_CODE_ORDER_TOO_LARGE, "order 13 is above the arena's largest, 12",
                   [&](nbbs_error *e) { return nbbs_alloc(arena, 13, &index, e); });
    expect_refusal(NBBS_CODE_ORDER_TOO_LARGE, "order 4294967295 is above the arena's largest, 12",
                   [&](nbbs_error *e) { return nbbs_alloc(arena, UINT32_MAX, &index, e); });
    expect_refusal(NBBS_CODE_NULL, "nbbs_alloc: argument 3 is a null pointer",
                   [&](nbbs_error *e) { return nbbs_alloc(arena, 0, nullptr, e); });
    arena.expect_empty();
}

TEST(Arena, FullIsAnOrdinaryAnswer) {
    Arena arena(64);
    arena.alloc(6);
    uint64_t index = 5;
    expect_refusal(NBBS_CODE_EXHAUSTED, "no 8 units that fit the request are free",
                   [&](nbbs_error *e) { return nbbs_alloc(arena, 3, &index, e); });
    EXPECT_EQ(index, 5u);
    EXPECT_TRUE(arena.misuse.empty());
}

TEST(Arena, BadFreesAreRefusedAndReported) {
    Arena arena(100);
    uint64_t block = arena.alloc(3);
    expect_refusal(NBBS_CODE_NOT_A_BLOCK, "no block begins at unit " + std::to_string(block + 1),
                   [&](nbbs_error *e) { return nbbs_free(arena, block + 1, nullptr, e); });
    expect_refusal(NBBS_CODE_WRONG_ORDER,
                   "the block at unit " + std::to_string(block) + " has order 3, not 2",
                   [&](nbbs_error *e) { return nbbs_free_sized(arena, block, 2, e); });
    EXPECT_EQ(nbbs_free_units(arena, block, 7, nullptr), NBBS_CODE_WRONG_LENGTH);
    EXPECT_EQ(nbbs_free_sized(arena, block, 3, nullptr), NBBS_CODE_OK);
    expect_refusal(NBBS_CODE_NOT_ALLOCATED, "unit " + std::to_string(block) + " is not allocated",
                   [&](nbbs_error *e) { return nbbs_free(arena, block, nullptr, e); });
    EXPECT_EQ(nbbs_free_sized(arena, block, 3, nullptr), NBBS_CODE_NOT_ALLOCATED);
    EXPECT_EQ(nbbs_free_sized(arena, 1, 3, nullptr), NBBS_CODE_MISALIGNED);
    EXPECT_EQ(nbbs_free_sized(arena, 0, 60, nullptr), NBBS_CODE_ORDER_TOO_LARGE);
    expect_refusal(NBBS_CODE_OUT_OF_RANGE, "unit 100 is beyond the last unit, 99",
                   [&](nbbs_error *e) { return nbbs_free(arena, 100, nullptr, e); });
    EXPECT_EQ(nbbs_free(arena, UINT64_MAX, nullptr, nullptr), NBBS_CODE_OUT_OF_RANGE);
    EXPECT_EQ(arena.misuse.size(), 9u);
    EXPECT_EQ(arena.misuse[0].code, static_cast<uint32_t>(NBBS_CODE_NOT_A_BLOCK));
    EXPECT_EQ(arena.misuse[0].value, block + 1);
    arena.expect_empty();
}

TEST(Arena, RunsOfExactlySoManyUnits) {
    Arena arena(1000);
    uint64_t run = arena.alloc_units(37);
    EXPECT_EQ(arena.len_of(run), 37u);
    EXPECT_EQ(arena.stats().used_units, 37u);
    EXPECT_EQ(nbbs_free_units(arena, run, 37, nullptr), NBBS_CODE_OK);
    uint64_t index;
    expect_refusal(NBBS_CODE_LENGTH, "a length of 1001 units: it must be from 1 to 1000",
                   [&](nbbs_error *e) { return nbbs_alloc_units(arena, 1001, &index, e); });
    EXPECT_EQ(nbbs_alloc_units(arena, 0, &index, nullptr), NBBS_CODE_LENGTH);
    arena.expect_empty();
}

TEST(Arena, Places) {
    Arena arena(256);
    EXPECT_EQ(nbbs_alloc_at(arena, 17, 30, nullptr), NBBS_CODE_OK);
    expect_refusal(NBBS_CODE_IN_USE, "unit 46 is in use or reserved",
                   [&](nbbs_error *e) { return nbbs_alloc_at(arena, 46, 2, e); });
    expect_refusal(NBBS_CODE_OUT_OF_RANGE, "units 250..260 reach beyond the last unit, 255",
                   [&](nbbs_error *e) { return nbbs_alloc_at(arena, 250, 10, e); });
    EXPECT_EQ(nbbs_alloc_at(arena, 95, 4, nullptr), NBBS_CODE_OK);
    nbbs_request request{};
    uint64_t index;
    request.units = 10, request.start = 100, request.end = 109;
    expect_refusal(NBBS_CODE_NO_PLACE, "units 100..109 have no place for 10 units",
                   [&](nbbs_error *e) { return nbbs_alloc_request(arena, &request, &index, e); });
    request.end = 200, request.order = 2, request.top_down = true;
    EXPECT_EQ(nbbs_alloc_request(arena, &request, &index, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(index, 188u);
    request.top_down = false;
    EXPECT_EQ(nbbs_alloc_request(arena, &request, &index, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(index, 100u);
    request.end = 0;
    EXPECT_EQ(nbbs_alloc_request(arena, &request, &index, nullptr), NBBS_CODE_OK);
    request.end = 300;
    EXPECT_EQ(nbbs_alloc_request(arena, &request, &index, nullptr), NBBS_CODE_OUT_OF_RANGE);
    request.end = 256, request.order = 9;
    EXPECT_EQ(nbbs_alloc_request(arena, &request, &index, nullptr), NBBS_CODE_ORDER_TOO_LARGE);
    request.start = 40, request.end = 46, request.order = 0, request.units = 3;
    EXPECT_EQ(nbbs_alloc_request(arena, &request, &index, nullptr), NBBS_CODE_EXHAUSTED);
    EXPECT_EQ(nbbs_alloc_request(arena, nullptr, &index, nullptr), NBBS_CODE_NULL);
    nbbs_request offset{};
    offset.units = 3, offset.order = 5, offset.offset = 1003;
    EXPECT_EQ(nbbs_alloc_request(arena, &offset, &index, nullptr), NBBS_CODE_OK);
    EXPECT_EQ((index + 1003) % 32, 0u);
    nbbs_request anywhere{};
    anywhere.units = 5;
    EXPECT_EQ(nbbs_alloc_request(arena, &anywhere, &index, nullptr), NBBS_CODE_OK);
}

TEST(Arena, Batches) {
    Arena arena(64);
    uint64_t blocks[100];
    size_t got = 0, done = 0;
    EXPECT_EQ(nbbs_alloc_batch(arena, 0, blocks, 100, &got, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(got, 64u);
    EXPECT_EQ(nbbs_alloc_batch(arena, 0, blocks + 64, 36, &got, nullptr), NBBS_CODE_EXHAUSTED);
    EXPECT_EQ(got, 0u);
    EXPECT_EQ(nbbs_free_batch(arena, 0, blocks, 60, &done, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(done, 60u);
    uint64_t twice[] = {blocks[60], blocks[60], blocks[61]};
    EXPECT_EQ(nbbs_free_batch(arena, 0, twice, 3, &done, nullptr), NBBS_CODE_NOT_ALLOCATED);
    EXPECT_EQ(done, 1u);
    EXPECT_EQ(nbbs_free_batch(arena, 0, blocks + 61, 3, nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_alloc_batch(arena, 0, nullptr, 0, &got, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_alloc_batch(arena, 0, nullptr, 1, &got, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_alloc_batch(arena, 0, blocks, SIZE_MAX, &got, nullptr), NBBS_CODE_TOO_LONG);
    EXPECT_EQ(nbbs_alloc_batch(arena, 0, blocks, 1, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_free_batch(arena, 0, nullptr, 1, nullptr, nullptr), NBBS_CODE_NULL);
    arena.expect_empty();
}

TEST(Arena, ShrinksGrowsAndSplits) {
    Arena arena(256);
    uint64_t run = arena.alloc_units(40);
    EXPECT_EQ(nbbs_grow(arena, run, 50, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_shrink(arena, run, 20, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(arena.len_of(run), 20u);
    EXPECT_EQ(nbbs_alloc_at(arena, run + 25, 1, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_grow(arena, run, 30, nullptr), NBBS_CODE_IN_USE);
    expect_refusal(NBBS_CODE_OUT_OF_RANGE, "units 0..1000 reach beyond the last unit, 255",
                   [&](nbbs_error *e) { return nbbs_grow(arena, run, 1000, e); });
    expect_refusal(NBBS_CODE_ORDER_TOO_LARGE, "order 4294967295 is above the arena's largest, 8",
                   [&](nbbs_error *e) { return nbbs_split(arena, run, UINT32_MAX, e); });
    const std::string has = "the run at unit " + std::to_string(run) + " has 20 units, so ";
    uint64_t rest = 0;
    expect_refusal(NBBS_CODE_LENGTH, has + "21 is not possible",
                   [&](nbbs_error *e) { return nbbs_shrink(arena, run, 21, e); });
    expect_refusal(NBBS_CODE_LENGTH, has + "19 is not possible",
                   [&](nbbs_error *e) { return nbbs_grow(arena, run, 19, e); });
    expect_refusal(NBBS_CODE_LENGTH, has + "20 is not possible",
                   [&](nbbs_error *e) { return nbbs_split_off(arena, run, 20, &rest, e); });
    EXPECT_EQ(nbbs_split_off(arena, run, 8, &rest, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(rest, run + 8);
    EXPECT_EQ(arena.len_of(rest), 12u);
    EXPECT_EQ(nbbs_split(arena, run, 1, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(arena.stats().used_blocks[1], 4u);
    EXPECT_EQ(nbbs_split(arena, rest, 3, nullptr), NBBS_CODE_LENGTH);
    EXPECT_EQ(nbbs_free_part(arena, rest, rest + 4, rest + 8, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(arena.len_of(rest), 4u);
    EXPECT_EQ(arena.len_of(rest + 8), 4u);
    const auto part = [&](uint64_t start, uint64_t end) {
        return [=, &arena](nbbs_error *e) { return nbbs_free_part(arena, rest + 8, start, end, e); };
    };
    const std::string begins = std::to_string(rest + 8), ends = std::to_string(rest + 12);
    expect_refusal(NBBS_CODE_OUTSIDE_RUN,
                   "units " + begins + ".." + std::to_string(rest + 13) +
                       " are no part of the run, which ends before unit " + ends,
                   part(rest + 8, rest + 13));
    expect_refusal(NBBS_CODE_OUTSIDE_RUN,
                   "units 0.." + begins + " are no part of the run, which begins at unit " + begins,
                   part(0, rest + 8));
    EXPECT_EQ(nbbs_shrink(arena, 200, 1, nullptr), NBBS_CODE_NOT_ALLOCATED);
    for (uint64_t index : {run, run + 2, run + 4, run + 6, rest, rest + 8, run + 25}) {
        EXPECT_EQ(nbbs_free(arena, index, nullptr, nullptr), NBBS_CODE_OK) << index;
    }
    arena.expect_empty();
}

TEST(Arena, ReservationsAndMemoryThatArrivesLater) {
    size_t bytes = nbbs_metadata_bytes(1024);
    std::vector<uint64_t> metadata(bytes / 8);
    nbbs_arena arena;
    uint64_t index;
    ASSERT_EQ(nbbs_create_reserved(&arena, metadata.data(), bytes, 1024, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_order_bound(&arena), -1);
    EXPECT_EQ(nbbs_alloc(&arena, 0, &index, nullptr), NBBS_CODE_EXHAUSTED);
    EXPECT_EQ(nbbs_release(&arena, 256, 640, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_alloc(&arena, 8, &index, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(index, 256u);
    EXPECT_EQ(nbbs_free(&arena, 0, nullptr, nullptr), NBBS_CODE_RESERVED);
    expect_refusal(NBBS_CODE_NOT_RESERVED, "unit 256 is not reserved",
                   [&](nbbs_error *e) { return nbbs_release(&arena, 250, 260, e); });
    EXPECT_EQ(nbbs_reserve(&arena, 512, 520, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_reserve(&arena, 500, 520, nullptr), NBBS_CODE_IN_USE);
    EXPECT_EQ(nbbs_reserve(&arena, 9, 9, nullptr), NBBS_CODE_OUT_OF_RANGE);
    EXPECT_EQ(nbbs_release(&arena, 0, UINT64_MAX, nullptr), NBBS_CODE_OUT_OF_RANGE);
}

TEST(Arena, SecondHandleSeesTheSame) {
    Arena arena(4096);
    uint64_t block = arena.alloc(4);
    nbbs_arena second;
    EXPECT_EQ(nbbs_attach(&second, arena.metadata.data(), arena.metadata.size() * 8, 4096, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_free(&second, block, nullptr, nullptr), NBBS_CODE_OK);
    arena.expect_empty();
    for (auto &word : arena.metadata) word = ~0ull;
    nbbs_error error{};
    EXPECT_EQ(nbbs_attach(&second, arena.metadata.data(), arena.metadata.size() * 8, 4096, &error),
              NBBS_CODE_FOREIGN_METADATA);
    EXPECT_EQ(text_of(error).find("metadata is not of an arena of 4096 units: word "), 0u);
}

TEST(Arena, LanesSeeTheSameArena) {
    Arena arena(1 << 16);
    nbbs_arena lanes[4];
    for (size_t lane = 0; lane < 4; lane++) {
        EXPECT_EQ(nbbs_on(arena, lane, &lanes[lane], nullptr), NBBS_CODE_OK);
    }
    uint64_t one, other;
    EXPECT_EQ(nbbs_alloc(&lanes[0], 0, &one, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_alloc(&lanes[1], 0, &other, nullptr), NBBS_CODE_OK);
    EXPECT_NE(one / 32, other / 32) << "different lanes begin in different words";
    EXPECT_EQ(nbbs_free(&lanes[3], one, nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_free(&lanes[2], other, nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_on(arena, SIZE_MAX, &lanes[0], nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_on(&lanes[0], 1, &lanes[0], nullptr), NBBS_CODE_OK) << "in place";
    EXPECT_EQ(nbbs_alloc(&lanes[0], 0, &one, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_free(&lanes[0], one, nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_on(arena, 1, nullptr, nullptr), NBBS_CODE_NULL);
    arena.expect_empty();
}

TEST(Arena, StatisticsMapAndWalk) {
    Arena arena(100);
    ASSERT_EQ(nbbs_reserve(arena, 90, 100, nullptr), NBBS_CODE_OK);
    ASSERT_EQ(nbbs_alloc_at(arena, 0, 8, nullptr), NBBS_CODE_OK);
    ASSERT_EQ(nbbs_alloc_at(arena, 8, 7, nullptr), NBBS_CODE_OK);
    nbbs_statistics stats = arena.stats();
    EXPECT_EQ(stats.units, 100u);
    EXPECT_EQ(stats.used_units, 15u);
    EXPECT_EQ(stats.reserved_units, 10u);
    EXPECT_EQ(stats.free_units, 75u);
    EXPECT_EQ(stats.used_blocks[3], 1u);
    EXPECT_EQ(stats.used_runs, 1u);
    EXPECT_EQ(stats.largest_free_order, 5);
    EXPECT_EQ(nbbs_order_bound(arena), 5);
    EXPECT_TRUE(nbbs_has_free(arena, 5));
    EXPECT_FALSE(nbbs_has_free(arena, 6));
    EXPECT_FALSE(nbbs_has_free(arena, 77));
    EXPECT_EQ(stats.fragmentation_permille, 573u);
    EXPECT_EQ(nbbs_count_free(arena), 75u);

    uint8_t map[7] = {};
    map[6] = 77;
    size_t filled = 0;
    EXPECT_EQ(nbbs_occupancy_map(arena, 4, map, 6, &filled, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(filled, 6u);
    EXPECT_EQ(map[0], 240);
    EXPECT_EQ(map[1], 0);
    EXPECT_EQ(map[6], 77) << "beyond the buffer";
    EXPECT_EQ(nbbs_occupancy_map(arena, 7, map, 6, nullptr, nullptr), NBBS_CODE_ORDER_TOO_LARGE);
    EXPECT_EQ(nbbs_occupancy_map(arena, 4, nullptr, 6, nullptr, nullptr), NBBS_CODE_NULL);

    std::vector<nbbs_piece> pieces;
    auto visit = [](void *context, const nbbs_piece *piece) {
        static_cast<std::vector<nbbs_piece> *>(context)->push_back(*piece);
    };
    EXPECT_EQ(nbbs_walk(arena, visit, &pieces, nullptr), NBBS_CODE_OK);
    ASSERT_GE(pieces.size(), 3u);
    EXPECT_EQ(pieces[0].kind, NBBS_PIECE_KIND_BLOCK);
    EXPECT_EQ(pieces[1].kind, NBBS_PIECE_KIND_RUN);
    EXPECT_EQ(pieces[1].units, 7u);
    EXPECT_EQ(pieces.back().kind, NBBS_PIECE_KIND_RESERVED);
    uint64_t next = 0;
    for (const auto &piece : pieces) {
        EXPECT_EQ(piece.index, next);
        next = piece.index + piece.units;
    }
    EXPECT_EQ(next, 100u);
    EXPECT_EQ(nbbs_walk(arena, nullptr, nullptr, nullptr), NBBS_CODE_NULL);
}

// Whoever dies in a free may have cleared the units, and told nobody above.
TEST(Arena, WhatTheDeadLeftIsMended) {
    Arena arena(64);
    arena.alloc(0);
    for (auto &word : arena.metadata) {
        const uint64_t before = word;
        word = 0;
        if (nbbs_count_free(arena) == 64) break;
        word = before;
    }
    ASSERT_EQ(nbbs_count_free(arena), 64u);
    EXPECT_LT(nbbs_order_bound(arena), 6);
    nbbs_error error{};
    EXPECT_EQ(nbbs_mend(arena, &error), NBBS_CODE_OK) << text_of(error);
    EXPECT_EQ(nbbs_order_bound(arena), 6);
    arena.expect_empty();
}

TEST(Arena, AuditNamesWhatIsBroken) {
    Arena arena(1024);
    arena.alloc(2);
    nbbs_audit_report report{};
    EXPECT_EQ(nbbs_audit(arena, &report, nullptr), NBBS_CODE_OK);
    EXPECT_GT(report.words, 32u);
    EXPECT_EQ(report.stale_marks, 0u);
    // One word after another is turned over until an audit sees it.
    bool seen = false;
    for (auto &word : arena.metadata) {
        uint64_t before = word;
        word = ~word;
        nbbs_error error{};
        if (nbbs_audit(arena, nullptr, &error) == NBBS_CODE_BROKEN) {
            seen = true;
            EXPECT_NE(text_of(error).find(" broken at level "), std::string::npos) << text_of(error);
        }
        word = before;
    }
    EXPECT_TRUE(seen);
    EXPECT_TRUE(arena.misuse.empty()) << "an audit's finding is not misuse";
}
