/* An arena of units. Part of nbbs.hpp. */

#ifndef NBBS_BUDDY_HPP
#define NBBS_BUDDY_HPP

#include "result.hpp"
#include "visitor.hpp"

#if __STDC_HOSTED__
#include <cstddef>
#include <new>
#include <thread>
#endif

namespace nbbs {

using request = ::nbbs_request;
using statistics = ::nbbs_statistics;
using piece = ::nbbs_piece;
using audit_report = ::nbbs_audit_report;
using cache_config = ::nbbs_cache_config;

/// The default, lowered so that the caches of `cpus` CPUs keep an eighth of an arena of `units` units at most.
inline cache_config cache_config_for_arena(std::uint64_t units, std::size_t cpus) noexcept {
    return nbbs_cache_config_for_arena(units, cpus);
}

/// Memory for the bookkeeping: at least `nbbs_metadata_bytes(units)` bytes, on an 8-byte boundary, better on one of 64.
struct metadata {
    void* words;
    std::size_t bytes;
};

/// Memory that is managed: `bytes / unit_bytes` units from `base` on. `unit_bytes` is a power of two.
struct region {
    void* base;
    std::size_t bytes;
    std::size_t unit_bytes;
};

/// As what units begin.
enum class initial {
    /// All free.
    free,
    /// All reserved: nothing is handed out but what `release` gives.
    reserved,
    /// As the metadata has it: in use by other handles, or zero, which is all free.
    attached,
};

/// An arena of units. Any number of threads may allocate and free at once.
///
/// It stays where it is, so that blocks and resources can point to it; they must be gone before it is. Functions return
/// lvalues by elision: `nbbs::buddy pages = make();`. One that was never made refuses everything with
/// `NBBS_CODE_NO_ARENA`, and can be a `constinit` global.
///
///     nbbs::buddy pages(1 << 18);
///     std::uint64_t block = pages.alloc(3);
///     pages.free(block);
class buddy {
public:
    /// No arena yet: `try_create` makes it.
    constexpr buddy() noexcept = default;

    /// `units` units with bookkeeping in `place`. Throws `nbbs::error`.
    buddy(std::uint64_t units, metadata place, initial as = initial::free) { try_create(units, place, as).value(); }
    /// The units of `memory`, which has addresses too, with bookkeeping in `place`.
    buddy(region memory, metadata place, initial as = initial::free) { try_create(memory, place, as).value(); }

    /// The same, in place of what was there before, of which nothing may be in use any more.
    result<void> try_create(std::uint64_t units, metadata place, initial as = initial::free) noexcept {
        reset();
        const auto make = as == initial::free ? nbbs_create : as == initial::reserved ? nbbs_create_reserved : nbbs_attach;
        const result<void> made = detail::run(make, &arena_, place.words, place.bytes, units);
        words_ = made ? place.words : nullptr;
        return made;
    }
    result<void> try_create(region memory, metadata place, initial as = initial::free) noexcept {
        const result<void> made = check(memory);
        return made ? with_memory(memory, try_create(units_of(memory), place, as)) : made;
    }

#if __STDC_HOSTED__
    /// The same with bookkeeping of its own, from `operator new`: 2.3 bits a unit, and lanes for the machine's CPUs where
    /// `nbbs_lanes_for` says so, at most 2 bits more. There is nothing to attach to: that means all free.
    explicit buddy(std::uint64_t units, initial as = initial::free) { try_create(units, as).value(); }
    explicit buddy(region memory, initial as = initial::free) { try_create(memory, as).value(); }
    result<void> try_create(std::uint64_t units, initial as = initial::free) noexcept {
        reset();
        const std::size_t lanes = nbbs_lane_bytes(nbbs_lanes_for(units, std::thread::hardware_concurrency()));
        const std::size_t own = nbbs_metadata_bytes(units), bytes = own + lanes;
        void* words = ::operator new(bytes, metadata_align, std::nothrow);
        if (words == nullptr) {
            return refusal(
                nbbs_error{NBBS_CODE_SOURCE_EMPTY, 0, bytes, static_cast<std::uint64_t>(metadata_align), 0});
        }
        const initial fresh = as == initial::reserved ? as : initial::free;
        result<void> made = try_create(units, metadata{words, own}, fresh);
        if (made && lanes != 0) {
            made = try_set_lanes({static_cast<std::byte*>(words) + own, lanes});
        }
        if (made) {
            own_ = words;
        } else {
            reset();
            ::operator delete(words, metadata_align);
        }
        return made;
    }
    result<void> try_create(region memory, initial as = initial::free) noexcept {
        const result<void> made = check(memory);
        return made ? with_memory(memory, try_create(units_of(memory), as)) : made;
    }
#endif

    buddy(const buddy&) = delete;
    buddy& operator=(const buddy&) = delete;
#if __STDC_HOSTED__
    ~buddy() { free_metadata(); }
#endif

    /// The same arena as seen from `lane`, a CPU or thread number: a handle without bookkeeping of its own. With caches, that
    /// of a CPU, whose `alloc`, `free` and `free_sized` go through its cache: `nbbs_cache_alloc` says what this asks of its user.
    buddy on(std::size_t lane) const noexcept { return buddy(*this, lane); }
    /// The handle of `of.on(lane)` in this place, for handles that are kept, such as one for each CPU in an array: with
    /// `std::deque` and `std::optional` by `emplace`. What owns the bookkeeping must outlive it.
    buddy(const buddy& of, std::size_t lane) noexcept { static_cast<void>(try_create(of, lane)); }
    result<void> try_create(const buddy& of, std::size_t lane) noexcept {
        nbbs_arena seen{};
        const result<void> made = detail::run(nbbs_on, &of.arena_, lane, &seen);
        if (this != &of) {
            reset();
            memory_ = of.memory_;
            words_ = of.words_;
        }
        arena_ = seen;
        return made;
    }

    /// Has `hook` told of misuse, such as double frees. While nobody else is using this handle.
    result<void> set_hook(nbbs_hook hook, void* context) noexcept {
        return detail::run(nbbs_set_hook, &arena_, hook, context);
    }

    /// Gives this handle, and those that `on` makes of it later, lanes in `place` (`NBBS_LANE_BYTES`), for more CPUs than the
    /// metadata has lanes: `nbbs_set_lanes` says what that is good for. While nobody else is using this handle.
    result<void> try_set_lanes(metadata place) noexcept {
        return detail::run(nbbs_set_lanes, &arena_, place.words, place.bytes);
    }
    void set_lanes(metadata place) { try_set_lanes(place).value(); }

    // Caches: blocks of a CPU's own, without a read-modify-write.

    /// Gives this handle, and those that `on` makes of it later, a cache for each CPU for which `place` has room
    /// (`NBBS_CACHE_BYTES`): empty ones, or those that other handles use already. While nobody else is using this handle.
    result<void> try_set_caches(metadata place, const cache_config& config = {}, initial as = initial::free) noexcept {
        const auto make = as == initial::attached ? nbbs_cache_attach : nbbs_cache_create;
        return detail::run(make, &arena_, place.words, place.bytes, &config);
    }
    void set_caches(metadata place, const cache_config& config = {}, initial as = initial::free) {
        try_set_caches(place, config, as).value();
    }

    /// CPUs that have a cache.
    std::size_t cpus() const noexcept { return nbbs_cache_cpus(&arena_); }
    /// Gives back what `cpu` keeps. The CPU's user calls it.
    void drain(std::size_t cpu) const { run(nbbs_cache_drain, cpu).value(); }
    /// Has `cpu` give back what it keeps with its next call. Anybody may call it.
    void ask(std::size_t cpu) const { run(nbbs_cache_ask, cpu).value(); }
    /// Gives back what all CPUs keep: `nbbs_cache_drain_all` says what `barrier` has to do.
    void drain_all(nbbs_barrier barrier, void* context = nullptr) const {
        run(nbbs_cache_drain_all, barrier, context).value();
    }
    /// Makes the cache of `cpu` usable again after a thread died in it: `nbbs_cache_recover` says when it may be called.
    void recover(std::size_t cpu) const { run(nbbs_cache_recover, cpu).value(); }
    /// How many blocks the arena did not take back from the caches: each was freed twice, or with a wrong order.
    std::uint64_t refused() const noexcept { return nbbs_cache_refused(&arena_); }
    /// Checks that what the CPUs keep is theirs. Only while no other call is running.
    result<void> try_audit_caches() const noexcept { return run(nbbs_cache_audit); }

    std::uint64_t units() const noexcept { return nbbs_units(&arena_); }
    std::uint32_t max_order() const noexcept { return nbbs_max_order(&arena_); }
    /// Bytes of a unit; 0 if the arena has no addresses.
    std::size_t unit_bytes() const noexcept { return memory_.unit_bytes; }
    /// Where unit 0 is; null if the arena has no addresses.
    void* base() const noexcept { return memory_.base; }
    /// Whether what one of both has allocated by address the other can free: handles of one arena with one base.
    bool same_memory(const buddy& other) const noexcept {
        return this == &other || (base() != nullptr && base() == other.base() && words_ == other.words_);
    }
    /// For the functions of `nbbs.h`.
    const nbbs_arena* handle() const noexcept { return &arena_; }

    // Allocating: by order, by length, somewhere in particular, many at once.

    result<std::uint64_t> try_alloc(std::uint32_t order) const noexcept { return get(nbbs_alloc, order); }
    std::uint64_t alloc(std::uint32_t order) const { return try_alloc(order).value(); }

    result<std::uint64_t> try_alloc_units(std::uint64_t units) const noexcept { return get(nbbs_alloc_units, units); }
    std::uint64_t alloc_units(std::uint64_t units) const { return try_alloc_units(units).value(); }

    result<void> try_alloc_at(std::uint64_t index, std::uint64_t units) const noexcept {
        return run(nbbs_alloc_at, index, units);
    }
    void alloc_at(std::uint64_t index, std::uint64_t units) const { try_alloc_at(index, units).value(); }

    result<std::uint64_t> try_alloc(const request& what) const noexcept { return get(nbbs_alloc_request, &what); }
    std::uint64_t alloc(const request& what) const { return try_alloc(what).value(); }

    /// Allocates up to `count` blocks into `blocks`; returns how many.
    result<std::size_t> try_alloc_batch(std::uint32_t order, std::uint64_t* blocks, std::size_t count) const noexcept {
        return detail::get<std::size_t>(nbbs_alloc_batch, &arena_, order, blocks, count);
    }
    std::size_t alloc_batch(std::uint32_t order, std::uint64_t* blocks, std::size_t count) const {
        return try_alloc_batch(order, blocks, count).value();
    }

    // Freeing.

    /// Frees whatever begins at `index`; returns its number of units.
    result<std::uint64_t> try_free(std::uint64_t index) const noexcept {
        return detail::get<std::uint64_t>(nbbs_free, &arena_, index);
    }
    std::uint64_t free(std::uint64_t index) const { return try_free(index).value(); }

    result<void> try_free_sized(std::uint64_t index, std::uint32_t order) const noexcept {
        return run(nbbs_free_sized, index, order);
    }
    void free_sized(std::uint64_t index, std::uint32_t order) const { try_free_sized(index, order).value(); }

    result<void> try_free_units(std::uint64_t index, std::uint64_t units) const noexcept {
        return run(nbbs_free_units, index, units);
    }
    void free_units(std::uint64_t index, std::uint64_t units) const { try_free_units(index, units).value(); }

    /// Frees blocks up to the first that cannot be; `done`, unless it is null, gets how many.
    result<void> try_free_batch(std::uint32_t order, const std::uint64_t* blocks, std::size_t count,
                                std::size_t* done = nullptr) const noexcept {
        return run(nbbs_free_batch, order, blocks, count, done);
    }
    void free_batch(std::uint32_t order, const std::uint64_t* blocks, std::size_t count) const {
        try_free_batch(order, blocks, count).value();
    }

    result<void> try_free_part(std::uint64_t index, std::uint64_t start, std::uint64_t end) const noexcept {
        return run(nbbs_free_part, index, start, end);
    }
    void free_part(std::uint64_t index, std::uint64_t start, std::uint64_t end) const {
        try_free_part(index, start, end).value();
    }

    // Changing what is held, in place.

    result<void> try_shrink(std::uint64_t index, std::uint64_t units) const noexcept {
        return run(nbbs_shrink, index, units);
    }
    void shrink(std::uint64_t index, std::uint64_t units) const { try_shrink(index, units).value(); }

    result<void> try_grow(std::uint64_t index, std::uint64_t units) const noexcept {
        return run(nbbs_grow, index, units);
    }
    void grow(std::uint64_t index, std::uint64_t units) const { try_grow(index, units).value(); }

    /// Returns where the rest begins.
    result<std::uint64_t> try_split_off(std::uint64_t index, std::uint64_t units) const noexcept {
        return get(nbbs_split_off, index, units);
    }
    std::uint64_t split_off(std::uint64_t index, std::uint64_t units) const {
        return try_split_off(index, units).value();
    }

    result<void> try_split(std::uint64_t index, std::uint32_t order) const noexcept {
        return run(nbbs_split, index, order);
    }
    void split(std::uint64_t index, std::uint32_t order) const { try_split(index, order).value(); }

    // Reserved units.

    result<void> try_reserve(std::uint64_t start, std::uint64_t end) const noexcept {
        return run(nbbs_reserve, start, end);
    }
    void reserve(std::uint64_t start, std::uint64_t end) const { try_reserve(start, end).value(); }

    result<void> try_release(std::uint64_t start, std::uint64_t end) const noexcept {
        return run(nbbs_release, start, end);
    }
    void release(std::uint64_t start, std::uint64_t end) const { try_release(start, end).value(); }

    // By address and size, of an arena made of a region.

    result<void*> try_alloc_bytes(std::size_t bytes, std::size_t align = 1) const noexcept {
        return detail::get<void*>(nbbs_alloc_bytes, &arena_, bytes, align);
    }
    void* alloc_bytes(std::size_t bytes, std::size_t align = 1) const { return try_alloc_bytes(bytes, align).value(); }

    /// `bytes` as allocated; 0: whatever is there.
    result<void> try_free_bytes(void* address, std::size_t bytes = 0) const noexcept {
        return run(nbbs_free_bytes, address, bytes);
    }
    void free_bytes(void* address, std::size_t bytes = 0) const { try_free_bytes(address, bytes).value(); }

    result<void> try_resize_bytes(void* address, std::size_t bytes) const noexcept {
        return run(nbbs_resize_bytes, address, bytes);
    }
    void resize_bytes(void* address, std::size_t bytes) const { try_resize_bytes(address, bytes).value(); }

    result<void*> try_address_of(std::uint64_t index) const noexcept {
        return detail::get<void*>(nbbs_address_of, &arena_, index);
    }
    void* address_of(std::uint64_t index) const { return try_address_of(index).value(); }

    result<std::uint64_t> try_index_of(const void* address) const noexcept { return get(nbbs_index_of, address); }
    std::uint64_t index_of(const void* address) const { return try_index_of(address).value(); }

    // Looking on.

    result<std::uint32_t> try_order_of(std::uint64_t index) const noexcept {
        return detail::get<std::uint32_t>(nbbs_order_of, &arena_, index);
    }
    std::uint32_t order_of(std::uint64_t index) const { return try_order_of(index).value(); }

    result<std::uint64_t> try_len_of(std::uint64_t index) const noexcept { return get(nbbs_len_of, index); }
    std::uint64_t len_of(std::uint64_t index) const { return try_len_of(index).value(); }

    /// No block of a larger order is free; -1: none is.
    std::int32_t order_bound() const noexcept { return nbbs_order_bound(&arena_); }

    /// Looks whether a block of `order` is free.
    bool has_free(std::uint32_t order) const noexcept { return nbbs_has_free(&arena_, order); }

    result<statistics> try_stats() const noexcept { return detail::get<statistics>(nbbs_stats, &arena_); }
    statistics stats() const { return try_stats().value(); }

    /// Units that are free: faster than `stats`.
    std::uint64_t count_free() const noexcept { return nbbs_count_free(&arena_); }

    /// Fills `map`; returns how many bytes.
    result<std::size_t> try_occupancy_map(std::uint32_t order, std::uint8_t* map, std::size_t bytes) const noexcept {
        return detail::get<std::size_t>(nbbs_occupancy_map, &arena_, order, map, bytes);
    }
    std::size_t occupancy_map(std::uint32_t order, std::uint8_t* map, std::size_t bytes) const {
        return try_occupancy_map(order, map, bytes).value();
    }

    /// Calls `visit` with every `const piece&`, in ascending order. What it throws ends the walk.
    template <class Visit>
    void walk(Visit&& visit) const {
        detail::walk(nbbs_walk, &arena_, visit);
    }

    /// Checks every invariant of the metadata. Only while no other call is running.
    result<audit_report> try_audit() const noexcept { return detail::get<audit_report>(nbbs_audit, &arena_); }
    audit_report audit() const { return try_audit().value(); }

    /// Finishes what the dead have left: `nbbs_mend` says what.
    void mend() const { run(nbbs_mend).value(); }

private:
    template <class Function, class... Arguments>
    result<void> run(Function function, Arguments... arguments) const noexcept {
        return detail::run(function, &arena_, arguments...);
    }
    template <class Function, class... Arguments>
    result<std::uint64_t> get(Function function, Arguments... arguments) const noexcept {
        return detail::get<std::uint64_t>(function, &arena_, arguments...);
    }

    /// Whether a region has units at all. If not, there is no arena, either.
    result<void> check(const region& memory) noexcept {
        if (memory.unit_bytes != 0 && memory.unit_bytes <= memory.bytes) {
            return {};
        }
        reset();
        if (memory.unit_bytes == 0) {
            return refusal(nbbs_error{NBBS_CODE_SIZE, 0, 0, static_cast<std::size_t>(-1) / 2 + 1, 1});
        }
        return refusal(nbbs_error{NBBS_CODE_TOO_SHORT, 0, memory.bytes, memory.unit_bytes, 0});
    }

    static std::uint64_t units_of(const region& memory) noexcept { return memory.bytes / memory.unit_bytes; }

    result<void> with_memory(const region& memory, const result<void>& made) noexcept {
        if (!made) {
            return made;
        }
        const result<void> set = detail::run(nbbs_set_memory, &arena_, memory.base, memory.unit_bytes);
        if (set) {
            memory_ = memory;
        } else {
            reset();
        }
        return set;
    }

    /// Back to no arena.
    void reset() noexcept {
        free_metadata();
        arena_ = nbbs_arena{};
        memory_ = region{};
        words_ = nullptr;
    }

    void free_metadata() noexcept {
#if __STDC_HOSTED__
        ::operator delete(own_, metadata_align);
        own_ = nullptr;
#endif
    }

    nbbs_arena arena_{};
    region memory_{};
    /// The bookkeeping, by which two handles of one arena know each other.
    const void* words_ = nullptr;
#if __STDC_HOSTED__
    static constexpr std::align_val_t metadata_align{64};
    /// Bookkeeping that ends with this handle.
    void* own_ = nullptr;
#endif
};

}  // namespace nbbs

#endif
