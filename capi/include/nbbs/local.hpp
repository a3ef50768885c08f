/* What nbbs_pool_local_alloc and nbbs_pool_local_free do where they need not call the library, inline. Part of nbbs.hpp. */

#ifndef NBBS_LOCAL_HPP
#define NBBS_LOCAL_HPP

#include "result.hpp"

/* For the few instructions of the usual case, and for all the rest. */
#define NBBS_HOT [[gnu::always_inline]]
#define NBBS_COLD [[gnu::noinline, gnu::cold]]

namespace nbbs::detail {

/// What a slot's byte says.
inline constexpr unsigned char mark_used = 1, mark_kept = 2;

/// A slot that the local keeps, for an object; null: it keeps none.
NBBS_HOT inline void* take_kept(nbbs_pool_local& local) noexcept {
    if (local.kept == 0) {
        return nullptr;
    }
    const nbbs_pool_slot slot = local.slots[--local.kept];
    __atomic_store_n(slot.mark, mark_used, __ATOMIC_RELEASE);
    return slot.object;
}

/// The byte of an object in a chunk that the local knows; null: it does not know, or there is no object.
template <std::size_t Stride>
NBBS_HOT inline unsigned char* mark_of(const nbbs_pool_local& local, const void* object) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    const nbbs_pool_chunk& chunk = local.chunks[(address >> local.shift) % NBBS_LOCAL_CHUNKS];
    const std::size_t offset = address - chunk.begin;
    if (offset >= chunk.bytes || offset % Stride != 0) {
        return nullptr;
    }
    unsigned char* mark = chunk.marks + offset / Stride;
    // A chunk that has gone may have come back elsewhere, with the same bytes. Acquire, and only then the count: who marked
    // an object there came after the chunk had gone, so that a second free here finds that, too.
    return __atomic_load_n(mark, __ATOMIC_ACQUIRE) == mark_used &&
                   __atomic_load_n(local.withdrawn, __ATOMIC_RELAXED) == local.seen
               ? mark
               : nullptr;
}

/// Keeps the slot of an object that was there, unless the local keeps as many as it may.
NBBS_HOT inline bool keep(nbbs_pool_local& local, void* object, unsigned char* mark) noexcept {
    if (local.kept >= local.most) {
        return false;
    }
    __atomic_store_n(mark, mark_kept, __ATOMIC_RELAXED);
    local.slots[local.kept++] = {object, mark};
    return true;
}

/// Makes an object in a slot; `free(slot)` if the constructor throws.
template <class T, class Free, class... Arguments>
NBBS_HOT inline T* construct(void* slot, Free free, Arguments&&... arguments) {
    struct give_back {
        ~give_back() {
            if (slot != nullptr) {
                static_cast<void>(free(slot));
            }
        }
        Free& free;
        void* slot;
    } unless_made{free, slot};
    T* object = nullptr;
    if constexpr (std::is_constructible_v<T, Arguments...>) {
        object = ::new (slot) T(std::forward<Arguments>(arguments)...);
    } else {
        // An aggregate, before C++20.
        object = ::new (slot) T{std::forward<Arguments>(arguments)...};
    }
    unless_made.slot = nullptr;
    return object;
}

/// Destroys an object if there is one in the pool at that address.
template <class T>
void destroy_if_valid(const nbbs_pool* pool, T* object) noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>) {
        if (nbbs_pool_is_valid(pool, object)) {
            object->~T();
        }
    }
}

/// Destroys an object and frees its slot. An address at which there is none is refused, and not touched.
template <class T>
result<void> destroy(nbbs_pool* pool, T* object) noexcept {
    destroy_if_valid(pool, object);
    return run(nbbs_pool_free, pool, object);
}

/// The same with a local, when it did not do for `destroy`.
template <class T>
NBBS_COLD result<void> destroy_slowly(nbbs_pool_local& local, T* object) noexcept {
    destroy_if_valid(local.pool, object);
    return run(nbbs_pool_local_free, &local, object);
}

/// Frees the slot of an object that has been destroyed, when there is no room.
template <class T>
NBBS_COLD result<void> free_slowly(nbbs_pool_local& local, T* object) noexcept {
    return run(nbbs_pool_local_free, &local, object);
}

/// Destroys an object, and keeps its slot in the local; `otherwise()` says what comes of an object that it does not know.
template <class T, class Otherwise>
NBBS_HOT inline result<void> destroy(nbbs_pool_local& local, T* object, Otherwise otherwise) noexcept {
    unsigned char* const mark = mark_of<sizeof(T)>(local, object);
    if (mark == nullptr) {
        return otherwise();
    }
    object->~T();
    // The destructor may have freed others, and filled the local.
    if (!keep(local, object, mark)) {
        return free_slowly(local, object);
    }
    return {};
}

/// A slot of those that the local takes from the pool.
NBBS_COLD inline result<void*> take_more(nbbs_pool_local& local) noexcept {
    return get<void*>(nbbs_pool_local_alloc, &local);
}

}  // namespace nbbs::detail

#endif
