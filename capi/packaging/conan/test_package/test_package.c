/* Header and library fit together, and hand out memory. */
#include <nbbs.h>
#include <stdio.h>
#include <string.h>

static uint64_t metadata[NBBS_METADATA_BYTES(1024) / 8];

int main(void) {
    nbbs_arena arena;
    nbbs_error error;
    uint64_t unit;
    if (nbbs_attach(&arena, metadata, sizeof metadata, 1024, &error) || nbbs_alloc(&arena, 3, &unit, &error) ||
        nbbs_free_sized(&arena, unit, 3, &error)) {
        char text[100];
        nbbs_message(&error, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    printf("nbbs %s\n", nbbs_version());
    return strcmp(nbbs_version(), NBBS_VERSION) != 0;
}
