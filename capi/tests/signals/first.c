/* first [LIBRARY]: threads whose first call of the library is made by a signal handler, which has interrupted malloc. If
 * that call needs malloc, for a thread-local or anything else, it waits for the lock that its own thread holds. */
#include "library.h"

#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 1500, UNITS = 64 };

static uint64_t metadata[NBBS_METADATA_BYTES(UNITS) / 8];
static uint64_t objects[4096];
static nbbs_arena arena;
static nbbs_pool *pool;

static sem_t begun;
/* The round, and how many handlers have returned. */
static atomic_int current, handled;
/* Whether the thread is between its call of malloc and the return of free, and how many handlers have found it there. */
static atomic_int inside, interrupted;

/* One pair of each interface; another one first in each round. */
static void handle(int signal) {
    (void)signal;
    int round = atomic_load(&current);
    atomic_fetch_add(&interrupted, atomic_load(&inside));
    for (int turn = round; turn < round + 3; turn++) {
        uint64_t index;
        void *block;
        if (turn % 3 == 0) {
            if (library.nbbs_alloc(&arena, 0, &index, NULL)) found("nbbs_alloc: refused");
            if (library.nbbs_free(&arena, index, NULL, NULL)) found("nbbs_free: refused");
        } else if (turn % 3 == 1) {
            if ((block = library.nb_alloc(1)) == NULL) found("nb_alloc: refused");
            library.nb_free(block);
        } else {
            if (library.nbbs_pool_alloc(pool, &block, NULL)) found("nbbs_pool_alloc: refused");
            if (library.nbbs_pool_free(pool, block, NULL)) found("nbbs_pool_free: refused");
        }
    }
    atomic_fetch_add(&handled, 1);
}

/* Does nothing but malloc and free, of a size for which they take the heap's lock. */
static void *allocate(void *unused) {
    void *volatile block = unused;
    int round = atomic_load(&current);
    sem_post(&begun);
    while (atomic_load(&handled) <= round) {
        atomic_store_explicit(&inside, 1, memory_order_relaxed);
        block = malloc(5000);
        free(block);
        atomic_store_explicit(&inside, 0, memory_order_relaxed);
    }
    return NULL;
}

int main(int count, char **argument) {
    nbbs_pool_config config = {.size = 8, .limit = 64};
    pthread_t watcher, thread;
    load(count, argument);
    if (library.nb_init(1 << 20, UNITS * 4096)) found("nb_init: refused");
    if (library.nbbs_attach(&arena, metadata, sizeof metadata, UNITS, NULL)) found("nbbs_attach: refused");
    if (library.nbbs_pool_create_in(&config, objects, sizeof objects, &pool, NULL)) found("nbbs_pool_create_in: refused");
    sem_init(&begun, 0, 0);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle}, NULL);
    pthread_create(&watcher, NULL, watch, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&current, round);
        pthread_create(&thread, NULL, allocate, NULL);
        sem_wait(&begun);
        /* A sleep, so that the thread gets well into its loop even where both share a processor. */
        nanosleep(&(struct timespec){.tv_nsec = 20000 + round * 37 % 1000 * 50}, NULL);
        pthread_kill(thread, SIGUSR1);
        pthread_join(thread, NULL);
        atomic_fetch_add(&progress, 1);
    }
    if (interrupted < ROUNDS / 10) found("hardly a handler has interrupted malloc");
    printf("%d first calls from handlers, %d of them within malloc and free\n", ROUNDS, atomic_load(&interrupted));
    return 0;
}
