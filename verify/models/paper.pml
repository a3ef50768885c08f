/* The patient: the published algorithm with one level a word (TryAlloc, FreeNode and Unmark of the paper). The
   overlap that DESIGN.md describes must be found here.

   Node 1 is the root and level 0, nodes 2 and 3 its children, nodes 4 to 7 the units. A retry loop around a
   compare-and-swap that decides anew from what it finds is one step. Threads allocate any node of the menu in
   any order, for ever. */

#define OCC_RIGHT 1
#define OCC_LEFT 2
#define COAL_RIGHT 4
#define COAL_LEFT 8
#define OCC 16
#define BUSY (OCC | OCC_LEFT | OCC_RIGHT)

#define LEVEL(node) (((node) > 1) + ((node) > 3))
#define OCC_OF(child) ((child) & 1 -> OCC_RIGHT : OCC_LEFT)
#define OCC_BUDDY(child) ((child) & 1 -> OCC_LEFT : OCC_RIGHT)
#define COAL_OF(child) (OCC_OF(child) << 2)
#define COAL_BUDDY(child) (OCC_BUDDY(child) << 2)
#define PARENT(n) ((n) >> 1)
#define UNITS(node) (LEVEL(node) == 2 -> 1 << ((node) - 4) : (LEVEL(node) == 1 -> 3 << (2 * ((node) - 2)) : 15))

byte tree[8];
byte own;               /* ghost: the units in somebody's hands */
byte status;            /* used within one step only */

inline acquire() {
  assert(!(own & UNITS(node)));
  own = own | UNITS(node);
  run_at = 0
}

proctype Thread() {
  byte node, run_at, upper;     /* run_at: the child from which a climb looks at its parent */

idle:
  if
#define ALLOC(n) :: d_step { !node && !tree[n] -> tree[n] = BUSY; node = n; run_at = n } goto climb
  ALLOC(4)
  ALLOC(5)
  ALLOC(1)
#ifdef ALL_NODES
  ALLOC(2)
  ALLOC(3)
  ALLOC(6)
#endif
  :: d_step { node -> own = own & ~UNITS(node); upper = 0; run_at = node } goto mark
  fi;

climb: /* T7 to T18 */
  if
  :: d_step { LEVEL(run_at) == 0 -> acquire() } goto idle
  :: d_step { LEVEL(run_at) > 0 && (tree[PARENT(run_at)] & OCC) -> upper = LEVEL(run_at); run_at = node } goto mark
  :: d_step { LEVEL(run_at) > 0 && !(tree[PARENT(run_at)] & OCC) ->
       tree[PARENT(run_at)] = (tree[PARENT(run_at)] & ~COAL_OF(run_at)) | OCC_OF(run_at);
       run_at = PARENT(run_at) } goto climb
  fi;

mark: /* FreeNode: F4 to F18 */
  if
  :: d_step { LEVEL(run_at) == upper } goto clear
  :: d_step { LEVEL(run_at) > upper ->
       status = tree[PARENT(run_at)];
       tree[PARENT(run_at)] = status | COAL_OF(run_at);
       run_at = ((status & OCC_BUDDY(run_at)) && !(status & COAL_BUDDY(run_at)) -> 0 : PARENT(run_at));
       status = 0 };
     if
     :: d_step { !run_at } goto clear
     :: d_step { run_at } goto mark
     fi
  fi;

clear: /* F19 */
  if
  :: d_step { LEVEL(node) == upper -> tree[node] = 0; node = 0; run_at = 0; upper = 0 } goto idle
  :: d_step { LEVEL(node) > upper -> tree[node] = 0; run_at = node; node = 0 } goto unmark
  fi;

unmark: /* Unmark: U4 to U13 */
  if
  :: d_step { !(tree[PARENT(run_at)] & COAL_OF(run_at)) -> run_at = 0; upper = 0 } goto idle
  :: d_step { tree[PARENT(run_at)] & COAL_OF(run_at) ->
       status = tree[PARENT(run_at)] & ~(COAL_OF(run_at) | OCC_OF(run_at));
       tree[PARENT(run_at)] = status;
       run_at = (LEVEL(PARENT(run_at)) <= upper || (status & OCC_BUDDY(run_at)) -> 0 : PARENT(run_at));
       status = 0 };
     if
     :: d_step { !run_at -> upper = 0 } goto idle
     :: d_step { run_at } goto unmark
     fi
  fi
}

init {
  atomic {
    run Thread();
    run Thread()
#if THREADS > 2
    ; run Thread()
#endif
  }
}
