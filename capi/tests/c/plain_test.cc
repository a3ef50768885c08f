// One arena for the whole program: what github.com/TunaCici/NBBS documents, and what is better here.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "support.h"

namespace {

int blocks_of_bookkeeping = 0;
void *counting_malloc(size_t bytes) { return blocks_of_bookkeeping++, std::malloc(bytes); }
void counting_free(void *block) { blocks_of_bookkeeping--, std::free(block); }

constexpr uint64_t kBase = uint64_t{1} << 30, kSize = uint64_t{1} << 24;

struct Plain : testing::Test {
    static inline std::vector<nbbs_error> misuse;

    void SetUp() override {
        nb_set_min_size(0), nb_set_max_order(9), nb_set_malloc(nullptr, nullptr);
        misuse.clear();
        nb_set_hook([](void *, const nbbs_error *error) { misuse.push_back(*error); }, nullptr);
        ASSERT_EQ(nb_init(kBase, kSize), 0);
    }
};

uint64_t address_of(void *block) { return reinterpret_cast<uintptr_t>(block); }

TEST_F(Plain, StartsWithTheDocumentedDefaults) {
    EXPECT_EQ(nb_stat_min_size(), 4096u);
    EXPECT_EQ(nb_stat_max_order(), 9u);
    EXPECT_EQ(nb_stat_max_size(), 4096u << 9);
    EXPECT_EQ(nb_stat_total_memory(), kSize);
    EXPECT_EQ(nb_stat_depth(), 12u);
    EXPECT_EQ(nb_stat_base_level(), 3u);
    EXPECT_EQ(nb_stat_used_memory(), 0u);
    EXPECT_EQ(nb_stat_release_count(), 0u);
    EXPECT_EQ(nb_stat_tree_size(), nbbs_metadata_bytes(4096));
    EXPECT_EQ(nb_stat_index_size(), 0u);
}

TEST_F(Plain, InitRefusesAsDocumented) {
    EXPECT_NE(nb_init(0, kSize), 0);
    EXPECT_NE(nb_init(kBase, 0), 0);
    EXPECT_NE(nb_init(kBase, 4095), 0);
    EXPECT_NE(nb_init(UINT64_MAX - 4096, 8192), 0) << "beyond the address space";
    EXPECT_EQ(nb_stat_total_memory(), kSize) << "the arena before stays";
    EXPECT_EQ(nb_init(kBase, 4096), 0);
}

TEST_F(Plain, SizesAreRoundedUpToPowersOfTwo) {
    struct {
        uint64_t asked, order;
    } cases[] = {{0, 0}, {1, 0}, {4096, 0}, {4097, 1}, {8192, 1}, {12288, 2}, {1 << 20, 8}, {4096 << 9, 9}};
    for (auto [asked, order] : cases) {
        void *block = nb_alloc(asked);
        ASSERT_NE(block, nullptr) << asked;
        EXPECT_EQ((address_of(block) - kBase) % (4096u << order), 0u);
        EXPECT_EQ(nb_stat_used_blocks(order), 1u) << asked;
        EXPECT_EQ(nb_stat_used_memory(), 4096u << order);
        nb_free(block);
    }
    EXPECT_EQ(nb_alloc((4096u << 9) + 1), nullptr);
    EXPECT_EQ(nb_alloc(UINT64_MAX), nullptr);
    EXPECT_EQ(nb_stat_used_memory(), 0u);
    EXPECT_EQ(nb_stat_release_count(), 8u);
}

TEST_F(Plain, HandsOutTheWholeArenaOnce) {
    std::set<void *> blocks;
    while (void *block = nb_alloc(4096)) EXPECT_TRUE(blocks.insert(block).second);
    EXPECT_EQ(blocks.size(), 4096u);
    EXPECT_EQ(address_of(*blocks.begin()), kBase);
    EXPECT_EQ(address_of(*blocks.rbegin()), kBase + kSize - 4096);
    for (void *block : blocks) nb_free(block);
    EXPECT_EQ(nb_stat_release_count(), 4096u);
    EXPECT_NE(nb_alloc(4096 << 9), nullptr) << "merged again";
}

TEST_F(Plain, ForeignAndDoubleFreesAreRefusedAndReported) {
    void *block = nb_alloc(8192);
    nb_free(nullptr);
    EXPECT_TRUE(misuse.empty());
    nb_free(static_cast<char *>(block) + 4096);
    nb_free(static_cast<char *>(block) + 1);
    nb_free(block);
    nb_free(block);
    nb_free(reinterpret_cast<void *>(kBase - 4096));
    nb_free(reinterpret_cast<void *>(kBase + kSize));
    const nbbs_code expected[] = {NBBS_CODE_NOT_A_BLOCK, NBBS_CODE_INSIDE_UNIT, NBBS_CODE_NOT_ALLOCATED,
                                  NBBS_CODE_FOREIGN_ADDRESS, NBBS_CODE_FOREIGN_ADDRESS};
    ASSERT_EQ(misuse.size(), std::size(expected));
    for (size_t at = 0; at < misuse.size(); at++) {
        EXPECT_STREQ(nbbs_code_name(misuse[at].code), nbbs_code_name(expected[at]));
    }
    char text[100];
    std::snprintf(text, sizeof text, "unit %d is not allocated: address %p",
                  static_cast<int>((address_of(block) - kBase) / 4096), block);
    EXPECT_EQ(text_of(misuse[2]), text);
    EXPECT_EQ(text_of(misuse[3]), "address 0x3ffff000 is not in the memory from 0x40000000 to 0x41000000");
    EXPECT_EQ(nb_stat_release_count(), 1u);
}

TEST_F(Plain, BlockFigures) {
    EXPECT_EQ(nb_stat_block_size(0), 4096u);
    EXPECT_EQ(nb_stat_block_size(9), 4096u << 9);
    EXPECT_EQ(nb_stat_block_size(10), 0u);
    EXPECT_EQ(nb_stat_total_blocks(0), 4096u);
    EXPECT_EQ(nb_stat_total_blocks(9), 8u);
    EXPECT_EQ(nb_stat_total_blocks(10), 0u);
    EXPECT_EQ(nb_stat_used_blocks(10), 0u);
    EXPECT_EQ(nb_stat_used_blocks(UINT32_MAX), 0u);
}

TEST_F(Plain, OccupancyMap) {
    uint8_t map[9] = {9, 9, 9, 9, 9, 9, 9, 9, 9};
    EXPECT_NE(nb_stat_occupancy_map(nullptr, 9), 0);
    EXPECT_NE(nb_stat_occupancy_map(map, 10), 0);
    EXPECT_EQ(map[0], 9);
    void *block = nb_alloc(4096);
    EXPECT_EQ(nb_stat_occupancy_map(map, 9), 0);
    int used = 0;
    for (int at = 0; at < 8; at++) used += map[at];
    EXPECT_EQ(used, 1) << "a part makes the whole block occupied";
    EXPECT_EQ(map[(address_of(block) - kBase) / nb_stat_block_size(9)], 1);
    EXPECT_EQ(map[8], 9) << "one byte a block";
}

TEST_F(Plain, LengthsThatAreNoPowersOfTwoAndBasesThatAreNotAligned) {
    const uint64_t base = kBase + 24, size = 1000 * 4096 + 17;
    ASSERT_EQ(nb_init(base, size), 0);
    EXPECT_EQ(nb_stat_total_memory(), size);
    EXPECT_EQ(nb_stat_depth(), 9u);
    uint64_t blocks = 0, last = 0;
    while (void *block = nb_alloc(1)) {
        blocks++;
        last = std::max(last, address_of(block));
        EXPECT_EQ((address_of(block) - base) % 4096, 0u);
    }
    EXPECT_EQ(blocks, 1000u) << "all of it but the 17 bytes";
    EXPECT_EQ(last, base + 999 * 4096);
}

TEST_F(Plain, ArenaSmallerThanALargestBlock) {
    ASSERT_EQ(nb_init(kBase, 16 * 4096), 0);
    EXPECT_EQ(nb_stat_base_level(), 0u);
    EXPECT_EQ(nb_stat_max_size(), 4096u << 9);
    EXPECT_EQ(nb_alloc(4096 << 9), nullptr);
    EXPECT_EQ(nb_stat_total_blocks(9), 0u);
    uint8_t untouched = 9;
    EXPECT_EQ(nb_stat_occupancy_map(&untouched, 9), 0);
    EXPECT_EQ(untouched, 9);
    EXPECT_NE(nb_alloc(4096 << 4), nullptr);
}

TEST_F(Plain, SettingsHoldFromTheNextInit) {
    EXPECT_NE(nb_set_min_size(3000), 0);
    EXPECT_NE(nb_set_max_order(41), 0);
    EXPECT_EQ(nb_set_min_size(16384), 0);
    EXPECT_EQ(nb_set_max_order(5), 0);
    EXPECT_EQ(nb_stat_min_size(), 4096u) << "not yet";
    nb_set_malloc(counting_malloc, counting_free);
    ASSERT_EQ(nb_init(kBase, kSize), 0);
    EXPECT_EQ(nb_stat_min_size(), 16384u);
    EXPECT_EQ(nb_stat_max_order(), 5u);
    EXPECT_EQ(nb_stat_max_size(), 16384u << 5);
    EXPECT_EQ(nb_alloc((16384 << 5) + 1), nullptr);
    EXPECT_EQ(blocks_of_bookkeeping, 1);
    ASSERT_EQ(nb_init(kBase, kSize), 0);
    EXPECT_EQ(blocks_of_bookkeeping, 1) << "what was there before has been given back";
    EXPECT_EQ(nb_stat_used_memory(), 0u);
    nb_set_malloc([](size_t) -> void * { return nullptr; }, nullptr);
    EXPECT_NE(nb_init(kBase, kSize), 0) << "no memory for the bookkeeping";
    nb_set_malloc(nullptr, nullptr);
    ASSERT_EQ(nb_init(kBase, kSize), 0);
    EXPECT_EQ(blocks_of_bookkeeping, 0);
}

TEST_F(Plain, LargestOrderOfAll) {
    ASSERT_EQ(nb_set_min_size(1), 0);
    ASSERT_EQ(nb_set_max_order(40), 0);
    ASSERT_EQ(nb_init(kBase, kSize), 0);
    void *all = nb_alloc(kSize);
    EXPECT_EQ(address_of(all), kBase);
    nb_free(all);
    EXPECT_EQ(nb_alloc(uint64_t{1} << 40), nullptr);
    EXPECT_EQ(nb_alloc(UINT64_MAX), nullptr);
    ASSERT_EQ(nb_set_min_size(uint64_t{1} << 63), 0);
    EXPECT_NE(nb_init(kBase, uint64_t{1} << 62), 0) << "not one block";
    EXPECT_EQ(nb_set_min_size(uint64_t{1} << 32), 0);
    ASSERT_EQ(nb_init(kBase, uint64_t{1} << 40), 0);
    EXPECT_EQ(nb_stat_max_size(), UINT64_MAX) << "more than can be counted";
    EXPECT_EQ(nb_alloc(UINT64_MAX), nullptr);
    EXPECT_EQ(address_of(nb_alloc(uint64_t{1} << 39)), kBase);
}

TEST_F(Plain, FromManyThreads) {
    std::vector<uint64_t> memory(4096 * 8);
    ASSERT_EQ(nb_set_min_size(64), 0);
    ASSERT_EQ(nb_init(reinterpret_cast<uintptr_t>(memory.data()), memory.size() * 8), 0);
    on_threads([&](int number) {
        Random random(number);
        std::vector<Owned> held;
        for (int step = 0; step < 20000; step++) {
            if (held.size() < 40 && random(2) == 0) {
                size_t bytes = 64u << random(5);
                if (auto *block = static_cast<uint64_t *>(nb_alloc(bytes))) {
                    held.push_back({block, bytes / 8});
                    held.back().take(number);
                }
            } else if (!held.empty()) {
                std::swap(held[random(held.size())], held.back());
                EXPECT_TRUE(held.back().is_of(number));
                nb_free(held.back().words);
                held.pop_back();
            }
        }
        for (auto &each : held) nb_free(each.words);
    });
    EXPECT_TRUE(misuse.empty());
    EXPECT_EQ(nb_stat_used_memory(), 0u);
}

// Death tests run first, so nobody has called nb_init yet.
TEST(PlainDeathTest, NothingIsThereBeforeInit) {
    EXPECT_EXIT(
        {
            bool told = false;
            auto tell = [](void *told, const nbbs_error *error) {
                *static_cast<bool *>(told) =
                    error->code == NBBS_CODE_NO_ARENA && text_of(*error) == "there was no nb_init";
            };
            nb_set_hook(tell, &told);
            uint8_t byte = 9;
            bool nothing = nb_alloc(1) == nullptr && nb_stat_total_memory() == 0 && nb_stat_used_memory() == 0 &&
                           nb_stat_total_blocks(0) == 0 && nb_stat_used_blocks(0) == 0 && nb_stat_tree_size() == 0 &&
                           nb_stat_depth() == 0 && nb_stat_release_count() == 0 &&
                           nb_stat_occupancy_map(&byte, 0) != 0 && byte == 9 && nb_stat_min_size() == 4096 &&
                           nb_stat_max_order() == 9 && nb_stat_block_size(1) == 8192;
            nb_free(&byte);
            std::_Exit(nothing && told ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

// What the process writes to standard error meanwhile.
template <typename Work>
std::string printed_by(Work work) {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) return "no pipe";
    close(ends[1]);
    work();
    close(STDERR_FILENO);
    std::string text;
    char part[256];
    for (ssize_t bytes; (bytes = read(ends[0], part, sizeof part)) > 0;) text.append(part, bytes);
    return text;
}

TEST(PlainDeathTest, MisuseIsPrintedUnlessThereWasAHook) {
    auto misuse = [] {
        if (nb_init(kBase, kSize) != 0) std::_Exit(2);
        for (int i = 0; i < 100; i++) nb_free(reinterpret_cast<void *>(kBase + 8192));
    };
    EXPECT_EXIT(
        {
            const std::string line = "nbbs: nb_free: unit 2 is not allocated: address 0x40002000";
            std::string expected;
            for (int i = 0; i < 9; i++) expected += line + "\n";
            std::_Exit(printed_by(misuse) == expected + line + " (no more is printed)\n" ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
    EXPECT_EXIT(
        {
            nb_set_hook(nullptr, nullptr);
            std::_Exit(printed_by(misuse).empty() ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
