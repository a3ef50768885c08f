// heap [wrong]: two threads allocate in a heap that has room for few blocks, write to them and free them, so that each gets
// what the other had. Nothing but the heap orders their writes. With `wrong`, one writes to what it has freed, when the
// other may have it: a race, which ThreadSanitizer must report.
#include <nbbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { STEPS = 20000, WRONG = 50 };

static nbbs_heap *heap;
static bool wrong;
// Relaxed everywhere: what a thread sees of the other's steps orders nothing.
static atomic_size_t steps[2];

static size_t steps_of(size_t thread) { return atomic_load_explicit(&steps[thread], memory_order_relaxed); }

// Goes on until both have done their steps, so that the two run side by side however they are scheduled.
static void *user(void *argument) {
    const size_t self = argument ? 1 : 0, other = 1 - self;
    for (size_t step = 0; step < STEPS || steps_of(other) < STEPS; step++) {
        const size_t bytes = step % 8 ? 16 + step % 5 * 400 : 40000;
        void *block;
        while (nbbs_heap_alloc(heap, bytes, 8, &block, NULL) != NBBS_CODE_OK) sched_yield();
        for (size_t word = 0; word < bytes / 8; word += 16) ((uint64_t *)block)[word] = step;
        const size_t seen = steps_of(other);
        if (nbbs_heap_free(heap, block, NULL) != NBBS_CODE_OK) exit(3);
        atomic_store_explicit(&steps[self], step + 1, memory_order_relaxed);
        if (wrong && self == 1 && step < WRONG) {
            // The other goes on as long as this thread has steps to do.
            while (steps_of(other) < seen + 8) sched_yield();
            *(uint64_t *)block = 1;
        }
    }
    return NULL;
}

int main(int arguments, char **argument) {
    pthread_t threads[2];
    wrong = arguments > 1 && argument[1][0] == 'w';
    const size_t bytes = nbbs_heap_bytes(1, 200 << 10);
    void *memory = malloc(bytes);
    if (!memory || nbbs_heap_create(memory, bytes, 1, &heap, NULL) != NBBS_CODE_OK) return 1;
    if (pthread_create(&threads[0], NULL, user, NULL) || pthread_create(&threads[1], NULL, user, memory)) return 2;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return wrong || nbbs_heap_audit(heap, NULL) == NBBS_CODE_OK ? 0 : 4;
}
