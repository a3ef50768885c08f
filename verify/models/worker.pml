/* A thread that allocates anywhere: at any place that any search could reach, in any order; between its operations it
   does any of the steps by which a search looks after the tree. It holds one block or reservation at a time. It runs
   for ever, or for OPS allocations.

   MENU, by -D: UNIT0, 1, 2, 4 blocks of order 0 at that unit, SLOT0, 1, 2 of order 1, TOP0 of order 2, TOP of
   order 3, HALF1 of order 2 at unit 4 of a deep arena, RESERVATIONS of one and two units (lane 0: reserve() climbs as that lane), CARE tighten() and
   split_over() of every word, GIVE a block may be freed by another thread than the one that allocated it. */

#ifdef HALF1                   /* one thread does exactly that, once */
#define OTHERS_MORE (!me)
#else
#define OTHERS_MORE true
#endif
#ifdef OPS
#define MORE (!pat && k < OPS)
#define COUNT k++
#else
#define MORE !pat
#define COUNT skip
#endif

#ifdef CLAIM_SWAPPED
#define ALLOC(p, c) :: d_step { MORE && CAN(p, c) -> COUNT; n = p; pat = c; at = p } goto early
#else
#define ALLOC(p, c) :: d_step { OTHERS_MORE && MORE && CAN(p, c) -> COUNT; claim(p, c) } goto look
#endif
#define ALLOC_TOP(c) :: d_step { MORE && CAN(R, c) -> COUNT; claim(R, c); win() } goto won
#define RESERVE(p, c) :: d_step { MORE && lane == 0 && CAN(p, c) -> COUNT; claim(p, c) } goto climb
#define TIGHTEN(p) :: d_step { MORE -> COUNT; at = p; sl = 3 } goto inspect
#define SPLIT_OVER(p) :: d_step { MORE && CODE(ABOVE(p), SLOT(p)) == FREE -> \
                                  COUNT; at = p } goto split_over

/* free() of a block of the top word; of one that leaves its word in use; of one that empties the lane's own
   word; of one that empties another word, whose merge it may leave; release() of a reservation. */
#ifdef NO_UNSETTLED
#define OWN_WORD clear(); at = 0 } goto done
#else
#define OWN_WORD clear(); want = UNSETTLED; ex = UNSETTLED } goto tell
#endif
#ifdef FREE_SWAPPED
#define KEPT_WORD want = LEVEL(n) + 1; at = n } goto tell_early
#else
#define KEPT_WORD clear(); want = LEVEL(at) + 1; ex = OFFER(at) } goto tell
#endif
#define FREE_OPTIONS \
  :: d_step { pat && n == R -> relinquish(n, pat); clear(); at = 0 } goto done \
  :: d_step { pat && n < R && !IS_RESERVED(n, pat) && LEFT(n, pat) -> relinquish(n, pat); KEPT_WORD \
  :: d_step { pat && n < R && !IS_RESERVED(n, pat) && !LEFT(n, pat) -> relinquish(n, pat); OWN_WORD \
  :: d_step { pat && n < R && !IS_RESERVED(n, pat) && !LEFT(n, pat) -> relinquish(n, pat); clear(); ex = UNSETTLED } goto merge \
  :: d_step { pat && IS_RESERVED(n, pat) && !LEFT(n, pat) -> relinquish(n, pat); clear() } goto merge \
  :: d_step { pat && IS_RESERVED(n, pat) && LEFT(n, pat) -> relinquish(n, pat); clear(); want = OFFER(at) } goto publish

#ifdef GIVE
byte gift_n, gift_pat;          /* a block on its way from one thread to another */
#endif

proctype Worker(byte me, n, pat) {
  byte at, want, ex, sl, td, em, bd, k, snap;

done:
  RETURNED
won: progress:
  if
#ifdef UNIT0
  ALLOC(0, 3)
#endif
#ifdef UNIT1
  ALLOC(0, 12)
#endif
#ifdef UNIT2
  ALLOC(1, 3)
#endif
#ifdef UNIT4
  ALLOC(2, 3)
#endif
#ifdef SLOT0
  ALLOC(4, 3)
#endif
#ifdef SLOT1
  ALLOC(4, 12)
#endif
#ifdef SLOT2
  ALLOC(5, 3)
#endif
#ifdef HALF1
  :: d_step { me == 1 && MORE && k < 1 && CAN(6, 12) -> COUNT; claim(6, 12) } goto look
#endif
#ifdef TOP0
  ALLOC_TOP(3)
#endif
#ifdef TOP
  ALLOC_TOP(11)
#endif
#ifdef RESERVATIONS
  RESERVE(0, 1)
  RESERVE(0, 5)
#endif
#ifdef CARE
  TIGHTEN(4)
  TIGHTEN(R)
  SPLIT_OVER(0)
  SPLIT_OVER(4)
#if UNITS > 4
  TIGHTEN(5)
  SPLIT_OVER(2)
  SPLIT_OVER(5)
#endif
#endif
#ifdef GIVE
  :: d_step { pat && !gift_pat -> gift_n = n; gift_pat = pat; n = 0; pat = 0 } goto won
  :: d_step { !pat && gift_pat -> n = gift_n; pat = gift_pat; gift_n = 0; gift_pat = 0 } goto won
#endif
  FREE_OPTIONS
  :: goto over
  fi;

#include "climb.pml"
#include "free.pml"
#include "inspect.pml"

over:
  running--
}
