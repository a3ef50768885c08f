/* Page frames by number, as a kernel hands them out: a memory map at boot, a handle and a cache for each CPU,
 * statistics.
 *
 *     cc frames.c $(pkg-config --cflags --libs nbbs) -o frames
 */

#include <inttypes.h>
#include <nbbs.h>
#include <stdio.h>

#define FRAMES 262144 /* 1 GiB in frames of 4 KiB */
#define CPUS 4

static uint64_t metadata[NBBS_METADATA_BYTES(FRAMES) / 8];
static uint64_t caches[NBBS_CACHE_BYTES(CPUS) / 8];
static nbbs_arena cpus[CPUS];

/* What the firmware says is usable. */
static const struct {
    uint64_t start, end;
} memory_map[] = {{1, 159}, {256, 130000}, {131072, FRAMES}};

static int fail(const nbbs_error *error) {
    char text[120];
    nbbs_message(error, text, sizeof text);
    printf("%s\n", text);
    return 1;
}

int main(void) {
    nbbs_arena frames;
    nbbs_error error;

    /* Nothing is handed out but what the map allows. */
    if (nbbs_create_reserved(&frames, metadata, sizeof metadata, FRAMES, &error)) return fail(&error);
    for (size_t at = 0; at < sizeof memory_map / sizeof *memory_map; at++) {
        if (nbbs_release(&frames, memory_map[at].start, memory_map[at].end, &error)) return fail(&error);
    }
    /* Each CPU keeps some frames of its own: no read-modify-write where it finds what it needs there. */
    if (nbbs_cache_create(&frames, caches, sizeof caches, NULL, &error)) return fail(&error);
    for (size_t cpu = 0; cpu < CPUS; cpu++) {
        if (nbbs_on(&frames, cpu, &cpus[cpu], &error)) return fail(&error);
    }

    uint64_t table, huge, run, low;
    if (nbbs_alloc(&cpus[1], 0, &table, &error)) return fail(&error);
    if (nbbs_alloc(&cpus[2], 9, &huge, &error)) return fail(&error);
    if (nbbs_alloc_units(&cpus[0], 37, &run, &error)) return fail(&error);
    nbbs_request below_16_mib = {.units = 16, .end = 4096, .top_down = true};
    if (nbbs_alloc_request(&cpus[3], &below_16_mib, &low, &error)) return fail(&error);

    nbbs_statistics statistics;
    if (nbbs_stats(&frames, &statistics, &error)) return fail(&error);
    printf("%" PRIu64 " frames used, %" PRIu64 " cached, %" PRIu64 " free, %" PRIu64 " reserved\n", statistics.used_units,
           statistics.cached_units, statistics.free_units, statistics.reserved_units);

    for (uint64_t *each = (uint64_t[]){table, huge, run, low, 0}; *each != 0; each++) {
        if (nbbs_free(&frames, *each, NULL, &error)) return fail(&error);
    }
    for (size_t cpu = 0; cpu < CPUS; cpu++) {
        if (nbbs_cache_drain(&frames, cpu, &error)) return fail(&error);
    }
    if (nbbs_audit(&frames, NULL, &error)) return fail(&error);
    return statistics.used_units == 1 + 512 + 37 + 16 ? 0 : 1;
}
