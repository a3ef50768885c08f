/* The transitions, by the names of tree/step.rs. Each is one compare-and-swap of one word, and asserts what that file
   checks; nothing else writes a word.

   Versions. A version is raised when a word is marked, and by nothing else; all transitions except `mark` leave no
   mark. So if a word that was marked when a thread read it is changed, it only holds the same again after another mark:
   a commit succeeds if and only if nobody has changed the word since, and a bit for each thread in `fresh` says exactly
   that. These bits stand for a version that never wraps, and no two states differ by a count. Loops around a
   compare-and-swap that decide anew from what they find (update, open, raise) are one step, and so is the mark of an
   inspection. */

byte fresh[R - 3];
#ifdef NO_VERSION               /* a commit compares codes, bound and mark */
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

/* with_codes(), inner(): all transitions except `mark` leave no mark. */
#define WRITE_CODES(p, codes) word[p] = (word[p] & 224) | (codes); CHANGED(p)
#define WRITE(codes, bound) word[u] = (codes) | ((bound) << 5); CHANGED(u)

/* `claim`, and `fill`, of free slots. */
inline claim(p, c) {
  n = p; pat = c; at = p;
  CHECK(CAN(n, pat));
  WRITE_CODES(n, CODES(n) | pat);
  CLAIMED
}
/* A head is all of its block: with rests behind it, it is not a block, and not there to be cleared. */
#define IS_THERE(p, c) ((word[p] & AREA(c)) == (c) && !((c) == 3 && CODE(p, 1) == REST))
inline clear() {
  CHECK(IS_THERE(n, pat));
  WRITE_CODES(n, LEFT(n, pat));
  at = n; n = 0; pat = 0
}
inline rewrite() {         /* word u becomes v */
  CHECK(u < 4 || SPLITS_IN(v) == SPLITS(u));
  WRITE_CODES(u, v)
}
/* Of a free slot, a claim leaves at most a free half. */
#ifdef OPEN_NO_BOUND
#define OPEN_BOUND BOUND(u)
#else
#define OPEN_BOUND MAX(BOUND(u), LEVEL(u))
#endif
inline open() {
  u = ABOVE(at);
  if
  :: CODE(u, SLOT(at)) == FREE -> WRITE(CODES(u) | SPLIT << (2 * SLOT(at)), OPEN_BOUND)
  :: CODE(u, SLOT(at)) == SPLIT && (word[u] & MARK) -> WRITE(CODES(u), BOUND(u))
  :: else
  fi
}
inline raise() {
  u = ABOVE(at);
  if
  :: !ALLOWS(u, want) -> WRITE(CODES(u), MAX(BOUND(u), want))
  :: else
  fi
}
/* A claim in the way of `hide` may have split the same slot. */
#ifdef HIDE_OVER
#define IN_THE_WAY(p, codes) 0
#else
#define IN_THE_WAY(p, codes) (CODES(p) & (15 - ((p) < 4 -> 0 : (codes) & 5 & ~((codes) >> 1))))
#endif
inline hide() {
  WRITE_CODES(u, v)
}
inline uncover() {
  CHECK(CODE(u, v) >= REST);
  WRITE_CODES(u, (CODES(u) & (15 - (3 << (2 * v)))) | SPLIT << (2 * v))
}
/* Sets the mark, or works under an existing mark. */
#define SET_MARK word[u] = word[u] | MARK; CHANGED(u)
inline mark() {
  u = IN;
#ifdef OVERTAKE
  SET_MARK;
#else
  if :: !(word[u] & MARK) -> SET_MARK :: else fi;
#endif
  REMEMBER(u)
}
inline commit() {
  u = IN;
  WRITE(CODES(u) & (15 - (em & 1) - 2 * (em & 2)), bd)
}

/* The commit of `split_over`. */
inline split() {
  u = IN;
  WRITE(CODES(u) | SPLIT << (2 * SLOT(at)), OPEN_BOUND)
}
/* The commit of an inspection that changes nothing. */
inline unmark() {
  u = ABOVE(at);
  WRITE(CODES(u), BOUND(u))
}
/* `raise` to nothing, on the way up past a free slot. */
inline unmark_above() {
#ifndef MERGE_LEAVES_MARK
  if :: word[ABOVE(at)] & MARK -> unmark() :: else fi
#else
  skip
#endif
}

/* What an inspection learns, word by word. */
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
inline inspected() {
  FORGET(IN);
  sl = 0; td = 0; em = 0; bd = 0
}
