/* Memory of any size in little memory. Part of nbbs.hpp. */

#ifndef NBBS_SMALL_HPP
#define NBBS_SMALL_HPP

#include "result.hpp"
#include "storage.hpp"
#include "visitor.hpp"

#include <cstddef>

namespace nbbs {

/// A heap for little memory: the first fit, without caches. The bookkeeping is two bits for each unit. A handle to what lies
/// in the memory, which outlives it: it may be copied, and needs no end.
///
///     alignas(16) static std::byte memory[16 << 10];
///     nbbs::small_heap heap({memory, sizeof memory});
///     void* block = heap.alloc(100);
class small_heap {
public:
    /// No heap yet: `try_create` makes it, and everything else is refused.
    constexpr small_heap() noexcept = default;
    /// A heap in `place`, whatever that holds, with units of 16, 32 or 64 bytes. Throws `nbbs::error`.
    explicit small_heap(storage place, std::size_t unit = 32) { try_create(place, unit).value(); }
    result<void> try_create(storage place, std::size_t unit = 32) noexcept {
        return detail::run(nbbs_small_create, place.memory, place.bytes, unit, &heap_);
    }
    /// Bytes for a heap that hands out `bytes` bytes; 0 if there can be no such heap.
    static std::size_t bytes_for(std::size_t bytes, std::size_t unit = 32) noexcept {
        return nbbs_small_bytes(bytes, unit);
    }

    /// Allocates `bytes` bytes at a multiple of `align`, a power of two, and of 16. `alloc` throws `nbbs::bad_alloc`.
    [[nodiscard]] result<void*> try_alloc(std::size_t bytes, std::size_t align = 16) const noexcept {
        return detail::get<void*>(nbbs_small_alloc, heap_, bytes, align);
    }
    [[nodiscard]] void* alloc(std::size_t bytes, std::size_t align = 16) const {
        return detail::had(try_alloc(bytes, align));
    }

    /// Frees a block; null: does nothing. Any other address is refused: `NBBS_CODE_NOT_OF_HEAP`, `INSIDE_UNIT`, `NO_BLOCK`.
    result<void> try_free(void* block) const noexcept { return detail::run(nbbs_small_free, heap_, block); }
    void free(void* block) const { try_free(block).value(); }

    /// Makes a block larger or smaller, in place if the units behind it are free, and returns where it is: if it has to move,
    /// its contents move with it. Null: allocates. `resize` throws `nbbs::bad_alloc` if there is no memory, and the block
    /// stays as it is; `nbbs::error` if it is none.
    [[nodiscard]] result<void*> try_resize(void* block, std::size_t bytes) const noexcept {
        const result<void> done = detail::run(nbbs_small_resize, heap_, &block, bytes);
        return done ? result<void*>(block) : result<void*>(done.error());
    }
    [[nodiscard]] void* resize(void* block, std::size_t bytes) const {
        const result<void*> got = try_resize(block, bytes);
        return detail::had(got, got.code() == NBBS_CODE_HEAP_FULL);
    }

    /// How many bytes may be used of a block; 0 of null, and of what is none.
    [[nodiscard]] std::size_t usable_size(const void* block) const noexcept {
        return nbbs_small_usable_size(heap_, block);
    }
    /// Whether an address lies in memory that the heap hands out.
    [[nodiscard]] bool contains(const void* address) const noexcept { return nbbs_small_contains(heap_, address); }

    /// What the memory is used for.
    nbbs_small_statistics stats() const noexcept {
        return detail::get<nbbs_small_statistics>(nbbs_small_stats, heap_).value_or(nbbs_small_statistics{});
    }
    /// Calls `visit` with every `const nbbs_heap_block&` in use, in the order of addresses. `visit` may free the block. What it
    /// throws ends the walk.
    template <class Visit>
    void walk(Visit&& visit) const {
        detail::walk<nbbs_small>(nbbs_small_walk, heap_, visit);
    }

    /// Has `hook` told of misuse. While nobody else is using the heap.
    result<void> set_hook(nbbs_hook hook, void* context) noexcept {
        return detail::run(nbbs_small_set_hook, heap_, hook, context);
    }

    /// The heap, as C has it. Null: there is none.
    nbbs_small* handle() const noexcept { return heap_; }

private:
    nbbs_small* heap_ = nullptr;
};

}  // namespace nbbs

#endif
