/* Frees memory of a heap, of as many bytes as it is told to, and reads from it; without an argument it does nothing wrong. */
#include <nbbs.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned char memory[4 << 20];

int main(int argc, char **argv) {
    const size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    nbbs_heap *heap;
    if (nbbs_heap_create(memory, sizeof memory, 1, &heap, NULL)) return 2;
    volatile unsigned char *block = nbbs_heap_malloc(heap, bytes);
    if (!block) return 3;
    block[bytes - 1] = 7;
    const unsigned char held = block[bytes - 1];
    if (nbbs_heap_free(heap, (void *)block, NULL)) return 4;
    printf("%d\n", argc > 1 ? block[bytes - 1] : held);
    return 0;
}
