/* The tree that protocol.pml and search.pml share: words, versions, epochs, hints, and what is checked.

   An arena of UNITS units (4, 6 or 8), three levels, two slots a word:

       level 2                    R = word 6                  slot: 4 units, order 2; both: order 3
       level 1          word 4               word 5           slot: 2 units, order 1
       level 0     word 0    word 1     word 2    word 3      slot: 1 unit,  order 0

   Of 4 units, R has one slot; of 6 units, word 5 and R's second slot reach past the end of the arena.
   A word is, as in word.rs, two slots of two bits, then the mark and the bound of an inner word (order + 1; 0
   for none; UNSETTLED).

   Versions. Every change of an inner word has a version of its own. So a compare-and-swap of a word that a
   thread read earlier succeeds if and only if nobody has changed the word since; `fresh` says just that, a bit
   for each thread. It stands for a version that never wraps, any number of changes, and no two states that
   differ by a count. For the same reason loops around a compare-and-swap that decide anew from what they find
   (Buddy::update, open, raise, pass_epoch) are one step, and so is the mark of an inspection, whose failure
   changes nothing and is followed by another try or by none.

   Epochs are only compared for equality, with one read later. Those that no thread can compare with any more
   are forgotten and the others renumbered, so that EPOCH stays small without wrapping. */

#ifndef UNITS
#define UNITS 4
#endif
#ifndef LANES
#define LANES THREADS           /* fewer: the last lane is shared */
#endif
#define lane (me < LANES -> me : LANES - 1)

#define FREE 0
#define SPLIT 1                 /* in a leaf word: a hole */
#define REST 2
#define HEAD 3
#define MARK 16
#define UNSETTLED 7
#define R 6

#define LEVEL(p) ((p) / 4 + (p) / 6)        /* slot_order too: a slot of level h has 2^h units */
#define ABOVE(p) (4 + (p) / 2)
#define SLOT(p) ((p) & 1)
#define BELOW(p, s) (2 * ((p) - 4) + (s))

#if UNITS == 4
#define WHOLE(p) ((p) == R -> 1 : 2)                        /* whole_slots */
#define PART(p) 0                                           /* offer of the partial slot, if it is free */
#elif UNITS == 6
#define WHOLE(p) ((p) >= 5 -> 1 : 2)
#define PART(p) ((p) == R && CODE(p, 1) == FREE -> 2 : 0)
#else
#define WHOLE(p) 2
#define PART(p) 0
#endif

byte word[7];
hidden byte u, v, i, kept, held;            /* used within one step only */

#define CODES(p) (word[p] & 15)
#define CODE(p, s) ((word[p] >> (2 * (s))) & 3)
#define BOUND(p) (word[p] >> 5)
#define SPLITS(p) ((CODE(p, 0) == SPLIT) + 2 * (CODE(p, 1) == SPLIT))
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

/* Blocks are (word, codes): codes 3 and 12 are a slot, 11 is both; in a leaf word 1, 4 and 5 are holes. */
#define AREA(c) (3 * (((c) | (c) >> 1) & 5))
#define LEFT(p, c) (CODES(p) & (15 - AREA(c)))
#define CAN(p, c) (!(word[p] & AREA(c)))
#define IS_HOLE(p, c) ((p) < 4 && !((c) & 10))

byte fresh[3];
#ifdef NO_VERSION
#define CHANGED(p) skip
#define REMEMBER(p) snap = word[p]
#define SAME(p) (word[p] == snap)
#define FORGET(p) snap = 0
#else
#define CHANGED(p) if :: (p) >= 4 -> fresh[(p) - 4] = 0 :: else fi
#define REMEMBER(p) fresh[(p) - 4] = fresh[(p) - 4] | (1 << me)
#define SAME(p) (fresh[(p) - 4] & (1 << me))
#define FORGET(p) fresh[(p) - 4] = fresh[(p) - 4] & (255 - (1 << me))
#endif
/* with_codes(), inner(): a claim or a free in an inner word clears its mark too. */
#define WRITE_CODES(p, codes) word[p] = (word[p] & 224) | (codes); CHANGED(p)
#define WRITE(codes, bound, mark) word[u] = (codes) | (mark) | ((bound) << 5); CHANGED(u)

/* hints.rs. What a lane knows of the path above a level-1 word, one note for claims and one for frees. A place is
   that word, or nothing: paths above R are never asked for; of the bounds, only whether they allow for 1 or
   UNSETTLED is, and that by frees alone. */
byte EPOCH = 1;
byte seen[THREADS];             /* the epoch that a thread holds in a local variable; 0 for none */
#ifdef FREES_FORGET             /* a free looks at its path every time: fewer states */
#define NOTES LANES
#define NOTE lane
#define REMEMBERS !want
#else
#define NOTES (2 * LANES)
#define NOTE (want -> LANES + lane : lane)
#define REMEMBERS true
#endif
byte path[NOTES];               /* hint words 2 and 4: place and bound */
byte path_epoch[NOTES];         /* hint words 2 and 4: the low bits of the epoch */
byte full_epoch[NOTES];         /* hint words 3 and 5 */
#define PATH(p, bound) ((p) == R -> 0 : (p) * 8 + (!(bound) -> 0 : ((bound) < UNSETTLED -> 1 : UNSETTLED)))
#ifdef PATH_NO_BOUND
#define SAW_PATH(p, offer) (path[NOTE] / 8 == (p))
#else
#define SAW_PATH(p, offer) (path[NOTE] / 8 == (p) && path[NOTE] % 8 >= (offer))
#endif
#ifdef NO_LOW_BITS
#define PATH_OF(epoch) true
#else
#define PATH_OF(epoch) (path_epoch[NOTE] == (epoch))
#endif
#if LANES == THREADS
#define PRIVATE                 /* nobody else writes the thread's hints, so it reads them in one step */
#endif

#define RENUMBER(epochs, n, to) \
  i = 0; do :: i < n -> if :: epochs[i] == v -> epochs[i] = to :: else fi; i++ :: else -> break od

inline forget_epochs() {
  v = 1; kept = 0;
  do
  :: v <= EPOCH ->
     held = (v == EPOCH -> 1 : 0); i = 0;
     do :: i < THREADS -> held = held || seen[i] == v; i++ :: else -> break od;
     kept = kept + held;
     RENUMBER(seen, THREADS, kept);
#ifdef PRIVATE
     held = v == EPOCH;         /* a lane compares with the present epoch only */
#endif
     RENUMBER(path_epoch, NOTES, (held -> kept : 0));
     RENUMBER(full_epoch, NOTES, (held -> kept : 0));
     v++
  :: else -> break
  od;
  EPOCH = kept;
  i = 0;
  do :: i < NOTES -> if :: !path_epoch[i] -> path[i] = 0 :: else fi; i++ :: else -> break od;
  i = 0                     /* a step must not end in a loop */
}
inline pass_epoch() {
  EPOCH = EPOCH + 1;
  forget_epochs()
}

/* Ghost: the units that somebody holds, from the return of the allocation to the call of the free. */
byte own;
#define SLOTSET(c) ((((c) | (c) >> 1) & 1) + (((c) | (c) >> 1) & 4) / 2)
#define UNITS_OF(p, c) (LEVEL(p) == 0 -> SLOTSET(c) << (2 * (p)) : \
  (LEVEL(p) == 1 -> ((SLOTSET(c) & 1) * 3 + (SLOTSET(c) & 2) * 6) << (4 * ((p) - 4)) : \
                    (SLOTSET(c) & 1) * 15 + (SLOTSET(c) & 2) * 120))

inline acquire(p, c) {
  assert(!(own & UNITS_OF(p, c)));
  own = own | UNITS_OF(p, c)
}
/* The holder finds its block from the top down: every slot above is split, and its codes are there. */
inline relinquish(p, c) {
  assert((word[p] & AREA(c)) == (c));
  assert((p) == R || CODE(ABOVE(p), SLOT(p)) == SPLIT);
  assert((p) >= 4 || CODE(R, SLOT(ABOVE(p))) == SPLIT);
  own = own & (255 - UNITS_OF(p, c))
}

/* When nothing runs: what settle() of the top word does before an allocation of the largest order gives up. */
inline merge_empty(p, s) {
  if
  :: BOUND(p) == UNSETTLED && CODE(p, s) == SPLIT && !CODES(BELOW(p, s)) -> word[p] = word[p] & (255 - (3 << (2 * (s))))
  :: else
  fi
}
inline settle_all() {
  if
  :: BOUND(R) == UNSETTLED && CODE(R, 0) == SPLIT -> merge_empty(4, 0); merge_empty(4, 1)
  :: else
  fi;
  if
  :: BOUND(R) == UNSETTLED && CODE(R, 1) == SPLIT -> merge_empty(5, 0); merge_empty(5, 1)
  :: else
  fi;
  merge_empty(R, 0);
  merge_empty(R, 1)
}

/* audit(): what is free in or below a word; UNSETTLED if a slot is split over an empty word. */
#define FOUND_BELOW(p, s) (CODE(p, s) == SPLIT -> (CODES(BELOW(p, s)) -> OWN_OFFER(BELOW(p, s)) : UNSETTLED) : 0)
#define FOUND(p) ((p) < 4 -> OWN_OFFER(p) : MAX(MAX(OWN_OFFER(p), PART(p)), MAX(FOUND_BELOW(p, 0), FOUND_BELOW(p, 1))))

/* The units of the blocks and holes in a word: of an inner word's codes, those with the high bit. */
#define CODED(p) UNITS_OF(p, ((p) < 4 -> CODES(p) : CODES(p) & 10))

inline audit() {
  assert((CODED(0) | CODED(1) | CODED(2) | CODED(3) | CODED(4) | CODED(5) | CODED(6)) == own);
  i = 4;
  do
  :: i <= R ->
     assert(!(word[i] & MARK));
     v = 0;
     do
     :: v < 2 ->
        u = BELOW(i, v);
        if
        :: CODE(i, v) == SPLIT && CODES(u) -> assert(BOUND(i) >= FOUND(u))
        :: CODE(i, v) == SPLIT && !CODES(u) -> assert(BOUND(i) == UNSETTLED)
        :: else -> assert(!CODES(u))
        fi;
        v++
     :: else -> break
     od;
     i++
  :: else -> break
  od;
  settle_all();
  assert(own || !CODES(R));
  i = 0
}

/* ---- What steps.pml does in one step. `me`, `n`, `pat`, `at` ... are the process's. */

#define IN (sl == 3 -> at : ABOVE(at))                      /* the word under inspection */
#define NEXT BELOW(IN, 1 - (td & 1))                        /* the word below it to read next */
#define ABOVE_CODE CODE(ABOVE(at), SLOT(at))
#define ABOVE_PASSES PASSES(ABOVE(at), SLOT(at))
#define ABOVE_ALLOWS ALLOWS(ABOVE(at), want)
#define KNOWS (REMEMBERS && SAW_PATH(ABOVE(at), want) && PATH_OF(EPOCH) && full_epoch[NOTE] == EPOCH)
#ifdef PRIVATE
#define MAY_KNOW KNOWS          /* what is not known now will not be known in a moment */
#else
#define MAY_KNOW REMEMBERS
#endif

inline win() { acquire(n, pat); at = 0 }
inline settled() { at = 0; want = 0; ex = 0 }
inline claim(p, c) {
  n = p; pat = c; at = p;
  WRITE_CODES(p, CODES(p) | c);
  CLAIMED
}
inline clear() {
  WRITE_CODES(n, LEFT(n, pat));
  at = n; n = 0; pat = 0
}
inline keep_path() {
  path[NOTE] = (REMEMBERS -> PATH(ABOVE(at), (want -> bd : 0)) : path[NOTE]);
  path_epoch[NOTE] = (REMEMBERS -> seen[me] : path_epoch[NOTE])
}
inline keep_epoch() {
#ifdef PRIVATE
  keep_path();
#endif
  full_epoch[NOTE] = (REMEMBERS -> seen[me] : full_epoch[NOTE]);
  seen[me] = 0; bd = 0;
  forget_epochs()
}
/* open(): what a claim leaves of a free slot is its largest half, at most. */
inline do_open() {
  u = ABOVE(at);
  if
#ifdef OPEN_NO_BOUND
  :: CODE(u, SLOT(at)) == FREE -> WRITE(CODES(u) | SPLIT << (2 * SLOT(at)), BOUND(u), 0)
#else
  :: CODE(u, SLOT(at)) == FREE -> WRITE(CODES(u) | SPLIT << (2 * SLOT(at)), MAX(BOUND(u), LEVEL(u)), 0)
#endif
  :: CODE(u, SLOT(at)) == SPLIT && (word[u] & MARK) -> WRITE(CODES(u), BOUND(u), 0)
  :: else
  fi
}
inline raise() {
  u = ABOVE(at);
  if
  :: !ALLOWS(u, want) -> WRITE(CODES(u), MAX(BOUND(u), want), 0)
  :: else
  fi
}
/* Sets the mark, or works under the one that is there. */
inline set_mark() {
  u = IN;
#ifdef OVERTAKE
  WRITE(CODES(u), BOUND(u), MARK);
#else
  if :: !(word[u] & MARK) -> WRITE(CODES(u), BOUND(u), MARK) :: else fi;
#endif
  REMEMBER(u)
}
inline look_first() {
  td = SPLITS(IN) & sl;
#ifndef FORGET_OTHERS
  bd = (SPLITS(IN) & (3 - sl) -> BOUND(IN) : 0);
#endif
#ifdef MERGE_BLIND
  em = (sl == 3 -> 0 : td);
  td = (sl == 3 -> td : 0)
#endif
}
inline look_at_next() {
  u = NEXT;
  if
  :: CODES(u) -> bd = MAX(bd, OFFER(u))
  :: else -> em = em | (2 - (td & 1))
  fi;
  td = (td & 1 -> td & 2 : 0)
}
inline commit() {
  u = IN;
  WRITE(CODES(u) & (15 - (em & 1) - 2 * (em & 2)), bd, 0)
}
inline inspected() {
  FORGET(IN);
  sl = 0; td = 0; em = 0; bd = 0
}
inline do_split_over() {
  u = ABOVE(at);
#ifdef SPLIT_OVER_SETTLED
  WRITE(CODES(u) | SPLIT << (2 * SLOT(at)), MAX(BOUND(u), want), 0);
#else
  WRITE(CODES(u) | SPLIT << (2 * SLOT(at)), UNSETTLED, 0);
#endif
  want = 0
}
