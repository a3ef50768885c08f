// Caches of a buddy: handles of CPUs, and what becomes of what they keep.

#include "support.hpp"

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

TEST(Caches, AreConfiguredAndShared) {
    Place memory;
    nbbs::buddy pages(1 << 12);
    nbbs::cache_config config{};
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
    config.large_order = 8;
    EXPECT_EQ(pages.try_set_caches(memory.place(), config).code(), NBBS_CODE_SETTING);
}

}  // namespace
