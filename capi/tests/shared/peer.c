/* peer create|attach PATH: the other end of shared/tests/peers.rs. Makes a segment, or attaches to one and frees what its root
 * leads to, "from Rust"; leaves a block, "from C", in the root, and is killed while it holds that and another.
 */
#include <nbbs.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int refused(const char *what, const nbbs_error *error) {
    char text[200];
    nbbs_message(error, text, sizeof text);
    fprintf(stderr, "peer: %s: %s\n", what, text);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const nbbs_shared_geometry geometry = {300, 64, 4};
    nbbs_shared *segment;
    nbbs_shared_member *member;
    nbbs_error error;
    const int creates = strcmp(argv[1], "create") == 0;
    if (creates ? nbbs_shared_create(argv[2], &geometry, 0, &segment, &error)
                : nbbs_shared_attach(argv[2], &segment, &error))
        return refused(argv[1], &error);
    if (nbbs_shared_join(segment, &member, &error)) return refused("join", &error);

    if (!creates) {
        uint64_t root = nbbs_shared_root(segment);
        void *found;
        if (nbbs_shared_take(member, root, NULL, &error)) return refused("take", &error);
        if (nbbs_shared_block(member, root, &found, NULL, &error)) return refused("block", &error);
        if (strcmp(found, "from Rust") != 0) return 3;
        if (nbbs_shared_free(member, root, &error)) return refused("free", &error);
    }
    uint64_t message, other, slot;
    void *place;
    if (nbbs_shared_alloc(member, 1000, 8, &message, &error)) return refused("alloc", &error);
    if (nbbs_shared_alloc(member, 64, 8, &other, &error)) return refused("alloc", &error);
    if (nbbs_shared_block(member, message, &place, NULL, &error)) return refused("block", &error);
    strcpy(place, "from C");
    if (nbbs_shared_heap_alloc(member, 40, 8, &slot, &error)) return refused("heap_alloc", &error);
    size_t bytes;
    if (nbbs_shared_heap_block(member, slot, &place, &bytes, &error)) return refused("heap_block", &error);
    if (bytes != 48) return 4;
    memset(place, 0, bytes);
    if (nbbs_shared_heap_free(member, slot + 8, &error) != NBBS_CODE_OFFSET_MISALIGNED) return 5;
    if (nbbs_shared_heap_take(member, slot, NULL, &error)) return refused("heap_take", &error);
    if (nbbs_shared_heap_free(member, slot, &error)) return refused("heap_free", &error);
    if (nbbs_shared_heap_free(member, slot, &error) != NBBS_CODE_NOT_YOURS) return 6;
    if (nbbs_shared_heap_trim(member) != 1) return 7;
    if (nbbs_shared_heap_alloc(member, 40, 8, &slot, &error)) return refused("heap_alloc", &error);
    nbbs_shared_set_root(segment, message, NULL);
    return raise(SIGKILL);
}
