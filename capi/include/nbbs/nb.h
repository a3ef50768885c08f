/*
 * The nb_* functions of nbbs.h alone, for programs whose own names begin with nbbs: one arena for the whole program, by
 * address and size. Whoever includes nbbs.h has them already.
 *
 * All functions may be called by any thread at any time, and from interrupt and signal handlers, unless they say
 * otherwise. Nothing allocates, but nb_init. Nothing touches the memory that the arena manages.
 *
 * This file is generated from the source and checked against it: edit the source.
 * MIT or Apache-2.0, at your choice.
 */

#ifndef NBBS_NB_H
#define NBBS_NB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What the hook of nb_set_hook is handed. nbbs.h says what is in it. */
typedef struct nbbs_error nbbs_error;

/**
 * Allocates like `malloc`.
 */
typedef void *(*nbbs_malloc_function)(size_t bytes);

/**
 * Frees like `free`.
 */
typedef void (*nbbs_free_function)(void *block);

/**
 * Is told of misuse: frees of what is not allocated, pointers that lead nowhere, numbers that no arena has.
 * Ordinary answers, such as "no block is free", are not reported.
 *
 * The thread that made the mistake calls the hook inside the function that refuses it. If that thread is in a signal
 * handler, so is the hook, and the same restrictions apply. The hook may return, or stop the program.
 */
typedef void (*nbbs_hook)(void *context, const nbbs_error *error);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes the program's arena: `size` bytes from `base` on, all free, under the settings of that moment. The memory is
 * never touched. Returns 0, or 1 if it is refused: `base` or `size` is 0, `size` is less than a smallest block, the
 * range goes beyond the address space, or there is no memory for the bookkeeping. Then the arena before stays.
 *
 * May be called again: everything is forgotten, and the bookkeeping before given back. No other `nb_` function may be
 * running meanwhile, and no handler may call it, as it allocates the bookkeeping.
 *
 * What is left of `size` beyond whole smallest blocks is not used. Blocks are aligned to their size from `base` on.
 */
int nb_init(uint64_t base,
            uint64_t size);

/**
 * Allocates `size` bytes, rounded up to a power of two and to the smallest block, and returns the address. Null:
 * `size` is above `nb_stat_max_size()`, no such block is free, or there was no `nb_init`.
 *
 * One read-modify-write in the steady state, and one to count it.
 */
void *nb_alloc(uint64_t size);

/**
 * Frees the block at `addr`; null: does nothing. An address that is not that of an allocated block, a double free
 * included, is refused: nothing changes, and the hook of `nb_set_hook` is told; without one, a line is printed.
 *
 * One read-modify-write in the steady state, and one to count it.
 */
void nb_free(void *addr);

/**
 * Sets the smallest block, in bytes: a power of two; 0: 4096. For the next `nb_init`. Returns 0, or 1 if it is no
 * power of two.
 *
 * Call it only while no other function of `nb.h` is running.
 */
int nb_set_min_size(uint64_t bytes);

/**
 * Sets the largest order: no block is larger than `2^order` smallest ones. At most 40; 9 unless set. For the next
 * `nb_init`. Returns 0, or 1 if it is above 40.
 *
 * Call it only while no other function of `nb.h` is running.
 */
int nb_set_max_order(uint32_t order);

/**
 * Sets where the bookkeeping comes from: each `nb_init` calls `malloc_function` once, and the next one that succeeds
 * passes what it returned to `free_function`. A null `free_function`: nothing is given back. A null `malloc_function`:
 * the C library's pair is used; the freestanding library has none, and refuses `nb_init`.
 *
 * Call it only while no other function of `nb.h` is running.
 */
void nb_set_malloc(nbbs_malloc_function malloc_function,
                   nbbs_free_function free_function);

/**
 * Has `hook` told of misuse, such as a double `nb_free`; null: nobody is told. Takes effect with the next `nb_init`;
 * before the first one, at once. If this function is never called, a sentence for each of the first ten mistakes is
 * written to standard error, where there is one.
 *
 * Call it only while no other function of `nb.h` is running.
 */
void nb_set_hook(nbbs_hook hook,
                 void *context);

/**
 * Bytes of the smallest block.
 */
uint64_t nb_stat_min_size(void);

/**
 * The largest order.
 */
uint32_t nb_stat_max_order(void);

/**
 * Bytes of the tree: all bookkeeping of this allocator, 2.3 bits for a smallest block.
 */
uint64_t nb_stat_tree_size(void);

/**
 * Bytes of the index: 0, since the tree says where blocks begin.
 */
uint64_t nb_stat_index_size(void);

/**
 * Depth of the tree: log2 of the smallest blocks in the arena, rounded down.
 */
uint32_t nb_stat_depth(void);

/**
 * The level of the largest blocks: the depth less the largest order; 0 if the arena is smaller than a largest block.
 */
uint32_t nb_stat_base_level(void);

/**
 * Bytes of a largest block.
 */
uint64_t nb_stat_max_size(void);

/**
 * How many blocks have been freed since `nb_init`, modulo 2^32. Refused frees do not count.
 */
uint32_t nb_stat_release_count(void);

/**
 * Bytes of the arena, as `nb_init` was told.
 */
uint64_t nb_stat_total_memory(void);

/**
 * Bytes in allocated blocks. Exact when nothing else runs. Reads 16 counts for each order, whatever the arena's size.
 */
uint64_t nb_stat_used_memory(void);

/**
 * Bytes of a block of `order`; 0 if that is above the largest.
 */
uint64_t nb_stat_block_size(uint32_t order);

/**
 * Blocks of `order` that fit into the arena; 0 if the order is above the largest.
 */
uint64_t nb_stat_total_blocks(uint32_t order);

/**
 * Allocated blocks of `order`; 0 if that is above the largest. Exact when nothing else runs. Reads 16 counts.
 */
uint64_t nb_stat_used_blocks(uint32_t order);

/**
 * Fills `buff`, which has room for `nb_stat_total_blocks(order)` bytes, with 1 for each block of `order` of which any
 * part is allocated and with 0 for each that is free. Returns 0, or 1 if `buff` is null, the order above the largest,
 * or there was no `nb_init`; then `buff` has not changed.
 *
 * A load for each word in use.
 */
uint8_t nb_stat_occupancy_map(uint8_t *buff,
                              uint32_t order);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NBBS_NB_H */
