/* Memory of any size and alignment. Part of nbbs.hpp. */

#ifndef NBBS_HEAP_HPP
#define NBBS_HEAP_HPP

#include "result.hpp"
#include "small.hpp"
#include "storage.hpp"
#include "visitor.hpp"

#include <algorithm>
#include <memory_resource>
#include <new>
#include <string>
#include <thread>

namespace nbbs {

/// A heap: memory of any size and alignment, for any number of threads, lock-free, with a cache for each CPU.
///
///     nbbs::heap heap(64 << 20);
///     nbbs::heap_resource resource(heap);
///     std::pmr::unordered_map<int, std::pmr::string> names(&resource);
class heap {
public:
    /// A heap that hands out `bytes` bytes, rounded up to a KiB, of memory from `operator new`, which it gives back when
    /// it ends; `caches`: 0: as many as there are CPUs. Throws `nbbs::bad_alloc`, `nbbs::error`.
    explicit heap(std::size_t bytes, std::size_t caches = 0) {
        caches = caches != 0 ? caches : std::thread::hardware_concurrency();
        const std::size_t all = nbbs_heap_bytes(caches, bytes);
        if (all == 0) {
            detail::fail<error>(impossible(bytes, caches));
        }
        own_ = ::operator new(all, std::nothrow);
        if (own_ == nullptr) {
            constexpr std::size_t align = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
            detail::fail<bad_alloc>(refusal(nbbs_error{NBBS_CODE_SOURCE_EMPTY, 0, all, align, 0}));
        }
        const result<void> made = create({own_, all}, caches);
        if (!made) {
            ::operator delete(std::exchange(own_, nullptr));
            made.value();
        }
    }

    /// A heap in `place`, which outlives it, with so many caches, one at least; 24 KiB each. Throws `nbbs::error`.
    heap(storage place, std::size_t caches) { create(place, caches).value(); }
    /// Bytes for that, if it is to hand out `bytes` bytes; 0 if there can be no such heap.
    static std::size_t bytes_for(std::size_t caches, std::size_t bytes) noexcept {
        return nbbs_heap_bytes(caches, bytes);
    }

    heap(heap&& from) noexcept
        : heap_(std::exchange(from.heap_, nullptr)), own_(std::exchange(from.own_, nullptr)) {}
    heap& operator=(heap&& from) noexcept {
        heap moved(std::move(from));
        std::swap(heap_, moved.heap_);
        std::swap(own_, moved.own_);
        return *this;
    }
    /// What it handed out is no more, if the memory was from `operator new`.
    ~heap() { ::operator delete(own_); }

    /// Adds memory, which outlives the heap: seven times at most.
    result<void> try_add(storage more) noexcept { return detail::run(nbbs_heap_add, heap_, more.memory, more.bytes); }
    void add(storage more) { try_add(more).value(); }

    /// Allocates `bytes` bytes at a multiple of `align`, a power of two. `alloc` throws `nbbs::bad_alloc`.
    [[nodiscard]] result<void*> try_alloc(std::size_t bytes,
                                          std::size_t align = alignof(std::max_align_t)) const noexcept {
        return detail::get<void*>(nbbs_heap_alloc, heap_, bytes, align);
    }
    [[nodiscard]] void* alloc(std::size_t bytes, std::size_t align = alignof(std::max_align_t)) const {
        return detail::had(try_alloc(bytes, align));
    }

    /// Frees a block; null: does nothing. Any other address is refused: `NBBS_CODE_NOT_OF_HEAP`, `INSIDE_UNIT`, `NO_BLOCK`.
    result<void> try_free(void* block) const noexcept { return detail::run(nbbs_heap_free, heap_, block); }
    void free(void* block) const { try_free(block).value(); }

    /// Makes a block larger or smaller, and returns where it is: if it has to move, its contents move with it, to a
    /// multiple of 16. Null: allocates. `resize` throws `nbbs::bad_alloc` if there is no memory, and the block stays as it
    /// is; `nbbs::error` if it is none.
    [[nodiscard]] result<void*> try_resize(void* block, std::size_t bytes) const noexcept {
        const result<void> done = detail::run(nbbs_heap_resize, heap_, &block, bytes);
        return done ? result<void*>(block) : result<void*>(done.error());
    }
    [[nodiscard]] void* resize(void* block, std::size_t bytes) const {
        const result<void*> got = try_resize(block, bytes);
        return detail::had(got, got.code() == NBBS_CODE_HEAP_FULL);
    }

    /// How many bytes may be used of a block; 0 of null, and of what is none. What a cache keeps counts as a block.
    [[nodiscard]] std::size_t usable_size(const void* block) const noexcept {
        return nbbs_heap_usable_size(heap_, block);
    }
    /// Whether an address lies in memory that the heap hands out.
    [[nodiscard]] bool contains(const void* address) const noexcept { return nbbs_heap_contains(heap_, address); }

    /// Returns the memory of slabs of which no slot is in use, for other sizes: how many bytes.
    std::size_t trim() const noexcept { return nbbs_heap_trim(heap_); }
    /// What the memory is used for.
    nbbs_heap_statistics stats() const noexcept {
        nbbs_heap_statistics found{};
        nbbs_heap_stats(heap_, &found, nullptr);
        return found;
    }
    /// Calls `visit` with every `const nbbs_heap_block&` that is in use or kept by a cache, in no order. `visit` may free
    /// the block. What it throws ends the walk.
    template <class Visit>
    void walk(Visit&& visit) const {
        detail::walk<nbbs_heap>(nbbs_heap_walk, heap_, visit);
    }
    /// What is in use by size, for DHAT's `dh_view.html`.
    std::string profile() const {
        std::string text(nbbs_heap_profile(heap_, nullptr, 0) + 1, '\0');
        text.resize(std::min(text.size() - 1, nbbs_heap_profile(heap_, text.data(), text.size())));
        return text;
    }
    /// Calls `discard(void* pages, std::size_t bytes)` with free memory, in whole pages of `page` bytes: it returns whether
    /// the system has taken them back, so that they are zero, and must not throw. Returns of how many bytes it said so.
    template <class Discard>
    std::size_t discard(std::size_t page, Discard discard) const noexcept {
        const auto ask = [](void* context, void* pages, std::size_t bytes) noexcept -> bool {
            return (*static_cast<Discard*>(context))(pages, bytes);
        };
        return nbbs_heap_discard(heap_, page, ask, &discard);
    }
    /// Whether all is in order. Only while nobody else is using the heap.
    result<void> try_audit() const noexcept { return detail::run(nbbs_heap_audit, heap_); }

    /// Has `hook` told of misuse; `cpu` say on which CPU a call runs. While nobody else is using the heap.
    result<void> set_hook(nbbs_hook hook, void* context) noexcept {
        return detail::run(nbbs_heap_set_hook, heap_, hook, context);
    }
    result<void> set_cpu(nbbs_cpu_number cpu, void* context) noexcept {
        return detail::run(nbbs_heap_set_cpu, heap_, cpu, context);
    }
    /// The same, where calls with one number only interrupt each other: a cache takes no read-modify-write then.
    /// `nbbs_heap_set_nested_cpu` says what that asks of callers.
    result<void> set_nested_cpu(nbbs_cpu_number cpu, void* context) noexcept {
        return detail::run(nbbs_heap_set_nested_cpu, heap_, cpu, context);
    }

    /// The heap, as C has it. Null: it was moved.
    nbbs_heap* handle() const noexcept { return heap_; }

private:
    /// Why there can be no heap that hands out so many bytes with so many caches.
    static refusal impossible(std::size_t bytes, std::size_t caches) noexcept {
        if (nbbs_heap_bytes(caches, 1) == 0) {
            // The caches are too many, whatever the bytes, and the library says how many there can be.
            char place[1];
            nbbs_heap* none = nullptr;
            return detail::run(nbbs_heap_create, static_cast<void*>(place), sizeof place, caches, &none).error();
        }
        std::size_t fit = 1, above = std::numeric_limits<std::size_t>::max();
        while (above - fit > 1) {
            const std::size_t middle = fit + (above - fit) / 2;
            (nbbs_heap_bytes(caches, middle) == 0 ? above : fit) = middle;
        }
        return refusal(nbbs_error{NBBS_CODE_SIZE, 0, bytes, fit, 0});
    }

    result<void> create(storage place, std::size_t caches) noexcept {
        return detail::run(nbbs_heap_create, place.memory, place.bytes, caches, &heap_);
    }

    nbbs_heap* heap_ = nullptr;
    void* own_ = nullptr;
};

namespace detail {

template <class Heap>
class resource_over : public std::pmr::memory_resource {
public:
    explicit resource_over(const Heap& of) noexcept : of_(&of) {}
    resource_over(const Heap&&) = delete;

    const Heap& of() const noexcept { return *of_; }

private:
    void* do_allocate(std::size_t bytes, std::size_t align) override { return of_->alloc(bytes, align); }

    void do_deallocate(void* address, std::size_t, std::size_t) override { drop(of_->try_free(address)); }

    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
#if defined(__cpp_rtti) || defined(_CPPRTTI)
        const auto* same = dynamic_cast<const resource_over*>(&other);
        return same != nullptr && of_->handle() == same->of_->handle();
#else
        return this == &other;
#endif
    }

    const Heap* of_;
};

}  // namespace detail

/// Memory of a heap for anything that takes a `std::pmr::memory_resource`. Thread-safe and lock-free. What cannot be had
/// throws `nbbs::bad_alloc`; what cannot be freed is refused, told to the heap's hook, and counted by `dropped_frees`. The
/// heap has to outlive it, and may not be moved meanwhile.
class heap_resource : public detail::resource_over<heap> {
public:
    using resource_over::resource_over;
};

/// The same over a small heap.
class small_resource : public detail::resource_over<small_heap> {
public:
    using resource_over::resource_over;
};

/// The same as an allocator of containers. It moves and swaps with its container, and is not copied on assignment.
///
///     std::vector<int, nbbs::heap_allocator<int>> numbers(heap);
template <class T>
class heap_allocator : public detail::moves_with_container {
public:
    using value_type = T;

    heap_allocator(const heap& of) noexcept : of_(&of) {}
    heap_allocator(const heap&&) = delete;
    template <class U>
    heap_allocator(const heap_allocator<U>& other) noexcept : of_(&other.of()) {}

    [[nodiscard]] T* allocate(std::size_t count) {
        return static_cast<T*>(of_->alloc(detail::bytes_of<T>(count), alignof(T)));
    }

    void deallocate(T* first, std::size_t) noexcept { detail::drop(of_->try_free(first)); }

    const heap& of() const noexcept { return *of_; }

    template <class U>
    friend bool operator==(const heap_allocator& one, const heap_allocator<U>& other) noexcept {
        return one.of().handle() == other.of().handle();
    }
    template <class U>
    friend bool operator!=(const heap_allocator& one, const heap_allocator<U>& other) noexcept {
        return !(one == other);
    }

private:
    const heap* of_;
};

}  // namespace nbbs

#endif
