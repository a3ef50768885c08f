/* handlers [LIBRARY]: threads call the library and malloc, and are interrupted wherever they are by handlers that call the
 * library, too, up to three deep. Who holds what is written down by all of them. */
#include "acts.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, SIGNALS = 30000 };

/* A handler of one of them may be interrupted by the others. */
static const int signals[] = {SIGUSR1, SIGUSR2, SIGWINCH};

static atomic_ulong handled;

static void handle(int signal) {
    (void)signal;
    for (uint64_t acts = 1 + draw(4); acts > 0; acts--) act();
    atomic_fetch_add(&handled, 1);
}

/* Has a timer send a signal to whichever thread does not block it, every so many nanoseconds. */
static void start(int signal, long interval) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal};
    struct itimerspec every = {.it_interval = {.tv_nsec = interval}, .it_value = {.tv_nsec = interval}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &every, NULL) != 0) {
        found("there are no timers");
    }
}

static void *work(void *unused) {
    void *volatile block = unused;
    while (atomic_load(&handled) < SIGNALS) {
        block = malloc(draw(6000));
        act();
        free(block);
        act();
    }
    return NULL;
}

/* The arenas, the pool and the heap, empty. */
static void make(void) {
    nbbs_pool_config config = {.size = OBJECT, .align = 1, .limit = OBJECTS};
    nbbs_arena *arena = &frames[0];
    must(library.nbbs_attach(arena, frames_metadata, sizeof frames_metadata, UNITS, NULL));
    must(library.nbbs_set_memory(arena, frames_base, BYTES, NULL));
    must(library.nbbs_on(arena, 0, &frames[1], NULL));
    if (library.nbbs_pool_bytes(&config) > sizeof pool_memory) found("the pool's memory is too small");
    must(library.nbbs_pool_create_in(&config, pool_memory, sizeof pool_memory, &pool, NULL));
    must(library.nbbs_heap_create(heap_memory, sizeof heap_memory, 2, &heap, NULL));
    if (library.nb_init((uintptr_t)plain_base, PLAIN_UNITS * PLAIN_BYTES) != 0) found("nb_init: refused");
}

/* Gives everything back; nothing is missing. */
static void end(void) {
    nbbs_statistics statistics;
    nbbs_heap_statistics of_heap;
    for (int each = 0; each < SLOTS; each++) {
        free_frames(&frames[0], atomic_exchange(&frames_slots[each], 0));
        free_plain(atomic_exchange(&plain_slots[each], 0));
        free_heap(atomic_exchange(&heap_slots[each], NULL));
    }
    for (int each = 0; each < 2; each++) {
        uint64_t range = atomic_exchange(&reserved_slots[each], 0), first = first_of(range);
        if (range != 0) must(library.nbbs_release(&frames[0], first, first + len_of(range), NULL));
    }
    for (int each = 0; each < OBJECTS / 2; each++) free_object(atomic_exchange(&pool_slots[each], 0));
    must(library.nbbs_heap_audit(heap, NULL));
    must(library.nbbs_heap_stats(heap, &of_heap, NULL));
    if (of_heap.refused != 0) found("frees of blocks of the heap were refused");
    must(library.nbbs_audit(&frames[0], NULL, NULL));
    must(library.nbbs_stats(&frames[0], &statistics, NULL));
    if (statistics.free_units != UNITS) found("units of the arena are lost");
    if (library.nb_stat_used_memory() != 0) found("memory of nb_alloc is lost");
    if (library.nbbs_pool_len(pool) != 0) found("objects are lost");
}

int main(int count, char **argument) {
    pthread_t watcher, threads[THREADS];
    struct sigaction action = {.sa_handler = handle};
    sigset_t of_the_threads;
    load(count, argument);
    make();
    sigemptyset(&of_the_threads);
    for (int each = 0; each < 3; each++) {
        sigaction(signals[each], &action, NULL);
        sigaddset(&of_the_threads, signals[each]);
    }
    for (int each = 0; each < THREADS; each++) pthread_create(&threads[each], NULL, work, NULL);
    pthread_sigmask(SIG_BLOCK, &of_the_threads, NULL);
    pthread_create(&watcher, NULL, watch, NULL);
    for (int each = 0; each < 3; each++) start(signals[each], 40000 + 15000 * each);
    for (int each = 0; each < THREADS; each++) pthread_join(threads[each], NULL);
    end();
    printf("%lu signals, %lu calls\n", atomic_load(&handled), atomic_load(&progress));
    return 0;
}
