/* A bit of everything, under nothing. The exit status says which step failed. */

#include <nbbs.h>

#define UNITS 4096

static uint64_t metadata[NBBS_METADATA_BYTES(UNITS) / 8];
static uint64_t objects[8192];
static unsigned char heap[1 << 16];
static uint64_t place[12288];
static unsigned misuse;

static void *bump(size_t bytes) {
    return bytes <= sizeof heap ? heap : NULL;
}

static void note(void *context, const nbbs_error *error) {
    *(unsigned *)context += error->code == NBBS_CODE_NOT_ALLOCATED;
}

static int same(const char *one, const char *other) {
    while (*one != 0 && *one == *other) one++, other++;
    return *one == *other;
}

int program(void);

int program(void) {
    nbbs_arena arena, cpu;
    nbbs_error error;
    nbbs_statistics statistics;
    uint64_t run, blocks[40];
    size_t got;
    char text[80];

    if (nbbs_create_reserved(&arena, metadata, sizeof metadata, UNITS, &error) != NBBS_CODE_OK) return 1;
    if (nbbs_release(&arena, 0, 4000, &error) != NBBS_CODE_OK) return 2;
    if (nbbs_set_hook(&arena, note, &misuse, &error) != NBBS_CODE_OK) return 3;
    if (nbbs_on(&arena, 1, &cpu, &error) != NBBS_CODE_OK) return 4;
    if (nbbs_alloc_units(&cpu, 37, &run, &error) != NBBS_CODE_OK) return 5;
    if (nbbs_grow(&cpu, run, 40, &error) != NBBS_CODE_OK) return 6;
    if (nbbs_alloc_batch(&cpu, 0, blocks, 40, &got, &error) != NBBS_CODE_OK || got != 40) return 7;
    if (nbbs_free_batch(&cpu, 0, blocks, got, NULL, &error) != NBBS_CODE_OK) return 8;
    if (nbbs_free_units(&arena, run, 40, &error) != NBBS_CODE_OK) return 9;
    if (nbbs_free(&arena, 17, NULL, &error) != NBBS_CODE_NOT_ALLOCATED || misuse != 1) return 10;
    nbbs_message(&error, text, sizeof text);
    if (!same(text, "unit 17 is not allocated")) return 11;
    if (nbbs_stats(&arena, &statistics, &error) != NBBS_CODE_OK || statistics.free_units != 4000) return 12;
    if (nbbs_audit(&arena, NULL, &error) != NBBS_CODE_OK) return 13;

    nbbs_pool_config config = {.size = 48, .align = 16, .limit = 100};
    nbbs_pool *pool;
    void *object;
    if (nbbs_pool_create_in(&config, objects, sizeof objects, &pool, &error) != NBBS_CODE_OK) return 14;
    if (nbbs_pool_alloc(pool, &object, &error) != NBBS_CODE_OK) return 15;
    if (nbbs_pool_free(pool, object, &error) != NBBS_CODE_OK) return 16;
    if (nbbs_pool_free(pool, object, &error) != NBBS_CODE_NO_OBJECT) return 17;
    if (nbbs_pool_create(&config, NULL, &pool, &error) != NBBS_CODE_NULL) return 18; /* there is no malloc */

    if (nb_init(1 << 30, 1 << 24) == 0) return 19; /* nor for this */
    nb_set_malloc(bump, NULL);
    if (nb_init(1 << 30, 1 << 24) != 0) return 20;
    object = nb_alloc(10000);
    if (object == NULL || nb_stat_used_memory() != 16384) return 21;
    nb_free(object);
    if (nb_stat_used_memory() != 0 || nb_stat_release_count() != 1) return 22;

    nbbs_heap *memory;
    if (nbbs_heap_create(place, sizeof place, 1, &memory, &error) != NBBS_CODE_OK) return 23;
    object = nbbs_heap_calloc(memory, 10, 100);
    if (object == NULL || nbbs_heap_usable_size(memory, object) != 1024) return 24;
    object = nbbs_heap_realloc(memory, object, 2000);
    if (object == NULL || *(unsigned char *)object != 0) return 25;
    if (nbbs_heap_free(memory, object, &error) != NBBS_CODE_OK) return 26;
    if (nbbs_heap_free(memory, object, &error) != NBBS_CODE_NO_BLOCK) return 27;
    if (nbbs_heap_audit(memory, &error) != NBBS_CODE_OK) return 28;

    nbbs_small *small;
    nbbs_small_statistics little;
    if (nbbs_small_create(heap, sizeof heap, 16, &small, &error) != NBBS_CODE_OK) return 29;
    if (nbbs_small_alloc(small, 1000, 64, &object, &error) != NBBS_CODE_OK) return 30;
    if (nbbs_small_resize(small, &object, 20, &error) != NBBS_CODE_OK) return 31;
    if (nbbs_small_stats(small, &little, &error) != NBBS_CODE_OK || little.bytes - little.free != 32) return 32;
    if (nbbs_small_free(small, object, &error) != NBBS_CODE_OK) return 33;
    if (nbbs_small_free(small, object, &error) != NBBS_CODE_NO_BLOCK) return 34;
    return 0;
}
