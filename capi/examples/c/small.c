/* Little memory of any size: a heap of 16 KiB in an array, with units of 16 bytes.
 *
 *     cc small.c $(pkg-config --cflags --libs nbbs) -o small
 */

#include <nbbs.h>
#include <stdio.h>
#include <string.h>

static unsigned char memory[16 << 10];

static void show(void *context, const nbbs_heap_block *block) {
    (void)context;
    printf("%zu bytes at %zu\n", block->size, (size_t)((unsigned char *)block->address - memory));
}

int main(void) {
    nbbs_small *heap;
    nbbs_error error;
    char text[120];
    void *packet, *table;
    if (nbbs_small_create(memory, sizeof memory, 16, &heap, &error)) return 1;

    if (nbbs_small_alloc(heap, 100, 1, &packet, &error)) return 1;
    if (nbbs_small_alloc(heap, 1000, 256, &table, &error)) return 1;
    memset(packet, 0, 100);
    nbbs_small_walk(heap, show, NULL, NULL);

    nbbs_small_statistics statistics;
    nbbs_small_stats(heap, &statistics, NULL);
    printf("%zu blocks; %zu of %zu bytes are free, %zu in one piece\n", statistics.blocks, statistics.free,
           statistics.bytes, statistics.largest_free);

    nbbs_small_free(heap, table, NULL);
    if (nbbs_small_resize(heap, &packet, 5000, &error)) return 1; /* in place */
    nbbs_small_free(heap, packet, NULL);
    nbbs_small_free(heap, packet, &error);
    nbbs_message(&error, text, sizeof text);
    printf("freed twice: %s: %s\n", nbbs_code_name(error.code), text);
    return error.code != NBBS_CODE_NO_BLOCK;
}
