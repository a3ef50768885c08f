/* What nbbs_pool_local_alloc and nbbs_pool_local_free do where they need not call the library, inline. Part of nbbs.hpp. */

#ifndef NBBS_LOCAL_HPP
#define NBBS_LOCAL_HPP

#include "make.hpp"
#include "result.hpp"

#include <limits>

/* For the few instructions of the usual case, and for all the rest. */
#define NBBS_HOT [[gnu::always_inline]]
#define NBBS_COLD [[gnu::noinline, gnu::cold]]

namespace nbbs::detail {

/// What a slot's byte says.
inline constexpr unsigned char mark_none = 0, mark_used = 1;

/// Whether the local keeps a slot.
NBBS_HOT inline bool has_kept(const nbbs_pool_local& local) noexcept { return __builtin_expect(local.kept != 0, 1); }

/// A slot that the local keeps, for an object.
NBBS_HOT inline void* take_kept(nbbs_pool_local& local) noexcept {
    const nbbs_pool_slot slot = local.slots[--local.kept];
    __atomic_store_n(slot.mark, mark_used, __ATOMIC_RELEASE);
    return slot.object;
}

/// The number that makes 1 of an odd one, multiplied.
constexpr std::size_t inverse(std::size_t odd) noexcept {
    std::size_t found = odd;
    // Right to 3 bits, then to 6, 12, 24, 48, 96.
    for (int step = 0; step < 5; step++) {
        found *= 2 - odd * found;
    }
    return found;
}

/// Which object of a chunk begins so many bytes behind its first; more than any chunk has: none does. A division that has
/// a remainder comes out larger than any that has none.
template <std::size_t Stride>
NBBS_HOT inline std::size_t number_at(std::size_t offset) noexcept {
    constexpr int bits = std::numeric_limits<std::size_t>::digits, twos = __builtin_ctzll(Stride);
    const std::size_t quotient = offset * inverse(Stride >> twos);
    return quotient >> twos | quotient << (bits - twos) % bits;
}

/// Whether an object is there, in a chunk that the local knows; its byte.
template <std::size_t Stride>
NBBS_HOT inline bool knows(const nbbs_pool_local& local, const void* object, unsigned char*& mark) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    const nbbs_pool_chunk& chunk = local.chunks[(address >> local.shift) % NBBS_LOCAL_CHUNKS];
    const std::size_t number = number_at<Stride>(address - chunk.begin);
    if (number >= chunk.objects) {
        return false;
    }
    mark = chunk.marks + number;
    // A chunk that has gone may have come back elsewhere, with the same bytes. Acquire, and only then the count: who marked
    // an object there came after the chunk was counted as gone, so that a second free here finds that, too.
    return __atomic_load_n(mark, __ATOMIC_ACQUIRE) == mark_used &&
           __atomic_load_n(local.withdrawn, __ATOMIC_RELAXED) == local.seen;
}

/// Keeps the slot of an object that was there, unless the local keeps as many as it may.
NBBS_HOT inline bool keep(nbbs_pool_local& local, void* object, unsigned char* mark) noexcept {
    const std::size_t kept = local.kept;
    if (kept >= local.most) {
        return false;
    }
    local.kept = kept + 1;
    local.slots[kept].object = object;
    // Between the two, which a compiler makes one slower store of otherwise.
    __atomic_store_n(mark, mark_none, __ATOMIC_RELAXED);
    local.slots[kept].mark = mark;
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
    T* object = make_at<T>(slot, std::forward<Arguments>(arguments)...);
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
    unsigned char* mark = nullptr;
    if (!knows<sizeof(T)>(local, object, mark)) {
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
