/* One arena for the whole program, as programs of github.com/TunaCici/NBBS use it.
 *
 *     cc plain.c $(pkg-config --cflags --libs nbbs) -o plain
 */

#include <inttypes.h>
#include <nbbs.h>
#include <stdio.h>
#include <stdlib.h>

static void on_misuse(void *context, const nbbs_error *error) {
    char text[120];
    (void)context;
    nbbs_message(error, text, sizeof text);
    printf("refused: %s\n", text);
}

int main(void) {
    const size_t size = 16 << 20;
    void *memory = aligned_alloc(4096, size);
    nb_set_hook(on_misuse, NULL);
    if (memory == NULL || nb_init((uintptr_t)memory, size) != 0) return 1;

    void *block = nb_alloc(5000); /* 8192 bytes: a power of two of pages */
    if (block == NULL) return 1;
    printf("%" PRIu64 " of %" PRIu64 " bytes are in use\n", nb_stat_used_memory(), nb_stat_total_memory());
    nb_free(block);
    nb_free(block); /* refused, and said so */
    printf("%" PRIu64 " bytes of bookkeeping\n", nb_stat_tree_size() + nb_stat_index_size());

    int failed = nb_stat_used_memory() != 0;
    free(memory);
    return failed;
}
