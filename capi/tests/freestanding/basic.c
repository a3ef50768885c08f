/* The basic calls, under nothing: what a kernel links at least. The exit status says which step failed. */

#include <nbbs.h>

#define UNITS 262144 /* 1 GiB in pages of 4 KiB */

static uint64_t metadata[NBBS_METADATA_BYTES(UNITS) / 8]; /* in .bss */

int program(void);

int program(void) {
    nbbs_arena arena;
    uint64_t block;
    if (nbbs_attach(&arena, metadata, sizeof metadata, UNITS, NULL) != NBBS_CODE_OK) return 1;
    if (nbbs_alloc(&arena, 3, &block, NULL) != NBBS_CODE_OK || block % 8 != 0) return 2;
    if (nbbs_free(&arena, block, NULL, NULL) != NBBS_CODE_OK) return 3;
    if (nbbs_free(&arena, block, NULL, NULL) != NBBS_CODE_NOT_ALLOCATED) return 4;
    return 0;
}
