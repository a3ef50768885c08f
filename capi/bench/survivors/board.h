// What the processes of a run have in common: when to stop, what each has done, and how long it took.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <sys/mman.h>

constexpr int kMost = 8;

// Ticks of a clock that is cheap to read.
inline uint64_t ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Times in classes that are a sixteenth of a power of two wide.
struct Times {
    static constexpr uint32_t kClasses = 64 * 16;
    uint64_t count[kClasses];
    uint64_t worst;

    void add(uint64_t taken) {
        const uint32_t log2 = 63 - static_cast<uint32_t>(__builtin_clzll(taken | 16));
        count[(log2 - 4) * 16 + (taken >> (log2 - 4) & 15)]++;
        if (taken > worst) worst = taken;
    }
    void add(const Times &other) {
        for (uint32_t each = 0; each < kClasses; each++) count[each] += other.count[each];
        if (other.worst > worst) worst = other.worst;
    }
    // What all but a share of them take at most.
    double all_but(double share) const {
        uint64_t all = 0, seen = 0;
        for (uint64_t each : count) all += each;
        for (uint32_t each = 0; each < kClasses; each++) {
            seen += count[each];
            if (static_cast<double>(seen) >= static_cast<double>(all) * (1 - share))
                return each < 16 ? each : static_cast<double>((uint64_t{16} + each % 16 + 1) << (each / 16));
        }
        return 0;
    }
};

struct Board {
    struct alignas(64) Worker {
        std::atomic<uint64_t> done;
        Times times;
    };
    std::atomic<bool> stop;
    std::atomic<uint64_t> deaths;
    Worker worker[kMost];

    // Zero, in memory that children share.
    static Board *create() {
        void *memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        return memory == MAP_FAILED ? nullptr : static_cast<Board *>(memory);
    }
};
