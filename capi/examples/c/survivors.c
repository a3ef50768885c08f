/* A segment of shared memory whose users are killed, one after the other, at any moment; the survivor goes on allocating, and
 * recovers what they held. Linux; takes a library that was built for it, -DNBBS_SHARED_MEMORY=ON.
 *
 *     cc survivors.c $(pkg-config --cflags --libs nbbs) -o survivors
 */

#define _DEFAULT_SOURCE
#include <nbbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEATHS = 100, HELD = 16 };

/* Allocates and frees for as long as it is let. */
static void work(const nbbs_shared_member *member, int rounds) {
    static uint64_t held[HELD];
    for (int round = 0; rounds == 0 || round < rounds; round++) {
        uint64_t *one = &held[rand() % HELD];
        if (*one == 0)
            nbbs_shared_alloc(member, (size_t)(rand() % 5000), 8, one, NULL);
        else if (nbbs_shared_free(member, *one, NULL) == NBBS_CODE_OK)
            *one = 0;
    }
    for (int each = 0; each < HELD; each++) {
        if (held[each] != 0) nbbs_shared_free(member, held[each], NULL);
        held[each] = 0;
    }
}

/* A process of its own, which attaches by the descriptor that it has inherited, and works until it is killed. */
static pid_t start(const nbbs_shared *segment, int number) {
    pid_t child = fork();
    if (child != 0) return child;
    nbbs_shared *own;
    nbbs_shared_member *member;
    if (nbbs_shared_attach_fd(nbbs_shared_fd(segment), &own, NULL) || nbbs_shared_join(own, &member, NULL)) _exit(1);
    srand((unsigned)number);
    work(member, 0);
    _exit(0);
}

int main(void) {
    const nbbs_shared_geometry geometry = {1 << 12, 64, 8};
    nbbs_shared *segment;
    nbbs_shared_member *member;
    nbbs_error error;
    if (nbbs_shared_create_memfd("survivors", &geometry, &segment, &error) ||
        nbbs_shared_join(segment, &member, &error)) {
        char text[120];
        nbbs_message(&error, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    size_t recovered = 0, members = 0;
    for (int death = 0; death < DEATHS; death++) {
        pid_t child = start(segment, death);
        usleep(2000);
        work(member, 1000); /* beside it */
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        work(member, 1000); /* as if nothing had happened */
        nbbs_shared_recovery found;
        nbbs_shared_recover(member, NULL, NULL, &found, NULL);
        recovered += found.freed;
        members += found.members;
    }
    const uint64_t lost = geometry.units * geometry.unit_bytes - nbbs_shared_count_free_bytes(segment);
    printf("%d killed, %zu of them as members; %zu blocks recovered, %llu bytes lost\n", DEATHS, members, recovered,
           (unsigned long long)lost);
    nbbs_shared_leave(member);
    nbbs_shared_detach(segment);
    return lost != 0 || members == 0 || recovered == 0;
}
