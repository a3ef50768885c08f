// What the C++ suites share, beside what they share with those of C.
#pragma once

#include <nbbs.hpp>

#include "../c/support.h"

#include <cstddef>

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
