/* Objects of one type. Part of nbbs.hpp. */

#ifndef NBBS_POOL_HPP
#define NBBS_POOL_HPP

#include "local.hpp"
#include "result.hpp"
#include "storage.hpp"
#include "visitor.hpp"

#include <limits>
#include <memory>
#include <memory_resource>
#include <new>

namespace nbbs {

/// How a pool is to grow. All zero: as many objects as there is memory for.
struct pool_config {
    /// The most objects that there may ever be; 0: no limit.
    std::size_t limit = 0;
    /// Objects for which there is memory from the beginning.
    std::size_t reserve = 0;
    /// Objects in a chunk, by which the pool grows: at most 2^24. 0: 4,096, or as many as fit into 1 MiB, but
    /// no fewer than 64; from a memory resource as many as fit into 4 KiB, for it may have little memory, or none at higher
    /// alignments: more are faster.
    std::size_t chunk = 0;
    /// A chunk is added as soon as fewer than so many objects are free; 0: when none is. Who takes the last of 64
    /// slots looks.
    std::size_t ahead = 0;
};

namespace detail {

/// Chunks from a `std::pmr::memory_resource`.
inline void* alloc_chunk(void* context, std::size_t bytes, std::size_t align) {
#if NBBS_EXCEPTIONS
    try {
        return static_cast<std::pmr::memory_resource*>(context)->allocate(bytes, align);
    } catch (...) {
        return nullptr;
    }
#else
    return static_cast<std::pmr::memory_resource*>(context)->allocate(bytes, align);
#endif
}

inline void free_chunk(void* context, void* chunk, std::size_t bytes, std::size_t align) {
    static_cast<std::pmr::memory_resource*>(context)->deallocate(chunk, bytes, align);
}

}  // namespace detail

/// Objects of one type, in chunks, with a bit a slot: allocated and freed in O(1) by any number of threads, without a
/// lock. A read-modify-write to allocate, two to free; with a `local`, mostly none. `nbbs::threaded_pool<T>` has a local for
/// each thread by itself.
///
///     nbbs::pool<widget> widgets;
///     widget* one = widgets.allocate(1, "first");
///     widgets.deallocate(one).value();
template <class T>
class pool {
public:
    using value_type = T;
    using size_type = std::size_t;
    using pointer = T*;
    using const_pointer = const T*;

    /// Frees an object of a pool; `dropped_frees` counts what is refused.
    struct deleter {
        void operator()(T* object) const noexcept { detail::drop(detail::destroy(of, object)); }
        nbbs_pool* of = nullptr;
    };
    /// An object that frees itself. The pool has to be there still; it may have been moved.
    using box = std::unique_ptr<T, deleter>;

    /// A pool with chunks from `malloc`. Throws `nbbs::error`.
    explicit pool(const pool_config& config = {}) : pool(config, static_cast<const nbbs_source*>(nullptr)) {}

    /// A pool with some 6.5 KiB for itself and then chunks from `chunks`, which outlives it and which several threads may
    /// use at once. A chunk's memory is aligned to its size, rounded up to a power of two.
    pool(const pool_config& config, std::pmr::memory_resource* chunks)
        : pool(config, nbbs_source{chunks != nullptr ? detail::alloc_chunk : nullptr, detail::free_chunk, chunks}) {}

    /// A pool of exactly `config.limit` objects, all of it in `place`, which outlives it.
    pool(const pool_config& config, storage place) {
        const nbbs_pool_config wanted = c_config(config);
        pool_ = detail::get<nbbs_pool*>(in_place, &wanted, place).value();
    }
    /// Bytes for that; 0 if there can be no such pool.
    static std::size_t bytes_for(const pool_config& config) noexcept {
        const nbbs_pool_config wanted = c_config(config);
        return nbbs_pool_bytes(&wanted);
    }

    pool(pool&& from) noexcept : pool_(std::exchange(from.pool_, nullptr)) {}
    pool& operator=(pool&& from) noexcept {
        pool moved(std::move(from));
        std::swap(pool_, moved.pool_);
        return *this;
    }
    /// Destroys the objects that are left, and gives the memory back.
    ~pool() {
        clear();
        nbbs_pool_destroy(pool_);
    }

    /// A place to allocate from and to free to, for one thread at a time: keeps free slots, and hands them out without a
    /// read-modify-write. Ends before its pool, which may be moved meanwhile.
    class local;

    /// Makes an object. Null: the limit is reached, or there is no memory. If the constructor throws, the slot is free
    /// again.
    template <class... Arguments>
    [[nodiscard]] T* allocate(Arguments&&... arguments) noexcept(std::is_nothrow_constructible_v<T, Arguments...>) {
        void* slot = nullptr;
        if (nbbs_pool_alloc(pool_, &slot, nullptr) != NBBS_CODE_OK) {
            return nullptr;
        }
        return construct(slot, std::forward<Arguments>(arguments)...);
    }

    /// The same, or why there is none: `NBBS_CODE_FULL`, or `SOURCE_EMPTY`, which says what was asked of the source.
    template <class... Arguments>
    [[nodiscard]] result<T*> try_allocate(Arguments&&... arguments) noexcept(
        std::is_nothrow_constructible_v<T, Arguments...>) {
        const result<void*> slot = detail::get<void*>(nbbs_pool_alloc, pool_);
        if (!slot) {
            return slot.error();
        }
        return construct(*slot, std::forward<Arguments>(arguments)...);
    }

    /// Makes an object that frees itself. Throws `nbbs::bad_alloc` where `allocate` returns null.
    template <class... Arguments>
    [[nodiscard]] box make(Arguments&&... arguments) {
        void* const slot = detail::had(detail::get<void*>(nbbs_pool_alloc, pool_));
        return box(construct(slot, std::forward<Arguments>(arguments)...), deleter{pool_});
    }

    /// Destroys and frees an object; null: does nothing. Any other address, an object freed before included, is refused
    /// and not touched: `NBBS_CODE_FOREIGN_ADDRESS`, `INSIDE_UNIT`, `NO_OBJECT`. Two threads that free the same object at
    /// the same time may both run its destructor; one is refused.
    result<void> deallocate(T* object) noexcept { return detail::destroy(pool_, object); }

    /// Whether an object of this pool is at that address, which may be any.
    [[nodiscard]] bool is_valid(const T* object) const noexcept { return nbbs_pool_is_valid(pool_, object); }

    /// What `allocate` is: bits need no variant for one thread.
    template <class... Arguments>
    [[nodiscard]] T* unsafe_allocate(Arguments&&... arguments) noexcept(
        std::is_nothrow_constructible_v<T, Arguments...>) {
        return allocate(std::forward<Arguments>(arguments)...);
    }

    /// `deallocate` of an address that is known to be an object's: runs its destructor without a look first.
    result<void> unsafe_deallocate(T* object) noexcept {
        if (object != nullptr) {
            object->~T();
        }
        return detail::run(nbbs_pool_free, pool_, object);
    }

    /// What `is_valid` is.
    [[nodiscard]] bool unsafe_is_valid(const T* object) const noexcept { return is_valid(object); }

    /// Destroys all objects; the memory stays, `shrink` gives it back. Destructors may free other objects, and are refused
    /// if those have gone before. Only while nobody else is using the pool.
    void clear() noexcept {
        if constexpr (!std::is_trivially_destructible_v<T>) {
            each([this](T& object) { static_cast<void>(deallocate(std::addressof(object))); });
        }
        static_cast<void>(detail::run(nbbs_pool_clear, pool_));
    }

    /// Calls `visit` with every `T&`, in no order. `visit` may free it. What it throws ends the visits. Call it only
    /// while no other thread makes or destroys objects: one whose constructor or destructor is running would be
    /// visited, too.
    template <class Visit>
    void each(Visit&& visit) {
        const auto one = [&visit](void* object) { visit(*std::launder(static_cast<T*>(object))); };
        detail::visitor<decltype(one)> visitor(one);
        static_cast<void>(
            detail::run(nbbs_pool_each, pool_, &visitor.template visit<void>, static_cast<void*>(&visitor)));
        visitor.rethrow();
    }

    /// Objects that there are. Exact when nothing else runs. Reads a word for every 64 slots.
    std::size_t length() const noexcept { return nbbs_pool_len(pool_); }
    /// What there is, in one look.
    nbbs_pool_statistics stats() const noexcept {
        return detail::get<nbbs_pool_statistics>(nbbs_pool_stats, pool_).value_or(nbbs_pool_statistics{});
    }
    /// Objects for which there is memory.
    std::size_t capacity() const noexcept { return nbbs_pool_capacity(pool_); }
    /// The most objects that there may ever be.
    std::size_t limit() const noexcept { return nbbs_pool_limit(pool_); }
    /// The most that any pool could have.
    std::size_t max_size() const noexcept { return std::numeric_limits<std::size_t>::max() / sizeof(T); }
    /// Bytes of an object.
    static constexpr std::size_t type_size() noexcept { return sizeof(T); }

    /// Adds chunks until there is memory for `objects` objects.
    result<void> try_reserve(std::size_t objects) noexcept { return detail::run(nbbs_pool_reserve, pool_, objects); }
    void reserve(std::size_t objects) { try_reserve(objects).value(); }
    /// Gives empty chunks back, save for what the configuration reserves. Returns how many objects there is room for
    /// less.
    std::size_t shrink() noexcept { return nbbs_pool_shrink(pool_); }

    /// Has `hook` told of misuse. While nobody else is using the pool.
    result<void> set_hook(nbbs_hook hook, void* context) noexcept {
        return detail::run(nbbs_pool_set_hook, pool_, hook, context);
    }

private:
    pool(const pool_config& config, const nbbs_source& source) : pool(config, &source) {}
    pool(const pool_config& config, const nbbs_source* source) {
        const nbbs_pool_config wanted = c_config(config);
        pool_ = detail::get<nbbs_pool*>(nbbs_pool_create, &wanted, source).value();
    }

    static nbbs_pool_config c_config(const pool_config& config) noexcept {
        return {sizeof(T), alignof(T), config.limit, config.reserve, config.chunk, config.ahead};
    }

    static nbbs_code in_place(const nbbs_pool_config* wanted, storage place, nbbs_pool** made, nbbs_error* why) {
        return nbbs_pool_create_in(wanted, place.memory, place.bytes, made, why);
    }

    template <class... Arguments>
    T* construct(void* slot, Arguments&&... arguments) {
        const auto free = [this](void* unmade) { return nbbs_pool_free(pool_, unmade, nullptr); };
        return detail::construct<T>(slot, free, std::forward<Arguments>(arguments)...);
    }

    template <class>
    friend class threaded_pool;

    nbbs_pool* pool_ = nullptr;
};

template <class T>
class pool<T>::local {
public:
    /// A local that keeps at most `most` free slots, up to 128, which nobody else can allocate meanwhile; 0: 128, or a 64th
    /// of the pool's limit. Throws `nbbs::error`.
    explicit local(pool& of, std::size_t most = 0) { create(of.pool_, most).value(); }
    local(local&& from) noexcept : local_(std::exchange(from.local_, nbbs_pool_local{})) {}
    local& operator=(local&& from) noexcept {
        if (this != &from) {
            nbbs_pool_local_destroy(&local_);
            local_ = std::exchange(from.local_, nbbs_pool_local{});
        }
        return *this;
    }
    /// Gives what it keeps back.
    ~local() { nbbs_pool_local_destroy(&local_); }

    /// `pool::allocate`.
    template <class... Arguments>
    [[nodiscard]] NBBS_HOT T* allocate(Arguments&&... arguments) noexcept(
        std::is_nothrow_constructible_v<T, Arguments...>) {
        void* const slot =
            detail::has_kept(local_) ? detail::take_kept(local_) : detail::take_more(local_).value_or(nullptr);
        return slot == nullptr ? nullptr : construct(slot, std::forward<Arguments>(arguments)...);
    }

    /// `pool::try_allocate`. Slots that other locals keep are not free.
    template <class... Arguments>
    [[nodiscard]] result<T*> try_allocate(Arguments&&... arguments) noexcept(
        std::is_nothrow_constructible_v<T, Arguments...>) {
        if (detail::has_kept(local_)) {
            return construct(detail::take_kept(local_), std::forward<Arguments>(arguments)...);
        }
        const result<void*> slot = detail::take_more(local_);
        if (!slot) {
            return slot.error();
        }
        return construct(*slot, std::forward<Arguments>(arguments)...);
    }

    /// `pool::deallocate` of an object of the pool, whoever allocated it; keeps its slot.
    NBBS_HOT result<void> deallocate(T* object) noexcept {
        return detail::destroy(local_, object, [&] { return detail::destroy_slowly(local_, object); });
    }

    /// Gives what it keeps back.
    void flush() noexcept { nbbs_pool_local_flush(&local_, nullptr); }
    /// Slots that it keeps.
    std::size_t kept() const noexcept { return local_.kept; }

private:
    result<void> create(nbbs_pool* of, std::size_t most) noexcept {
        return detail::run(nbbs_pool_local_create, &local_, of, most);
    }

    template <class... Arguments>
    NBBS_HOT T* construct(void* slot, Arguments&&... arguments) {
        const auto free = [this](void* unmade) { return nbbs_pool_local_free(&local_, unmade, nullptr); };
        return detail::construct<T>(slot, free, std::forward<Arguments>(arguments)...);
    }

    nbbs_pool_local local_{};
};

}  // namespace nbbs

#endif
