/*
 * nbbs: lock-free buddy allocation with the bookkeeping outside the memory that it manages.
 *
 * Seven interfaces on the same allocator:
 *
 *   nb_*         one arena for the whole program, by address and size
 *   nbbs_*       any number of arenas, by unit index or by address, with bookkeeping in memory of the caller's
 *   nbbs_cache_* blocks of a CPU's own in front of an arena, without a read-modify-write
 *   nbbs_pool_*  objects of one size
 *   nbbs_heap_*  memory of any size and alignment, in memory of the caller's
 *   nbbs_small_* the same in little memory: the first fit, without caches
 *   nbbs_shared_* blocks in memory that several processes share, on Linux; in a library built for it: NBBS_SHARED_MEMORY
 *
 * What holds for all of them:
 *
 * - The first sentence on a function says what it does. Its cost, what it refuses, and restrictions on where it may be called
 *   follow. Where no cost is named, it is a few loads and stores, whatever the size of the arena or pool.
 * - A function that can be refused returns an nbbs_code: 0, or why. Its last argument, which may be null, gets an
 *   nbbs_error with the values, of which nbbs_message makes a sentence. A refusal has changed nothing unless the
 *   function says otherwise. "Refuses with" lists codes without their prefix NBBS_CODE_, and does not repeat
 *   what the next point says of pointers.
 * - A null or misaligned pointer, or a handle that was never made, is refused (NULL, POINTER_MISALIGNED, NO_ARENA), and so
 *   is an array longer than there are addresses (TOO_LONG). Functions that return a number say 0 then, unless they name
 *   another. A result's pointer that may be null counts as null if it is misaligned. Any other pointer must lead to what
 *   its type says.
 * - A unit is what an arena hands out, whatever its size. An index, start, end or number of units counts units, an order is
 *   log2 of them. Bytes, sizes, alignments, and the offsets of segments, count bytes. An object is what a pool hands out.
 * - Functions on a const arena, pool or heap may be called by any thread at any time. None waits for another thread; all
 *   may be called from interrupt and signal handlers unless they say otherwise. Functions that make or end something, or
 *   take it without const, are for one thread at a time, and not for handlers that may have interrupted a use of it.
 * - Of nbbs_shared_*, functions on a const segment may be called by any thread, those on a member by one at a time. Not for
 *   handlers are those that allocate (see below), make, attach, detach, join or leave.
 * - A function of the caller's, such as a hook, returns, or ends the program: neither longjmp nor an exception may leave it.
 * - A child of fork has its own copy of arenas, pools and heaps in private memory. What calls of other threads had in hand
 *   at that moment is lost to it, as if they had died; nobody waits for them. Segments it does not inherit: it attaches for
 *   itself, and passes what its parent made to nbbs_shared_fd, nbbs_shared_leave and nbbs_shared_detach only.
 * - Memory is allocated only by nb_init, by nbbs_pool_create, by a pool that grows (from its source), by functions that
 *   make a segment, attach to it, join it, recover or trim it, and by nbbs_shared_alloc and nbbs_shared_heap_alloc, which
 *   trim before they refuse.
 * - No function touches the memory that an arena or segment manages, or what a heap has handed out. The exceptions are
 *   nbbs_heap_calloc, nbbs_small_calloc, functions that move a block, and nbbs_shared_heap_*, nbbs_shared_alloc,
 *   nbbs_shared_owner and nbbs_shared_recover, which read or write the word that each slot has in its slab.
 *
 * This file is generated from the source and checked against it: edit the source.
 * MIT or Apache-2.0, at your choice.
 */

#ifndef NBBS_H
#define NBBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The header's version; `nbbs_version()` is the library's. */
#define NBBS_VERSION "0.1.0"

/**
 * An upper bound of `nbbs_metadata_bytes(units)` as a constant expression, for static arrays:
 *
 *     static uint64_t metadata[NBBS_METADATA_BYTES(262144) / 8];
 *
 * At most 2 % and 2 KiB too large.
 */
#define NBBS_METADATA_BYTES(units)                                                        \
    (8 * ((size_t)(units) / 32 + (size_t)(units) / 512 + (size_t)(units) / 960 +          \
          ((size_t)(units) >= 4194304   ? (size_t)8192                                    \
           : (size_t)(units) >= 2097152 ? (size_t)4096                                    \
           : (size_t)(units) >= 1048576 ? (size_t)2048                                    \
           : (size_t)(units) >= 524288  ? (size_t)1024                                    \
           : (size_t)(units) >= 262144  ? (size_t)512                                     \
                                        : (size_t)(units) / 512) +                        \
          (size_t)184))

/** `nbbs_cache_bytes(cpus)` as a constant expression, for static arrays. */
#define NBBS_CACHE_BYTES(cpus) ((size_t)(cpus) * 2944)

/** `nbbs_lane_bytes(lanes)` as a constant expression, for static arrays. */
#define NBBS_LANE_BYTES(lanes) ((size_t)(lanes) * 256)

/**
 * Defined where `nbbs_shared_*` is declared: on Linux, unless `NBBS_WITHOUT_SHARED_MEMORY` is defined.
 *
 * A library has these functions if it was built with `-DNBBS_SHARED_MEMORY=ON`. With others, programs that call them do not
 * link; and what CMake installs for pkg-config and `find_package` defines `NBBS_WITHOUT_SHARED_MEMORY`, so that they do not
 * compile.
 */
#if defined(__linux__) && !defined(NBBS_WITHOUT_SHARED_MEMORY)
#define NBBS_SHARED_MEMORY
#endif

/**
 * Orders that an arena may have: 0 to 40.
 */
#define NBBS_ORDERS 41

/**
 * In an `nbbs_cache_config`: no block of that order is kept.
 */
#define NBBS_CACHE_NONE UINT32_MAX

/**
 * Size classes of a heap.
 */
#define NBBS_HEAP_CLASSES 72

/**
 * The most slots that an `nbbs_pool_local` keeps.
 */
#define NBBS_LOCAL_SLOTS 128

/**
 * Chunks that an `nbbs_pool_local` knows.
 */
#define NBBS_LOCAL_CHUNKS 8

/**
 * How a call went. 0 is success; every other code is a refusal that has changed nothing, unless the function
 * says so.
 *
 * Each code says what `value`, `limit`, `other` and `detail` of an `nbbs_error` are; fields that are not named
 * are 0.
 */
enum nbbs_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Done.
     */
    NBBS_CODE_OK,
    /**
     * A pointer that has to lead somewhere is null. `value`: which argument, from 1; `detail`: 1 if it is not that
     * argument, but the function that it has to name; `other`: a number of the function that was called, by which
     * `nbbs_message` names it.
     */
    NBBS_CODE_NULL,
    /**
     * A pointer is not aligned. `value`: the address; `limit`: the alignment; `other`: as for `NBBS_CODE_NULL`.
     */
    NBBS_CODE_POINTER_MISALIGNED,
    /**
     * The handle was never made. `value`: its address; 0: `nb_init` was not called; `other`: as for `NBBS_CODE_NULL`.
     */
    NBBS_CODE_NO_ARENA,
    /**
     * An array, or the name of a memfd, cannot be so long. `value`: its length; `limit`: the most.
     */
    NBBS_CODE_TOO_LONG,
    /**
     * An arena cannot have so many units. `value`: units; `limit`: the most.
     */
    NBBS_CODE_UNITS,
    /**
     * The memory is too small for what is to live there. `value`: bytes given; `limit`: bytes needed.
     */
    NBBS_CODE_TOO_SHORT,
    /**
     * The metadata is in use, but not by an arena of so many units. `value`: units; `limit`: the word that
     * says otherwise.
     */
    NBBS_CODE_FOREIGN_METADATA,
    /**
     * The order is above the arena's largest. `value`: order; `limit`: the largest.
     */
    NBBS_CODE_ORDER_TOO_LARGE,
    /**
     * There are not so many free units in one piece, at that place or anywhere: an ordinary answer. `value`: units.
     */
    NBBS_CODE_EXHAUSTED,
    /**
     * The units are not in the arena. `value`: the first; `other`: the one after the last; `limit`: units of
     * the arena.
     */
    NBBS_CODE_OUT_OF_RANGE,
    /**
     * No block of that order begins there. `value`: index; `other`: order.
     */
    NBBS_CODE_MISALIGNED,
    /**
     * The unit is free: never allocated, or freed before. `value`: index; `other`: the address, if one was given.
     */
    NBBS_CODE_NOT_ALLOCATED,
    /**
     * The unit is in use, but no block or run begins there. `value`: index; `other`: the address, if one was given.
     */
    NBBS_CODE_NOT_A_BLOCK,
    /**
     * The unit is reserved. `value`: index; `other`: the address, if one was given.
     */
    NBBS_CODE_RESERVED,
    /**
     * A block of another order begins there. `value`: index; `other`: order given; `limit`: its order.
     */
    NBBS_CODE_WRONG_ORDER,
    /**
     * A run of another length begins there. `value`: index; `other`: units given; `limit`: its units.
     */
    NBBS_CODE_WRONG_LENGTH,
    /**
     * A run cannot have so many units, or be shrunk, grown or split to them. `value`: units; `limit`: the most or,
     * where `detail` is 1, those of the run; `other`: index of the run then.
     */
    NBBS_CODE_LENGTH,
    /**
     * The units are not a part of the run: empty, backwards, or not within it. `value`: the first; `other`: the one
     * after the last; `limit`: the first unit after the run or, where `detail` is 1, the first of the run.
     */
    NBBS_CODE_OUTSIDE_RUN,
    /**
     * A unit at the place asked for is in use: an ordinary answer. `value`: the unit.
     */
    NBBS_CODE_IN_USE,
    /**
     * A unit to be released is not reserved. `value`: the first such unit.
     */
    NBBS_CODE_NOT_RESERVED,
    /**
     * Another thread's claim, which it is about to take back, stands below what the change has to split: an ordinary
     * answer, try again. If that thread has died, the answer stays until those units are free and `nbbs_mend` has been
     * called; what was to be changed can still be freed. `value`: a unit.
     */
    NBBS_CODE_CONTENDED,
    /**
     * An audit found an invariant broken. `value`: unit; `limit`: number of the word; `other`: level;
     * `detail`: slot, and above its 16 bits the invariant.
     */
    NBBS_CODE_BROKEN,
    /**
     * The arena knows indices only: `nbbs_set_memory` has not told it where its memory is.
     */
    NBBS_CODE_NO_MEMORY,
    /**
     * The address is not in the memory of the arena or pool. `value`: the address; `limit`: where the memory
     * begins, or chunks in which it is not; `other`: where the memory ends.
     */
    NBBS_CODE_FOREIGN_ADDRESS,
    /**
     * The address lies inside a unit, object or block. `value`: the address; `limit`: where that begins; 0 if it begins
     * before the heap's unit that contains the address.
     */
    NBBS_CODE_INSIDE_UNIT,
    /**
     * The size of a unit, block or object is not possible. `value`: bytes; `limit`: the most; `other`: 1 if it must be
     * a power of two.
     */
    NBBS_CODE_SIZE,
    /**
     * The alignment is no power of two, or more than can be had. `value`: bytes; `limit`: the most.
     */
    NBBS_CODE_ALIGNMENT,
    /**
     * No object is allocated at that address of the pool: freed before, or never allocated. `value`: the
     * address.
     */
    NBBS_CODE_NO_OBJECT,
    /**
     * All the objects that the pool may have are allocated, or their memory is in the hands of calls that add or give
     * back chunks: an ordinary answer. `value`: objects.
     */
    NBBS_CODE_FULL,
    /**
     * The source has no memory: an ordinary answer. `value`: bytes asked for; `limit`: the alignment asked for.
     */
    NBBS_CODE_SOURCE_EMPTY,
    /**
     * A setting cannot have that value. `detail`: which, an `nbbs_setting`, and above its 16 bits the place in an
     * array; `value`: the value; `limit`: the most; `other`: the least.
     */
    NBBS_CODE_SETTING,
    /**
     * An audit found a block in a CPU's cache that is not its own. `value`: index; `other`: order; `limit`: the CPU.
     */
    NBBS_CODE_CACHE_BROKEN,
    /**
     * The heap has no memory for a block: an ordinary answer. `value`: bytes; `limit`: the alignment asked for.
     */
    NBBS_CODE_HEAP_FULL,
    /**
     * The address is in no memory that the heap hands out. `value`: the address; `limit`: regions of the heap.
     */
    NBBS_CODE_NOT_OF_HEAP,
    /**
     * No block of the heap is allocated at that address: freed before, or never allocated. `value`: the address.
     */
    NBBS_CODE_NO_BLOCK,
    /**
     * The heap has as many regions as it can have. `value`: how many.
     */
    NBBS_CODE_REGIONS,
    /**
     * An audit found a heap's slabs or caches not in order. `value`: the address of the slab or slot; or, where
     * `other` is 1, the bytes of a slot, for the stack of slabs with such slots; `other`: 0 a slab, 2 what a cache
     * keeps.
     */
    NBBS_CODE_HEAP_BROKEN,
    /**
     * The operating system refused. `value`: its `errno`.
     */
    NBBS_CODE_SYSTEM,
    /**
     * The file is no segment of shared memory.
     */
    NBBS_CODE_NO_SEGMENT,
    /**
     * The segment was made by other code. `value`: version of its layout; `limit`: the version that this code knows.
     */
    NBBS_CODE_SEGMENT_VERSION,
    /**
     * The segment's header or bookkeeping has changed since it was made. `value`: what was found; `other`: 0 a field
     * of the header, 1 its checksum, which is to be `limit`, 2 a word of the bookkeeping, and `value` is which, 3 a byte
     * that is not zero, though the segment is not whole by its header, and `value` is its position in the file.
     */
    NBBS_CODE_SEGMENT_CORRUPT,
    /**
     * The segment is not made yet: somebody is making it at this moment, or the file is empty, as it is just before.
     * An ordinary answer.
     */
    NBBS_CODE_SEGMENT_MAKING,
    /**
     * Whoever made the segment died before it was whole: `nbbs_shared_create` takes it over.
     */
    NBBS_CODE_SEGMENT_HALF_MADE,
    /**
     * There is a whole segment already, which is not made again: an ordinary answer.
     */
    NBBS_CODE_SEGMENT_EXISTS,
    /**
     * A segment cannot have such units. `value`: bytes of one; `limit`: the most.
     */
    NBBS_CODE_UNIT_BYTES,
    /**
     * A segment cannot have so many members. `value`: members; `limit`: the most.
     */
    NBBS_CODE_MEMBERS,
    /**
     * No seat of the segment is free: an ordinary answer. `value`: how many there are; `limit`: how many of them others
     * are just taking or leaving, so that another attempt may succeed, 0 if all have living members.
     */
    NBBS_CODE_SEATS_TAKEN,
    /**
     * The segment has no memory for a block: an ordinary answer. `value`: bytes; `limit`: their alignment.
     */
    NBBS_CODE_SEGMENT_FULL,
    /**
     * What is at the offset is not, or not all, in the memory that the segment hands out. `value`: the offset;
     * `detail`: how many bytes it has at least, or the most that `detail` can be; `limit`: where the memory begins;
     * `other`: where it ends.
     */
    NBBS_CODE_OUTSIDE_SEGMENT,
    /**
     * No block or slot of the segment can begin there, or none of that type. `value`: the offset; `limit`: the bytes
     * to which it should be aligned, or, where `other` is 1, those of a slot.
     */
    NBBS_CODE_OFFSET_MISALIGNED,
    /**
     * The member has no block there: it was freed before, never allocated, or is another member's. To a member that
     * takes it from whoever has sent it, an ordinary answer. `value`: the offset; `limit`: the seat of the member that
     * has it, from 1 on, or 0; `other`: that member's generation.
     */
    NBBS_CODE_NOT_YOURS,
    /**
     * The segment's bookkeeping was overwritten by a stray write. `value`: the offset of the block, or 0.
     */
    NBBS_CODE_SEGMENT_DAMAGED,
    /**
     * A pool can never have so many objects. `value`: the objects that there were to be; `limit`: the most.
     */
    NBBS_CODE_OBJECTS,
    /**
     * The memory overlaps that of a region which the heap already has. `value`: the first address that was given;
     * `limit`: where that region begins; `other`: where it ends.
     */
    NBBS_CODE_OVERLAP,
    /**
     * The range has no place for so many units at that alignment, whatever is free. `value`: the units; `detail`: the
     * order of the alignment; `limit`: the first unit of the range; `other`: the unit after the last.
     */
    NBBS_CODE_NO_PLACE,
    /**
     * The segment has other dimensions than the caller expects: an ordinary answer. `value`: its own; `limit`: the
     * expected; `other`: the first that differs, 0 the number of units, 1 the bytes of a unit, 2 the members.
     */
    NBBS_CODE_SEGMENT_GEOMETRY,
    /**
     * Refused for a reason that this version of the interface has no code for.
     */
    NBBS_CODE_OTHER,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nbbs_code nbbs_code;
#else
typedef uint32_t nbbs_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a stretch of an arena is.
 */
enum nbbs_piece_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Free units: a power of two of them, as large as they go.
     */
    NBBS_PIECE_KIND_FREE,
    /**
     * A block in use.
     */
    NBBS_PIECE_KIND_BLOCK,
    /**
     * A run in use that is no block.
     */
    NBBS_PIECE_KIND_RUN,
    /**
     * Reserved units, at most 32 at a time.
     */
    NBBS_PIECE_KIND_RESERVED,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nbbs_piece_kind nbbs_piece_kind;
#else
typedef uint32_t nbbs_piece_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Which setting was refused: in the `detail` of `NBBS_CODE_SETTING`.
 */
enum nbbs_setting
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * `limit` of an `nbbs_pool_config`.
     */
    NBBS_SETTING_LIMIT = 1,
    /**
     * `reserve` of an `nbbs_pool_config`.
     */
    NBBS_SETTING_RESERVE,
    /**
     * `chunk` of an `nbbs_pool_config`.
     */
    NBBS_SETTING_CHUNK,
    /**
     * `most` of `nbbs_pool_local_create`.
     */
    NBBS_SETTING_MOST,
    /**
     * `blocks` of an `nbbs_cache_config`: `detail` names the order, above its 16 bits.
     */
    NBBS_SETTING_BLOCKS,
    /**
     * `large_order` of an `nbbs_cache_config`.
     */
    NBBS_SETTING_LARGE_ORDER,
    /**
     * `large_blocks` of an `nbbs_cache_config`.
     */
    NBBS_SETTING_LARGE_BLOCKS,
    /**
     * `caches` of `nbbs_heap_create`.
     */
    NBBS_SETTING_CACHES,
    /**
     * `unit` of `nbbs_small_create`, which is 16, 32 or 64.
     */
    NBBS_SETTING_UNIT,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nbbs_setting nbbs_setting;
#else
typedef uint32_t nbbs_setting;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A heap: memory of any size and alignment, for any number of threads. Made by `nbbs_heap_create`.
 */
typedef struct nbbs_heap nbbs_heap;

/**
 * A pool of objects of one size, for any number of threads: made by `nbbs_pool_create` or `nbbs_pool_create_in`, ended
 * by `nbbs_pool_destroy`.
 */
typedef struct nbbs_pool nbbs_pool;

#if defined(NBBS_SHARED_MEMORY)
/**
 * A segment in this process: memory that several processes allocate from. Made by `nbbs_shared_create` and its kin. A
 * child of `fork` does not inherit the memory: it attaches for itself, and ends this one at most.
 */
typedef struct nbbs_shared nbbs_shared;
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * A registered user of a segment, for one thread at a time. Made by `nbbs_shared_join`.
 */
typedef struct nbbs_shared_member nbbs_shared_member;
#endif

/**
 * A heap for little memory: the first fit, without caches. Made by `nbbs_small_create`.
 */
typedef struct nbbs_small nbbs_small;

/**
 * A handle to an arena, in memory of the caller's.
 *
 * Made by `nbbs_create`, `nbbs_create_reserved` or `nbbs_attach`; needs no end. It may be copied, and any number
 * of handles may work on the same metadata. Its contents are the library's.
 */
typedef struct nbbs_arena {
    uint64_t opaque[32];
} nbbs_arena;

/**
 * A refusal: the code, and the values that it names.
 */
typedef struct nbbs_error {
    /**
     * An `nbbs_code`.
     */
    uint32_t code;
    /**
     * See the code.
     */
    uint32_t detail;
    /**
     * The value that was refused.
     */
    uint64_t value;
    /**
     * The limit that it broke.
     */
    uint64_t limit;
    /**
     * See the code.
     */
    uint64_t other;
} nbbs_error;

/**
 * Is told of misuse: frees of what is not allocated, pointers that lead nowhere, numbers that no arena has.
 * Ordinary answers, such as "no block is free", are not reported.
 *
 * The thread that made the mistake calls the hook inside the function that refuses it. If that thread is in a signal
 * handler, so is the hook, and the same restrictions apply. The hook may return, or stop the program.
 */
typedef void (*nbbs_hook)(void *context, const struct nbbs_error *error);

/**
 * What is asked for, when it is more than a block of some order anywhere. All zero but `units`: exactly so many
 * units anywhere.
 */
typedef struct nbbs_request {
    /**
     * Exactly so many units.
     */
    uint64_t units;
    /**
     * The first unit of the place to look in.
     */
    uint64_t start;
    /**
     * The unit after the last of that place; 0: the arena's end.
     */
    uint64_t end;
    /**
     * The index of the first unit, plus `offset`, must be a multiple of `2^order`.
     */
    uint32_t order;
    /**
     * Whether to take the last place that will do, instead of the first.
     */
    bool top_down;
    /**
     * The index that unit 0 stands for. An order above the arena's largest aligns one unit at most, and is refused if it
     * aligns none at which so many units begin: if `offset` is 0, always.
     */
    uint64_t offset;
} nbbs_request;

/**
 * What a walk over an arena counted. The four unit counts add up to `units`.
 */
typedef struct nbbs_statistics {
    /**
     * Units in the arena.
     */
    uint64_t units;
    /**
     * Units that are free.
     */
    uint64_t free_units;
    /**
     * Units in blocks and runs in use.
     */
    uint64_t used_units;
    /**
     * Units that are reserved.
     */
    uint64_t reserved_units;
    /**
     * Units in blocks that the CPUs' caches keep.
     */
    uint64_t cached_units;
    /**
     * Runs in use that are no blocks.
     */
    uint64_t used_runs;
    /**
     * Free blocks of each order. Every unit counts once, in the largest free block that contains it.
     */
    uint64_t free_blocks[NBBS_ORDERS];
    /**
     * Blocks in use of each order.
     */
    uint64_t used_blocks[NBBS_ORDERS];
    /**
     * The largest order of which a block is free; -1: nothing is free.
     */
    int32_t largest_free_order;
    /**
     * Thousandths of the free units that lie outside the largest free block.
     */
    uint32_t fragmentation_permille;
} nbbs_statistics;

/**
 * A stretch of an arena, as `nbbs_walk` meets it.
 */
typedef struct nbbs_piece {
    /**
     * What it is.
     */
    nbbs_piece_kind kind;
    /**
     * First unit.
     */
    uint64_t index;
    /**
     * Units.
     */
    uint64_t units;
} nbbs_piece;

/**
 * Gets a piece from `nbbs_walk`.
 */
typedef void (*nbbs_visit)(void *context, const struct nbbs_piece *piece);

/**
 * What an audit found in order.
 */
typedef struct nbbs_audit_report {
    /**
     * Words read.
     */
    uint64_t words;
    /**
     * Slots that are split over an empty word: merges left for the allocation that needs them.
     */
    uint64_t waiting_merges;
    /**
     * Words with the mark of an inspection that never ended; the next to pass clears it.
     */
    uint64_t stale_marks;
} nbbs_audit_report;

/**
 * What each CPU may keep. All zero: 64 blocks of orders 0 and 1, 32 of orders 2 and 3, 16 of orders 4 and 5, 8 of
 * order 6, 4 of order 7, 2 of order 8, and 2 of order 9; 3904 units in all.
 */
typedef struct nbbs_cache_config {
    /**
     * The most blocks of each order from 0 to 8: 64 of orders 0 to 3 and 16 of the others at most; 0: the default;
     * `NBBS_CACHE_NONE`: none.
     */
    uint32_t blocks[9];
    /**
     * The large order of which blocks are kept: 9 at least, 40 at most; 0: 9.
     */
    uint32_t large_order;
    /**
     * The most blocks of it: 16 at most; 0: 2; `NBBS_CACHE_NONE`: none.
     */
    uint32_t large_blocks;
    /**
     * Not 0: every free is checked against the arena and the caches of all CPUs, so that all wrong frees are refused,
     * save for those of a block that has been allocated again, that any call, also an interrupted one, is just then
     * freeing, giving back, or allocating for a cache, or that stays in a cache which gives back others of its order.
     */
    uint32_t checked;
} nbbs_cache_config;

/**
 * Makes memory accesses of all CPUs visible to the caller, and the caller's to them: see `nbbs_cache_drain_all`.
 */
typedef void (*nbbs_barrier)(void *context);

/**
 * Returns the number of the CPU on which it is called. An old or a wrong number costs time and nothing else, unless it
 * was given to `nbbs_heap_set_nested_cpu`.
 */
typedef size_t (*nbbs_cpu_number)(void *context);

/**
 * Slots of one size in a heap.
 */
typedef struct nbbs_heap_class {
    /**
     * Bytes of a slot.
     */
    size_t size;
    /**
     * Slots in use, or kept by a cache.
     */
    size_t used;
    /**
     * Slots that are free.
     */
    size_t free;
    /**
     * Slabs.
     */
    size_t slabs;
} nbbs_heap_class;

/**
 * What the memory of a heap is used for, in bytes. `free`, `runs`, `slots` and `free_slots` add up to `bytes`.
 */
typedef struct nbbs_heap_statistics {
    /**
     * What the heap can hand out: its memory without the bookkeeping.
     */
    size_t bytes;
    /**
     * Units of 1 KiB that are free.
     */
    size_t free;
    /**
     * Blocks that have no size class, and those for which there was no room in a slab, in use or kept by a cache; also
     * units that somebody is claiming for such a block, or freeing.
     */
    size_t runs;
    /**
     * Slots that are in use, or kept by a cache, and what is left of slabs behind their last slots.
     */
    size_t slots;
    /**
     * Slots of slabs that are free.
     */
    size_t free_slots;
    /**
     * The most bytes that are free in one piece whose size is a power of two.
     */
    size_t largest_free;
    /**
     * Frees that were refused.
     */
    size_t refused;
    /**
     * Slots that were found written to while they were free, before they were to be handed out, which they never are
     * again. 0 unless the library was built with the check `poison`. Once no slot of a slab is in use and its memory
     * is given back, what was written there goes unnoticed.
     */
    size_t damaged;
    /**
     * The slots of each size class.
     */
    struct nbbs_heap_class classes[NBBS_HEAP_CLASSES];
} nbbs_heap_statistics;

/**
 * A block of a heap that is in use, or that a cache keeps.
 */
typedef struct nbbs_heap_block {
    /**
     * Where it begins.
     */
    void *address;
    /**
     * How many bytes it has.
     */
    size_t size;
    /**
     * The number of its size class in `nbbs_heap_statistics`; `NBBS_HEAP_CLASSES`: it has none.
     */
    size_t size_class;
} nbbs_heap_block;

/**
 * Gets a block from `nbbs_heap_walk`.
 */
typedef void (*nbbs_visit_block)(void *context, const struct nbbs_heap_block *block);

/**
 * Takes back free pages, as `nbbs_heap_discard` says.
 */
typedef bool (*nbbs_discard)(void *context, void *pages, size_t bytes);

/**
 * Allocates like `malloc`.
 */
typedef void *(*nbbs_malloc_function)(size_t bytes);

/**
 * Frees like `free`.
 */
typedef void (*nbbs_free_function)(void *block);

/**
 * What a pool is to be like. If only `size` is not 0, objects are aligned to 1, and there may be as many as there is
 * memory for.
 */
typedef struct nbbs_pool_config {
    /**
     * Bytes of an object.
     */
    size_t size;
    /**
     * The alignment of objects: a power of two; 0: they may lie at any address.
     */
    size_t align;
    /**
     * The most objects that the pool may ever have; 0: no limit.
     */
    size_t limit;
    /**
     * Objects for which the pool gets memory when it is made; `nbbs_pool_shrink` leaves that many.
     */
    size_t reserve;
    /**
     * Objects in a chunk, at most 2^24. A chunk is what the pool grows by; its memory is aligned to its size, rounded
     * up to a power of two. 0: 4,096, or as many as fit into 1 MiB, but no fewer than 64. With a `source` of the
     * caller's, 0 means as many as fit into 4 KiB, since the source may have little memory, or none at higher
     * alignments; larger chunks are faster. There are never more than `limit`.
     */
    size_t chunk;
    /**
     * The pool adds a chunk as soon as fewer objects than this are free; 0: when none is.
     */
    size_t ahead;
} nbbs_pool_config;

/**
 * Where a pool gets memory from, and gives it back to. Both functions may be called by several threads at once.
 */
typedef struct nbbs_source {
    /**
     * Returns `bytes` bytes at a multiple of `align`, a power of two, or null. What is less aligned is given back at
     * once, as if there were nothing.
     */
    void *(*alloc)(void *context, size_t bytes, size_t align);
    /**
     * Takes back what `alloc` returned for the same sizes. Null: nothing is given back.
     */
    void (*free)(void *context, void *block, size_t bytes, size_t align);
    /**
     * Passed to both functions.
     */
    void *context;
} nbbs_source;

/**
 * A chunk of a pool, as a local knows it.
 */
typedef struct nbbs_pool_chunk {
    /**
     * Where its first object is.
     */
    size_t begin;
    /**
     * How many objects it has room for; 0: no chunk.
     */
    size_t objects;
    /**
     * A byte for each slot: 1 if there is an object.
     */
    uint8_t *marks;
    /**
     * The pool's name for it.
     */
    const void *name;
} nbbs_pool_chunk;

/**
 * A slot that a local keeps.
 */
typedef struct nbbs_pool_slot {
    /**
     * Where its object is.
     */
    void *object;
    /**
     * Its byte.
     */
    uint8_t *mark;
} nbbs_pool_slot;

/**
 * A place to allocate from and to free to, for one thread at a time: it takes free slots of the pool, as many as 64 at
 * a time by one read-modify-write, hands them out without any, and keeps what is freed to it.
 *
 * It lies where you put it, is made by `nbbs_pool_local_create`, and has to be ended by `nbbs_pool_local_destroy`
 * before its pool; it must not be copied. The fields are the functions' own, and those of `nbbs.hpp`.
 */
typedef struct nbbs_pool_local {
    /**
     * Whose slots they are; null: none.
     */
    const struct nbbs_pool *pool;
    /**
     * Slots that are kept.
     */
    size_t kept;
    /**
     * The most that may be.
     */
    size_t most;
    /**
     * log2 of the distance between chunks, by which they are found in `chunks`.
     */
    uint32_t shift;
    /**
     * Where the pool counts the chunks whose memory it gives back, and what that was when `chunks` was right.
     */
    const size_t *withdrawn;
    /**
     * As said at `withdrawn`.
     */
    size_t seen;
    /**
     * Chunks whose objects have been freed here.
     */
    struct nbbs_pool_chunk chunks[NBBS_LOCAL_CHUNKS];
    /**
     * What is kept, what was freed last at the end.
     */
    struct nbbs_pool_slot slots[NBBS_LOCAL_SLOTS];
} nbbs_pool_local;

/**
 * Gets an object from `nbbs_pool_each`.
 */
typedef void (*nbbs_visit_object)(void *context, void *object);

/**
 * What a pool has. `objects`, `kept` and `free` add up to `capacity`.
 */
typedef struct nbbs_pool_statistics {
    /**
     * Objects for which there is memory, allocated or not.
     */
    size_t capacity;
    /**
     * Objects that are allocated.
     */
    size_t objects;
    /**
     * Slots that locals keep, and those in the hands of calls under way.
     */
    size_t kept;
    /**
     * Slots that are free for all.
     */
    size_t free;
    /**
     * Chunks with memory.
     */
    size_t chunks;
    /**
     * The most objects for which there was memory at any time. Calls that add chunks beside others that give some
     * back, and a source that has room for the bookkeeping of a chunk but not for its objects, may make it larger, by
     * a chunk for each.
     */
    size_t peak_capacity;
    /**
     * Bytes of memory for objects.
     */
    size_t bytes;
    /**
     * Bytes of bookkeeping, without those of the pool itself. It stays until the pool ends.
     */
    size_t bookkeeping;
} nbbs_pool_statistics;

#if defined(NBBS_SHARED_MEMORY)
/**
 * Which member, of all that a segment has or had.
 */
typedef struct nbbs_shared_id {
    /**
     * Its place in the table of members, from 1 on. 0: nobody.
     */
    uint64_t seat;
    /**
     * Which of those that had it.
     */
    uint64_t generation;
} nbbs_shared_id;
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Returns whether the recoverer keeps a recovered block, or slot of the heap; otherwise it is freed.
 *
 * Called inside `nbbs_shared_recover`, by the same thread; it may use the member.
 */
typedef bool (*nbbs_shared_keeps)(void *context, uint64_t offset, uint64_t bytes);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * What a recovery found.
 */
typedef struct nbbs_shared_recovery {
    /**
     * Members that have died, and that no recovery has finished with before: as long as blocks are pending, each counts
     * them again.
     */
    size_t members;
    /**
     * Blocks and slots that were recovered and freed.
     */
    size_t freed;
    /**
     * Blocks and slots that were recovered and are the recoverer's now.
     */
    size_t kept;
    /**
     * Blocks of which it could not be told whether they belong to an operation under way. The member's next recovery
     * goes on from what this one saw.
     */
    size_t pending;
    /**
     * Blocks and slots whose bookkeeping was overwritten by a stray write. They stay as they are.
     */
    size_t damaged;
} nbbs_shared_recovery;
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * What a segment is made for.
 */
typedef struct nbbs_shared_geometry {
    /**
     * Units that are handed out, from 1 to 2^40.
     */
    uint64_t units;
    /**
     * Bytes of a unit, the least that is handed out: a power of two from 64 to 2^30.
     */
    uint64_t unit_bytes;
    /**
     * The most members that may live at a time, from 1 to 1022.
     */
    uint64_t members;
} nbbs_shared_geometry;
#endif

/**
 * What the memory of a small heap is used for, in bytes.
 */
typedef struct nbbs_small_statistics {
    /**
     * What the heap can hand out: its memory without the bookkeeping.
     */
    size_t bytes;
    /**
     * Units that are free.
     */
    size_t free;
    /**
     * The most bytes that are free in one piece.
     */
    size_t largest_free;
    /**
     * How many blocks are in use.
     */
    size_t blocks;
} nbbs_small_statistics;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Bytes of metadata that an arena of `units` units needs: 2.3 bits a unit from 2^18 units on. 0 if there can be
 * no such arena: no units, or more than 2^40. For static arrays there is `NBBS_METADATA_BYTES`.
 */
size_t nbbs_metadata_bytes(uint64_t units);

/**
 * Makes an arena of `units` units, all free, with its bookkeeping in `metadata`, whatever that holds.
 *
 * `metadata` is `bytes` long, at least `nbbs_metadata_bytes(units)`, on an 8-byte boundary, better on one of 64.
 * It is the arena's until the last handle is done with it. No other handle may be using it now. Costs a store
 * for each word of metadata: metadata that is zero already can be attached to instead, for nothing.
 *
 * Refuses with `NULL`, `POINTER_MISALIGNED`, `UNITS`, `TOO_SHORT`, `SIZE`.
 */
nbbs_code nbbs_create(struct nbbs_arena *arena,
                      void *metadata,
                      size_t bytes,
                      uint64_t units,
                      struct nbbs_error *error);

/**
 * Makes an arena in which every unit is reserved: it hands out only what `nbbs_release` gives it. This suits a
 * boot-time memory map. Otherwise as `nbbs_create`.
 */
nbbs_code nbbs_create_reserved(struct nbbs_arena *arena,
                               void *metadata,
                               size_t bytes,
                               uint64_t units,
                               struct nbbs_error *error);

/**
 * Makes a further handle to an arena of `units` units that is in use, from another thread, process or mapping; or
 * the first one to metadata that is all zero, which is an arena with all units free (a `static` array, fresh
 * pages).
 *
 * Costs a few dozen loads. Refuses as `nbbs_create`, and with `FOREIGN_METADATA` if a word that an arena of so
 * many units never writes is not zero; a mismatch that shows in no such word goes unnoticed.
 */
nbbs_code nbbs_attach(struct nbbs_arena *arena,
                      void *metadata,
                      size_t bytes,
                      uint64_t units,
                      struct nbbs_error *error);

/**
 * Tells the arena where its memory is: unit 0 is at `base`, and a unit has `unit_bytes` bytes, a power of two. From
 * then on the handle, and copies made of it, take and return addresses too: `nbbs_alloc_bytes` and its kin. The memory
 * itself is never touched.
 *
 * For a handle that nobody else is using yet. Refuses with `NULL`, `NO_ARENA`, `SIZE` (not a power of two, or
 * more than the address space has room for).
 */
nbbs_code nbbs_set_memory(struct nbbs_arena *arena,
                          void *base,
                          size_t unit_bytes,
                          struct nbbs_error *error);

/**
 * Has `hook` told of misuse of this handle and of copies made of it from now on; null: nobody is told. `context` is
 * passed on to the hook.
 *
 * For a handle that nobody else is using yet. Refuses with `NULL`, `NO_ARENA`.
 */
nbbs_code nbbs_set_hook(struct nbbs_arena *arena,
                        nbbs_hook hook,
                        void *context,
                        struct nbbs_error *error);

/**
 * Makes a handle to the same arena, as seen from `lane`: a CPU or thread number, any value.
 *
 * A lane remembers where it last allocated, so callers with different lanes keep off each other's cache lines. A
 * wrong or shared lane costs speed, never safety. A handle that was not made by this function uses a lane for
 * each thread; in the freestanding library, where there is no thread to ask, lane 0.
 *
 * If the arena has caches, `nbbs_alloc`, `nbbs_free` and `nbbs_free_sized` go through the cache of the CPU `lane`, if
 * there is one; then callers with this handle must keep to what `nbbs_cache_alloc` says of CPU numbers.
 *
 * `lane_arena` may be `arena` itself. Refuses with `NULL`, `NO_ARENA`.
 */
nbbs_code nbbs_on(const struct nbbs_arena *arena,
                  size_t lane,
                  struct nbbs_arena *lane_arena,
                  struct nbbs_error *error);

/**
 * Returns the number of units in the arena; 0 if the handle is of none.
 */
uint64_t nbbs_units(const struct nbbs_arena *arena);

/**
 * Returns the largest order of which a block fits into the arena: log2 of its units, rounded down.
 */
uint32_t nbbs_max_order(const struct nbbs_arena *arena);

/**
 * The library's version, such as "0.1.0": to compare with `NBBS_VERSION`, which is the header's.
 */
const char *nbbs_version(void);

/**
 * Allocates a block of `2^order` units, aligned to its size, and writes its first unit to `index`.
 *
 * One read-modify-write in the steady state. Refuses with `ORDER_TOO_LARGE`, or `EXHAUSTED`: at one instant of the
 * call, no block of that order was free, save for those in the hands of a call that had not returned.
 */
nbbs_code nbbs_alloc(const struct nbbs_arena *arena,
                     uint32_t order,
                     uint64_t *index,
                     struct nbbs_error *error);

/**
 * Allocates exactly `units` units side by side, no unit more, and writes the first to `index`. A power of two of
 * them is a block, aligned to its size, as long as there is one.
 *
 * One read-modify-write for up to 31 units, if a leaf word has room for them; for more, one for each word of 32 units,
 * or of larger slots, that is claimed. Refuses with `LENGTH`, `EXHAUSTED`.
 */
nbbs_code nbbs_alloc_units(const struct nbbs_arena *arena,
                           uint64_t units,
                           uint64_t *index,
                           struct nbbs_error *error);

/**
 * Allocates units `index` to `index + units - 1`, if all are free.
 *
 * Costs what `nbbs_alloc_units` does, without a search. Refuses with `LENGTH`, `OUT_OF_RANGE`, `IN_USE`.
 */
nbbs_code nbbs_alloc_at(const struct nbbs_arena *arena,
                        uint64_t index,
                        uint64_t units,
                        struct nbbs_error *error);

/**
 * Allocates what `request` describes, at the first place that will do, or the last, and writes its first unit to
 * `index`. Without a range, and not from the top, any place may do.
 *
 * Costs what `nbbs_alloc_units` does, and a search from that end of the range. Refuses with `LENGTH`,
 * `ORDER_TOO_LARGE`, `OUT_OF_RANGE`, `NO_PLACE` if the range has no place for so many units whatever is free,
 * `EXHAUSTED`.
 */
nbbs_code nbbs_alloc_request(const struct nbbs_arena *arena,
                             const struct nbbs_request *request,
                             uint64_t *index,
                             struct nbbs_error *error);

/**
 * Allocates blocks of `2^order` units into `blocks`, up to `count` of them, and writes how many to `got`: fewer only
 * if no further block is free.
 *
 * One read-modify-write for each word that has room, up to 32 blocks. Refuses as `nbbs_alloc`, if there is not one
 * block; `got` is 0 then.
 */
nbbs_code nbbs_alloc_batch(const struct nbbs_arena *arena,
                           uint32_t order,
                           uint64_t *blocks,
                           size_t count,
                           size_t *got,
                           struct nbbs_error *error);

/**
 * Allocates memory of `bytes` bytes, rounded up to whole units and no further, at an address that is a multiple of
 * `align`, and writes it to `address`. 0 bytes take a unit. `align` is a power of two; 0 and 1: any address. It can be
 * no more than the alignment of the base that `nbbs_set_memory` was told.
 *
 * Costs what `nbbs_alloc_units` does; an alignment above the unit, what `nbbs_alloc_request` does unless size and
 * alignment are the same. Refuses with `NO_MEMORY`, `SIZE`, `ALIGNMENT`, `EXHAUSTED`.
 */
nbbs_code nbbs_alloc_bytes(const struct nbbs_arena *arena,
                           size_t bytes,
                           size_t align,
                           void **address,
                           struct nbbs_error *error);

/**
 * Frees what `nbbs_alloc_bytes` allocated at `address`: `bytes` is the size that was asked for, or that
 * `nbbs_resize_bytes` made of it; 0: whatever is there is freed. A null `address`: does nothing.
 *
 * Costs what `nbbs_free_units` does, or `nbbs_free` for 0 bytes. Refuses as these, and with `NO_MEMORY`,
 * `FOREIGN_ADDRESS`, `INSIDE_UNIT`, `SIZE`.
 */
nbbs_code nbbs_free_bytes(const struct nbbs_arena *arena,
                          void *address,
                          size_t bytes,
                          struct nbbs_error *error);

/**
 * Makes what is allocated at `address` `bytes` bytes long, in place: shorter or longer, rounded up to whole units.
 *
 * Costs what `nbbs_shrink` or `nbbs_grow` does. Refuses as these and `nbbs_free_bytes`.
 */
nbbs_code nbbs_resize_bytes(const struct nbbs_arena *arena,
                            void *address,
                            size_t bytes,
                            struct nbbs_error *error);

/**
 * Writes the address of unit `index` to `address`.
 *
 * Refuses with `NO_MEMORY`, `OUT_OF_RANGE`.
 */
nbbs_code nbbs_address_of(const struct nbbs_arena *arena,
                          uint64_t index,
                          void **address,
                          struct nbbs_error *error);

/**
 * Writes the index of the unit that begins at `address` to `index`.
 *
 * Refuses with `NO_MEMORY`, `FOREIGN_ADDRESS`, `INSIDE_UNIT`.
 */
nbbs_code nbbs_index_of(const struct nbbs_arena *arena,
                        const void *address,
                        uint64_t *index,
                        struct nbbs_error *error);

/**
 * Frees the block or run at `index`, whatever its size, and writes its number of units to `units`, unless that is
 * null.
 *
 * One read-modify-write in the steady state, and the merges that it makes possible. Refuses with `OUT_OF_RANGE`,
 * `NOT_ALLOCATED` (also a double free, until the units are allocated again), `NOT_A_BLOCK`, `RESERVED`.
 */
nbbs_code nbbs_free(const struct nbbs_arena *arena,
                    uint64_t index,
                    uint64_t *units,
                    struct nbbs_error *error);

/**
 * Frees the block of `2^order` units at `index`.
 *
 * Costs what `nbbs_free` does; for blocks of 32 units or more without the load for each level by which that finds
 * them. Refuses as `nbbs_free`, and with `ORDER_TOO_LARGE`, `MISALIGNED`, `WRONG_ORDER`, and `WRONG_LENGTH` for a run
 * of other length. A wrong order may go unnoticed while another thread is allocating just there.
 */
nbbs_code nbbs_free_sized(const struct nbbs_arena *arena,
                          uint64_t index,
                          uint32_t order,
                          struct nbbs_error *error);

/**
 * Frees the block or run of exactly `units` units at `index`.
 *
 * Costs what `nbbs_free_sized` does for a block; otherwise two read-modify-writes for the first word of the run, one
 * for each further word, and two or three for each word at any level that this empties. Refuses as `nbbs_free`, and
 * with `WRONG_LENGTH`.
 */
nbbs_code nbbs_free_units(const struct nbbs_arena *arena,
                          uint64_t index,
                          uint64_t units,
                          struct nbbs_error *error);

/**
 * Frees `count` blocks of `2^order` units, and writes how many have been freed to `done`, unless that is null.
 *
 * One read-modify-write for neighbours in the array that lie in one word. Refuses as `nbbs_free_sized`, at the first
 * block that cannot be freed: those before it have been, no other.
 */
nbbs_code nbbs_free_batch(const struct nbbs_arena *arena,
                          uint32_t order,
                          const uint64_t *blocks,
                          size_t count,
                          size_t *done,
                          struct nbbs_error *error);

/**
 * Frees units `start` to `end - 1` of the block or run at `index`. What is left before and behind them stays
 * allocated, as a run each.
 *
 * Costs what two calls of `nbbs_split_off` and a free do. Refuses as `nbbs_split_off`, but with `OUTSIDE_RUN` if the
 * units are not of that run.
 */
nbbs_code nbbs_free_part(const struct nbbs_arena *arena,
                         uint64_t index,
                         uint64_t start,
                         uint64_t end,
                         struct nbbs_error *error);

/**
 * Reserves units `start` to `end - 1`: they are not handed out until `nbbs_release`. All or nothing; meanwhile others
 * may see a part of it taken.
 *
 * A read-modify-write for every 32 units, one for each slot above, at any level, that this splits, and for every 512
 * units two or three at each level where a bound falls. Refuses with `OUT_OF_RANGE`, `IN_USE`.
 */
nbbs_code nbbs_reserve(const struct nbbs_arena *arena,
                       uint64_t start,
                       uint64_t end,
                       struct nbbs_error *error);

/**
 * Gives units `start` to `end - 1`, all of them reserved, to the allocator: the end of a reservation, or memory that
 * arrived later.
 *
 * One read-modify-write for every 32 units, and merges. Refuses with `OUT_OF_RANGE`, `NOT_RESERVED`. The units must be
 * the caller's. Units that another thread is just then reserving, releasing, freeing or resizing, or allocating as a
 * run across words, look reserved meanwhile: a caller that names them may be refused after a part was released, or may
 * release what is in use.
 */
nbbs_code nbbs_release(const struct nbbs_arena *arena,
                       uint64_t start,
                       uint64_t end,
                       struct nbbs_error *error);

/**
 * Returns the bytes that so many lanes take: 256 each. For static arrays there is `NBBS_LANE_BYTES`.
 */
size_t nbbs_lane_bytes(size_t lanes);

/**
 * How many lanes an arena of `units` units should be given for `cpus` CPUs, by `nbbs_set_lanes`: 0 where those in its
 * metadata suffice, otherwise the next power of two, but no more than one for each 1,024 units.
 */
size_t nbbs_lanes_for(uint64_t units,
                      size_t cpus);

/**
 * Gives the handle at `arena`, and copies made of it from now on, lanes in `memory`, whatever that holds, in place of
 * those in the metadata: the largest power of two of them for which its `bytes` suffice.
 *
 * Metadata has 16 lanes at 2^18 units, 256 from 2^22 on, 4 from 2^12 on, and fewer below. Two CPUs that share a lane
 * claim in the same words, which costs them ten times as much. Lanes are hints: handles with other lanes, in other
 * processes too, share the arena as before.
 *
 * `memory` is on an 8-byte boundary, better on one of 64. It is the arena's until the last handle with these lanes is
 * done with it. For a handle that nobody else is using yet. Refuses with `NULL`, `POINTER_MISALIGNED`, `NO_ARENA`,
 * `TOO_SHORT`, `SIZE`.
 */
nbbs_code nbbs_set_lanes(struct nbbs_arena *arena,
                         void *memory,
                         size_t bytes,
                         struct nbbs_error *error);

/**
 * Finishes what threads or processes that died in a call have left in the bookkeeping. Units that they were freeing
 * become available. A block that they were allocating becomes visible, as allocated, so that it can be freed; if a
 * larger block has been allocated over it, only by a call after that one is freed. The caller must know whose the
 * blocks are.
 *
 * Of runs that they were allocating, changing or freeing across words of 32 units, what they had in hand stays in use.
 * A run whose holder died in `nbbs_grow` must not be freed: whoever is given the units behind it next might not be able
 * to free them.
 *
 * A few loads for each word, and a read-modify-write or two for each that is put in order. May run while others use the
 * arena, and several times at once. Refuses only handles that were never made.
 */
nbbs_code nbbs_mend(const struct nbbs_arena *arena,
                    struct nbbs_error *error);

/**
 * Gives back all but the first `units` units of the block or run at `index`, in place.
 *
 * One read-modify-write where the run lies in one word and is cut between two of its slots; otherwise one or two for
 * each word that is freed, and for each level that is split for the cut. Refuses with what `nbbs_free` refuses,
 * `LENGTH`, and `CONTENDED`. Only the holder of the run may call it, as with every function that changes one.
 */
nbbs_code nbbs_shrink(const struct nbbs_arena *arena,
                      uint64_t index,
                      uint64_t units,
                      struct nbbs_error *error);

/**
 * Takes the units behind the block or run at `index`, so that it has `units` units, in place.
 *
 * One read-modify-write where the run stays in one word; otherwise one or two for each word that is taken. Refuses as
 * `nbbs_shrink`, with `OUT_OF_RANGE` beyond the arena's end, and with `IN_USE` if one of these units is not free.
 * The run is then as it was.
 */
nbbs_code nbbs_grow(const struct nbbs_arena *arena,
                    uint64_t index,
                    uint64_t units,
                    struct nbbs_error *error);

/**
 * Splits the block or run at `index` in two: its first `units` units, and the rest. Each is freed by itself. The index
 * of the rest is written to `rest`, unless that is null.
 *
 * Costs what `nbbs_shrink` does, without freeing. Refuses as `nbbs_shrink`.
 */
nbbs_code nbbs_split_off(const struct nbbs_arena *arena,
                         uint64_t index,
                         uint64_t units,
                         uint64_t *rest,
                         struct nbbs_error *error);

/**
 * Splits the block or run at `index` into blocks of `2^order` units. Each is freed by itself.
 *
 * One read-modify-write for each block, and one or two for each word that is split for them. Refuses as `nbbs_shrink`,
 * with `ORDER_TOO_LARGE`, and with `MISALIGNED` if no such block can begin there.
 */
nbbs_code nbbs_split(const struct nbbs_arena *arena,
                     uint64_t index,
                     uint32_t order,
                     struct nbbs_error *error);

/**
 * Writes the order of the block at `index` to `order`; of a run that is no block, the order of the smallest block that
 * it would fit into.
 *
 * A load for each level. Refuses as `nbbs_free`.
 */
nbbs_code nbbs_order_of(const struct nbbs_arena *arena,
                        uint64_t index,
                        uint32_t *order,
                        struct nbbs_error *error);

/**
 * Writes the number of units of the block or run at `index` to `units`.
 *
 * A load for each level, and a few for each word of a run across words. Refuses as `nbbs_free`.
 */
nbbs_code nbbs_len_of(const struct nbbs_arena *arena,
                      uint64_t index,
                      uint64_t *units,
                      struct nbbs_error *error);

/**
 * Returns how many units are free; 0 if the handle is of no arena. While others use the arena, each piece was so at some
 * time during the call.
 *
 * A load for each word in use, of 32 units each where memory is broken up.
 */
uint64_t nbbs_count_free(const struct nbbs_arena *arena);

/**
 * The largest order of which a block may be free now, an upper bound. -1: nothing is free, or the handle is of no
 * arena.
 *
 * One load. The bound may be too high, but never too low, save for frees that have not returned.
 */
int32_t nbbs_order_bound(const struct nbbs_arena *arena);

/**
 * Looks whether a block of `2^order` units is free, at one instant of the call: not one in the hands of a call that
 * has not returned, nor one in a cache. False if the handle is of no arena.
 *
 * Where the bound of `nbbs_order_bound` promises a block that is not there, it is lowered. Costs a load and a look at
 * up to 16 words for each level if the bounds are true, otherwise what a refused `nbbs_alloc` does. If others raise
 * the bounds again and again meanwhile, it gives up, and is true although there may be none.
 */
bool nbbs_has_free(const struct nbbs_arena *arena,
                   uint32_t order);

/**
 * Counts the units of the arena that are free, in use and reserved, and the blocks of each order. While others use the
 * arena, each piece was so at some time during the call.
 *
 * A load for each word in use, of 32 units each where memory is broken up. For the free units alone `nbbs_count_free` is ten
 * times as fast; for the largest free block `nbbs_order_bound` takes one load.
 */
nbbs_code nbbs_stats(const struct nbbs_arena *arena,
                     struct nbbs_statistics *statistics,
                     struct nbbs_error *error);

/**
 * Fills `map` with one byte for each aligned stretch of `2^order` units: 0 if all of it is free, otherwise the share
 * of it that is in use or reserved, from 1 to 255 (all). `map` has `bytes` bytes; how many were filled, the arena's
 * units divided by `2^order` and rounded up or `bytes` if that is less, goes to `filled`, unless that is null.
 *
 * Costs what `nbbs_stats` does. Refuses with `ORDER_TOO_LARGE`.
 */
nbbs_code nbbs_occupancy_map(const struct nbbs_arena *arena,
                             uint32_t order,
                             uint8_t *map,
                             size_t bytes,
                             size_t *filled,
                             struct nbbs_error *error);

/**
 * Calls `visit` with every piece of the arena, in ascending order. Each piece was so at some time during the call.
 * `visit` may use the arena.
 *
 * Costs what `nbbs_stats` does. Refuses with `NULL`.
 */
nbbs_code nbbs_walk(const struct nbbs_arena *arena,
                    nbbs_visit visit,
                    void *context,
                    struct nbbs_error *error);

/**
 * Checks every invariant of the metadata. `report` may be null.
 *
 * Up to four loads a word. Refuses with `BROKEN`, which `nbbs_message` turns into the name of the invariant and the
 * place. Only while no other call is running.
 */
nbbs_code nbbs_audit(const struct nbbs_arena *arena,
                     struct nbbs_audit_report *report,
                     struct nbbs_error *error);

/**
 * The default, lowered so that the caches of `cpus` CPUs keep an eighth of an arena of `units` units at most, all
 * together; nothing checked.
 */
struct nbbs_cache_config nbbs_cache_config_for_arena(uint64_t units,
                                                     size_t cpus);

/**
 * Bytes that the caches of so many CPUs take: 2,944 each. For static arrays there is `NBBS_CACHE_BYTES`.
 */
size_t nbbs_cache_bytes(size_t cpus);

/**
 * Gives the handle at `arena`, and copies made of it from now on, caches in `memory`, whatever that holds: as many as
 * its `bytes` suffice for, one for each CPU number from 0 on. The caches are empty.
 *
 * `memory` is on an 8-byte boundary, better on one of 64. It is the arena's until the last handle with caches in it is
 * done with it; before that `nbbs_cache_drain` has to be called for each CPU, or what it keeps stays in use. `config`
 * may be null: the default, and nothing checked.
 *
 * From now on, `nbbs_cache_alloc` and its kin take a CPU number, and a handle that `nbbs_on` makes of this one is that
 * of a CPU: `nbbs_alloc`, `nbbs_free` and `nbbs_free_sized` go through its cache. All other functions, and handles not
 * made by `nbbs_on`, go past the caches. A block that is kept is in use to all but the cache.
 *
 * For a handle that nobody else is using yet. Refuses with `NULL`, `POINTER_MISALIGNED`, `NO_ARENA`, `TOO_SHORT`,
 * `SIZE`, `SETTING`.
 */
nbbs_code nbbs_cache_create(struct nbbs_arena *arena,
                            void *memory,
                            size_t bytes,
                            const struct nbbs_cache_config *config,
                            struct nbbs_error *error);

/**
 * Gives the handle caches that are in use already, by other handles to the same arena with the same `config`, from
 * another thread, process or mapping; or empty ones, in memory that is all zero. All begin at the same word of that
 * memory. One may have fewer CPUs; its checks, drains, and counts then leave the caches of the others out. Otherwise as
 * `nbbs_cache_create`.
 */
nbbs_code nbbs_cache_attach(struct nbbs_arena *arena,
                            void *memory,
                            size_t bytes,
                            const struct nbbs_cache_config *config,
                            struct nbbs_error *error);

/**
 * Allocates a block of `2^order` units from the cache of `cpu`, and writes its first unit to `index`.
 *
 * Two calls with the same CPU number may overlap in one way only: the second interrupts the first, and returns before
 * the first goes on. So interrupts may stay enabled, but a thread must not be preempted or moved between reading the
 * number and the call's return: a kernel disables preemption, and a program gives each of its threads a number of its
 * own. If this is not kept, units may be handed out twice or be lost. A handler that interrupts a call of its CPU's
 * cache bypasses the cache and uses the arena, and so does a call with a number that has no cache. Nobody waits.
 *
 * 8 plain loads and stores, and no read-modify-write, if the CPU keeps a block of the order. Refuses with
 * `ORDER_TOO_LARGE`, or with `EXHAUSTED` if, at one instant of the call, no block of that order was free, save for
 * those in the hands of a call that had not returned. By then this CPU has given back what it kept, and the other
 * CPUs, whose blocks count as in use, have been asked to do so with their next call.
 */
nbbs_code nbbs_cache_alloc(const struct nbbs_arena *arena,
                           size_t cpu,
                           uint32_t order,
                           uint64_t *index,
                           struct nbbs_error *error);

/**
 * Frees the block or run at `index` into the cache of `cpu`, if it keeps such blocks, and writes its number of units
 * to `units`, unless that is null. `cpu` as for `nbbs_cache_alloc`; a CPU may free what another one allocated.
 *
 * A load for each level, and then what `nbbs_cache_free_sized` costs. Refuses as `nbbs_free`.
 */
nbbs_code nbbs_cache_free(const struct nbbs_arena *arena,
                          size_t cpu,
                          uint64_t index,
                          uint64_t *units,
                          struct nbbs_error *error);

/**
 * Frees the block of `2^order` units at `index` into the cache of `cpu`, if it keeps such blocks. `cpu` as for
 * `nbbs_cache_alloc`.
 *
 * 8 or 9 plain loads and stores, as long as there is room; otherwise the blocks that were freed longest ago go back to
 * the arena: an eighth of them, or half if those lie close together.
 *
 * Refuses as `nbbs_free_sized`, as far as a cache can tell: an index outside the arena or not aligned to the order,
 * and a second free, by the same order, of the block that this CPU freed last, as long as it keeps that block and the
 * cache is neither in use by an interrupted call nor being drained by another thread. Other wrong frees go unnoticed:
 * such a block may be handed out twice, or the arena refuses it when the cache gives it back, and `nbbs_cache_refused`
 * counts it. With `checked` in the configuration wrong frees are refused; `nbbs_cache_config` names the exceptions.
 */
nbbs_code nbbs_cache_free_sized(const struct nbbs_arena *arena,
                                size_t cpu,
                                uint64_t index,
                                uint32_t order,
                                struct nbbs_error *error);

/**
 * Gives all that `cpu` keeps back to the arena: to be called before the CPU sleeps, and before the caches end. `cpu`
 * as for `nbbs_cache_alloc`; for other CPUs see `nbbs_cache_ask` and `nbbs_cache_drain_all`.
 *
 * A read-modify-write for each word that the blocks lie in. Refuses only handles that were never made.
 */
nbbs_code nbbs_cache_drain(const struct nbbs_arena *arena,
                           size_t cpu,
                           struct nbbs_error *error);

/**
 * Asks `cpu` to give back, with its next call, all that it keeps. Any thread may call it. One read-modify-write if
 * nobody has asked yet. Refuses only handles that were never made.
 */
nbbs_code nbbs_cache_ask(const struct nbbs_arena *arena,
                         size_t cpu,
                         struct nbbs_error *error);

/**
 * Gives back what all CPUs keep, idle ones included. A CPU that is in the middle of a call is asked instead, and gives
 * back at the end of that call or of its next one. Any thread may call it. While one thread is in it, others that call
 * it only ask all CPUs, and do not call `barrier`.
 *
 * `barrier`, which is called once otherwise, has to let every CPU pass a full memory barrier before it returns: an
 * interrupt to all CPUs that is waited for, or on Linux `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`. If it does
 * not, units may be handed out twice. Refuses with `NULL`, if there is none.
 *
 * Two read-modify-writes for each CPU, the barrier, and one for each word that the blocks lie in. Handlers may call it
 * if they may call `barrier`. A caller that dies in it leaves the caches to `nbbs_cache_recover`; the blocks that it
 * was giving back are lost.
 */
nbbs_code nbbs_cache_drain_all(const struct nbbs_arena *arena,
                               nbbs_barrier barrier,
                               void *context,
                               struct nbbs_error *error);

/**
 * Makes the cache of `cpu` usable again after a thread died in the middle of a call with that number, or in
 * `nbbs_cache_drain_all`; until then calls bypass that cache. What the thread had in its hands is lost: the block that
 * it was freeing, those that it was allocating from the arena, and, if it was giving back, all of that order. The next
 * call with that number gives back the others, as the thread may have been asked to. Call it only while nobody is in a
 * call with that number, or in `nbbs_cache_drain_all`. Two stores. Refuses only handles that were never made.
 */
nbbs_code nbbs_cache_recover(const struct nbbs_arena *arena,
                             size_t cpu,
                             struct nbbs_error *error);

/**
 * Returns how many CPUs have a cache; 0 if the handle is of no arena.
 */
size_t nbbs_cache_cpus(const struct nbbs_arena *arena);

/**
 * Returns how many blocks the arena did not take back from the caches: each was freed twice, or with a wrong order.
 */
uint64_t nbbs_cache_refused(const struct nbbs_arena *arena);

/**
 * Checks that every block that a CPU keeps is in use in the arena, with its order, and kept once. Only while no other
 * call is running.
 *
 * Refuses with `CACHE_BROKEN`, which names the first block that is not.
 */
nbbs_code nbbs_cache_audit(const struct nbbs_arena *arena,
                           struct nbbs_error *error);

/**
 * Writes an error as a sentence that names the value and the limit, cut off after `bytes - 1` characters, with a
 * 0 behind it. Returns the length of the whole sentence, like `snprintf`.
 *
 * `error` may be null: "no error". `text` may be null if `bytes` is 0. Callable from anywhere.
 */
size_t nbbs_message(const struct nbbs_error *error,
                    char *text,
                    size_t bytes);

/**
 * Returns the name of a code, for logs: `"NBBS_CODE_EXHAUSTED"`; `"unknown"` for a number that is no code.
 */
const char *nbbs_code_name(uint32_t code);

/**
 * Returns how many bytes of memory, at any address, `nbbs_heap_create` needs for a heap with `caches` caches that
 * hands out `bytes` bytes, rounded up to a KiB. A cache takes 24 KiB, the bookkeeping 1.6 % of the bytes, and some
 * KiB. 0 if there can be no such heap: `bytes` is 0, or more than 4 TiB less 2 KiB (on 32 bits, than 1 GiB), or there
 * are more caches than addresses.
 */
size_t nbbs_heap_bytes(size_t caches,
                       size_t bytes);

/**
 * Makes a heap in `memory`, whatever that holds, with `caches` caches: one for each CPU is best, and 0
 * means 1. The caches and the bookkeeping lie at the front of the memory, and the heap hands out the rest.
 *
 * `memory` is `bytes` long. It is the heap's until nobody uses the heap, or what it handed out, any more; a heap need
 * not be ended. An operation uses the cache of the CPU on which it runs. On Linux `sched_getcpu` says which;
 * elsewhere, and in the freestanding library, a function that `nbbs_heap_set_cpu` names.
 *
 * A store for each word of the caches and the bookkeeping. Refuses with `NULL`, `SIZE`, `SETTING` (`caches`),
 * `TOO_SHORT`; the memory has not changed then.
 */
nbbs_code nbbs_heap_create(void *memory,
                           size_t bytes,
                           size_t caches,
                           struct nbbs_heap **heap,
                           struct nbbs_error *error);

/**
 * Adds `bytes` bytes at `memory` to the heap, which keeps them. This can be done seven times. The bookkeeping of the
 * new memory takes 1.6 % at its front.
 *
 * Clearing that costs a store for each word. Refuses with `NULL`, `SIZE`, `TOO_SHORT`, `REGIONS`, `OVERLAP`.
 */
nbbs_code nbbs_heap_add(const struct nbbs_heap *heap,
                        void *memory,
                        size_t bytes,
                        struct nbbs_error *error);

/**
 * Has `cpu` say on which CPU an operation runs; null: as if this function had never been called. `context` is passed
 * on to `cpu`, which is called from wherever the heap is, handlers included. Call this function only while nobody else
 * is using the heap. Refuses with `NULL`.
 */
nbbs_code nbbs_heap_set_cpu(struct nbbs_heap *heap,
                            nbbs_cpu_number cpu,
                            void *context,
                            struct nbbs_error *error);

/**
 * Has `cpu` say on which CPU an operation runs, where two calls with one CPU number meet in one way only: the second
 * interrupts the first, and is over before that goes on. Then a call that the CPU's cache serves takes no
 * read-modify-write. Null: as if this function had never been called. `context` is passed on to `cpu`.
 *
 * So interrupts stay enabled, but a thread may not be preempted or moved during a call: a kernel disables preemption,
 * a program gives each of its threads a number of its own. Where this is not kept, memory may be handed out twice. A
 * handler that interrupts its CPU's cache goes past it, and so does a number that has no cache. Call this function
 * only while nobody else is using the heap. Refuses with `NULL`.
 */
nbbs_code nbbs_heap_set_nested_cpu(struct nbbs_heap *heap,
                                   nbbs_cpu_number cpu,
                                   void *context,
                                   struct nbbs_error *error);

/**
 * Has `hook` told of misuse of the heap; null: nobody is told. Call it only while nobody else is using the heap.
 * Refuses with `NULL`.
 */
nbbs_code nbbs_heap_set_hook(struct nbbs_heap *heap,
                             nbbs_hook hook,
                             void *context,
                             struct nbbs_error *error);

/**
 * Allocates `bytes` bytes at a multiple of `align`, a power of two, and writes their address to `block`. A block of
 * 0 bytes has to be freed, too.
 *
 * A read-modify-write if the CPU's cache has a slot of that size, none after `nbbs_heap_set_nested_cpu`. Otherwise one
 * for up to four slabs and one for each of these, or what the buddy allocator takes for a new slab; above 32 KiB, if
 * the cache keeps no such block of as many KiB, or up to an eighth more, what `nbbs_alloc_units` takes. If there is no
 * memory, the heap is trimmed first. Refuses with `ALIGNMENT`, `SIZE`, `HEAP_FULL`.
 */
nbbs_code nbbs_heap_alloc(const struct nbbs_heap *heap,
                          size_t bytes,
                          size_t align,
                          void **block,
                          struct nbbs_error *error);

/**
 * Frees a block. Null: does nothing.
 *
 * What `nbbs_heap_size_of` takes, and one read-modify-write if the CPU's cache has room, none after
 * `nbbs_heap_set_nested_cpu`; if it has none, one more for each slab to which the cache gives slots back. Of blocks
 * above 32 KiB a cache keeps up to eight, together at most a 64th of the memory that they lie in and 1 MiB. `block` may
 * be any address: what is no block is refused with `NOT_OF_HEAP`, `INSIDE_UNIT`, `NO_BLOCK`. A double free is refused
 * if no cache keeps the block, or if this CPU's does and the block is above 32 KiB, or the last one of its size that
 * was freed there. Other double frees go unnoticed, and the cache may hand the block out twice; `nbbs_heap_audit` finds
 * it.
 */
nbbs_code nbbs_heap_free(const struct nbbs_heap *heap,
                         void *block,
                         struct nbbs_error *error);

/**
 * Makes the block whose address is at `block` larger or smaller. If the block has to move, its contents move with it,
 * and the new address is written to `block`; it is then aligned to 16 bytes. If the address was null, a block is
 * allocated.
 *
 * A block stays in place within its size class, and a larger one if the units behind it are free, or it keeps half of
 * its bytes; otherwise this costs what `nbbs_heap_alloc` and `nbbs_heap_free` take, and a copy. A block of more than 32
 * KiB that lies at a page can be made smaller, to more than 128 bytes, also when the heap is full. What grows in place to
 * 64 KiB or more gets up to a sixteenth more, unless memory is short, so that most small steps change nothing. Refuses
 * as they do.
 */
nbbs_code nbbs_heap_resize(const struct nbbs_heap *heap,
                           void **block,
                           size_t bytes,
                           struct nbbs_error *error);

/**
 * Writes to `bytes` how many bytes may be used of a block: as many as were asked for, or more.
 *
 * Up to three loads, one more for each region up to the block's own, and what `nbbs_len_of` takes if it is in no
 * slab. Refuses as `nbbs_heap_free`, and with `NULL`; what a cache keeps counts as a block.
 */
nbbs_code nbbs_heap_size_of(const struct nbbs_heap *heap,
                            const void *block,
                            size_t *bytes,
                            struct nbbs_error *error);

/**
 * Returns whether an address, which may be any, lies in memory that the heap hands out.
 */
bool nbbs_heap_contains(const struct nbbs_heap *heap, const void *address);

/**
 * `malloc`: null if `nbbs_heap_alloc` would refuse. Aligned to 16 bytes.
 */
void *nbbs_heap_malloc(const struct nbbs_heap *heap, size_t bytes);

/**
 * `calloc`: memory for `count` times `bytes` bytes, all zero. Null if `nbbs_heap_alloc` would refuse, or if the
 * product is too large for a `size_t`. Costs a store for each word more.
 */
void *nbbs_heap_calloc(const struct nbbs_heap *heap,
                       size_t count,
                       size_t bytes);

/**
 * `realloc`: null if `nbbs_heap_resize` would refuse, and the block stays as it is. 0 bytes do not free it.
 */
void *nbbs_heap_realloc(const struct nbbs_heap *heap, void *block, size_t bytes);

/**
 * `aligned_alloc`: null if `nbbs_heap_alloc` would refuse. `bytes` need not be a multiple of `align`.
 */
void *nbbs_heap_aligned_alloc(const struct nbbs_heap *heap, size_t align, size_t bytes);

/**
 * `malloc_usable_size`: what `nbbs_heap_size_of` says; 0 of null, and where it would refuse.
 */
size_t nbbs_heap_usable_size(const struct nbbs_heap *heap, const void *block);

/**
 * Writes what the memory is used for to `statistics`. While others use the heap, each part was so at some moment of
 * the call.
 *
 * Reads all of the bookkeeping.
 */
nbbs_code nbbs_heap_stats(const struct nbbs_heap *heap,
                          struct nbbs_heap_statistics *statistics,
                          struct nbbs_error *error);

/**
 * Calls `visit` with every block that is in use, in no order. Those that a cache keeps are shown, too:
 * `nbbs_heap_trim` empties the CPU's. `visit` may free the block.
 *
 * Reads all of the bookkeeping. Refuses with `NULL`.
 */
nbbs_code nbbs_heap_walk(const struct nbbs_heap *heap,
                         nbbs_visit_block visit,
                         void *context,
                         struct nbbs_error *error);

/**
 * Writes what is in use by size as a file of DHAT, which Valgrind's `dh_view.html` opens, cut off after `bytes - 1`
 * characters, with a 0 behind it. Returns the length of the whole text, like `snprintf`; 0 if there is no heap.
 *
 * Reads all of the bookkeeping. `text` may be null if `bytes` is 0.
 */
size_t nbbs_heap_profile(const struct nbbs_heap *heap,
                         char *text,
                         size_t bytes);

/**
 * Calls `discard` with free memory that has been in use since it was last zero: whole pages of `page` bytes, a power
 * of two, and 1 MiB at most at a time. Nobody else can allocate them meanwhile. `discard` may have the operating
 * system take them back (`madvise`), as long as they can be written to later, and returns whether they are zero from
 * then on: those bytes must be zero. The function returns of how many bytes `discard` said that; 0, without a call, if
 * `page` is no power of two or more than 64 KiB, or `discard` is null.
 *
 * Reads all of the bookkeeping; two read-modify-writes for each call.
 */
size_t nbbs_heap_discard(const struct nbbs_heap *heap,
                         size_t page,
                         nbbs_discard discard,
                         void *context);

/**
 * Makes the memory of slabs of which no slot is in use available for other sizes, and returns how many bytes that is,
 * and the blocks above 32 KiB, or without a slab, that the calling CPU's cache gives back. It gives back what it keeps
 * at once; the others do when they next take slots or give some back, or are given a block above 32 KiB.
 *
 * A read-modify-write or two for each slab that is looked at: all slabs of a size of which one may be empty.
 */
size_t nbbs_heap_trim(const struct nbbs_heap *heap);

/**
 * Checks that the bookkeeping is in order, and that no cache keeps what is not allocated, or what another keeps.
 *
 * Reads all of the bookkeeping. Refuses with `BROKEN`, `HEAP_BROKEN`. Only while nobody else is using the heap.
 */
nbbs_code nbbs_heap_audit(const struct nbbs_heap *heap,
                          struct nbbs_error *error);

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

/**
 * Returns the bytes that `nbbs_pool_create_in` needs for a pool of `config->limit` objects; 0 if there can be no such
 * pool. The bookkeeping takes 10 bits for each object, and some KiB.
 */
size_t nbbs_pool_bytes(const struct nbbs_pool_config *config);

/**
 * Makes a pool of exactly `config->limit` objects in `memory`, which is `bytes` long, at least
 * `nbbs_pool_bytes(config)`. `reserve`, `chunk` and `ahead` do not matter. The memory is the pool's until
 * `nbbs_pool_destroy`.
 *
 * Refuses with `NULL`, `SIZE`, `ALIGNMENT`, `SETTING` (`limit`: 0, or more than there are addresses), `TOO_SHORT`.
 */
nbbs_code nbbs_pool_create_in(const struct nbbs_pool_config *config,
                              void *memory,
                              size_t bytes,
                              struct nbbs_pool **pool,
                              struct nbbs_error *error);

/**
 * Makes a pool that gets its memory from `source`: some 6.5 KiB for itself at once, then chunk by chunk, as it needs
 * it. If `source` is null, the memory comes from the C library's `malloc`, where there is one.
 *
 * Refuses with `NULL` (also: no `source` in the freestanding library), `SIZE`, `ALIGNMENT`, `SETTING` (`chunk`;
 * `reserve`: more than the limit, or than there are addresses), `SOURCE_EMPTY`.
 */
nbbs_code nbbs_pool_create(const struct nbbs_pool_config *config,
                           const struct nbbs_source *source,
                           struct nbbs_pool **pool,
                           struct nbbs_error *error);

/**
 * Ends a pool and gives its memory back to its source; the memory of a pool that `nbbs_pool_create_in` made is the
 * caller's again. Objects that are still allocated are gone. Null: does nothing. Nobody else may be using the pool, or
 * objects of it.
 */
void nbbs_pool_destroy(struct nbbs_pool *pool);

/**
 * Has `hook` told of misuse of the pool; null: nobody is told. Call it only while nobody else is using the pool.
 * Refuses with `NULL`.
 */
nbbs_code nbbs_pool_set_hook(struct nbbs_pool *pool,
                             nbbs_hook hook,
                             void *context,
                             struct nbbs_error *error);

/**
 * Makes a local of a pool, which keeps at most `most` free slots, 128 at most. 0 stands for 128, or for a 64th of the
 * pool's limit if that is less. The local takes no slot yet.
 *
 * Nobody else can allocate what a local keeps: while `n` locals keep `most` slots each, others may be refused with
 * `FULL` although `n * most` slots are free. Refuses with `NULL`, `SETTING` (`most`).
 */
nbbs_code nbbs_pool_local_create(struct nbbs_pool_local *local,
                                 const struct nbbs_pool *pool,
                                 size_t most,
                                 struct nbbs_error *error);

/**
 * Gives back the slots that a local keeps, and ends it: every function refuses it from then on (`NULL`). Null, or a
 * local that has ended: does nothing.
 *
 * A local that is never ended costs the pool the slots that it keeps. Once its pool has ended, a local must not be
 * used, and need not be ended.
 */
void nbbs_pool_local_destroy(struct nbbs_pool_local *local);

/**
 * Allocates an object from a local and writes its address to `object`: `nbbs_pool_alloc`, mostly without a
 * read-modify-write. The object is like any other: any thread may free it, with a local or without.
 *
 * A few loads and stores, and one read-modify-write for up to 64 slots of a word. Refuses with `FULL`, `SOURCE_EMPTY`
 * if no slot was free but those that other locals keep. Not callable from a handler that may have interrupted a call
 * with the same local.
 */
nbbs_code nbbs_pool_local_alloc(struct nbbs_pool_local *local,
                                void **object,
                                struct nbbs_error *error);

/**
 * Frees an object, whoever allocated it, and keeps its slot. A local that keeps as many as it may gives half of them
 * back to the pool first. Null: does nothing.
 *
 * Mostly takes no read-modify-write. Not callable from a handler that may have interrupted a call with the same local.
 * Refuses with `FOREIGN_ADDRESS`, `INSIDE_UNIT`, `NO_OBJECT`. A double free is refused as long as the slot has not been
 * allocated again, whichever local keeps it. But if two threads free the same object at the very same time, perhaps
 * neither is refused: then its slot may be handed out twice, and even after its chunk has gone.
 */
nbbs_code nbbs_pool_local_free(struct nbbs_pool_local *local,
                               void *object,
                               struct nbbs_error *error);

/**
 * Gives all slots that a local keeps back to the pool.
 *
 * One read-modify-write for those that follow each other in a word of 64. Refuses with `NULL`.
 */
nbbs_code nbbs_pool_local_flush(struct nbbs_pool_local *local, struct nbbs_error *error);

/**
 * Slots that a local keeps: free for it, and for nobody else. `nbbs_pool_len` does not count them.
 */
size_t nbbs_pool_local_kept(const struct nbbs_pool_local *local);

/**
 * Allocates an object and writes its address to `object`. Its bytes are not initialised.
 *
 * One read-modify-write, whatever the size of the pool; growing takes as long as the source takes. Refuses with
 * `FULL`, `SOURCE_EMPTY`. Callable from interrupt and signal handlers if the source is, or if the pool need not grow.
 */
nbbs_code nbbs_pool_alloc(const struct nbbs_pool *pool,
                          void **object,
                          struct nbbs_error *error);

/**
 * Frees an object. Null: does nothing.
 *
 * Two read-modify-writes. `object` may be any address: what is no object is refused with `FOREIGN_ADDRESS`,
 * `INSIDE_UNIT`, `NO_OBJECT`. A double free is refused as long as the slot has not been allocated again.
 */
nbbs_code nbbs_pool_free(const struct nbbs_pool *pool, void *object, struct nbbs_error *error);

/**
 * Returns whether an object is allocated at an address, which may be any.
 */
bool nbbs_pool_is_valid(const struct nbbs_pool *pool, const void *object);

/**
 * Returns how many objects are allocated; slots that locals keep do not count. Exact when nothing else runs.
 *
 * A load for every 64 slots, and for each of them that is not free.
 */
size_t nbbs_pool_len(const struct nbbs_pool *pool);

/**
 * Returns how many objects have memory, allocated or not.
 */
size_t nbbs_pool_capacity(const struct nbbs_pool *pool);

/**
 * Returns the most objects that the pool may ever have; `SIZE_MAX`: as many as there is memory for.
 */
size_t nbbs_pool_limit(const struct nbbs_pool *pool);

/**
 * Returns the bytes from one object to the next.
 */
size_t nbbs_pool_stride(const struct nbbs_pool *pool);

/**
 * Adds chunks until there is memory for `objects` objects, allocated or not.
 *
 * Takes as long as the source does for each chunk. Refuses with `OBJECTS`, before it adds a chunk, if the pool can
 * never have so many: its limit is lower, or there are not so many addresses. Refuses with `FULL` if a chunk that is
 * missing is in the hands of another call, and with `SOURCE_EMPTY` if the source has no memory for one of the chunks:
 * those added before stay, and `nbbs_pool_shrink` gives them back.
 * Callable where the source is.
 */
nbbs_code nbbs_pool_reserve(const struct nbbs_pool *pool,
                            size_t objects,
                            struct nbbs_error *error);

/**
 * Gives chunks in which every slot is free back to the source, as long as the objects that the configuration reserves
 * stay. Returns by how many objects the capacity has shrunk. A slot that a local keeps is not free.
 *
 * A read-modify-write for every 64 slots, and what the source takes. Callable where the source is.
 */
size_t nbbs_pool_shrink(const struct nbbs_pool *pool);

/**
 * Calls `visit` with every object that is allocated, in no particular order. `visit` may free the object, and may
 * allocate others, which may be visited or not.
 *
 * A load for every 64 slots, and five for each object. Refuses with `NULL`.
 */
nbbs_code nbbs_pool_each(const struct nbbs_pool *pool,
                         nbbs_visit_object visit,
                         void *context,
                         struct nbbs_error *error);

/**
 * Frees all objects. The pool keeps its memory, and locals keep their slots.
 *
 * A load for every 64 slots, and for each object what `nbbs_pool_free` costs. Refuses with `NULL`. Nobody else may be
 * using the pool meanwhile.
 */
nbbs_code nbbs_pool_clear(struct nbbs_pool *pool,
                          struct nbbs_error *error);

/**
 * Writes what the pool has to `statistics`. While others use the pool, each chunk is counted as it is at some moment of
 * the call. `nbbs_pool_len` and `nbbs_pool_capacity` tell the most important for less.
 *
 * Two loads for every 64 slots, one for each of them that is not free, and some hundred more. Refuses with `NULL`.
 */
nbbs_code nbbs_pool_stats(const struct nbbs_pool *pool,
                          struct nbbs_pool_statistics *statistics,
                          struct nbbs_error *error);

#if defined(NBBS_SHARED_MEMORY)
/**
 * Allocates memory of at least `bytes` bytes at a multiple of `align`, a power of two up to a page, and writes its
 * offset to `offset`: a slot, of 16 bytes to 4 KiB, in steps of 16 bytes up to 128 and of a quarter at most above, or a
 * block if it is larger. What is in it is whatever was there before. It is given to `nbbs_shared_heap_free` and the
 * others here.
 *
 * A slot takes one read-modify-write in the steady state; before it refuses, it looks through the whole segment, and
 * trims it, as `nbbs_shared_heap_trim` does. Waits for nobody. Refuses with `NULL`, `ALIGNMENT`, `SIZE`, `SEGMENT_FULL`, `SEGMENT_DAMAGED`.
 */
nbbs_code nbbs_shared_heap_alloc(const struct nbbs_shared_member *member,
                                 size_t bytes,
                                 size_t align,
                                 uint64_t *offset,
                                 struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Frees the member's slot or block at `offset`.
 *
 * A read-modify-write. Waits for nobody. Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED` also if no slot
 * begins there, `NOT_YOURS` also if it was freed before, `SEGMENT_DAMAGED`.
 */
nbbs_code nbbs_shared_heap_free(const struct nbbs_shared_member *member,
                                uint64_t offset,
                                struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Makes the slot or block at `offset` this member's, and writes whose it was to `from`, which may be null; as
 * `nbbs_shared_take`.
 *
 * A read-modify-write. Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`, `NOT_YOURS` if it is nobody's.
 */
nbbs_code nbbs_shared_heap_take(const struct nbbs_shared_member *member,
                                uint64_t offset,
                                struct nbbs_shared_id *from,
                                struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Makes the slot or block at `offset` this member's if it is `from`'s, or this member's already, and writes whose it was
 * to `former`, which may be null; as `nbbs_shared_take_from`.
 *
 * A read-modify-write. Refuses with `NULL`, `OUTSIDE_SEGMENT`, and with two ordinary answers: `NOT_YOURS` if it is
 * neither's, `OFFSET_MISALIGNED` if its memory is cut into something else by now.
 */
nbbs_code nbbs_shared_heap_take_from(const struct nbbs_shared_member *member,
                                     uint64_t offset,
                                     struct nbbs_shared_id from,
                                     struct nbbs_shared_id *former,
                                     struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Writes where in this process the member's slot or block at `offset` is, and how many bytes it has, to `address` and
 * `bytes`, each of which may be null; as `nbbs_shared_block`.
 *
 * Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`, `NOT_YOURS`, `SEGMENT_DAMAGED`.
 */
nbbs_code nbbs_shared_heap_block(const struct nbbs_shared_member *member,
                                 uint64_t offset,
                                 void **address,
                                 size_t *bytes,
                                 struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Turns slabs of which no slot is in use into blocks again, and returns how many. For each size of slot, the slab that
 * another living member used last stays. Costs a walk over the bookkeeping, and memory of the process, which ends if it
 * has none: a few words for each block in use, and for each slab that a member used last. Null: 0.
 */
size_t nbbs_shared_heap_trim(const struct nbbs_shared_member *member);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Registers a member: a thread that allocates in the segment, until `nbbs_shared_leave`, or until its process ends,
 * however it ends. It may be handed to another thread. It must not be used by a signal handler that interrupts one of
 * its own calls, nor by a child of `fork`, which attaches for itself.
 *
 * Takes a descriptor, memory, nine system calls, and up to two more for each seat that is taken if no other is free.
 * Refuses with `NULL`, `SEATS_TAKEN` if all members live, or others are just taking or leaving the other seats, `SYSTEM`,
 * with `ESTALE` if the segment is not in its file any more: attach again.
 */
nbbs_code nbbs_shared_join(const struct nbbs_shared *segment,
                           struct nbbs_shared_member **member,
                           struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Ends a member. Nobody may use the handle any more, and others can recover what the member still holds. In a child of
 * the process that joined, the call only gives back the child's memory, and the member goes on. Null: does nothing.
 */
void nbbs_shared_leave(struct nbbs_shared_member *member);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Returns which member this is; for a null pointer, nobody.
 */
struct nbbs_shared_id nbbs_shared_id_of(const struct nbbs_shared_member *member);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Allocates a block of at least `bytes` bytes at a multiple of `align`, a power of two up to a page, and writes its
 * offset, which is the same in every process, to `offset`. What is in it is whatever was there before.
 *
 * One read-modify-write in the steady state; before it refuses, it trims, as `nbbs_shared_heap_trim` does. Waits for
 * nobody. Refuses with `NULL`, `ALIGNMENT`, `SIZE`, `SEGMENT_FULL`, after which `nbbs_shared_recover` may find memory
 * of the dead, `SEGMENT_DAMAGED`.
 */
nbbs_code nbbs_shared_alloc(const struct nbbs_shared_member *member,
                            size_t bytes,
                            size_t align,
                            uint64_t *offset,
                            struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Frees the member's block at `offset`.
 *
 * One read-modify-write in the steady state. Waits for nobody. Refuses with `NULL`, `OUTSIDE_SEGMENT`,
 * `OFFSET_MISALIGNED`, `NOT_YOURS` also if it was freed before, `SEGMENT_DAMAGED`.
 */
nbbs_code nbbs_shared_free(const struct nbbs_shared_member *member,
                           uint64_t offset,
                           struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Makes the block at `offset` this member's, and writes whose it was to `from`, which may be null: for a block that
 * its holder has handed over, by whatever way, and neither uses nor frees any more.
 *
 * Whoever has the block by now must still mean it for this member. If the holder may have died, and another member
 * recovers and frees what is not needed, the block may be a third member's by now: use `nbbs_shared_take_from` then. A
 * read-modify-write. Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`, `NOT_YOURS` if it is nobody's.
 */
nbbs_code nbbs_shared_take(const struct nbbs_shared_member *member,
                           uint64_t offset,
                           struct nbbs_shared_id *from,
                           struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Makes the block at `offset` this member's if it is `from`'s, or this member's already, and writes whose it was to
 * `former`, which may be null: for a block that `from` has handed over, by whatever way, and neither uses nor frees any
 * more. If it was this member's already, it may be another block than the one that was sent: this member may have
 * recovered and freed that one, and allocated this one in its place.
 *
 * If `from` has died meanwhile and another member recovers, one of the two gets the block. The other one may use or
 * free it as any of its blocks, as long as those to which it was sent call this function, not `nbbs_shared_take`. A
 * read-modify-write. Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`, `NOT_YOURS` if it is neither's, which is
 * an ordinary answer here.
 */
nbbs_code nbbs_shared_take_from(const struct nbbs_shared_member *member,
                                uint64_t offset,
                                struct nbbs_shared_id from,
                                struct nbbs_shared_id *former,
                                struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Writes where in this process the member's block at `offset` is, and how many bytes it has, to `address` and `bytes`,
 * each of which may be null. It stays there as long as the segment is attached, or the member has not left.
 *
 * Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`, `NOT_YOURS`, `SEGMENT_DAMAGED`.
 */
nbbs_code nbbs_shared_block(const struct nbbs_shared_member *member,
                            uint64_t offset,
                            void **address,
                            size_t *bytes,
                            struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Returns how many members have died that nobody has recovered, or only in part, as something of theirs may be
 * pending: they count until what was pending when they were found dead is told. A system call for each seat that is
 * taken.
 */
size_t nbbs_shared_dead(const struct nbbs_shared_member *member);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Recovers what members that have died or left still held: each block, and each slot of the heap, becomes this
 * member's, and `keeps` says whether the member keeps it or it is freed; null: all are freed. Blocks that a dead
 * member was allocating or freeing at its end are among them. `found`, which may be null, gets how many.
 *
 * Several members may call it at the same time: each block goes to one of them, and the next recovery recovers whoever
 * dies in the call. `keeps` must know what is still needed, such as the root, or messages that were sent and not yet
 * received. The receiver of a message may take it while `keeps` is asked: then the answer has no effect. Waits for
 * nobody, and remembers for the member's next call what is pending. Costs a walk over the bookkeeping, a system call
 * or two for each seat, a few more for each whose member is in the middle of an operation, and memory of the process,
 * which ends if it has none: a few words for each block in use, and for each slot of the dead. Refuses with `NULL`.
 */
nbbs_code nbbs_shared_recover(const struct nbbs_shared_member *member,
                              nbbs_shared_keeps keeps,
                              void *context,
                              struct nbbs_shared_recovery *found,
                              struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Returns the bytes that a segment takes: its units; for each unit, 64 bits for its owner and 2.3 for the buddy
 * allocator; 320 bytes for each member, in two parts; each of these parts in whole pages of 4 KiB, and two pages more. 0
 * if there can be no such segment.
 */
uint64_t nbbs_shared_bytes(const struct nbbs_shared_geometry *geometry);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Makes a segment in the file at `path`, such as `/dev/shm/name`, and attaches to it. `mode` are its permissions, less
 * the process's umask if the file is new; 0 is taken for 0600: only its owner may open it.
 *
 * All of its memory is reserved now. A file of the caller that is empty, or holds a segment whose creator died before
 * it was whole, is taken over, and whoever may not open the segment may not open the file either from then on. Another
 * user's file is refused, and so is one whose segment has or had members, or a root, whatever its header says: a
 * damaged segment stays as it is until somebody removes the file. Through a symbolic link to nothing no file is created.
 * Refuses with `NULL`, `UNITS`, `UNIT_BYTES`, `MEMBERS`, `SIZE`, `SEGMENT_EXISTS`, `SEGMENT_MAKING` if another is just
 * making it, `NO_SEGMENT`, `SEGMENT_CORRUPT` and others if the file holds something else, `SYSTEM`. What cannot be made
 * leaves no file behind; one that was there may be empty then.
 */
nbbs_code nbbs_shared_create(const char *path,
                             const struct nbbs_shared_geometry *geometry,
                             uint32_t mode,
                             struct nbbs_shared **segment,
                             struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Makes a segment in memory without a name, which others attach to by its descriptor: `nbbs_shared_fd`. It can be
 * neither shortened nor made longer. `name` is for debuggers.
 *
 * Refuses with `NULL`, `TOO_LONG` a name of more than 249 bytes, `UNITS`, `UNIT_BYTES`, `MEMBERS`, `SIZE`, `SYSTEM`.
 */
nbbs_code nbbs_shared_create_memfd(const char *name,
                                   const struct nbbs_shared_geometry *geometry,
                                   struct nbbs_shared **segment,
                                   struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Attaches to the segment in the file at `path`, whatever its dimensions are (`nbbs_shared_check_geometry`). All of its
 * header is checked before any of it is mapped.
 *
 * Refuses with `NULL`, `NO_SEGMENT`, `TOO_SHORT`, `SEGMENT_VERSION`, `SEGMENT_CORRUPT`, `SEGMENT_MAKING` also of an
 * empty file, `SEGMENT_HALF_MADE` if its creator died before it was whole, `SYSTEM`.
 */
nbbs_code nbbs_shared_attach(const char *path,
                             struct nbbs_shared **segment,
                             struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Attaches to a segment by its descriptor, which was inherited, or received over a socket. The descriptor is
 * duplicated, and stays the caller's.
 *
 * Refuses as `nbbs_shared_attach` does; `SYSTEM` if it is no descriptor.
 */
nbbs_code nbbs_shared_attach_fd(int fd, struct nbbs_shared **segment, struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Detaches from a segment. Nobody may use the handle any more; the memory stays mapped until the last member that
 * joined by it has left. The segment's file stays. Null: does nothing.
 */
void nbbs_shared_detach(struct nbbs_shared *segment);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Has `hook` told of misuse of the segment, and of members that join from now on; null: nobody. While nobody else is
 * using the handle. Refuses with `NULL`.
 */
nbbs_code nbbs_shared_set_hook(struct nbbs_shared *segment,
                               nbbs_hook hook,
                               void *context,
                               struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * The descriptor of a segment, to be handed to another process; open until `nbbs_shared_detach`. Null: -1.
 */
int nbbs_shared_fd(const struct nbbs_shared *segment);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Writes to `geometry` what a segment was made for. Refuses with `NULL`.
 */
nbbs_code nbbs_shared_geometry_of(const struct nbbs_shared *segment,
                                  struct nbbs_shared_geometry *geometry,
                                  struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Refuses a segment of other dimensions than the caller expects, which attaching does not: the creator chooses them. The
 * segment stays attached.
 *
 * Refuses with `NULL`, `SEGMENT_GEOMETRY`, an ordinary answer.
 */
nbbs_code nbbs_shared_check_geometry(const struct nbbs_shared *segment,
                                     const struct nbbs_shared_geometry *expected,
                                     struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Returns how many bytes nobody holds. Two loads for each 512 units; exact when nothing else runs.
 */
uint64_t nbbs_shared_count_free_bytes(const struct nbbs_shared *segment);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Writes to `address` where in this process the `bytes` bytes at an offset are. The caller must know whose they are,
 * and who may touch them. Refuses with `NULL`, `OUTSIDE_SEGMENT`.
 */
nbbs_code nbbs_shared_at(const struct nbbs_shared *segment,
                         uint64_t offset,
                         size_t bytes,
                         void **address,
                         struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * The offset of an address in this process; 0 if it is not in the memory that the segment hands out.
 */
uint64_t nbbs_shared_offset(const struct nbbs_shared *segment, const void *address);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Writes to `owner` whose block, or slot of the heap, begins at an offset, at this moment. Refuses with `NULL`,
 * `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`.
 */
nbbs_code nbbs_shared_owner(const struct nbbs_shared *segment,
                            uint64_t offset,
                            struct nbbs_shared_id *owner,
                            struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Returns the root, an offset for whatever the members agree on, by which a newcomer finds the rest; 0: none, as at
 * first.
 * Acquires what `nbbs_shared_set_root` or `nbbs_shared_swap_root` released.
 */
uint64_t nbbs_shared_root(const struct nbbs_shared *segment);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Publishes the root; 0: none. Releases what was written before. Refuses with `NULL`.
 */
nbbs_code nbbs_shared_set_root(const struct nbbs_shared *segment, uint64_t offset, struct nbbs_error *error);
#endif

#if defined(NBBS_SHARED_MEMORY)
/**
 * Publishes `offset` as the root if the root still is `*expected`, and returns whether it was. If not, writes what it
 * is to `*expected`. 0: none. Acquires and releases. Null: no.
 */
bool nbbs_shared_swap_root(const struct nbbs_shared *segment,
                           uint64_t *expected,
                           uint64_t offset);
#endif

/**
 * Returns how many bytes of memory, at any address, `nbbs_small_create` needs for a heap with units of `unit` bytes
 * that hands out `bytes` bytes, rounded up to units. The bookkeeping takes 0.8 % with units of 32 bytes, the heap
 * itself some 100 bytes. 0 if there can be no such heap: `bytes` is 0, or more than there are addresses, or `unit` is
 * not 16, 32 or 64.
 */
size_t nbbs_small_bytes(size_t bytes,
                        size_t unit);

/**
 * Makes a heap in `memory`, whatever that holds, which hands out units of `unit` bytes: 16, 32 or 64. A block has as many
 * as it needs, in the first place that has room for them.
 *
 * `memory` is `bytes` long, and the bookkeeping, two bits for each unit, lies at its front. It is the heap's until nobody
 * uses the heap, or what it handed out, any more; a heap need not be ended. For some KiB to some MiB: there are no
 * caches, and a search takes longer the more blocks it passes. Threads, and handlers that interrupt anything, may use
 * the heap at the same time.
 *
 * A store for each word of the bookkeeping. Refuses with `NULL`, `SIZE`, `SETTING` (`unit`), `TOO_SHORT`; the memory has
 * not changed then.
 */
nbbs_code nbbs_small_create(void *memory,
                            size_t bytes,
                            size_t unit,
                            struct nbbs_small **heap,
                            struct nbbs_error *error);

/**
 * Has `hook` told of misuse of the heap; null: nobody is told. Call it only while nobody else is using the heap.
 * Refuses with `NULL`.
 */
nbbs_code nbbs_small_set_hook(struct nbbs_small *heap,
                              nbbs_hook hook,
                              void *context,
                              struct nbbs_error *error);

/**
 * Allocates `bytes` bytes at a multiple of `align`, a power of two, and writes their address to `block`. Each block is
 * aligned to 16 bytes at least. A block of 0 bytes has to be freed, too.
 *
 * A read-modify-write if the block lies in one word of the bookkeeping, which has 32 units (on 32 bits, 16); otherwise
 * one for each word and one more. The search reads a word for each 16 words without a piece that is long enough, and
 * each word before it refuses. Refuses with `ALIGNMENT`, `SIZE`, `HEAP_FULL`.
 */
nbbs_code nbbs_small_alloc(const struct nbbs_small *heap,
                           size_t bytes,
                           size_t align,
                           void **block,
                           struct nbbs_error *error);

/**
 * Frees a block. Null: does nothing.
 *
 * What `nbbs_small_size_of` takes; a read-modify-write for each word of the bookkeeping in which the block lies, and
 * one more if it reaches the end of a word. `block` may be any address: what is no block is refused with
 * `NOT_OF_HEAP`, `INSIDE_UNIT`, `NO_BLOCK`. So is a second free, unless another block begins there by then.
 */
nbbs_code nbbs_small_free(const struct nbbs_small *heap,
                          void *block,
                          struct nbbs_error *error);

/**
 * Makes the block whose address is at `block` larger or smaller. If the block has to move, its contents move with it,
 * and the new address is written to `block`; it is then aligned to 16 bytes. If the address was null, a block is
 * allocated.
 *
 * A block stays in place if it gets smaller, or the units behind it are free: what `nbbs_small_free` takes, and one
 * read-modify-write more. Otherwise this costs what `nbbs_small_alloc` and `nbbs_small_free` take, and a copy. Refuses as
 * they do.
 */
nbbs_code nbbs_small_resize(const struct nbbs_small *heap,
                            void **block,
                            size_t bytes,
                            struct nbbs_error *error);

/**
 * Writes to `bytes` how many bytes may be used of a block: as many as were asked for, rounded up to units.
 *
 * A load for each word of the bookkeeping in which the block lies, and one or two. Refuses as `nbbs_small_free`, and
 * with `NULL`.
 */
nbbs_code nbbs_small_size_of(const struct nbbs_small *heap,
                             const void *block,
                             size_t *bytes,
                             struct nbbs_error *error);

/**
 * Returns whether an address, which may be any, lies in memory that the heap hands out.
 */
bool nbbs_small_contains(const struct nbbs_small *heap, const void *address);

/**
 * `malloc`: null if `nbbs_small_alloc` would refuse. Aligned to 16 bytes.
 */
void *nbbs_small_malloc(const struct nbbs_small *heap, size_t bytes);

/**
 * `calloc`: memory for `count` times `bytes` bytes, all zero. Null if `nbbs_small_alloc` would refuse, or if the
 * product is too large for a `size_t`. Costs a store for each word more.
 */
void *nbbs_small_calloc(const struct nbbs_small *heap,
                        size_t count,
                        size_t bytes);

/**
 * `realloc`: null if `nbbs_small_resize` would refuse, and the block stays as it is. 0 bytes do not free it.
 */
void *nbbs_small_realloc(const struct nbbs_small *heap, void *block, size_t bytes);

/**
 * `aligned_alloc`: null if `nbbs_small_alloc` would refuse. `bytes` need not be a multiple of `align`.
 */
void *nbbs_small_aligned_alloc(const struct nbbs_small *heap, size_t align, size_t bytes);

/**
 * `malloc_usable_size`: what `nbbs_small_size_of` says; 0 of null, and where it would refuse.
 */
size_t nbbs_small_usable_size(const struct nbbs_small *heap, const void *block);

/**
 * Writes what the memory is used for to `statistics`. While others use the heap, each word of the bookkeeping was so at
 * some moment of the call: of a block that lies in several, a part may be counted as free.
 *
 * A load for each word of the bookkeeping. Refuses with `NULL`.
 */
nbbs_code nbbs_small_stats(const struct nbbs_small *heap,
                           struct nbbs_small_statistics *statistics,
                           struct nbbs_error *error);

/**
 * Calls `visit` with every block that is in use, in the order of addresses; its `size_class` is `NBBS_HEAP_CLASSES`.
 * `visit` may free the block.
 *
 * A block that nobody changes meanwhile is shown once, as it is; any other perhaps with a part of its bytes, or more of
 * them. A load for each word of the bookkeeping. Refuses with `NULL`.
 */
nbbs_code nbbs_small_walk(const struct nbbs_small *heap,
                          nbbs_visit_block visit,
                          void *context,
                          struct nbbs_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NBBS_H */
