// Addresses and sizes.

#include <cstdio>
#include <cstdlib>

#include "support.h"

namespace {

// 256 units of 64 bytes, at a multiple of 4096.
struct Bytes : testing::Test {
    static constexpr size_t kUnit = 64, kUnits = 256;
    Arena arena{kUnits};
    char *base = static_cast<char *>(std::aligned_alloc(4096, kUnit * kUnits));

    Bytes() { EXPECT_EQ(nbbs_set_memory(&arena.handle, base, kUnit, nullptr), NBBS_CODE_OK); }
    ~Bytes() override { std::free(base); }

    char *alloc(size_t bytes, size_t align) {
        void *address = nullptr;
        nbbs_error error{};
        EXPECT_EQ(nbbs_alloc_bytes(arena, bytes, align, &address, &error), NBBS_CODE_OK) << text_of(error);
        return static_cast<char *>(address);
    }
};

TEST_F(Bytes, AreRoundedUpToUnitsAndAligned) {
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t bytes : {0, 1, 64, 65, 640, 1000}) {
            char *place = alloc(bytes, align);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(place) % align, 0u);
            std::memset(place, 1, bytes);
            uint64_t index;
            ASSERT_EQ(nbbs_index_of(arena, place, &index, nullptr), NBBS_CODE_OK);
            EXPECT_EQ(arena.len_of(index), bytes == 0 ? 1 : (bytes + 63) / 64);
            EXPECT_EQ(nbbs_free_bytes(arena, place, bytes, nullptr), NBBS_CODE_OK);
        }
    }
    arena.expect_empty();
}

TEST_F(Bytes, WhatCannotBeHadIsRefused) {
    void *address = nullptr;
    expect_refusal(NBBS_CODE_SIZE, "a size of 16385 bytes: it must be from 1 to 16384",
                   [&](nbbs_error *e) { return nbbs_alloc_bytes(arena, 16385, 1, &address, e); });
    EXPECT_EQ(nbbs_alloc_bytes(arena, SIZE_MAX, 1, &address, nullptr), NBBS_CODE_SIZE);
    EXPECT_EQ(nbbs_alloc_bytes(arena, 1, 48, &address, nullptr), NBBS_CODE_ALIGNMENT);
    EXPECT_EQ(nbbs_alloc_bytes(arena, 1, size_t{1} << 62, &address, nullptr), NBBS_CODE_ALIGNMENT);
    EXPECT_EQ(nbbs_alloc_bytes(arena, 1, 1, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(address, nullptr);
    char *whole = alloc(16384, 64);
    EXPECT_EQ(nbbs_alloc_bytes(arena, 1, 1, &address, nullptr), NBBS_CODE_EXHAUSTED);
    EXPECT_EQ(nbbs_free_bytes(arena, whole, 0, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_free_bytes(arena, nullptr, 0, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_free_bytes(arena, base - 64, 0, nullptr), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(nbbs_free_bytes(arena, base + 16384, 0, nullptr), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(nbbs_free_bytes(arena, base + 1, 0, nullptr), NBBS_CODE_INSIDE_UNIT);
    const void *third = base + 128;
    char address_of_third[20];
    std::snprintf(address_of_third, sizeof address_of_third, "%p", third);
    const std::string refusal = std::string("unit 2 is not allocated: address ") + address_of_third;
    for (size_t bytes : {0, 64}) {
        expect_refusal(NBBS_CODE_NOT_ALLOCATED, refusal,
                       [&](nbbs_error *e) { return nbbs_free_bytes(arena, base + 128, bytes, e); });
        expect_refusal(NBBS_CODE_NOT_ALLOCATED, refusal,
                       [&](nbbs_error *e) { return nbbs_resize_bytes(arena, base + 128, bytes, e); });
    }
    char *place = alloc(640, 1);
    EXPECT_EQ(nbbs_free_bytes(arena, place, 64, nullptr), NBBS_CODE_WRONG_LENGTH);
    EXPECT_EQ(nbbs_free_bytes(arena, place, 640, nullptr), NBBS_CODE_OK);
    arena.expect_empty();
}

TEST_F(Bytes, AreResizedInPlace) {
    char *place = alloc(640, 1);
    EXPECT_EQ(nbbs_resize_bytes(arena, place, 1000, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_resize_bytes(arena, place, 1, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_resize_bytes(arena, place, 64, nullptr), NBBS_CODE_OK);
    char *next = alloc(64, 1);
    EXPECT_EQ(nbbs_resize_bytes(arena, place, 16384, nullptr), NBBS_CODE_IN_USE);
    EXPECT_EQ(nbbs_free_bytes(arena, place, 1, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_free_bytes(arena, next, 1, nullptr), NBBS_CODE_OK);
    arena.expect_empty();
}

TEST_F(Bytes, AddressesAndIndicesGoBothWays) {
    for (uint64_t index = 0; index < kUnits; index++) {
        void *address;
        uint64_t back;
        ASSERT_EQ(nbbs_address_of(arena, index, &address, nullptr), NBBS_CODE_OK);
        ASSERT_EQ(static_cast<char *>(address), base + kUnit * index);
        ASSERT_EQ(nbbs_index_of(arena, address, &back, nullptr), NBBS_CODE_OK);
        ASSERT_EQ(back, index);
    }
    void *address;
    EXPECT_EQ(nbbs_address_of(arena, kUnits, &address, nullptr), NBBS_CODE_OUT_OF_RANGE);
}

TEST(Memory, MustBeToldAndPossible) {
    Arena arena(256);
    void *address;
    uint64_t index;
    char here;
    EXPECT_EQ(nbbs_alloc_bytes(arena, 1, 1, &address, nullptr), NBBS_CODE_NO_MEMORY);
    EXPECT_EQ(nbbs_free_bytes(arena, &here, 1, nullptr), NBBS_CODE_NO_MEMORY);
    EXPECT_EQ(nbbs_address_of(arena, 0, &address, nullptr), NBBS_CODE_NO_MEMORY);
    EXPECT_EQ(nbbs_index_of(arena, &here, &index, nullptr), NBBS_CODE_NO_MEMORY);
    EXPECT_EQ(nbbs_set_memory(&arena.handle, nullptr, 64, nullptr), NBBS_CODE_NULL);
    // The largest power of two of which 256 fit between `here` and the last address.
    size_t most = 1;
    while (most <= (SIZE_MAX - reinterpret_cast<uintptr_t>(&here)) / 256 / 2) most *= 2;
    for (const size_t bytes : {size_t{0}, size_t{96}, size_t{3000}, 2 * most}) {
        expect_refusal(NBBS_CODE_SIZE,
                       "a size of " + std::to_string(bytes) + " bytes: it must be a power of two up to " + std::to_string(most),
                       [&](nbbs_error *error) { return nbbs_set_memory(&arena.handle, &here, bytes, error); });
    }
    EXPECT_EQ(nbbs_alloc_bytes(arena, 1, 1, &address, nullptr), NBBS_CODE_NO_MEMORY) << "nothing has changed";
}

TEST(Memory, AlignmentIsThatOfTheBase) {
    Arena arena(256);
    // An address that nobody looks at: 32 above a multiple of 4096.
    ASSERT_EQ(nbbs_set_memory(&arena.handle, reinterpret_cast<void *>(0x10020), 16, nullptr), NBBS_CODE_OK);
    void *address;
    EXPECT_EQ(nbbs_alloc_bytes(arena, 1, 32, &address, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % 32, 0u);
    expect_refusal(NBBS_CODE_ALIGNMENT, "an alignment of 64: it must be a power of two up to 32",
                   [&](nbbs_error *e) { return nbbs_alloc_bytes(arena, 1, 64, &address, e); });
    expect_refusal(NBBS_CODE_NULL, "nbbs_resize_bytes: argument 2 is a null pointer",
                   [&](nbbs_error *e) { return nbbs_resize_bytes(arena, nullptr, 1, e); });
    uint64_t index = 0;
    expect_refusal(NBBS_CODE_NULL, "nbbs_index_of: argument 2 is a null pointer",
                   [&](nbbs_error *e) { return nbbs_index_of(arena, nullptr, &index, e); });
}

TEST(Memory, AlignmentMayBeAboveTheLargestBlock) {
    Arena arena(256);
    auto *const base = reinterpret_cast<char *>(size_t{1} << 20);
    ASSERT_EQ(nbbs_set_memory(&arena.handle, base, 16, nullptr), NBBS_CODE_OK);
    void *first, *second;
    EXPECT_EQ(nbbs_alloc_bytes(arena, 100, 1 << 20, &first, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(first, base);
    EXPECT_EQ(nbbs_alloc_bytes(arena, 100, 1 << 20, &second, nullptr), NBBS_CODE_EXHAUSTED) << "there is one such place";
    expect_refusal(NBBS_CODE_ALIGNMENT, "an alignment of 2097152: it must be a power of two up to 1048576",
                   [&](nbbs_error *e) { return nbbs_alloc_bytes(arena, 1, 2 << 20, &second, e); });
}

}  // namespace
