// What the C++ suites share, beside what they share with those of C.
#pragma once

#include <nbbs.hpp>

#include "../c/support.h"

#include <cstddef>

#include <sys/resource.h>

// Memory that a buddy manages, aligned to a page.
template <std::size_t Bytes>
struct alignas(4096) Memory {
    std::byte bytes[Bytes];
    nbbs::region region(std::size_t unit_bytes) { return {bytes, Bytes, unit_bytes}; }
    bool contains(const void* address) const {
        const auto* at = static_cast<const std::byte*>(address);
        return bytes <= at && at < bytes + Bytes;
    }
};

// While it lives, the process has fewer addresses than `bytes`, so that no memory of that size can be had.
struct Poor {
    rlimit before{};
    explicit Poor(std::uint64_t bytes) {
        getrlimit(RLIMIT_AS, &before);
        const rlimit less{static_cast<rlim_t>(bytes), before.rlim_max};
        setrlimit(RLIMIT_AS, &less);
    }
    Poor(const Poor&) = delete;
    ~Poor() { setrlimit(RLIMIT_AS, &before); }
};

// Sanitizers have more addresses mapped than any limit, and end a program that asks for too much memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanBePoor = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kCanBePoor = false;
#else
constexpr bool kCanBePoor = sizeof(void*) == 8;
#endif
#else
constexpr bool kCanBePoor = sizeof(void*) == 8;
#endif

// Counts what a buddy or pool reports as misuse.
struct Misuse {
    std::vector<nbbs_error> seen;
    static void note(void* context, const nbbs_error* error) { static_cast<Misuse*>(context)->seen.push_back(*error); }
};

// Counts how many there are of it.
struct Counted {
    static inline int alive = 0;
    int number;
    std::string text;
    explicit Counted(int of = 0, std::string with = {}) : number(of), text(std::move(with)) {
        if (number < 0) {
            throw number;
        }
        alive++;
    }
    Counted(const Counted&) = delete;
    ~Counted() { alive--; }
};

// Owns the next of its kind, in the same pool.
template <template <class> class Home>
struct Link {
    static inline int alive = 0;
    Home<Link>* home;
    Link* next;
    Link(Home<Link>* of, Link* then) : home(of), next(then) { alive++; }
    ~Link() {
        alive--;
        // Refused if `clear` came to it first.
        static_cast<void>(home->deallocate(next));
    }
};

// In order, and nothing in use.
inline void expect_empty(const nbbs::buddy& arena) {
    const auto audit = arena.try_audit();
    EXPECT_TRUE(audit) << audit.error().message();
    EXPECT_EQ(arena.stats().free_units, arena.units());
}

// Expects a call to throw `Exception` with a code.
template <class Exception, class Call>
void expect_throw(nbbs_code code, Call call) {
    try {
        call();
        ADD_FAILURE() << "nothing thrown, instead of " << nbbs_code_name(code);
    } catch (const Exception& thrown) {
        EXPECT_STREQ(nbbs_code_name(thrown.code()), nbbs_code_name(code));
        EXPECT_EQ(thrown.why().message(), thrown.what());
    }
}
