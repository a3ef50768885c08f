// Blocks that free themselves.

#include "support.hpp"

namespace {

TEST(Block, FreesItself) {
    nbbs::buddy arena(64);
    {
        const nbbs::block one = nbbs::block::of_order(arena, 2);
        const nbbs::block two = nbbs::block::of_units(arena, 5);
        EXPECT_TRUE(one);
        EXPECT_EQ(one.units(), 4u);
        EXPECT_EQ(two.units(), 5u);
        EXPECT_EQ(arena.len_of(two.index()), 5u);
        EXPECT_EQ(two.data(), nullptr);
        EXPECT_EQ(two.size_bytes(), 0u);
        EXPECT_EQ(arena.stats().used_units, 9u);
    }
    expect_empty(arena);
}

TEST(Block, MovesOnceAndLeavesNothingBehind) {
    nbbs::buddy arena(64);
    nbbs::block from = nbbs::block::of_order(arena, 1);
    const std::uint64_t index = from.index();
    nbbs::block to(std::move(from));
    EXPECT_FALSE(from);
    EXPECT_EQ(to.index(), index);
    nbbs::block other = nbbs::block::of_order(arena, 3);
    other = std::move(to);
    EXPECT_EQ(arena.stats().used_units, 2u);
    nbbs::block& same = other;
    other = std::move(same);
    EXPECT_EQ(other.index(), index);
    EXPECT_EQ(other.units(), 2u);
    EXPECT_EQ(arena.stats().used_units, 2u);
    other.reset();
    EXPECT_FALSE(other);
    expect_empty(arena);
}

TEST(Block, ChangesInPlace) {
    nbbs::buddy arena(64);
    nbbs::block run = nbbs::block::of_units(arena, 10);
    run.grow(12);
    EXPECT_EQ(run.units(), 12u);
    run.shrink(7);
    EXPECT_EQ(run.units(), 7u);
    const nbbs::block rest = run.split_off(3);
    EXPECT_EQ(run.units(), 3u);
    EXPECT_EQ(rest.index(), run.index() + 3);
    EXPECT_EQ(rest.units(), 4u);
    EXPECT_EQ(run.try_grow(4).code(), NBBS_CODE_IN_USE);
    EXPECT_EQ(run.units(), 3u);
    EXPECT_EQ(arena.stats().used_units, 7u);
}

TEST(Block, IsGivenUpAndTakenOver) {
    nbbs::buddy arena(64);
    const std::uint64_t index = nbbs::block::of_units(arena, 6).leak();
    EXPECT_EQ(arena.stats().used_units, 6u);
    EXPECT_EQ(nbbs::block::try_from_index(arena, index + 1).code(), NBBS_CODE_NOT_A_BLOCK);
    EXPECT_EQ(nbbs::block::from_index(arena, index).units(), 6u);
    expect_empty(arena);
}

TEST(Block, OfARequestAndOfBytes) {
    static Memory<1 << 14> memory;
    nbbs::buddy arena(memory.region(256));
    nbbs::request what{};
    what.units = 3;
    what.top_down = true;
    const nbbs::block last = nbbs::block::of(arena, what);
    EXPECT_EQ(last.index(), 61u);
    EXPECT_EQ(last.data(), memory.bytes + 61 * 256);
    const nbbs::block bytes = nbbs::block::of_bytes(arena, 300, 1024);
    EXPECT_EQ(bytes.size_bytes(), 512u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 1024, 0u);
}

TEST(Block, RefusalsAndEmptyBlocks) {
    nbbs::buddy arena(64);
    EXPECT_EQ(nbbs::block::try_of_order(arena, 9).code(), NBBS_CODE_ORDER_TOO_LARGE);
    EXPECT_EQ(nbbs::block::try_of_units(arena, 0).code(), NBBS_CODE_LENGTH);
    EXPECT_EQ(nbbs::block::try_of_bytes(arena, 1).code(), NBBS_CODE_NO_MEMORY);
    expect_throw<nbbs::error>(NBBS_CODE_ORDER_TOO_LARGE, [&] { nbbs::block::of_order(arena, 9); });
    nbbs::block empty;
    EXPECT_EQ(empty.data(), nullptr);
    EXPECT_EQ(empty.try_grow(3).code(), NBBS_CODE_NULL);
    EXPECT_EQ(empty.try_split_off(1).code(), NBBS_CODE_NULL);
    expect_throw<nbbs::error>(NBBS_CODE_NULL, [&] { empty.shrink(1); });
    expect_empty(arena);
}

TEST(Block, ThatSomebodyElseFreedTellsTheHook) {
    Misuse misuse;
    nbbs::buddy arena(64);
    EXPECT_TRUE(arena.set_hook(Misuse::note, &misuse));
    nbbs::block block = nbbs::block::of_order(arena, 0);
    arena.free(block.index());
    const std::size_t dropped = nbbs::dropped_frees();
    block.reset();
    EXPECT_EQ(nbbs::dropped_frees() - dropped, 1u);
    ASSERT_EQ(misuse.seen.size(), 1u);
    EXPECT_EQ(misuse.seen[0].code, static_cast<std::uint32_t>(NBBS_CODE_NOT_ALLOCATED));
}

}  // namespace
