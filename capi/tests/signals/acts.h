/* One call of the library after another, at random, by a thread or by a handler that interrupts it; and who holds what.
 * Nothing here takes memory or waits. */
#pragma once

#include "library.h"

enum { UNITS = 600, BYTES = 256, PLAIN_UNITS = 512, PLAIN_BYTES = 4096, OBJECTS = 100, OBJECT = 24, SLOTS = 24 };

/* Nobody touches the memory that is handed out: any address will do. */
static char *const frames_base = (char *)(1 << 20);
static char *const plain_base = (char *)(1 << 24);

/* Two handles to one arena: each thread with a lane of its own, and all with the same. */
static nbbs_arena frames[2];
static nbbs_pool *pool;
static uint64_t frames_metadata[NBBS_METADATA_BYTES(UNITS) / 8];
static uint64_t pool_memory[2048];
static nbbs_heap *heap;
static uint64_t heap_memory[65536];

/* Who holds which unit: 1 if somebody does. */
static atomic_uchar frames_owner[UNITS], plain_owner[PLAIN_UNITS], pool_owner[OBJECTS];

/* What is held, on its way between threads and handlers: the first unit above 32 bits of length; 0: nothing. */
typedef atomic_uint_fast64_t slot;
static slot frames_slots[SLOTS], reserved_slots[2], plain_slots[SLOTS], pool_slots[OBJECTS / 2];
static unsigned char *_Atomic heap_slots[SLOTS];

/* Xorshift. Of an interrupted step some number comes, too. */
static uint64_t draw(uint64_t below) {
    static _Thread_local uint64_t state;
    if (state == 0) state = (uint64_t)(uintptr_t)&state;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 16) % below;
}

static void take(atomic_uchar *owner, uint64_t first, uint64_t len) {
    for (uint64_t unit = first; unit < first + len; unit++) {
        if (atomic_exchange(&owner[unit], 1) != 0) found("a unit was handed out twice");
    }
}

static void give(atomic_uchar *owner, uint64_t first, uint64_t len) {
    for (uint64_t unit = first; unit < first + len; unit++) {
        if (atomic_exchange(&owner[unit], 0) != 1) found("a unit is lost from a block that is held");
    }
}

/* Whether a call was granted; its refusal must be an ordinary answer. */
static bool granted(nbbs_code code) {
    switch (code) {
    case NBBS_CODE_OK: return true;
    case NBBS_CODE_EXHAUSTED: case NBBS_CODE_IN_USE: case NBBS_CODE_CONTENDED:
    case NBBS_CODE_FULL: return false;
    default: found(library.nbbs_code_name(code));
    }
}

static void must(nbbs_code code) {
    if (!granted(code)) found(library.nbbs_code_name(code));
}

static uint64_t encode(uint64_t first, uint64_t len) { return (first + 1) << 32 | len; }
static uint64_t first_of(uint64_t held) { return (held >> 32) - 1; }
static uint64_t len_of(uint64_t held) { return held & 0xffffffff; }

/* Puts something into a slot, and returns what was there. */
static uint64_t put(slot *slots, uint64_t count, uint64_t held) { return atomic_exchange(&slots[draw(count)], held); }

static bool is_block(uint64_t first, uint64_t len) { return (len & (len - 1)) == 0 && (first & (len - 1)) == 0; }

/* Frees a run in one of the ways there are. */
static void free_frames(const nbbs_arena *arena, uint64_t held) {
    uint64_t first = first_of(held), len = len_of(held), got;
    uint32_t order = __builtin_ctzll(len);
    if (held == 0) return;
    must(library.nbbs_len_of(arena, first, &got, NULL));
    if (got != len) found("nbbs_len_of: another length");
    give(frames_owner, first, len);
    switch (draw(5)) {
    case 0: must(library.nbbs_free(arena, first, NULL, NULL)); break;
    case 1: must(library.nbbs_free_units(arena, first, len, NULL)); break;
    case 2: must(library.nbbs_free_bytes(arena, frames_base + first * BYTES, len * BYTES, NULL)); break;
    case 3: must(library.nbbs_free_part(arena, first, first, first + len, NULL)); break;
    default:
        if (!is_block(first, len)) must(library.nbbs_free(arena, first, NULL, NULL));
        else if (draw(2)) must(library.nbbs_free_sized(arena, first, order, NULL));
        else must(library.nbbs_free_batch(arena, order, &first, 1, NULL, NULL));
    }
}

static void keep_frames(const nbbs_arena *arena, uint64_t first, uint64_t len) {
    if (len != 0) free_frames(arena, put(frames_slots, SLOTS, encode(first, len)));
}

static void alloc_frames(const nbbs_arena *arena) {
    /* Mostly few, now and then more than a word of the bookkeeping has. */
    uint64_t order = draw(8) ? draw(4) : draw(9), len = draw(8) ? 1 + draw(20) : 1 + draw(200), first, blocks[6];
    nbbs_request request = {.units = len, .order = draw(3), .start = draw(UNITS / 2), .top_down = draw(2)};
    void *address;
    size_t count = 0;
    bool got = false;
    switch (draw(6)) {
    case 0: len = 1 << order, got = granted(library.nbbs_alloc(arena, order, &first, NULL)); break;
    case 1: got = granted(library.nbbs_alloc_units(arena, len, &first, NULL)); break;
    case 2: first = draw(UNITS - len), got = granted(library.nbbs_alloc_at(arena, first, len, NULL)); break;
    case 3: got = granted(library.nbbs_alloc_request(arena, &request, &first, NULL)); break;
    case 4:
        got = granted(library.nbbs_alloc_bytes(arena, len * BYTES - draw(BYTES), 1, &address, NULL));
        if (got) must(library.nbbs_index_of(arena, address, &first, NULL));
        break;
    default:
        order = draw(3);
        granted(library.nbbs_alloc_batch(arena, order, blocks, 1 + draw(6), &count, NULL));
        for (size_t each = 0; each < count; each++) {
            take(frames_owner, blocks[each], 1 << order);
            keep_frames(arena, blocks[each], 1 << order);
        }
    }
    if (got) {
        take(frames_owner, first, len);
        keep_frames(arena, first, len);
    }
}

/* Makes a run another: units come free only after the owner map has been told, and are new before. */
static void change_frames(const nbbs_arena *arena, uint64_t held) {
    uint64_t first = first_of(held), len = len_of(held), less = 1 + draw(len), more = len + draw(8), rest;
    uint32_t order = draw(4);
    bool by_bytes = draw(2);
    char *address = frames_base + first * BYTES;
    switch (draw(5)) {
    case 0:
        give(frames_owner, first + less, len - less);
        if (granted(by_bytes ? library.nbbs_resize_bytes(arena, address, less * BYTES, NULL)
                             : library.nbbs_shrink(arena, first, less, NULL))) {
            len = less;
        } else {
            take(frames_owner, first + less, len - less);
        }
        break;
    case 1:
        if (first + more > UNITS) break;
        if (granted(by_bytes ? library.nbbs_resize_bytes(arena, address, more * BYTES, NULL)
                             : library.nbbs_grow(arena, first, more, NULL))) {
            take(frames_owner, first + len, more - len);
            len = more;
        }
        break;
    case 2:
        if (less < len && granted(library.nbbs_split_off(arena, first, less, &rest, NULL))) {
            keep_frames(arena, rest, len - less);
            len = less;
        }
        break;
    case 3:
        if (((first | len) & ((1 << order) - 1)) != 0 || !granted(library.nbbs_split(arena, first, order, NULL))) break;
        for (uint64_t part = 1 << order; part < len; part += 1 << order) keep_frames(arena, first + part, 1 << order);
        len = 1 << order;
        break;
    default:
        if (less < 2) break;
        /* The last but one of the first `less`. */
        give(frames_owner, first + less - 2, 1);
        if (granted(library.nbbs_free_part(arena, first, first + less - 2, first + less - 1, NULL))) {
            keep_frames(arena, first + less - 1, len - less + 1);
            len = less - 2;
        } else {
            take(frames_owner, first + less - 2, 1);
        }
    }
    keep_frames(arena, first, len);
}

static void visit(void *units, const nbbs_piece *piece) { *(uint64_t *)units += piece->units; }

/* What others do meanwhile makes the figures what they are. */
static void look_at_frames(const nbbs_arena *arena) {
    nbbs_statistics statistics;
    uint8_t map[UNITS];
    uint64_t units = 0;
    switch (draw(4)) {
    case 0: must(library.nbbs_stats(arena, &statistics, NULL)), units = statistics.units; break;
    case 1: must(library.nbbs_walk(arena, visit, &units, NULL)); break;
    case 2: must(library.nbbs_occupancy_map(arena, 0, map, sizeof map, &units, NULL)); break;
    default: units = library.nbbs_order_bound(arena) < 10 ? UNITS : 0;
    }
    if (units != UNITS) found("a look saw more or fewer units than there are");
}

static void reserve_frames(const nbbs_arena *arena) {
    uint64_t len = 1 + draw(40), first = draw(UNITS - len), range;
    if (granted(library.nbbs_reserve(arena, first, first + len, NULL))) {
        take(frames_owner, first, len);
        range = put(reserved_slots, 2, encode(first, len));
        if (range == 0) return;
        first = first_of(range), len = len_of(range);
        give(frames_owner, first, len);
        must(library.nbbs_release(arena, first, first + len, NULL));
    }
}

static void act_on_frames(void) {
    const nbbs_arena *arena = &frames[draw(2)];
    uint64_t held;
    switch (draw(12)) {
    case 0: look_at_frames(arena); break;
    case 1: reserve_frames(arena); break;
    case 2: case 3: case 4: alloc_frames(arena); break;
    default:
        if ((held = put(frames_slots, SLOTS, 0)) == 0) alloc_frames(arena);
        else if (draw(2)) change_frames(arena, held);
        else free_frames(arena, held);
    }
}

static void free_plain(uint64_t held) {
    if (held == 0) return;
    give(plain_owner, first_of(held), len_of(held));
    library.nb_free(plain_base + first_of(held) * PLAIN_BYTES);
}

static void act_on_plain(void) {
    uint64_t held = put(plain_slots, SLOTS, 0), len = 1 << draw(5);
    uint8_t map[PLAIN_UNITS];
    char *block;
    if (draw(64) == 0 && library.nb_stat_occupancy_map(map, 0) != 0) found("nb_stat_occupancy_map: refused");
    if (held == 0 && (block = library.nb_alloc(len * PLAIN_BYTES)) != NULL) {
        take(plain_owner, (block - plain_base) / PLAIN_BYTES, len);
        held = put(plain_slots, SLOTS, encode((block - plain_base) / PLAIN_BYTES, len));
    }
    free_plain(held);
}

static void free_object(uint64_t held) {
    char *object = (char *)pool_memory + first_of(held);
    if (held == 0) return;
    if (!library.nbbs_pool_is_valid(pool, object)) found("nbbs_pool_is_valid: of an object, no");
    give(pool_owner, len_of(held), 1);
    must(library.nbbs_pool_free(pool, object, NULL));
}

/* Objects lie side by side from the first that was ever handed out down or up: numbered by where they are. */
static void act_on_pool(void) {
    uint64_t held = put(pool_slots, OBJECTS / 2, 0), offset;
    void *object;
    if (held == 0 && granted(library.nbbs_pool_alloc(pool, &object, NULL))) {
        offset = (char *)object - (char *)pool_memory;
        take(pool_owner, offset / OBJECT % OBJECTS, 1);
        held = put(pool_slots, OBJECTS / 2, encode(offset, offset / OBJECT % OBJECTS));
    }
    free_object(held);
}

/* A block begins and ends with where it is. */
static void mark(unsigned char *block) {
    size_t last = library.nbbs_heap_usable_size(heap, block) - sizeof block;
    memcpy(block, &block, sizeof block), memcpy(block + last, &block, sizeof block);
}

static void free_heap(unsigned char *block) {
    if (block == NULL) return;
    size_t last = library.nbbs_heap_usable_size(heap, block) - sizeof block;
    if (memcmp(block, &block, sizeof block) != 0 || memcmp(block + last, &block, sizeof block) != 0) {
        found("a block of the heap was handed out twice");
    }
    must(library.nbbs_heap_free(heap, block, NULL));
}

static void act_on_heap(void) {
    unsigned char *block = atomic_exchange(&heap_slots[draw(SLOTS)], NULL);
    size_t size = draw(8) ? draw(300) : draw(40000);
    if (draw(256) == 0) library.nbbs_heap_trim(heap);
    if (block == NULL && (block = library.nbbs_heap_malloc(heap, size)) != NULL) {
        mark(block);
        /* Null if there is no memory, and the block stays. */
        unsigned char *moved = draw(4) ? NULL : library.nbbs_heap_realloc(heap, block, draw(5000));
        if (moved != NULL) mark(block = moved);
        block = atomic_exchange(&heap_slots[draw(SLOTS)], block);
    }
    free_heap(block);
}

/* One call or two, of any interface. */
static void act(void) {
    switch (draw(5)) {
    case 0: act_on_plain(); break;
    case 1: act_on_pool(); break;
    case 2: act_on_heap(); break;
    default: act_on_frames();
    }
    atomic_fetch_add(&progress, 1);
}
