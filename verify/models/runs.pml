/* A thread that holds runs, part of protocol.pml and search.pml if there are RUNNERS: exact.rs, run.rs, hold.rs, cut.rs
   and resize.rs. A run is claimed at its place, its head first, and may be given up before any piece, for any reason.
   It grows, is cut, and is freed. A thread that changes it holds it meanwhile: its head is hidden. A block in hand is
   (n, pat), as in worker.pml; a run with an open head is units `from` to `end`, or, during a change, to `to`.

   MENU, by -D: RUN3, RUN4, RUN5 allocate that number of units from unit 0; RUN1_3, RUN1_4, RUN3_6, RUN2_6, RUN2_8 those
   from the first number to before the second; BLOCK1, BLOCK2, BLOCK4, BLOCK8 that number as a block at unit 0. GROW
   grows to any end; CUT cuts anywhere, and gives back what lies behind; FRONT gives back what lies before. CUT_1 cuts
   only at unit 1. */

/* The stage of a runner; 0: between operations. */
#define HEAD_PIECE 1
#define TAILS 2
#define BACK 3
#define HELD 4                  /* the run is held: what to do with it */
#define BEGUN 5                 /* a slot begins where the run is to be cut */
#define SECOND 6                /* the head of the second run has a leaf word */
#define REHEAD 7                /* the run ends at `end` now: it gets its head back */
#define MERGES 8                /* a refused cut merges what it took back */
#define IDLE (!phase && !end && MORE)
/* What to do with a run that is held. */
#define GROWS 1
#define SHRINKS 2
#define LOSES_FRONT 3

#include "cut.pml"

#define IN_HAND (pat -> UNITS_OF(n, pat) : (1 << end) - (1 << from))
#define BLOCK_FROM ((n < 4 -> 2 * n : (n < 6 -> 4 * (n - 4) : 0)) + (pat & 3 -> 0 : 1 << LEVEL(n)))
#define BLOCK_END (BLOCK_FROM + (1 << LEVEL(n)))
#define FIRST_TAIL ((from | 1) + 1)

/* held(): the run at `from` has an open head and ends at `end`. */
inline check_run() {
  CHECK(SPOT(from) == from / 2 && AT_HEAD(from) == OPEN_HEAD(from));
  v = FIRST_TAIL;
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
  CHECK(v == end);
  i = 0
}

/* When nothing runs: every rest belongs to the same block or run as the unit before it. */
inline check_rests() {
  v = 0;
  kept = 0;
  do
  :: v < UNITS ->
     u = SPOT(v);
     i = SLOT_OF(u, v);
     CHECK(CODE(u, i) != REST || kept);
     kept = (CODE(u, i) >= REST || (u < 4 && (i || CODE(u, 1) == REST) && CODE(u, i) == SPLIT));
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
#define OLD_END MAX(end, FIRST_TAIL)                    /* where a growth or an allocation began */
#if defined(FORGET_PIECE)       /* an allocation gives back its head only */
#define GIVE_UP goal = OLD_END; to = (end -> to : goal)
#elif defined(GROW_KEEPS)
#define GIVE_UP goal = (end -> to : OLD_END)
#else
#define GIVE_UP goal = OLD_END
#endif
#define PIECE_UNITS ((pat == 10 -> 2 : 1) << LEVEL(n))

/* ---- run.rs: clear_rests(), the rests of one word that end at `to` */
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
  n = from / 2; pat = HIDDEN_HEAD(from);
  relinquish(n, pat);
  clear();
  from = 0; to = 0; goal = 0; phase = 0
}

/* ---- hold.rs: a closed run becomes an open one that is held; rehead() with the codes of the rest of it */
inline held_open() { from = BLOCK_FROM; end = BLOCK_END; n = 0; pat = 0 }
#define HOLD_OPEN check_run(); u = from / 2; v = BESIDE_HEAD(from) | HIDDEN_HEAD(from); rewrite(); phase = HELD
#define HEAD_LEFT LEFT(from / 2, HIDDEN_HEAD(from))
inline done_with() { to = 0; goal = 0; cut = 0; does = 0; phase = 0 }

/* ---- cut.rs: begin() */
#define REST_UNITS(u) ((SLOT_OF(SPOT(u), u) == 0 && CODE(SPOT(u), 1) == REST -> 2 : 1) << LEVEL(SPOT(u)))
#define FILLS_WORD(u) (SLOT_OF(SPOT(u), u) == 0 && end - (u) == 2 << LEVEL(SPOT(u)))
#define CAN_CLOSE(p) (end <= (p) + REST_UNITS(p) && !FILLS_WORD(p))
inline begin() {
  u = SPOT(cut);
  v = SLOT_OF(u, cut);
  CHECK(CODE(u, v) == REST && BEGIN(u, cut) == cut);
  held = (CAN_CLOSE(cut) -> 1 : 3);     /* REST becomes HEAD, or the 01 of a run that goes on */
  v = CODES(u) ^ held << (2 * v);
  rewrite()
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
  byte n, pat, at, want, ex, sl, td, em, bd, k, snap;
  byte from, end, to, goal, cut, second, phase, does;
  byte unit, low, step, then;

done:
won:
  RUN_RETURNED
progress:
  if
#define ALLOC_RUN(start, stop) \
  :: d_step { IDLE && CAN((start) / 2, HEAD_SLOTS(start)) -> COUNT; from = start; goal = stop; phase = HEAD_PIECE; \
              claim((start) / 2, HIDDEN_HEAD(start)) } goto climb
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
#ifdef RUN1_3
  ALLOC_RUN(1, 3)
#endif
#ifdef RUN1_4
  ALLOC_RUN(1, 4)
#endif
#ifdef RUN3_6
  ALLOC_RUN(3, 6)
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
  :: d_step { IDLE && CAN(6, 3) -> COUNT; claim(6, 3); win() } goto won
#endif
#ifdef BLOCK8
  :: d_step { IDLE && CAN(7, 3) -> COUNT; claim(7, 3); win() } goto won
#endif
  /* free; of a run, release_run() */
  :: d_step { !phase && pat && n == R -> relinquish(n, pat); clear(); at = 0 } goto done
  :: d_step { !phase && pat && n < R && !LEFT(n, pat) -> relinquish(n, pat); clear(); ex = UNSETTLED } goto merge
  :: d_step { !phase && pat && n < R && LEFT(n, pat) -> relinquish(n, pat); clear(); want = OFFER(at) } goto publish
  :: d_step { !phase && end -> HOLD_OPEN; to = end; goal = FIRST_TAIL; end = 0; phase = BACK } goto done
  /* hold() before a change: of an open run, of a closed one in a leaf word, of one above */
#define CHANGE(what, p) \
  :: d_step { !phase && from < (p) && (p) < end -> does = what; cut = p; HOLD_OPEN } goto done \
  :: d_step { !phase && pat && n >= 4 && BLOCK_FROM < (p) && (p) < BLOCK_END -> \
              does = what; cut = p; refine(BLOCK_FROM, 0, HELD) } goto refine_next
#ifdef GROW
#define GROW_TO(stop) \
  :: d_step { !phase && end && end < (stop) -> does = GROWS; cut = stop; HOLD_OPEN } goto done \
  :: d_step { !phase && pat == 3 && n < 4 && BLOCK_END < (stop) && CAN(n, 12) -> does = GROWS; cut = stop; \
              pat = 12; acquire(n, pat); u = n; v = HIDDEN_HEAD(0); rewrite(); CLAIMED; \
              from = 2 * n; end = from + 1; n = 0; pat = 0; phase = HELD } goto done \
  :: d_step { !phase && pat == 12 && n < 4 && BLOCK_END < (stop) -> does = GROWS; cut = stop; \
              CHECK(CODE(n, 1) == HEAD); u = n; v = CODES(n); rewrite(); held_open(); phase = HELD } goto done \
  :: d_step { !phase && pat && n >= 4 && BLOCK_END < (stop) -> \
              does = GROWS; cut = stop; refine(BLOCK_FROM, 0, HELD) } goto refine_next
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
#ifdef CUT_1
  CHANGE(SHRINKS, 1)
#endif
#ifdef CUT
  CHANGE(SHRINKS, 1)
  CHANGE(SHRINKS, 2)
  CHANGE(SHRINKS, 3)
#if UNITS > 4
  CHANGE(SHRINKS, 4)
  CHANGE(SHRINKS, 5)
#endif
#if UNITS > 6
  CHANGE(SHRINKS, 6)
  CHANGE(SHRINKS, 7)
#endif
#endif
#ifdef FRONT
  CHANGE(LOSES_FRONT, 1)
  CHANGE(LOSES_FRONT, 2)
  CHANGE(LOSES_FRONT, 3)
#if UNITS > 4
  CHANGE(LOSES_FRONT, 4)
  CHANGE(LOSES_FRONT, 5)
#endif
#if UNITS > 6
  CHANGE(LOSES_FRONT, 6)
  CHANGE(LOSES_FRONT, 7)
#endif
#endif
  /* claim_run(), claim_rests(): the pieces from the first on; if overtaken, it tries again or gives up, whatever overtook it */
  :: d_step { phase == HEAD_PIECE && pat -> to = FIRST_TAIL; n = 0; pat = 0; phase = TAILS } goto done
  :: d_step { phase == HEAD_PIECE && !pat -> from = 0; goal = 0; phase = 0 } goto done
  :: d_step { phase == TAILS && pat -> to = to + PIECE_UNITS; n = 0; pat = 0 } goto done
  TAIL(to / 2, 1)
  TAIL(to / 2, 2)
  TAIL(4 + to / 4, 1)
#if UNITS > 6
  TAIL(4 + to / 4, 2)
#ifdef DEEP
  TAIL(6, 1)
#else
  :: d_step { phase == TAILS && !pat && to == 4 && goal == 8 && CAN(R, 12) -> claim(R, 8); win() } goto won
#endif
#endif
  :: d_step { phase == TAILS && !pat && to == goal -> end = goal; done_with(); phase = REHEAD } goto done
  :: d_step { phase == TAILS && !pat && to < goal -> GIVE_UP; phase = BACK } goto done
  /* clear_rests() from the end, then the head */
#ifdef BACK_NO_MERGE
  :: d_step { phase == BACK && to > goal -> clear_last(); at = 0 } goto done
#else
#if UNITS > 6 && !defined(DEEP)
  :: d_step { phase == BACK && to > goal && LAST == R -> clear_last(); at = 0 } goto done
#endif
  :: d_step { phase == BACK && to > goal && LAST < R && !LEFT(LAST, LAST_RESTS) -> clear_last() } goto merge
  :: d_step { phase == BACK && to > goal && LAST < R && LEFT(LAST, LAST_RESTS) -> clear_last(); want = OFFER(at) } goto publish
#endif
  :: d_step { phase == BACK && to == goal && !end && !HEAD_LEFT -> clear_head() } goto merge
  :: d_step { phase == BACK && to == goal && !end && HEAD_LEFT -> clear_head(); want = OFFER(at) } goto publish
  :: d_step { phase == BACK && to == goal && second && !HEAD_LEFT -> clear_head(); done_with(); take_second() } goto merge
  :: d_step { phase == BACK && to == goal && second && HEAD_LEFT -> clear_head(); want = OFFER(at); done_with(); take_second() } goto publish
  :: d_step { phase == BACK && to == goal && end && !second -> done_with(); phase = REHEAD } goto done
  /* grow_on() */
  :: d_step { phase == HELD && does == GROWS -> to = OLD_END; goal = MAX(cut, to); phase = TAILS } goto done
  /* carve() of the units from `cut` on: the slot begins there, if it does not lie in the first word */
  :: d_step { phase == HELD && does == SHRINKS && (cut <= FIRST_TAIL || BEGIN(SPOT(cut), cut) == cut) } goto shrink
  :: d_step { phase == HELD && does == SHRINKS && cut > FIRST_TAIL && BEGIN(SPOT(cut), cut) < cut ->
              refine(cut, HIGHEST(cut), BEGUN) } goto refine_next
  :: d_step { phase == BEGUN && does == SHRINKS } goto shrink
  /* carve() of the units before `cut`: prepare(), begin(), then the rest is given back */
  :: d_step { phase == HELD && does == LOSES_FRONT && cut < FIRST_TAIL && end > FIRST_TAIL ->
              u = from / 2; relinquish(u, 1); v = OPEN_HEAD(cut); rewrite(); at = u; want = OFFER(at);
              from = cut; done_with() } goto publish
  :: d_step { phase == HELD && does == LOSES_FRONT && cut < FIRST_TAIL && end == FIRST_TAIL ->
              n = from / 2; relinquish(n, 1); u = n; v = 12; rewrite(); pat = 12; at = n; want = OFFER(at);
              from = 0; end = 0; done_with() } goto publish
  :: d_step { phase == HELD && does == LOSES_FRONT && cut >= FIRST_TAIL && BEGIN(SPOT(cut), cut) == cut ->
              phase = BEGUN } goto done
  :: d_step { phase == HELD && does == LOSES_FRONT && cut >= FIRST_TAIL && BEGIN(SPOT(cut), cut) < cut ->
              refine(cut, HIGHEST(cut), BEGUN) } goto refine_next
  :: d_step { phase == BEGUN && does == LOSES_FRONT && !CAN_CLOSE(cut) && SPOT(cut) >= 4 ->
              refine(cut, 0, SECOND) } goto refine_next
  :: d_step { ((phase == BEGUN && does == LOSES_FRONT && (CAN_CLOSE(cut) || SPOT(cut) < 4)) || phase == SECOND) ->
              begin(); to = cut; second = cut; goal = FIRST_TAIL; phase = BACK } goto done
  /* rehead(), with the codes of head_codes() */
  :: d_step { phase == REHEAD && end < FIRST_TAIL -> relinquish(from / 2, 12);
              u = from / 2; v = 3; rewrite(); n = from / 2; pat = 3; at = n; want = OFFER(at); from = 0; end = 0; phase = 0 } goto publish
  :: d_step { phase == REHEAD && from & 1 && end == FIRST_TAIL -> n = from / 2; pat = 12;
              CHECK(CODE(n, 1) == HEAD); u = n; v = CODES(n); rewrite(); from = 0; end = 0; phase = 0 } goto done
  :: d_step { phase == REHEAD && (end > FIRST_TAIL || (!(from & 1) && end == FIRST_TAIL)) ->
              u = from / 2; v = BESIDE_HEAD(from) | OPEN_HEAD(from); rewrite(); phase = 0 } goto done
  /* a refused cut: the words that it took back, from the lowest */
  :: d_step { phase == MERGES && low < step -> at = WORD_AT(low, unit); low++ } goto merge
  :: d_step { phase == MERGES && low == step } goto refused
  :: d_step { !phase && end -> check_run() } goto over
  :: d_step { !phase && !end } goto over
  fi;

shrink: /* clear_rests() */
  if
  :: d_step { to = end; end = cut; goal = CUT_TO; phase = BACK } goto done
  fi;

refine_next: /* refine(): the words below from the lowest; then the slot above them */
  if
  :: d_step { HIDES != SPOT(unit) && !IN_THE_WAY(HIDES, HIDDEN(step)) -> u = HIDES; v = HIDDEN(step); hide(); step++ } goto refine_next
  :: d_step { HIDES != SPOT(unit) && IN_THE_WAY(HIDES, HIDDEN(step)) && step > low -> TAKE_BACK_FIRST } goto take_back
  :: d_step { HIDES != SPOT(unit) && IN_THE_WAY(HIDES, HIDDEN(step)) && step == low } goto refused
  :: d_step { HIDES == SPOT(unit) -> u = HIDES; v = SLOT_OF(u, unit); uncover();
              if :: then == HELD -> held_open() :: else fi;
              phase = then; unit = 0; low = 0; step = 0; then = 0 } goto done
  fi;
take_back:
  if
  :: d_step { TAKES_MORE -> take_back_one(); TAKE_BACK_NEXT } goto take_back
  :: d_step { !TAKES_MORE -> take_back_one(); step = second; second = 0; MERGE_BACK } goto done
  fi;
refused: /* Contended: a run that was held gets its head back */
  if
  :: d_step { then == HELD -> done_with(); unit = 0; low = 0; step = 0; then = 0 } goto done
  :: d_step { then == BEGUN || then == SECOND -> done_with(); phase = REHEAD; unit = 0; low = 0; step = 0; then = 0 } goto done
  fi;

#include "climb.pml"
#include "free.pml"
#include "inspect.pml"

over:
  running--
}
