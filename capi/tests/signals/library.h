/* What the programs here share: the functions that they call, `library.nb_alloc` and so on, linked with the program or, with
 * -DLOADED, of the shared library that `load` opens; how a program ends that has found something, with 3; a watch. */
#pragma once

#include <dlfcn.h>
#include <nbbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FUNCTIONS(X)                                                                                                   \
    X(nb_init) X(nb_alloc) X(nb_free) X(nb_stat_used_memory) X(nb_stat_release_count) X(nb_stat_occupancy_map)         \
    X(nbbs_attach) X(nbbs_set_memory) X(nbbs_on) X(nbbs_code_name) X(nbbs_address_of) X(nbbs_index_of)                 \
    X(nbbs_alloc) X(nbbs_alloc_units) X(nbbs_alloc_at) X(nbbs_alloc_request) X(nbbs_alloc_batch) X(nbbs_alloc_bytes)   \
    X(nbbs_free) X(nbbs_free_sized) X(nbbs_free_units) X(nbbs_free_batch) X(nbbs_free_part) X(nbbs_free_bytes)         \
    X(nbbs_shrink) X(nbbs_grow) X(nbbs_resize_bytes) X(nbbs_split_off) X(nbbs_split) X(nbbs_reserve) X(nbbs_release)   \
    X(nbbs_order_of) X(nbbs_len_of) X(nbbs_order_bound) X(nbbs_stats) X(nbbs_walk) X(nbbs_occupancy_map) X(nbbs_audit) \
    X(nbbs_pool_bytes) X(nbbs_pool_create_in) X(nbbs_pool_alloc) X(nbbs_pool_free) X(nbbs_pool_is_valid)               \
    X(nbbs_pool_len) X(nbbs_pool_capacity)                                                                             \
    X(nbbs_heap_create) X(nbbs_heap_malloc) X(nbbs_heap_realloc) X(nbbs_heap_usable_size) X(nbbs_heap_free)            \
    X(nbbs_heap_trim) X(nbbs_heap_stats) X(nbbs_heap_audit)

#define DECLARE(name) __typeof__(name) *name;
static struct {
    FUNCTIONS(DECLARE)
} library;

/* Says what was found and ends the program, from wherever it is. */
__attribute__((noreturn)) static inline void found(const char *what) {
    ssize_t written = write(2, what, strlen(what));
    written = write(2, "\n", 1);
    _exit(written == 1 ? 3 : 4);
}

/* Fills in `library`, from the file if there is to be one. */
static inline void load(int count, char **argument) {
#ifdef LOADED
    void *handle = count == 2 ? dlopen(argument[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (handle == NULL) found(count == 2 ? dlerror() : "the program takes a shared library");
#define FIND(name)                                                                                                     \
    library.name = (__typeof__(name) *)(uintptr_t)dlsym(handle, #name);                                                \
    if (library.name == NULL) found(dlerror());
#else
    (void)count, (void)argument;
#define FIND(name) library.name = name;
#endif
    FUNCTIONS(FIND)
}

/* What shows that something moves. */
static atomic_ulong progress;

/* A thread that ends the program when nothing has moved for five seconds. */
static inline void *watch(void *unused) {
    unsigned long last = 0;
    for (int still = 0; still < 50; still++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        unsigned long now = atomic_load(&progress);
        if (now != last) still = 0;
        last = now;
    }
    (void)unused;
    found("a handler waits for what it has interrupted");
}
