// Caches of a buddy: handles of CPUs, and what becomes of what they keep.

#include "support.hpp"

#include <deque>
#include <optional>

namespace {

struct Place {
    alignas(64) std::byte words[NBBS_CACHE_BYTES(2)];
    nbbs::metadata place() { return {words, sizeof words}; }
};

TEST(Caches, HandlesOfCpusGoThroughThem) {
    Place memory;
    nbbs::buddy pages(1 << 12);
    pages.set_caches(memory.place());
    EXPECT_EQ(pages.cpus(), 2u);
    nbbs::buddy cpu = pages.on(1);
    const std::uint64_t block = cpu.alloc(2);
    cpu.free_sized(block, 2);
    EXPECT_EQ(pages.stats().cached_units, 32u);
    EXPECT_EQ(cpu.alloc(2), block);
    EXPECT_EQ(cpu.free(block), 4u);
    EXPECT_EQ(cpu.try_free_sized(block, 2).code(), NBBS_CODE_NOT_ALLOCATED);
    EXPECT_TRUE(pages.try_audit_caches());
    pages.drain(1);
    expect_empty(pages);
}

TEST(Caches, HandlesOfCpusCanBeKept) {
    Place memory;
    nbbs::buddy pages(1 << 12);
    pages.set_caches(memory.place());
    nbbs::buddy cpus[2];
    std::deque<nbbs::buddy> more;
    std::optional<nbbs::buddy> one;
    EXPECT_EQ(cpus[1].try_create(nbbs::buddy(), 1).code(), NBBS_CODE_NO_ARENA);
    for (std::size_t cpu = 0; cpu < 2; ++cpu) {
        EXPECT_TRUE(cpus[cpu].try_create(pages, cpu));
        const std::uint64_t block = cpus[cpu].alloc(2);
        more.emplace_back(pages, cpu).free_sized(block, 2);
        one.emplace(pages, cpu);
        EXPECT_EQ(one->alloc(2), block) << "from the same cache";
        one->free_sized(block, 2);
    }
    EXPECT_EQ(pages.stats().cached_units, 64u);
    // In place of another arena, and of a handle of the same one.
    nbbs::buddy other(64);
    EXPECT_TRUE(other.try_create(pages, 0));
    EXPECT_EQ(other.units(), pages.units());
    EXPECT_TRUE(pages.try_create(pages, 1));
    EXPECT_EQ(pages.free(pages.alloc(2)), 4u);
    pages.drain_all([](void*) {});
    expect_empty(pages);
}

TEST(Caches, AreConfiguredAndShared) {
    Place memory;
    nbbs::buddy pages(1 << 12);
    nbbs::cache_config config = nbbs::cache_config_for_arena(pages.units(), 1);
    EXPECT_EQ(config.large_blocks, NBBS_CACHE_NONE);
    config.blocks[0] = 4;
    pages.set_caches(memory.place(), config);
    const std::uint64_t block = pages.on(0).alloc(0);
    EXPECT_EQ(pages.stats().cached_units, 1u);
    // By another handle, which sees what is there.
    nbbs::buddy other = pages.on(0);
    other.set_caches(memory.place(), config, nbbs::initial::attached);
    EXPECT_EQ(other.stats().cached_units, 1u);
    other.on(1).free_sized(block, 0);
    pages.ask(0);
    pages.on(0).free(pages.on(0).alloc(0));
    pages.drain_all([](void*) {});
    expect_empty(pages);
    pages.recover(1);
    EXPECT_EQ(pages.refused(), 0u);
    pages.on(0).free_sized(block, 1);
    pages.drain(0);
    EXPECT_EQ(pages.refused(), 1u) << "nothing of that order was there";
    config.large_order = 8;
    EXPECT_EQ(pages.try_set_caches(memory.place(), config).code(), NBBS_CODE_SETTING);
}

}  // namespace
