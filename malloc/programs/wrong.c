// wrong [double|inside|write]: what a program does that has a fault, or none. Prints how many bytes may be used of a
// block of 100: 112 with nbbs.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int arguments, char **argument) {
    const char *fault = arguments > 1 ? argument[1] : "nothing";
    // The slab of the block stays.
    static void *volatile neighbour;
    neighbour = malloc(100);
    volatile char *volatile block = malloc(100);
    printf("%zu\n", malloc_usable_size((void *)block));
    fflush(stdout);
    volatile char *volatile inside = block + 16;
    if (!strcmp(fault, "inside")) free((void *)inside);
    free((void *)block);
    if (!strcmp(fault, "double")) free((void *)block);
    if (!strcmp(fault, "write")) block[50] = 1;
    // Whatever was freed is allocated again, in the end also what a quarantine holds back.
    enum { BLOCKS = 1000 };
    static void *all[BLOCKS];
    for (int round = 0; round < 5; round++) {
        for (int n = 0; n < BLOCKS; n++) all[n] = malloc(100);
        for (int n = 0; n < BLOCKS; n++) free(all[n]);
    }
    return 0;
}
