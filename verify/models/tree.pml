/* The tree that protocol.pml and search.pml share: its words, who holds what, and what is checked (tree/mod.rs).

   An arena of UNITS units (4, 6 or 8), three levels, two slots a word:

       level 2                    R = word 6                  slot: 4 units, order 2; both: order 3
       level 1          word 4               word 5           slot: 2 units, order 1
       level 0     word 0    word 1     word 2    word 3      slot: 1 unit,  order 0

   Of 4 units, R has one slot; of 6 units, word 5 and R's second slot reach past the end of the arena. With DEEP there
   are 8 units and a fourth level: R = word 7, whose one slot stands for word 6. A word is, as in the code, two slots of
   two bits, then the mark and the bound of an inner word (order + 1; 0 for none; UNSETTLED). Its version is not stored
   as a number: see step.pml. */

#ifndef UNITS
#define UNITS 4
#endif
#ifndef LANES
#define LANES THREADS           /* fewer: the last lane is shared */
#endif
#define lane (me < LANES -> me : LANES - 1)

#define FREE 0
#define SPLIT 1                 /* in a leaf word: reserved */
#define REST 2
#define HEAD 3
#define MARK 16
#define UNSETTLED 7

#ifdef DEEP
#define R 7
#define LEVEL(p) ((p) / 4 + (p) / 6 + (p) / 7)  /* slot_order too: a slot of level h has 2^h units */
#else
#define R 6
#define LEVEL(p) ((p) / 4 + (p) / 6)
#endif
#ifdef DEEP
#define SLOTS_OF(p) ((p) == R -> 1 : 2)
#else
#define SLOTS_OF(p) 2
#endif
#define ABOVE(p) (4 + (p) / 2)
#define UP(p) ((p) == R -> R : ABOVE(p))
#define SLOT(p) ((p) & 1)
#define BELOW(p, s) (2 * ((p) - 4) + (s))

#if defined(DEEP) || UNITS == 4
#define WHOLE(p) ((p) == R -> 1 : 2)                        /* whole_slots */
#define PART(p) 0                                           /* offer of the partial slot, if it is free */
#elif UNITS == 6
#define WHOLE(p) ((p) >= 5 -> 1 : 2)
#define PART(p) ((p) == R && CODE(p, 1) == FREE -> 2 : 0)
#else
#define WHOLE(p) 2
#define PART(p) 0
#endif

byte word[R + 1];
hidden byte u, v, i, kept, held;            /* used within one step only */

#define CODES(p) (word[p] & 15)
#define CODE(p, s) ((word[p] >> (2 * (s))) & 3)
#define BOUND(p) (word[p] >> 5)
#define SPLITS_IN(codes) ((((codes) & 3) == SPLIT) + 2 * (((codes) >> 2 & 3) == SPLIT))
#define SPLITS(p) SPLITS_IN(word[p])
#define MAX(a, b) ((a) > (b) -> (a) : (b))

#ifdef PASS_MARK
#define PASSES(p, s) (CODE(p, s) == SPLIT)
#else
#define PASSES(p, s) (CODE(p, s) == SPLIT && !(word[p] & MARK))
#endif
#ifdef ALLOW_MARK
#define ALLOWS(p, o) (BOUND(p) >= (o))
#else
#define ALLOWS(p, o) (BOUND(p) >= (o) && !(word[p] & MARK))
#endif

/* offer(): free slots side by side, the partial slot, the bound over split slots. */
#define RUN(p) ((CODE(p, 0) == FREE && WHOLE(p) > 0) + (CODE(p, 1) == FREE && WHOLE(p) > 1))
#define OWN_OFFER(p) (RUN(p) -> RUN(p) + LEVEL(p) : 0)
#define OFFER(p) ((p) < 4 -> OWN_OFFER(p) : MAX(MAX(OWN_OFFER(p), PART(p)), (SPLITS(p) -> BOUND(p) : 0)))

/* Blocks are (word, codes): codes 3 and 12 are a slot, 11 is both; in a leaf word 1, 4 and 5 are reserved. */
#define AREA(c) (3 * (((c) | (c) >> 1) & 5))
#define LEFT(p, c) (CODES(p) & (15 - AREA(c)))
#define CAN(p, c) (!(word[p] & AREA(c)))
#define IS_RESERVED(p, c) ((p) < 4 && !((c) & 10))

/* Ghost: the units that are held, from the return of the allocation to the call of the free. */
byte own;
#define SLOTSET(c) ((((c) | (c) >> 1) & 1) + (((c) | (c) >> 1) & 4) / 2)
#define UNITS_OF(p, c) (LEVEL(p) == 0 -> SLOTSET(c) << (2 * (p)) : \
  (LEVEL(p) == 1 -> ((SLOTSET(c) & 1) * 3 + (SLOTSET(c) & 2) * 6) << (4 * ((p) - 4)) : \
  (LEVEL(p) == 2 -> (SLOTSET(c) & 1) * 15 + (SLOTSET(c) & 2) * 120 : (SLOTSET(c) & 1) * 255)))
#define SPLIT_ABOVE(p) ((p) == R || CODE(ABOVE(p), SLOT(p)) == SPLIT)

inline acquire(p, c) {
  assert(!(own & UNITS_OF(p, c)));
  own = own | UNITS_OF(p, c)
}
/* With OVERLAP_ONLY nothing else is checked: a mutant's error is seen as two owners, or not at all. */
#ifdef OVERLAP_ONLY
#define CHECK(condition) skip
#else
#define CHECK(condition) assert(condition)
#endif
/* The holder finds its block from the top down: every slot above is split, and its codes are there. */
inline relinquish(p, c) {
  CHECK((word[p] & AREA(c)) == (c));
  CHECK(SPLIT_ABOVE(p) && SPLIT_ABOVE(UP(p)) && SPLIT_ABOVE(UP(UP(p))));
  own = own & (255 - UNITS_OF(p, c))
}

/* When nothing runs: the work of settle() of the top word before an allocation of the largest order gives up. */
#define UNSETTLED_ABOVE(p) ((p) == R || (BOUND(ABOVE(p)) == UNSETTLED && CODE(ABOVE(p), SLOT(p)) == SPLIT))
#define SETTLES(p) (BOUND(p) == UNSETTLED && UNSETTLED_ABOVE(p) && UNSETTLED_ABOVE(UP(p)))
inline merge_empty(p, s) {
  if
  :: SETTLES(p) && CODE(p, s) == SPLIT && !CODES(BELOW(p, s)) -> word[p] = word[p] & (255 - (3 << (2 * (s))))
  :: else
  fi
}
inline settle_all() {
  i = 4;
  do
  :: i <= R -> merge_empty(i, 0); merge_empty(i, 1); i++
  :: else -> break
  od
}

/* audit(): what is free in or below a word; UNSETTLED if a slot is split over an empty word. */
#define FOUND_BELOW(p, s) (CODE(p, s) == SPLIT -> (CODES(BELOW(p, s)) -> OWN_OFFER(BELOW(p, s)) : UNSETTLED) : 0)
#define FOUND(p) ((p) < 4 -> OWN_OFFER(p) : MAX(MAX(OWN_OFFER(p), PART(p)), MAX(FOUND_BELOW(p, 0), FOUND_BELOW(p, 1))))

/* The units of the blocks and reservations in a word: of an inner word's codes, those with the high bit. */
#define CODED(p) UNITS_OF(p, ((p) < 4 -> CODES(p) : CODES(p) & 10))

inline audit() {
  v = 0;
  i = 0;
  do
  :: i <= R -> v = v | CODED(i); i++
  :: else -> break
  od;
  CHECK(v == own);
  i = 4;
  do
  :: i <= R ->
     CHECK(!(word[i] & MARK));
     v = 0;
     do
     :: v < SLOTS_OF(i) ->
        u = BELOW(i, v);
        if
        :: CODE(i, v) == SPLIT && CODES(u) -> CHECK(BOUND(i) >= FOUND(u))
        :: CODE(i, v) == SPLIT && !CODES(u) -> CHECK(BOUND(i) == UNSETTLED)
        :: else -> CHECK(!CODES(u))
        fi;
        v++
     :: else -> break
     od;
     i++
  :: else -> break
  od;
  settle_all();
  CHECK(own || !CODES(R));
  i = 0
}

/* The place of an operation. `me`, `n`, `pat`, `at` ... are those of the process. */
#define IN (sl == 3 -> at : ABOVE(at))                      /* the word under inspection */
#define NEXT BELOW(IN, 1 - (td & 1))                        /* the word below it to read next */
#define ABOVE_CODE CODE(ABOVE(at), SLOT(at))
#define ABOVE_PASSES PASSES(ABOVE(at), SLOT(at))
#define ABOVE_ALLOWS ALLOWS(ABOVE(at), want)
#define BELOW_TOP (ABOVE(at) == R)

inline win() { acquire(n, pat); at = 0 }
inline settled() { at = 0; want = 0; ex = 0 }

/* Mutants of what follows: an undone claim may leave its merge, too. */
#ifdef UNDO_LEAVES
#define LEAVES_UNDONE UNSETTLED
#else
#define LEAVES_UNDONE 0
#endif

#include "notes.pml"
#include "step.pml"
