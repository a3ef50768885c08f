// What the suites share: an arena with its metadata, a hook that counts, threads that hold memory.
#pragma once

#include <gtest/gtest.h>
#include <nbbs.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Text of an error.
inline std::string text_of(const nbbs_error &error) {
    char text[200];
    nbbs_message(&error, text, sizeof text);
    return text;
}

// An address as errors have it.
inline std::string hex(const void *address) {
    char text[40];
    snprintf(text, sizeof text, "%#zx", reinterpret_cast<size_t>(address));
    return text;
}

// An arena whose metadata lives as long as it does, and the misuse that it was told of.
struct Arena {
    std::vector<uint64_t> metadata;
    nbbs_arena handle{};
    std::vector<nbbs_error> misuse;

    explicit Arena(uint64_t units) : metadata(nbbs_metadata_bytes(units) / 8, ~0ull) {
        nbbs_error error{};
        EXPECT_EQ(nbbs_create(&handle, metadata.data(), metadata.size() * 8, units, &error), NBBS_CODE_OK)
            << text_of(error);
        EXPECT_EQ(nbbs_set_hook(&handle, note, this, nullptr), NBBS_CODE_OK);
    }
    Arena(const Arena &) = delete;

    operator const nbbs_arena *() const { return &handle; }

    uint64_t alloc(uint32_t order) const {
        uint64_t index = ~0ull;
        nbbs_error error{};
        EXPECT_EQ(nbbs_alloc(&handle, order, &index, &error), NBBS_CODE_OK) << text_of(error);
        return index;
    }
    uint64_t alloc_units(uint64_t units) const {
        uint64_t index = ~0ull;
        EXPECT_EQ(nbbs_alloc_units(&handle, units, &index, nullptr), NBBS_CODE_OK);
        return index;
    }
    uint64_t len_of(uint64_t index) const {
        uint64_t units = 0;
        EXPECT_EQ(nbbs_len_of(&handle, index, &units, nullptr), NBBS_CODE_OK);
        return units;
    }
    nbbs_statistics stats() const {
        nbbs_statistics statistics{};
        EXPECT_EQ(nbbs_stats(&handle, &statistics, nullptr), NBBS_CODE_OK);
        return statistics;
    }
    // In order, and nothing in use.
    void expect_empty() const {
        nbbs_error error{};
        EXPECT_EQ(nbbs_audit(&handle, nullptr, &error), NBBS_CODE_OK) << text_of(error);
        EXPECT_EQ(stats().free_units, nbbs_units(&handle));
    }

    static void note(void *context, const nbbs_error *error) {
        static_cast<Arena *>(context)->misuse.push_back(*error);
    }
};

// The fields that a code does not name are 0.
inline void expect_only_what_it_names(const nbbs_error &error) {
    switch (error.code) {
    case NBBS_CODE_BROKEN:
    case NBBS_CODE_HEAP_BROKEN:
    case NBBS_CODE_OUTSIDE_SEGMENT:
        return;
    case NBBS_CODE_NULL:
        EXPECT_LE(error.detail, 1u);
        EXPECT_EQ(error.limit, 0u);
        EXPECT_NE(error.other, 0u);
        return;
    case NBBS_CODE_NO_ARENA:
        EXPECT_EQ(error.limit, 0u);
        EXPECT_NE(error.other, 0u);
        break;
    case NBBS_CODE_POINTER_MISALIGNED:
        EXPECT_NE(error.other, 0u);
        break;
    case NBBS_CODE_OUTSIDE_RUN:
    case NBBS_CODE_LENGTH:
        EXPECT_LE(error.detail, 1u);
        return;
    case NBBS_CODE_OUT_OF_RANGE:
    case NBBS_CODE_WRONG_ORDER:
    case NBBS_CODE_WRONG_LENGTH:
    case NBBS_CODE_FOREIGN_ADDRESS:
    case NBBS_CODE_NOT_YOURS:
    case NBBS_CODE_SEGMENT_CORRUPT:
        break;
    case NBBS_CODE_EXHAUSTED:
    case NBBS_CODE_IN_USE:
    case NBBS_CODE_NOT_RESERVED:
    case NBBS_CODE_CONTENDED:
    case NBBS_CODE_NO_OBJECT:
    case NBBS_CODE_FULL:
    case NBBS_CODE_NO_BLOCK:
    case NBBS_CODE_REGIONS:
        EXPECT_EQ(error.limit, 0u) << nbbs_code_name(error.code);
        EXPECT_EQ(error.other, 0u) << nbbs_code_name(error.code);
        break;
    case NBBS_CODE_MISALIGNED:
    case NBBS_CODE_NOT_ALLOCATED:
    case NBBS_CODE_NOT_A_BLOCK:
    case NBBS_CODE_RESERVED:
        EXPECT_EQ(error.limit, 0u);
        break;
    case NBBS_CODE_SETTING:
        EXPECT_NE(error.detail, 0u);
        return;
    case NBBS_CODE_NO_PLACE:  // names an order, 0 included
        return;
    case NBBS_CODE_SIZE:
    case NBBS_CODE_OFFSET_MISALIGNED:
        EXPECT_LE(error.other, 1u);
        break;
    default:
        EXPECT_EQ(error.other, 0u) << nbbs_code_name(error.code);
    }
    EXPECT_EQ(error.detail, 0u);
}

// Expects `call`, which takes a `nbbs_error *`, to be refused with a code, a sentence, and no more than the code names.
template <typename Call>
void expect_refusal(nbbs_code code, const std::string &sentence, Call call) {
    nbbs_error error{};
    EXPECT_STREQ(nbbs_code_name(call(&error)), nbbs_code_name(code));
    EXPECT_EQ(error.code, static_cast<uint32_t>(code));
    EXPECT_EQ(text_of(error), sentence);
    expect_only_what_it_names(error);
}

constexpr int kThreads = 4;

// Runs `work(number)` on each of a few threads.
template <typename Work>
void on_threads(Work work) {
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; number++) threads.emplace_back(work, number);
    for (auto &thread : threads) thread.join();
}

// Holds memory and knows whose it is: whoever holds a stretch writes its own mark to every word, without any
// synchronisation, and finds it there when it lets go. ThreadSanitizer sees a race where the allocator lets two hold it.
struct Owned {
    uint64_t *words;
    size_t len;

    void take(uint64_t mark) const {
        for (size_t at = 0; at < len; at++) words[at] = mark;
    }
    bool is_of(uint64_t mark) const {
        for (size_t at = 0; at < len; at++) {
            if (words[at] != mark) return false;
        }
        return true;
    }
};

// Numbers without pattern: xorshift, seeded.
struct Random {
    uint64_t state;
    explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15 + 1) {}
    uint64_t operator()(uint64_t below) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return state % below;
    }
};
