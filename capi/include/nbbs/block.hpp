/* A block that frees itself. Part of nbbs.hpp. */

#ifndef NBBS_BLOCK_HPP
#define NBBS_BLOCK_HPP

#include "buddy.hpp"

namespace nbbs {

namespace detail {

/// A buddy that lasts longer than the call: a temporary, such as `pages.on(cpu)`, is none.
struct lasting {
    lasting(const buddy& of) noexcept : arena(of) {}
    lasting(const buddy&&) = delete;
    const buddy& arena;
};

}  // namespace detail

/// A block or run of a buddy, which has to outlive it, freed when it goes. Three words; empty when moved from, or made by
/// default.
///
///     nbbs::block pages = nbbs::block::of_order(arena, 3);
class block {
public:
    constexpr block() noexcept = default;

    /// Takes over what was allocated at `index`. Refuses as `nbbs_len_of`.
    static result<block> try_from_index(detail::lasting of, std::uint64_t index) noexcept {
        const result<std::uint64_t> units = of.arena.try_len_of(index);
        return units ? result<block>(block(of.arena, index, *units)) : result<block>(units.error());
    }
    static block from_index(detail::lasting of, std::uint64_t index) { return try_from_index(of, index).value(); }

    /// A block of `2^order` units.
    static result<block> try_of_order(detail::lasting of, std::uint32_t order) noexcept {
        return hold(of, of.arena.try_alloc(order), [order] { return std::uint64_t{1} << order; });
    }
    static block of_order(detail::lasting of, std::uint32_t order) { return try_of_order(of, order).value(); }

    /// A run of exactly `units` units.
    static result<block> try_of_units(detail::lasting of, std::uint64_t units) noexcept {
        return hold(of, of.arena.try_alloc_units(units), [units] { return units; });
    }
    static block of_units(detail::lasting of, std::uint64_t units) { return try_of_units(of, units).value(); }

    /// What `what` describes.
    static result<block> try_of(detail::lasting of, const request& what) noexcept {
        return hold(of, of.arena.try_alloc(what), [&what] { return what.units; });
    }
    static block of(detail::lasting of, const request& what) { return block::try_of(of, what).value(); }

    /// Memory of at least `bytes` bytes at a multiple of `align`, of an arena made of a region.
    static result<block> try_of_bytes(detail::lasting of, std::size_t bytes, std::size_t align = 1) noexcept {
        const result<void*> got = of.arena.try_alloc_bytes(bytes, align);
        return got ? try_from_index(of, of.arena.try_index_of(*got).value_or(0)) : result<block>(got.error());
    }
    static block of_bytes(detail::lasting of, std::size_t bytes, std::size_t align = 1) {
        return try_of_bytes(of, bytes, align).value();
    }

    block(block&& from) noexcept : of_(from.of_), index_(from.index_), units_(from.units_) { from.forget(); }
    block& operator=(block&& from) noexcept {
        block moved(std::move(from));
        std::swap(of_, moved.of_);
        std::swap(index_, moved.index_);
        std::swap(units_, moved.units_);
        return *this;
    }
    ~block() { reset(); }

    /// Whether there is a block.
    explicit operator bool() const noexcept { return units_ != 0; }
    /// First unit.
    std::uint64_t index() const noexcept { return index_; }
    std::uint64_t units() const noexcept { return units_; }
    /// Where it begins; null if it is empty or its arena has no addresses.
    void* data() const noexcept {
        return *this ? of_->try_address_of(index_).value_or(nullptr) : nullptr;
    }
    /// 0 if the arena has no addresses.
    std::size_t size_bytes() const noexcept {
        return *this ? static_cast<std::size_t>(units_) * of_->unit_bytes() : 0;
    }

    /// Frees it now. A refusal (somebody else freed it) goes to the arena's hook, and `dropped_frees` counts it.
    void reset() noexcept {
        if (*this) {
            detail::drop(of_->try_free_units(index_, units_));
            forget();
        }
    }

    /// Gives it up without freeing it; returns its first unit.
    [[nodiscard]] std::uint64_t leak() noexcept {
        const std::uint64_t index = index_;
        forget();
        return index;
    }

    /// Gives back all but its first `units` units.
    result<void> try_shrink(std::uint64_t units) noexcept { return resized(units, nbbs_shrink); }
    void shrink(std::uint64_t units) { try_shrink(units).value(); }

    /// Takes units behind it, in place, so that it has `units`.
    result<void> try_grow(std::uint64_t units) noexcept { return resized(units, nbbs_grow); }
    void grow(std::uint64_t units) { try_grow(units).value(); }

    /// Keeps its first `units` units, and returns the rest as a block of its own.
    result<block> try_split_off(std::uint64_t units) noexcept {
        const result<std::uint64_t> rest = detail::get<std::uint64_t>(nbbs_split_off, handle(), index_, units);
        if (!rest) {
            return rest.error();
        }
        block other(*of_, *rest, units_ - units);
        units_ = units;
        return other;
    }
    block split_off(std::uint64_t units) { return try_split_off(units).value(); }

private:
    block(const buddy& of, std::uint64_t index, std::uint64_t units) noexcept
        : of_(&of), index_(index), units_(units) {}

    template <class Units>
    static result<block> hold(detail::lasting of, const result<std::uint64_t>& index, Units units) noexcept {
        return index ? result<block>(block(of.arena, *index, units())) : result<block>(index.error());
    }

    /// The arena's; null, which every function refuses, if there is no block.
    const nbbs_arena* handle() const noexcept { return *this ? of_->handle() : nullptr; }

    template <class Function>
    result<void> resized(std::uint64_t units, Function how) noexcept {
        const result<void> done = detail::run(how, handle(), index_, units);
        if (done) {
            units_ = units;
        }
        return done;
    }

    void forget() noexcept {
        of_ = nullptr;
        index_ = 0;
        units_ = 0;
    }

    const buddy* of_ = nullptr;
    std::uint64_t index_ = 0;
    std::uint64_t units_ = 0;
};

}  // namespace nbbs

#endif
