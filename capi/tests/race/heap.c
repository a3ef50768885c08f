// heap [wrong]: two threads allocate in a heap that has room for few blocks, write to them and free them, so that each gets
// what the other had. Nothing but the heap orders their writes. With `wrong`, one goes on writing to what it has freed: a race,
// which ThreadSanitizer must report.
#include <nbbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

static nbbs_heap *heap;
static bool wrong;

static void *user(void *argument) {
    const bool is_wrong = wrong && argument;
    for (size_t step = 0; step < 20000; step++) {
        const size_t bytes = step % 8 ? 16 + step % 5 * 400 : 40000;
        void *block;
        while (nbbs_heap_alloc(heap, bytes, 8, &block, NULL) != NBBS_CODE_OK) sched_yield();
        for (size_t word = 0; word < bytes / 8; word += 16) ((uint64_t *)block)[word] = step;
        if (nbbs_heap_free(heap, block, NULL) != NBBS_CODE_OK) return &wrong;
        if (is_wrong) *(uint64_t *)block = 1;
    }
    return NULL;
}

int main(int arguments, char **argument) {
    pthread_t threads[2];
    void *failed[2];
    wrong = arguments > 1 && argument[1][0] == 'w';
    const size_t bytes = nbbs_heap_bytes(1, 200 << 10);
    void *memory = malloc(bytes);
    if (!memory || nbbs_heap_create(memory, bytes, 1, &heap, NULL) != NBBS_CODE_OK) return 1;
    if (pthread_create(&threads[0], NULL, user, NULL) || pthread_create(&threads[1], NULL, user, memory)) return 2;
    pthread_join(threads[0], &failed[0]);
    pthread_join(threads[1], &failed[1]);
    if (failed[0] || failed[1]) return 3;
    return wrong || nbbs_heap_audit(heap, NULL) == NBBS_CODE_OK ? 0 : 4;
}
