/* Threads that allocate and free anywhere, of which the last RUNNERS hold runs; the audit when all have stopped. */

#define CLAIMED skip
#define RETURNED
#define RUN_RETURNED
#include "tree.pml"

byte running = THREADS;

#include "worker.pml"
#ifdef RUNNERS
#include "runs.pml"
#else
#define RUNNERS 0
#define check_rests() skip
#endif

init {
  atomic {
#if THREADS > RUNNERS
    run Worker(0, 0, 0);
#endif
#if THREADS > RUNNERS + 1
    run Worker(1, 0, 0);
#endif
#if THREADS > RUNNERS + 2
    run Worker(2, 0, 0);
#endif
#if RUNNERS > 0
    run Runner(THREADS - 1);
#endif
#if RUNNERS > 1
    run Runner(THREADS - 2);
#endif
    skip
  };
  d_step { running == 0 -> check_rests(); audit() }
}
