/*
 * nbbs for C++17 and later: header-only over the C library of nbbs.h.
 *
 *   nbbs::buddy            an arena of units: blocks by order, runs by length, by index or by address
 *   nbbs::block            a block or run that frees itself
 *   nbbs::memory_resource  a std::pmr::memory_resource over the memory of a buddy
 *   nbbs::allocator<T>     the same for containers with an allocator parameter
 *   nbbs::pool<T>          objects of one type
 *   nbbs::threaded_pool<T> the same, with free slots of each thread's own
 *   nbbs::heap             memory of any size; heap_resource and heap_allocator<T> over it
 *   nbbs::small_heap       the same in little memory; small_resource over it
 *   nbbs::shared_segment   memory that several processes share, where nbbs.h defines NBBS_SHARED_MEMORY: shared_member,
 *                          offset<T>
 *   nbbs::result<T>        what a try_ function returns: a value, or why there is none
 *   nbbs::error            what the others throw
 *
 * Two of a kind: try_alloc and its like are noexcept and return a result; alloc and its like throw nbbs::error, those
 * of heaps and pools nbbs::bad_alloc where there is no memory, or, under -fno-exceptions, end the program. What an
 * operation costs, and with which codes it refuses, is said once, at the function of nbbs.h that it calls.
 *
 * Functions that are const, and those of pool<T> that do not say otherwise, may be called by any thread at any time,
 * wait for nobody, and may be called from interrupt and signal handlers as far as nbbs.h says so.
 * Except those of a shared_member and its shared_heap, which are for one thread at a time, and, of a buddy with caches,
 * those of a handle of `on`, which ask what nbbs_cache_alloc does.
 *
 * Without a hosted standard library (-ffreestanding, -fno-exceptions, -fno-rtti) there are buddy, block,
 * small_heap and result.
 *
 * MIT or Apache-2.0, at your choice.
 */

#ifndef NBBS_HPP
#define NBBS_HPP

#if __cplusplus < 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "nbbs.hpp takes C++17 or later: compile with -std=c++17"
#endif

#include "nbbs/block.hpp"
#include "nbbs/buddy.hpp"
#include "nbbs/result.hpp"
#include "nbbs/small.hpp"

#if __STDC_HOSTED__
#include "nbbs/allocator.hpp"
#include "nbbs/heap.hpp"
#include "nbbs/memory_resource.hpp"
#include "nbbs/pool.hpp"
#include "nbbs/threaded_pool.hpp"
#if defined(NBBS_SHARED_MEMORY)
#include "nbbs/shared.hpp"
#endif
#endif

#endif
