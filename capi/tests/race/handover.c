// handover [wrong]: one thread holds the only unit, writes to its memory and frees it; another allocates it and writes, too.
// Nothing but the arena orders the two writes. With `wrong`, the second frees what the first still holds: a race, which
// ThreadSanitizer must report.
#include <nbbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

static uint64_t metadata[NBBS_METADATA_BYTES(1) / 8];
static nbbs_arena arena;
static uint64_t memory;
static bool wrong;

static void *holder(void *unit) {
    memory = 1;
    if (!wrong && nbbs_free(&arena, *(uint64_t *)unit, NULL, NULL) != NBBS_CODE_OK) return &wrong;
    return NULL;
}

static void *next(void *unit) {
    uint64_t own;
    if (wrong && nbbs_free(&arena, *(uint64_t *)unit, NULL, NULL) != NBBS_CODE_OK) return &wrong;
    while (nbbs_alloc(&arena, 0, &own, NULL) != NBBS_CODE_OK) sched_yield();
    memory = 2;
    return NULL;
}

int main(int arguments, char **argument) {
    pthread_t threads[2];
    void *failed[2];
    uint64_t unit;
    wrong = arguments > 1 && argument[1][0] == 'w';
    if (nbbs_attach(&arena, metadata, sizeof metadata, 1, NULL) != NBBS_CODE_OK) return 1;
    if (nbbs_alloc(&arena, 0, &unit, NULL) != NBBS_CODE_OK) return 2;
    if (pthread_create(&threads[0], NULL, holder, &unit) || pthread_create(&threads[1], NULL, next, &unit)) return 3;
    pthread_join(threads[0], &failed[0]);
    pthread_join(threads[1], &failed[1]);
    if (failed[0] || failed[1]) return 4;
    return wrong || memory == 2 ? 0 : 5;
}
