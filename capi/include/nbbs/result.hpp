/* What can be refused: refusals, results and exceptions. Part of nbbs.hpp. */

#ifndef NBBS_RESULT_HPP
#define NBBS_RESULT_HPP

#include "../nbbs.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define NBBS_EXCEPTIONS 1
#else
#define NBBS_EXCEPTIONS 0
#endif

#if __STDC_HOSTED__
#include <cstdlib>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#endif

namespace nbbs {

/// A code of `nbbs.h`, such as `NBBS_CODE_EXHAUSTED`.
using code = ::nbbs_code;

/// A refusal: the code, and the values that it names. Of a call that was not refused, `NBBS_CODE_OK`.
class refusal {
public:
    constexpr refusal() noexcept = default;
    constexpr explicit refusal(const nbbs_error& values) noexcept : values_(values) {}

    constexpr nbbs_code code() const noexcept { return static_cast<nbbs_code>(values_.code); }
    /// The value that was refused.
    constexpr std::uint64_t value() const noexcept { return values_.value; }
    /// The limit that it broke.
    constexpr std::uint64_t limit() const noexcept { return values_.limit; }
    /// See the code.
    constexpr std::uint64_t other() const noexcept { return values_.other; }
    /// All of it, as C has it.
    constexpr const nbbs_error& values() const noexcept { return values_; }

    /// Writes a sentence that names the value and the limit to `text`, cut off after `bytes - 1` characters. Returns the
    /// length of the whole sentence.
    std::size_t message(char* text, std::size_t bytes) const noexcept { return nbbs_message(&values_, text, bytes); }

#if __STDC_HOSTED__
    /// The sentence.
    std::string message() const {
        std::string text(message(nullptr, 0) + 1, '\0');
        text.resize(message(text.data(), text.size()));
        return text;
    }
#endif

private:
    nbbs_error values_{};
};

#if __STDC_HOSTED__

/// What functions without `try_` throw.
class error : public std::runtime_error {
public:
    explicit error(const refusal& why) : std::runtime_error(why.message()), why_(why) {}

    nbbs_code code() const noexcept { return why_.code(); }
    const refusal& why() const noexcept { return why_; }

private:
    refusal why_;
};

/// What resources, allocators, `make` of a pool, and a heap's `alloc` and constructor throw when there is no memory: a
/// `std::bad_alloc` that knows why.
class bad_alloc : public std::bad_alloc {
public:
    explicit bad_alloc(const refusal& why) noexcept : why_(why) { why.message(text_, sizeof text_); }

    const char* what() const noexcept override { return text_; }
    nbbs_code code() const noexcept { return why_.code(); }
    const refusal& why() const noexcept { return why_; }

private:
    refusal why_;
    char text_[160];
};

#endif

namespace detail {

/// Ends a call that cannot return: throws, or ends the program where nothing can be thrown.
template <class Exception>
[[noreturn]] inline void fail([[maybe_unused]] const refusal& why) {
#if NBBS_EXCEPTIONS && __STDC_HOSTED__
    throw Exception(why);
#elif __STDC_HOSTED__
    std::abort();
#else
    __builtin_trap();
#endif
}

#if __STDC_HOSTED__
/// The bytes of an array of `count` objects, or a `bad_alloc` that says how many there can be.
template <class T>
std::size_t bytes_of(std::size_t count) {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / sizeof(T);
    if (count > most) {
        fail<bad_alloc>(refusal(nbbs_error{NBBS_CODE_TOO_LONG, 0, count, most, 0}));
    }
    return count * sizeof(T);
}

/// What an allocator says that knows where its memory is: it moves and swaps with its container, and is not copied on
/// assignment.
struct moves_with_container {
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;
};

using plain_error = error;
#else
using plain_error = void;
#endif

}  // namespace detail

/// A value, or why there is none. Like `std::expected<T, refusal>`, which C++17 does not have. `T` has a default value.
template <class T>
class [[nodiscard]] result {
public:
    using value_type = T;

    result(T value) noexcept(std::is_nothrow_move_constructible_v<T>) : value_(std::move(value)) {}
    result(const refusal& why) noexcept(std::is_nothrow_default_constructible_v<T>) : why_(why) {}

    bool has_value() const noexcept { return why_.code() == NBBS_CODE_OK; }
    explicit operator bool() const noexcept { return has_value(); }
    /// Why there is no value.
    const refusal& error() const noexcept { return why_; }
    nbbs_code code() const noexcept { return why_.code(); }

    /// The value, which has to be there.
    T& operator*() & noexcept { return value_; }
    const T& operator*() const& noexcept { return value_; }
    T&& operator*() && noexcept { return std::move(value_); }
    T* operator->() noexcept { return &value_; }
    const T* operator->() const noexcept { return &value_; }

    /// The value. Throws `nbbs::error` if there is none.
    T& value() & { return check(), value_; }
    const T& value() const& { return check(), value_; }
    T&& value() && { return check(), std::move(value_); }

    template <class U>
    T value_or(U&& instead) const& {
        return has_value() ? value_ : static_cast<T>(std::forward<U>(instead));
    }
    template <class U>
    T value_or(U&& instead) && {
        return has_value() ? std::move(value_) : static_cast<T>(std::forward<U>(instead));
    }

private:
    void check() const {
        if (!has_value()) {
            detail::fail<detail::plain_error>(why_);
        }
    }

    T value_{};
    refusal why_{};
};

/// Whether it was done, or why not.
template <>
class [[nodiscard]] result<void> {
public:
    using value_type = void;

    constexpr result() noexcept = default;
    constexpr result(const refusal& why) noexcept : why_(why) {}

    constexpr bool has_value() const noexcept { return why_.code() == NBBS_CODE_OK; }
    constexpr explicit operator bool() const noexcept { return has_value(); }
    constexpr const refusal& error() const noexcept { return why_; }
    constexpr nbbs_code code() const noexcept { return why_.code(); }

    /// Throws `nbbs::error` if it was not done.
    void value() const {
        if (!has_value()) {
            detail::fail<detail::plain_error>(why_);
        }
    }

private:
    refusal why_{};
};

namespace detail {

/// What `dropped_frees` returns.
inline std::size_t dropped = 0;

/// Counts a refusal that cannot be returned. A place for a breakpoint.
[[gnu::cold, gnu::noinline]] inline void count_dropped() noexcept { __atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED); }

/// Ends a free that returns nothing.
template <class T>
void drop(const result<T>& freed) noexcept {
    if (!freed) {
        count_dropped();
    }
}

}  // namespace detail

/// How many frees were refused that could not say so, by allocators, memory resources, boxes, and blocks that free
/// themselves, in the whole program. If it is not 0, something was freed twice, in the wrong place, or with a wrong size:
/// the hook of the buddy, heap or pool is told what, and a breakpoint at `nbbs::detail::count_dropped` shows where.
/// Callable from anywhere.
inline std::size_t dropped_frees() noexcept { return __atomic_load_n(&detail::dropped, __ATOMIC_RELAXED); }

namespace detail {

/// What was got. Otherwise throws: `nbbs::bad_alloc` if that is for want of memory, or else `nbbs::error`.
template <class T>
T had(const result<T>& got, [[maybe_unused]] bool wants_memory = true) {
#if __STDC_HOSTED__
    if (!got && wants_memory) {
        fail<bad_alloc>(got.error());
    }
#endif
    return got.value();
}

/// Calls a function of C whose last argument takes the error.
template <class... Parameters, class... Arguments>
result<void> run(nbbs_code (*function)(Parameters...), Arguments... arguments) noexcept {
    nbbs_error why{};
    if (function(arguments..., &why) == NBBS_CODE_OK) {
        return {};
    }
    return refusal(why);
}

/// Calls a function of C whose last arguments take a `T` and the error.
template <class T, class... Parameters, class... Arguments>
result<T> get(nbbs_code (*function)(Parameters...), Arguments... arguments) noexcept {
    T got{};
    nbbs_error why{};
    if (function(arguments..., &got, &why) == NBBS_CODE_OK) {
        return got;
    }
    return refusal(why);
}

}  // namespace detail

}  // namespace nbbs

#endif
