/* Threads that allocate and free wherever they like; the audit when all have stopped. */

#define CLAIMED skip
#define RETURNED
#include "tree.pml"

byte running = THREADS;

#include "worker.pml"

init {
  atomic {
    run Worker(0, 0, 0);
    run Worker(1, 0, 0);
#if THREADS > 2
    run Worker(2, 0, 0)
#endif
  };
  d_step { running == 0 -> audit() }
}
