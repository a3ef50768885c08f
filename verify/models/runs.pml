/* A thread that holds runs, part of protocol.pml and search.pml if there are RUNNERS: exact.rs, run.rs, refine.rs and
   resize.rs. A run is claimed at its place, its head first, and may be given up before any piece, whatever the
   reason; it grows, is cut, and is freed. A block in hand is (n, pat), as in worker.pml; a run with an open head is
   units `from` to `end`, or in the course of a change to `to`. What a holder reads of its own run nobody else can
   change: such reads are no steps of their own.

   MENU, by -D: RUN3, RUN4, RUN5 allocate so many units from unit 0, RUN2_6, RUN2_8 those from unit 2 to 6 or 8;
   BLOCK1, BLOCK2, BLOCK4 so many as a block at unit 0; GROW to any end; CUT anywhere, and give back what lies behind;
   FRONT, what lies before. */

/* What a runner is at; 0: between operations. */
#define HEAD_PIECE 1
#define TAILS 2
#define BACK 3
#define MERGES 4
#define IDLE (!phase && !end && MORE)

#define HIDDEN_HEAD 5
#define OPEN_HEAD 9

/* Where a unit is described (spot), its slot there, and where that slot begins. */
#define WORD1(u) (4 + (u) / 4)
#define SPOT(u) (CODE(R, (u) / 4) != SPLIT -> R : (CODE(WORD1(u), (u) / 2 & 1) != SPLIT -> WORD1(u) : (u) / 2))
#define SLOT_OF(p, u) ((u) >> LEVEL(p) & 1)
#define BEGIN(p, u) ((u) >> LEVEL(p) << LEVEL(p))
#define IN_HAND (pat -> UNITS_OF(n, pat) : (1 << end) - (1 << from))
#define BLOCK_FROM ((n < 4 -> 2 * n : (n < R -> 4 * (n - 4) : 0)) + (pat & 3 -> 0 : 1 << LEVEL(n)))
#define BLOCK_END (BLOCK_FROM + (1 << LEVEL(n)))

/* held(): the run at `from` has an open head and ends at `end`. */
inline check_run() {
  assert(SPOT(from) == from / 2 && CODES(from / 2) == OPEN_HEAD);
  v = from + 2;
  kept = 1;
  do
  :: v < UNITS && kept ->
     u = SPOT(v);
     i = SLOT_OF(u, v);
     if
     :: BEGIN(u, v) == v && CODE(u, i) == REST ->
        held = (i == 0 && CODE(u, 1) == REST -> 2 : 1);
        v = v + (held << LEVEL(u));
        kept = (i + held == 2 || (u >= 4 && CODE(u, 1) == SPLIT))
     :: else -> kept = 0
     fi
  :: else -> break
  od;
  assert(v == end);
  i = 0
}

/* When nothing runs: every rest belongs to what the unit before it belongs to. */
inline check_rests() {
  v = 0;
  kept = 0;
  do
  :: v < UNITS ->
     u = SPOT(v);
     i = SLOT_OF(u, v);
     assert(CODE(u, i) != REST || kept);
     kept = (CODE(u, i) >= REST || (u < 4 && i == 0 && CODES(u) == OPEN_HEAD));
     v = v + (1 << LEVEL(u))
  :: else -> break
  od;
  i = 0
}

/* ---- exact.rs: a piece of `slots` slots of word p, if it begins at `to` */
#define TAIL(p, slots) \
  :: d_step { phase == TAILS && !pat && BEGIN(p, to) == to && to + ((slots) << LEVEL(p)) <= goal && \
              SLOT_OF(p, to) + (slots) <= 2 && CAN(p, RESTS(p, slots)) -> claim(p, RESTS(p, slots)) } goto climb
#define RESTS(p, slots) ((slots) == 2 -> 10 : 2 << (2 * SLOT_OF(p, to)))
#define FIRST_TAIL (end > from + 2 -> end : from + 2)
#if defined(FORGET_PIECE)       /* an allocation gives back its head only */
#define GIVE_UP goal = FIRST_TAIL; to = (end -> to : goal)
#elif defined(GROW_KEEPS)
#define GIVE_UP goal = (end -> to : FIRST_TAIL)
#else
#define GIVE_UP goal = FIRST_TAIL
#endif
#define PIECE_UNITS ((pat == 10 -> 2 : 1) << LEVEL(n))

/* ---- run.rs: the rests of one word that end at `to` */
#define LAST SPOT(to - 1)
#define BEFORE_LAST (BEGIN(LAST, to - 1) - (1 << LEVEL(LAST)))
#define LAST_RESTS (SLOT_OF(LAST, to - 1) == 0 -> 2 : (CODE(LAST, 0) == REST && BEFORE_LAST >= goal -> 10 : 8))
inline clear_last() {
  u = LAST;
  pat = LAST_RESTS; n = u;
  to = to - PIECE_UNITS;
  relinquish(n, pat);
  clear()
}
inline clear_head() {
  n = from / 2; pat = HIDDEN_HEAD;
  relinquish(n, pat);
  clear();
  from = 0; to = 0; goal = 0; phase = 0
}

/* ---- refine.rs: the slots of word p that become split, or have the open head, by their low bits */
#define HAS(p, u) ((p) == ((p) < 4 -> (u) / 2 : ((p) < R -> WORD1(u) : R)))
#define CUTS(level) (deep || cut % (1 << (level)))
#define HEAD_MARK(p) (pat && HAS(p, from) -> 1 << (2 * SLOT_OF(p, from)) : 0)
#define CUT_MARK(p) ((p) >= 4 && HAS(p, cut) && CUTS(LEVEL(p)) -> 1 << (2 * SLOT_OF(p, cut)) : 0)
#define MARKS(p) (HEAD_MARK(p) | CUT_MARK(p))
#ifdef HIDE_OVER
#define IN_THE_WAY(p) 0
#else
#define IN_THE_WAY(p) (CODES(p) & (15 - ((p) < 4 -> 0 : MARKS(p))))
#endif
#define FIRST_OF(set) ((set) & 1 -> 0 : ((set) & 2 -> 1 : ((set) & 4 -> 2 : ((set) & 8 -> 3 : ((set) & 16 -> 4 : 5)))))

inline plan() {         /* the words to be written */
  u = SPOT(cut);
  todo = (pat -> 1 << (from / 2) : 0) | (CUTS(1) -> 1 << (cut / 2) : 0);
  if
  :: u == R -> todo = todo | (pat -> 1 << WORD1(from) : 0) | (CUTS(2) -> 1 << WORD1(cut) : 0)
  :: else
  fi
}
inline hide() {
  u = FIRST_OF(todo);
  WRITE_CODES(u, 10 - MARKS(u));
  todo = todo & (todo - 1);
  wrote = wrote | 1 << u
}
inline unhide() {
  u = FIRST_OF(wrote);
  WRITE_CODES(u, 0);
  wrote = wrote & (wrote - 1);
  todo = todo | 1 << u
}
inline split() {
  u = SPOT(cut);
  v = MARKS(u);
  WRITE_CODES(u, (CODES(u) & (15 - 3 * v)) | v);
  n = 0; pat = 0; wrote = 0
}
inline refused() {
  if :: pat -> from = 0; end = 0 :: else fi;
  cut = 0; goal = 0; deep = false; front = false; phase = 0
}

/* ---- resize.rs */
inline take_block(p) {  /* a block in hand as a run, to be cut at p */
  from = BLOCK_FROM; end = BLOCK_END; cut = p;
  plan()
}
#define CUT_IN SPOT(cut)
#define RESTS_BEHIND ((SLOT_OF(CUT_IN, cut) == 0 && CODE(CUT_IN, 1) == REST -> 2 : 1) << LEVEL(CUT_IN))
#define FILLS_WORD (SLOT_OF(CUT_IN, cut) == 0 && end - cut == 2 << LEVEL(CUT_IN))
#define IN_ONE_WORD (end <= cut + RESTS_BEHIND && !FILLS_WORD)
inline shrink() {
  to = end; end = cut;
#ifdef CUT_WIDE
  goal = from + 2;
#else
  goal = MAX(cut, from + 2);
#endif
  cut = 0; phase = BACK
}
inline cut_off() {      /* REST becomes HEAD, or the open head of a run that goes on */
  u = SPOT(cut);
  v = SLOT_OF(u, cut);
  held = (u < 4 && v == 0 && CODE(u, 1) == REST -> 3 : 1);
  WRITE_CODES(u, (CODES(u) ^ held << (2 * v)) | (u == from / 2 -> 3 : 0))
}
inline take_second() {
  u = SPOT(second);
  v = SLOT_OF(u, second);
  if
  :: CODE(u, v) == HEAD -> n = u; pat = 3 << (2 * v); from = 0; end = 0
  :: else -> from = second
  fi;
  second = 0
}

proctype Runner(byte me) {
  byte n, pat, at, want, ex, sl, td, em, bd, k;
  byte from, end, to, goal, cut, second, todo, wrote, phase;
  bool deep, front;
#ifdef NO_VERSION
  byte snap;
#endif

done:
won:
  RUN_RETURNED
progress:
  if
#define ALLOC_RUN(start, stop) \
  :: d_step { IDLE && CAN((start) / 2, 15) -> COUNT; from = start; goal = stop; phase = HEAD_PIECE; \
              claim((start) / 2, HIDDEN_HEAD) } goto climb
#define ALLOC_BLOCK(p) :: d_step { IDLE && CAN(p, 3) -> COUNT; claim(p, 3) } goto look
#ifdef RUN3
  ALLOC_RUN(0, 3)
#endif
#ifdef RUN4
  ALLOC_RUN(0, 4)
#endif
#ifdef RUN5
  ALLOC_RUN(0, 5)
#endif
#ifdef RUN2_6
  ALLOC_RUN(2, 6)
#endif
#ifdef RUN2_8
  ALLOC_RUN(2, 8)
#endif
#ifdef BLOCK1
  ALLOC_BLOCK(0)
#endif
#ifdef BLOCK2
  ALLOC_BLOCK(4)
#endif
#ifdef BLOCK4
  :: d_step { IDLE && CAN(R, 3) -> COUNT; claim(R, 3); win() } goto won
#endif
  /* free */
  :: d_step { !phase && pat && n == R -> relinquish(n, pat); clear(); at = 0 } goto done
  :: d_step { !phase && pat && n < R && !LEFT(n, pat) -> relinquish(n, pat); clear() } goto merge
  :: d_step { !phase && pat && n < R && LEFT(n, pat) -> relinquish(n, pat); clear(); want = OFFER(at) } goto publish
  :: d_step { !phase && end -> check_run(); WRITE_CODES(from / 2, HIDDEN_HEAD);
              to = end; goal = from + 2; end = 0; phase = BACK } goto done
#ifdef GROW
#define GROW_TO(stop) \
  :: d_step { !phase && end && end < (stop) -> to = end; goal = stop; phase = TAILS } goto done \
  :: d_step { !phase && pat == 3 && n < 4 && BLOCK_END < (stop) && CAN(n, 12) -> \
              from = BLOCK_FROM; end = BLOCK_END; pat = 12; acquire(n, pat); WRITE_CODES(n, OPEN_HEAD); CLAIMED; \
              to = from + 2; goal = stop; n = 0; pat = 0; phase = TAILS } goto done \
  :: d_step { !phase && pat && n >= 4 && BLOCK_END < (stop) -> take_block(BLOCK_FROM); goal = stop } goto refine
  GROW_TO(2)
  GROW_TO(3)
  GROW_TO(4)
#if UNITS > 4
  GROW_TO(5)
  GROW_TO(6)
#endif
#if UNITS > 6
  GROW_TO(7)
  GROW_TO(8)
#endif
#endif
#ifdef CUT
#define CUT_AT(p) \
  :: d_step { !phase && pat && BLOCK_FROM < (p) && (p) < BLOCK_END -> take_block(p) } goto refine \
  :: d_step { !phase && from < (p) && (p) < end && BEGIN(SPOT(p), p) == p -> cut = p; shrink() } goto done \
  :: d_step { !phase && from < (p) && (p) < end && BEGIN(SPOT(p), p) < (p) -> cut = p; plan() } goto refine
  CUT_AT(1)
  CUT_AT(2)
  CUT_AT(3)
#if UNITS > 4
  CUT_AT(4)
  CUT_AT(5)
#endif
#if UNITS > 6
  CUT_AT(6)
  CUT_AT(7)
#endif
#endif
#ifdef FRONT
#define FRONT_AT(p) \
  :: d_step { !phase && pat && BLOCK_FROM < (p) && (p) < BLOCK_END -> front = true; take_block(p) } goto refine \
  :: d_step { !phase && from < (p) && (p) < end && BEGIN(SPOT(p), p) == p -> front = true; cut = p } goto cut_in_two \
  :: d_step { !phase && from < (p) && (p) < end && BEGIN(SPOT(p), p) < (p) -> front = true; cut = p; plan() } goto refine
  FRONT_AT(1)
  FRONT_AT(2)
  FRONT_AT(3)
#if UNITS > 4
  FRONT_AT(4)
  FRONT_AT(5)
#endif
#if UNITS > 6
  FRONT_AT(6)
  FRONT_AT(7)
#endif
#endif
  /* claim_run(), claim_tails(): the pieces from the first on; overtaken, it tries again or gives up, whatever overtook it */
  :: d_step { phase == HEAD_PIECE && pat -> to = from + 2; n = 0; pat = 0; phase = TAILS } goto done
  :: d_step { phase == HEAD_PIECE && !pat -> from = 0; goal = 0; phase = 0 } goto done
  :: d_step { phase == TAILS && pat -> to = to + PIECE_UNITS; n = 0; pat = 0 } goto done
  TAIL(to / 2, 1)
  TAIL(to / 2, 2)
  TAIL(WORD1(to), 1)
#if UNITS > 6
  TAIL(WORD1(to), 2)
  :: d_step { phase == TAILS && !pat && to == 4 && goal == 8 && CAN(R, 12) -> claim(R, 8); win() } goto won
#endif
  :: d_step { phase == TAILS && !pat && to == goal && !end -> WRITE_CODES(from / 2, OPEN_HEAD);
              end = goal; to = 0; goal = 0; phase = 0 } goto done
  :: d_step { phase == TAILS && !pat && to == goal && end -> end = goal; to = 0; goal = 0; phase = 0 } goto done
  :: d_step { phase == TAILS && !pat && to < goal -> GIVE_UP; phase = BACK } goto done
  /* clear_tails() from the end, then the head; or close(), of what is left in the leaf word of the head */
#ifdef BACK_NO_MERGE
  :: d_step { phase == BACK && to > goal -> clear_last(); at = 0 } goto done
#else
#if UNITS > 6
  :: d_step { phase == BACK && to > goal && LAST == R -> clear_last(); at = 0 } goto done
#endif
  :: d_step { phase == BACK && to > goal && LAST < R && !LEFT(LAST, LAST_RESTS) -> clear_last() } goto merge
  :: d_step { phase == BACK && to > goal && LAST < R && LEFT(LAST, LAST_RESTS) -> clear_last(); want = OFFER(at) } goto publish
#endif
  :: d_step { phase == BACK && to == goal && !end -> clear_head() } goto merge
  :: d_step { phase == BACK && to == goal && second -> clear_head(); take_second() } goto merge
  :: d_step { phase == BACK && to == goal && !second && end == from + 1 -> relinquish(from / 2, 8);
              WRITE_CODES(from / 2, 3); n = from / 2; pat = 3; at = n; want = OFFER(at);
              from = 0; end = 0; to = 0; goal = 0; phase = 0 } goto publish
  :: d_step { phase == BACK && to == goal && !second && end > from + 1 -> to = 0; goal = 0; phase = 0 } goto done
  /* a refused cut: the words that it had written */
  :: d_step { phase == MERGES && todo -> at = FIRST_OF(todo); todo = todo & (todo - 1) } goto merge
  :: d_step { phase == MERGES && !todo -> refused() } goto done
  :: d_step { !phase && end -> check_run() } goto over
  :: d_step { !phase && !end } goto over
  fi;

refine: /* the words below, from the lowest; then the slot above them */
  if
  :: d_step { todo && !IN_THE_WAY(FIRST_OF(todo)) -> hide() } goto refine
  :: d_step { todo && IN_THE_WAY(FIRST_OF(todo)) && wrote -> todo = 0 } goto take_back
  :: d_step { todo && IN_THE_WAY(FIRST_OF(todo)) && !wrote -> todo = 0; refused() } goto done
  :: d_step { !todo && goal -> split(); to = end; cut = 0; phase = TAILS } goto done
  :: d_step { !todo && !goal && !front -> split(); shrink() } goto done
  :: d_step { !todo && front -> split() } goto cut_in_two
  fi;
take_back:
  if
  :: d_step { wrote & (wrote - 1) -> unhide() } goto take_back
#ifdef REFUSED_NO_MERGE
  :: d_step { !(wrote & (wrote - 1)) -> unhide(); todo = 0; refused() } goto done
#else
  :: d_step { !(wrote & (wrote - 1)) -> unhide(); phase = MERGES } goto done
#endif
  fi;

cut_in_two: /* prepare_cut(), cut(), then release_run() of the first part */
  if
  :: d_step { !IN_ONE_WORD && cut & 1 -> refused() } goto done                  /* LastOfWord */
  :: d_step { !IN_ONE_WORD && !(cut & 1) && CUT_IN >= 4 -> deep = true; plan() } goto refine
  :: d_step { IN_ONE_WORD || (!(cut & 1) && CUT_IN < 4) -> cut_off() }
  fi;
  if
  :: d_step { cut == from + 1 -> n = from / 2; pat = 3; relinquish(n, pat); clear(); want = OFFER(at);
              second = cut; take_second(); cut = 0; front = false; deep = false } goto publish
  :: d_step { cut > from + 1 -> WRITE_CODES(from / 2, HIDDEN_HEAD); to = cut; second = cut; goal = from + 2;
              cut = 0; front = false; deep = false; phase = BACK } goto done
  fi;

#include "steps.pml"

over:
  running--
}
