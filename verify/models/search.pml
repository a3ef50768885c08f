/* Threads that search as search.rs does, from any cursor, among threads that allocate anywhere. An answer "none" must
   be honest: see `excused`. With HALF, half of the arena is reserved. */

#ifdef NEVER
#define NEVER_NONE && false
#else
#define NEVER_NONE
#endif
#define RETURNED if :: d_step { !pat -> hands[me] = 0 } :: d_step { pat } fi;
#define RUN_RETURNED if :: d_step { !phase -> hands[me] = IN_HAND } :: d_step { phase } fi;
#define CLAIMED claimed()
#include "tree.pml"

#ifndef SEARCHERS
#define SEARCHERS 1
#endif
#define FIRST_SEARCHER (THREADS - SEARCHERS)

/* Units 2 and 3 are reserved for good, in the form that reserve() leaves, or are not. */
#ifdef HALF
#define RESERVED 12
#define START word[1] = 5; word[4] = 4; word[R] = 65; own = RESERVED;
#else
#define RESERVED 0
#define START
#endif
#if UNITS == 6
#define ALL 63
#else
#define ALL 15
#endif

/* Ghost: the units in a thread's hands, from its claim to the return of its free, or of the allocation that claimed in
   vain; and whether others had every block of the order in their hands at an instant during a search. */
byte hands[THREADS];
byte asked[SEARCHERS];          /* order + 1; 0: no search */
bool excused[SEARCHERS];
#define OTHERS(t) (RESERVED | ((t) == 0 -> 0 : hands[0]) | ((t) == 1 -> 0 : hands[1]) | ((t) == 2 || THREADS < 3 -> 0 : hands[THREADS - 1]))

inline excuse() {
  i = 0;
  do
  :: i < SEARCHERS ->
     u = OTHERS(FIRST_SEARCHER + i);
     if
     :: asked[i] == 1 && (u & ALL) == ALL -> excused[i] = true
     :: asked[i] == 2 && (u & 3) && (u & 12) && (ALL == 15 || (u & 48)) -> excused[i] = true
     :: asked[i] == 3 && (u & 15) -> excused[i] = true
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}
inline claimed() {
  hands[me] = hands[me] | UNITS_OF(n, pat);
  excuse()
}

byte running = THREADS;

#include "worker.pml"
#ifdef RUNNERS
#include "runs.pml"
#else
#define RUNNERS 0
#define check_rests() skip
#endif

#define ME (me - FIRST_SEARCHER)

/* The offer that an area needs for the search to enter it: one order more above the level over its own, while areas are
   free. */
#define ASK (room && LEVEL(pos) > need -> need + 1 : need)
#ifdef NO_ROOM
#define IS_SPACIOUS false
#else
#define IS_SPACIOUS (need == 1 && OFFER(R) >= 3)
#endif

#define TAKE_AFTER 1
#define OFFERS_AFTER 2
#define SETTLE_AFTER 3
#define UP_AFTER 4
#define LOWEST_AFTER 5
#define MISSED_AFTER 6

#define FIT0 (WHOLE(pos) > 0 && CAN(pos, 3))
#define FIT1 (!FIT0 && WHOLE(pos) > 1 && CAN(pos, 12))
#define TOWARDS (pos == R && need == 1 -> ABOVE(cur) : cur)      /* the word below pos on the way to the cursor */
#define HOME (me & 1)                                           /* a leaf word: the only place with a way up */
#define NEAR (pos == R || ABOVE(cur) == pos -> SLOT(TOWARDS) : me & 1)
/* A search in turn goes from slot to slot of the whole arena: cur is where it goes next. */
#define PASSED(s) (turns && (pos == R || ABOVE(cur) == pos) && (s) < SLOT(TOWARDS))
/* The word behind pos of the level at which is claimed, or the first if there is none. */
#define BEHIND (need == 3 -> R : (need == 2 -> (pos == 4 && UNITS > 4 -> 5 : 4) : \
  (pos < 4 && 2 * (pos + 1) < UNITS -> pos + 1 : (pos == 4 && UNITS > 4 -> 2 : 0))))
#define FIRST_WORD (need == 3 -> R : (need == 2 -> 4 : 0))
#define FIRST_BELOW (need == 1 && pos == 5 -> 2 : FIRST_WORD)     /* the first of these words below pos */
#define OLD_SPLITS (old >> 5 < ASK -> 0 : ((old & 3) == SPLIT && !PASSED(0)) + 2 * ((old >> 2 & 3) == SPLIT && !PASSED(1)))
#define BEGIN (turns -> 0 : NEAR)
#define NEARER (td & (1 << BEGIN) -> BEGIN : 1 - BEGIN)
#define KID BELOW(R, 1 - (kids & 1))
#define WAS_FREE(s) (!(old & (3 << (2 * (s)))) && WHOLE(pos) > (s))
/* A search in turn takes a free slot if none before it offers enough. */
#define TURN_0 (turns && !found && WAS_FREE(0) && !PASSED(0))
#define TURN_1 (turns && !found && !TURN_0 && !(td & 1) && (WAS_FREE(1) || PART_FITS) && !PASSED(1))
#if UNITS == 6
#define PART_FITS (pos == R && !(old & 12) && ASK <= 2)
#else
#define PART_FITS false
#endif

/* pass(): goes on behind pos, from the lowest word above both. A variable must not be changed by what is computed from
   it, so cur comes last. */
inline pass() {
  go = BEHIND;
  if
  :: pos < 4 && ABOVE(go) == ABOVE(pos) -> pos = ABOVE(pos)
  :: else -> pos = R
  fi;
  cur = go; go = 0
}
inline descend() { pos = BELOW(pos, go); old = 0; found = false; go = 0 }

proctype Searcher(byte me) {
  byte n, pat, at, want, ex, sl, td, em, bd, snap;
  byte need, cur, pos, old, go, ret, kids;
  bool found, room, turns;
  goto won;

done: /* where the caller of free(), undo(), tighten() or split_over() goes on */
  if
  :: d_step { ret == 0 -> hands[me] = 0 } goto won
  :: d_step { ret == TAKE_AFTER -> hands[me] = 0; ret = 0 } goto took_none
  :: d_step { ret == OFFERS_AFTER -> ret = 0 } goto offers
  :: d_step { ret == SETTLE_AFTER -> ret = 0 } goto settle
  :: d_step { ret == UP_AFTER -> ret = 0 } goto up
  :: d_step { ret == LOWEST_AFTER -> hands[me] = 0; ret = 0 } goto lowest
  :: d_step { ret == MISSED_AFTER -> ret = 0 } goto missed
  fi;
won: progress:
  if :: d_step { need = 0; cur = 0; pos = 0; ret = 0; room = false; turns = false; asked[ME] = 0; excused[ME] = false } fi;

  if
#define CALL(order, p) \
  :: d_step { !pat -> need = order + 1; asked[ME] = need; excuse(); cur = p; pos = p } goto first_take
#ifdef ASK0
  CALL(0, 0)
  CALL(0, 1)
#if UNITS == 6
  CALL(0, 2)
#endif
#endif
#ifdef ASK1
  CALL(1, 4)
#if UNITS == 6
  CALL(1, 5)
#endif
#endif
#ifdef ASK2
  CALL(2, 6)
#endif
  FREE_OPTIONS
  :: goto over
  fi;

first_take: /* alloc_from(): claim() at the cursor; search() then comes to `lowest` */
  if
  :: d_step { FIT0 && pos < R -> claim(pos, 3); ret = LOWEST_AFTER } goto look
  :: d_step { FIT1 && pos < R -> claim(pos, 12); ret = LOWEST_AFTER } goto look
  :: d_step { FIT0 && pos == R -> claim(pos, 3); win() } goto won
  :: d_step { !FIT0 && (!FIT1 || pos == R) }
  fi;
  /* alloc_beside(): if it has found nothing, what misled it is inspected, whatever stands above */
  if
  :: d_step { pos < R && CODES(ABOVE(cur)) && BOUND(ABOVE(cur)) >= need -> at = ABOVE(cur); sl = 3; ret = LOWEST_AFTER } goto inspect
  :: d_step { true }
  fi;

lowest: /* lowest_in_use() of the words above the cursor */
  if :: d_step { pos = R } fi;
  do
  :: d_step { LEVEL(pos) <= need } break
  :: d_step { LEVEL(pos) > need && CODE(pos, NEAR) != SPLIT } break
  :: d_step { LEVEL(pos) > need && CODE(pos, NEAR) == SPLIT -> pos = TOWARDS }
  od;

round: /* the loop of search() */
  if
  :: d_step { LEVEL(pos) == need - 1 } goto take
  :: d_step { LEVEL(pos) > need - 1 } goto choose
  fi;

take: /* claim() */
  if
  :: d_step { FIT0 && pos < R -> claim(pos, 3); ret = TAKE_AFTER } goto look
  :: d_step { FIT1 && pos < R -> claim(pos, 12); ret = TAKE_AFTER } goto look
  :: d_step { FIT0 && pos == R -> claim(pos, 3); win() } goto won
  :: d_step { !FIT0 && (!FIT1 || pos == R) }
  fi;
took_none:
  if
#ifdef NO_SETTLE
  :: goto missed
#else
  :: d_step { need > 1 && BOUND(pos) == UNSETTLED -> kids = (pos == R -> SPLITS(R) : 0) } goto settle
  :: d_step { need == 1 || BOUND(pos) != UNSETTLED } goto missed
#endif
  fi;
missed: /* a miss, which may be the one too many */
  if
  :: d_step { turns = true } goto offers
  :: d_step { !turns } goto offers
  fi;

choose: /* choose(): the word, then the words below its split slots, the near one first */
  if :: d_step { old = word[pos]; td = OLD_SPLITS } fi;
choose_next:
  if
  :: d_step { TURN_0 -> td = 0; go = 0; descend() } goto round
  :: d_step { TURN_1 -> td = 0; go = 1; descend() } goto round
  :: d_step { td && !TURN_0 && !TURN_1 -> u = BELOW(pos, NEARER);
       if
       :: OFFER(u) >= ASK -> found = true; go = SLOT(u); td = 0
       :: else -> td = td & (2 - SLOT(u))
       fi } goto choose_next
  :: d_step { !td && found -> descend() } goto round
  :: d_step { !td && !found && turns && !TURN_1 && !TURN_0 && cur > FIRST_BELOW -> old = 0; pass() } goto round
  :: d_step { !td && !found && !turns && PART_FITS -> go = 1; descend() } goto round
  :: d_step { !td && !found && !turns && !PART_FITS && WAS_FREE(NEAR) -> go = NEAR; descend() } goto round
  :: d_step { !td && !found && !turns && !PART_FITS && !WAS_FREE(NEAR) && WAS_FREE(1 - NEAR) -> go = 1 - NEAR; descend() } goto round
  :: d_step { !td && !found && (turns -> !TURN_0 && !TURN_1 && cur <= FIRST_BELOW : !PART_FITS && !WAS_FREE(0) && !WAS_FREE(1)) -> old = 0 }
  fi;
  /* tighten_if_misled(): what misled the search is inspected at once */
  if
  :: d_step { BOUND(pos) >= ASK -> at = pos; sl = 3; ret = OFFERS_AFTER } goto inspect
  :: d_step { BOUND(pos) < ASK } goto offers
  fi;

loose: /* tighten_if_loose() of `at`: look first, inspect if something would change */
  if :: d_step { old = word[at]; sl = 3; td = SPLITS(at); em = 0; bd = 0 } fi;
  do
  :: d_step { td -> look_at_next() }
  :: d_step { !td && !em && bd == old >> 5 -> old = 0; sl = 0; bd = 0; at = 0 } goto done
  :: d_step { !td && (em || bd != old >> 5) -> old = 0; em = 0; bd = 0 } goto inspect
  od;

settle: /* settle() of the words below, then of the word itself */
  if
  :: d_step { kids && BOUND(KID) == UNSETTLED -> at = KID; kids = kids & (2 - SLOT(at)); ret = SETTLE_AFTER } goto loose
  :: d_step { kids && BOUND(KID) != UNSETTLED -> kids = kids & (2 - SLOT(KID)) } goto settle
  :: d_step { !kids -> at = pos; ret = MISSED_AFTER } goto loose
  fi;

offers:
  if
  :: d_step { OFFER(pos) >= ASK -> turns = true; pass() } goto lowest
  :: d_step { OFFER(pos) < ASK && pos == R && ASK == need -> assert(excused[ME] NEVER_NONE) } goto won    /* None */
  :: d_step { OFFER(pos) < ASK && pos == R && ASK > need -> room = false } goto round
  :: d_step { OFFER(pos) < ASK && pos < R }
  fi;
  /* split_over(): the slot above */
  if
  :: d_step { CODE(ABOVE(pos), SLOT(pos)) == FREE -> at = pos; ret = UP_AFTER } goto split_over
  :: d_step { CODE(ABOVE(pos), SLOT(pos)) != FREE }
  fi;
up: if
  :: d_step { turns -> pass() } goto round
  :: d_step { !turns }
  fi;
    /* beside the cursor everything is full: from home, by way of the top, whether memory is_spacious() or not; else a
       word up. For restart() any area may be that of the lane's cursor. */
  if
  :: d_step { LEVEL(pos) == need && need == 1 && OFFER(4) >= need -> cur = HOME; room = IS_SPACIOUS; pos = 4 } goto round
  :: d_step { LEVEL(pos) == need && need == 1 && OFFER(5) >= need -> cur = HOME; room = IS_SPACIOUS; pos = 5 } goto round
  :: d_step { LEVEL(pos) == need -> cur = HOME; room = IS_SPACIOUS; pos = R } goto round
  :: d_step { LEVEL(pos) != need -> pos = ABOVE(pos) } goto round
  fi;

#include "climb.pml"
#include "free.pml"
#include "inspect.pml"

over:
  running--
}

init {
  atomic {
    START
#if THREADS > SEARCHERS + RUNNERS
    run Worker(0, 0, 0);
#endif
#if THREADS > SEARCHERS + RUNNERS + 1
    run Worker(1, 0, 0);
#endif
#if RUNNERS > 0
    run Runner(FIRST_SEARCHER - 1);
#endif
#if SEARCHERS > 1
    run Searcher(THREADS - 2);
#endif
    run Searcher(THREADS - 1)
  };
  d_step { running == 0 -> check_rests(); audit() }
}
