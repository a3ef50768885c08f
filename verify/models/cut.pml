/* Holding and cutting (run/hold.rs, cut.rs), part of runs.pml. The run from `from` to `end` is written into the words
   below the slot in which `unit` lies, from level `low` up to below that of the slot, with one compare-and-swap each:
   `step` is the next level. Then the slot is split. Nobody else can change what a holder reads of its own run, so such
   reads are not separate steps. `then` says what follows. */

#define WORD_AT(level, u) ((level) == 0 -> (u) / 2 : ((level) == 1 -> 4 + (u) / 4 : ((level) == 2 -> 6 : R)))
/* The slots of a run at unit `f` in its leaf word, and their codes: if hidden, 01 except the last, 11; if open, 01 and
   a rest. */
#define HEAD_SLOTS(f) ((f) & 1 -> 12 : 15)
#define HIDDEN_HEAD(f) ((f) & 1 -> 12 : 13)
#define OPEN_HEAD(f) ((f) & 1 -> 4 : 9)
#define AT_HEAD(f) (CODES((f) / 2) & HEAD_SLOTS(f))
#define BESIDE_HEAD(f) (CODES((f) / 2) & (15 - HEAD_SLOTS(f)))

/* Where a unit is described (spot), its slot there, and where that slot begins. */
#define IN_WORD(p, u) (CODE(p, SLOT_OF(p, u)) != SPLIT)
#ifdef DEEP
#define SPOT(u) (IN_WORD(7, u) -> 7 : (IN_WORD(6, u) -> 6 : (IN_WORD(4 + (u) / 4, u) -> 4 + (u) / 4 : (u) / 2)))
#else
#define SPOT(u) (IN_WORD(6, u) -> 6 : (IN_WORD(4 + (u) / 4, u) -> 4 + (u) / 4 : (u) / 2))
#endif
#define SLOT_OF(p, u) ((u) >> LEVEL(p) & 1)
#define BEGIN(p, u) ((u) >> LEVEL(p) << LEVEL(p))

/* The codes that are written into the word of `level`: a hidden head or rests in the lowest, otherwise rests beside a
   split slot. */
#define LOWEST_CODES (then == HELD -> HIDDEN_HEAD(unit) : 10)
#define HIDDEN(level) ((level) == low -> LOWEST_CODES : (SLOT_OF(WORD_AT(level, unit), unit) -> 6 : 9))
/* Both bits of the split slot, which stays unchanged when the words are taken back. */
#define KEPT(level) ((level) == low -> 0 : (SLOT_OF(WORD_AT(level, unit), unit) -> 12 : 3))
#define HIDES WORD_AT(step, unit)

/* The highest level of which a slot begins at `u`. */
#define HIGHEST(u) ((u) % 2 -> 0 : ((u) % 4 -> 1 : 2))

inline refine(u0, lowest, next) {
  unit = u0; low = lowest; step = lowest; then = next
}
inline take_back_one() {
  u = HIDES;
#ifdef CUT_CLEARS               /* including split slots: only a commit may do that */
  WRITE_CODES(u, 0)
#else
  CHECK(!((CODES(u) ^ HIDDEN(step)) & (15 - KEPT(step))));
  v = CODES(u) & KEPT(step);
  rewrite()
#endif
}
#ifdef CUT_WIDE
#define CUT_TO FIRST_TAIL
#else
#define CUT_TO MAX(cut, FIRST_TAIL)
#endif
/* A refused cut takes its words back from the highest; `second` keeps the level at which it was refused. */
#if defined(CUT_CLEARS) || defined(BACK_LOWEST)
#define TAKE_BACK_FIRST second = step; step = low
#define TAKES_MORE (step + 1 < second)
#define TAKE_BACK_NEXT step++
#else
#define TAKE_BACK_FIRST second = step; step--
#define TAKES_MORE (step > low)
#define TAKE_BACK_NEXT step--
#endif
#ifdef REFUSED_NO_MERGE
#define MERGE_BACK phase = MERGES; low = step
#else
#define MERGE_BACK phase = MERGES
#endif
