/* Memory of any size from a heap that lives in an array, with caches for two CPUs.
 *
 *     cc heap.c $(pkg-config --cflags --libs nbbs) -o heap
 */

#include <nbbs.h>
#include <stdio.h>
#include <string.h>

static unsigned char memory[1 << 20];

int main(void) {
    nbbs_heap *heap;
    nbbs_error error;
    char text[120];
    if (nbbs_heap_create(memory, sizeof memory, 2, &heap, &error)) return 1;

    char *line = nbbs_heap_malloc(heap, 6);
    if (line == NULL) return 1;
    strcpy(line, "lines");
    char *longer = nbbs_heap_realloc(heap, line, 1000);
    if (longer == NULL) return 1; /* `line` is still allocated then */
    line = longer;
    printf("%s: %zu bytes may be used\n", line, nbbs_heap_usable_size(heap, line));

    nbbs_heap_free(heap, line, NULL);
    nbbs_heap_free(heap, line, &error);
    nbbs_message(&error, text, sizeof text);
    printf("freed twice: %s: %s\n", nbbs_code_name(error.code), text);

    void *table;
    if (nbbs_heap_alloc(heap, 100000, 4096, &table, &error)) return 1;
    nbbs_heap_statistics statistics;
    nbbs_heap_stats(heap, &statistics, NULL);
    printf("%zu of %zu bytes are free\n", statistics.free, statistics.bytes);
    return error.code != NBBS_CODE_NO_BLOCK || nbbs_heap_free(heap, table, NULL) || nbbs_heap_audit(heap, &error);
}
