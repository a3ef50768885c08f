/* What a lane knows of the path above a level-1 word (lane/notes.rs): one note of claims and one of frees. A claim
   believes both. A place is that word, or nothing, as nobody asks for paths above R. Of the bounds, only frees ask
   whether they allow for 1 or UNSETTLED. With DEEP nobody knows a path.

   Epochs are only compared for equality, with one read later. Epochs that no thread can compare with any more are
   forgotten, and the others renumbered, so that EPOCH stays small without wrapping. */

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
#if LANES == THREADS
#define PRIVATE                 /* nobody else writes the lane's notes, so it reads and writes them in one step */
#endif
byte path[NOTES];               /* a note's first word: place and bound */
byte epoch_of[NOTES];           /* its second word: the epoch ... */
#ifndef PRIVATE
byte sealed[NOTES];             /* ... and the first word that it was written for */
#endif
#define PATH(p, bound) ((p) == R -> 0 : (p) * 8 + (!(bound) -> 0 : ((bound) < UNSETTLED -> 1 : UNSETTLED)))
#ifdef PATH_NO_BOUND
#define SAW_PATH(p, offer) (path[NOTE] / 8 == (p))
#else
#define SAW_PATH(p, offer) (path[NOTE] / 8 == (p) && path[NOTE] % 8 >= (offer))
#endif
#ifdef NO_SEAL
#define SEALED(note) (epoch_of[note] == seen[me])
#else
#define SEALED(note) (epoch_of[note] == seen[me] && sealed[note] == bd)    /* bd: the first word, as it was read */
#endif
#define SEALED_SO SEALED(NOTE)
#define FREES_SEALED_SO SEALED(OF_FREES)

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
     held = v == EPOCH;         /* a lane only compares with the present epoch */
#endif
     RENUMBER(epoch_of, NOTES, (held -> kept : 0));
     v++
  :: else -> break
  od;
  EPOCH = kept;
#ifdef PRIVATE
  i = 0;
  do :: i < NOTES -> if :: !epoch_of[i] -> path[i] = 0 :: else fi; i++ :: else -> break od;
#else
  held = 0; i = 0;              /* nobody is between the two words of a note */
  do :: i < THREADS -> held = held || seen[i]; i++ :: else -> break od;
  i = 0;
  do
  :: i < NOTES ->
     if :: !epoch_of[i] -> sealed[i] = 0; path[i] = (held -> path[i] : 0) :: else fi;
     i++
  :: else -> break
  od;
#endif
  i = 0                         /* a step must not end in a loop */
}
inline pass_epoch() {
  EPOCH = EPOCH + 1;
  forget_epochs()
}

#ifdef FREES_SEE_NO_SPLIT       /* a free only looks for marks */
#define PATH_IN_ORDER ALLOWS(R, 0)
#else
#define PATH_IN_ORDER PASSES(R, SLOT(ABOVE(at)))
#endif

#ifdef DEEP
#define HAS_EPOCH(p) false
#else
#define HAS_EPOCH(p) ((p) == R)
#endif
#ifdef EPOCH_STALE              /* the epoch is read before the mark, and found changed by a thread that came before it */
#define SEEN_IN_VAIN seen[me] = 0; forget_epochs()
#else
#define SEEN_IN_VAIN skip
#endif

#ifdef FREES_FORGET
#define KNOWS (!want && SAW_PATH(ABOVE(at), want) && epoch_of[NOTE] == EPOCH)
#else
#define OF_FREES (LANES + lane)
#define SAW_IN_FREES (path[OF_FREES] / 8 == ABOVE(at))
#define KNOWS (SAW_PATH(ABOVE(at), want) && epoch_of[NOTE] == EPOCH || !want && SAW_IN_FREES && epoch_of[OF_FREES] == EPOCH)
#endif
#ifdef PRIVATE
#define MAY_KNOW KNOWS          /* what is not known now will not be known in a moment */
#else
#define MAY_KNOW REMEMBERS
#endif

inline keep_path() {
  path[NOTE] = (REMEMBERS -> PATH(ABOVE(at), (want -> bd : 0)) : path[NOTE])
}
inline keep_epoch() {
#ifdef PRIVATE
  keep_path();
#else
  sealed[NOTE] = (REMEMBERS -> PATH(ABOVE(at), (want -> bd : 0)) : sealed[NOTE]);
#endif
  epoch_of[NOTE] = (REMEMBERS -> seen[me] : epoch_of[NOTE]);
  seen[me] = 0; bd = 0;
  forget_epochs()
}
