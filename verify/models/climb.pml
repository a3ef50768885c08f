/* From a claim to the top (lane/path.rs, tree/climb.rs), and back if the area is taken. It is included in the processes
   of worker.pml, runs.pml and search.pml, like free.pml and inspect.pml. Each option of an `if` is one access to one
   shared word, with the local work up to the next one; `goto` takes no step.

   The block in hand is (n, pat). `at` is the word from which a climb, a merge or a publish goes up. `want` is the offer
   that a free wants the words above to allow for, or 0 during an allocation. `ex` is the exact offer or, in a merge,
   whether it may be left. `sl` are the slots that an inspection looks into (3: tighten), `td` those still to be read,
   and `em` those found empty. `bd` is a bound. Exits: won; done. */

#ifdef CLAIM_SWAPPED
early: /* the looks at the words above, before the claim */
  if
  :: d_step { ABOVE_PASSES && at < 4 -> at = ABOVE(at) } goto early
  :: d_step { ABOVE_PASSES && at >= 4 && CAN(n, pat) -> WRITE_CODES(n, CODES(n) | pat); win() } goto won
  :: d_step { ABOVE_PASSES && at >= 4 && !CAN(n, pat) -> n = 0; pat = 0; at = 0 } goto done
  :: d_step { !ABOVE_PASSES && CAN(n, pat) -> claim(n, pat) } goto look
  :: d_step { !ABOVE_PASSES && !CAN(n, pat) -> n = 0; pat = 0; at = 0 } goto done
  fi;
#endif

#ifdef DEEP
look:
climb:
  goto open_all;
#else
look: /* knows_path(), or on the slow path straight on to climb() */
  if
#ifdef KNOW_EARLY
  :: d_step { at < 4 && KNOWS } goto look_late
#elif defined(CLIMB_SHORT)
  :: d_step { at < 4 && ABOVE_PASSES -> win() } goto won
#else
  :: d_step { at < 4 && ABOVE_PASSES && MAY_KNOW } goto know
#endif
  :: d_step { at >= 4 && ABOVE_PASSES -> win() } goto won
  :: goto climb
  fi;
#ifdef KNOW_EARLY
look_late:
  if :: d_step { ABOVE_PASSES -> win() } goto won :: d_step { !ABOVE_PASSES } goto climb fi;
#endif

know: /* known_bound(), for an allocation and for a free */
#ifdef PRIVATE
  if
  :: d_step { KNOWS && !want -> win() } goto won
  :: d_step { KNOWS && want -> settled() } goto done
  :: d_step { !KNOWS && !want } goto climb
  :: d_step { !KNOWS && want } goto tell_top
  fi;
#else
  if :: d_step { seen[me] = EPOCH } fi;
  if
  :: d_step { SAW_PATH(ABOVE(at), want) -> bd = path[NOTE] }
  :: d_step { !SAW_PATH(ABOVE(at), want) && !want -> seen[me] = 0 } goto know_by_frees
  :: d_step { !SAW_PATH(ABOVE(at), want) && want -> seen[me] = 0 } goto tell_top
  fi;
  if
  :: d_step { SEALED_SO && !want -> seen[me] = 0; bd = 0; win() } goto won
  :: d_step { SEALED_SO && want -> seen[me] = 0; bd = 0; settled() } goto done
  :: d_step { !SEALED_SO && !want -> seen[me] = 0; bd = 0 } goto know_by_frees
  :: d_step { !SEALED_SO && want -> seen[me] = 0; bd = 0 } goto tell_top
  fi;

know_by_frees: /* the same for a claim, by the note of frees */
#ifndef FREES_FORGET
  if :: d_step { seen[me] = EPOCH } fi;
  if
  :: d_step { SAW_IN_FREES -> bd = path[OF_FREES] }
  :: d_step { !SAW_IN_FREES -> seen[me] = 0 } goto climb
  fi;
  if
  :: d_step { FREES_SEALED_SO -> seen[me] = 0; bd = 0; win() } goto won
  :: d_step { !FREES_SEALED_SO -> seen[me] = 0; bd = 0 } goto climb
  fi;
#endif
#endif

climb: /* the look at the word above, then survey() or tree.climb() */
  if
#ifdef PRIVATE
  :: d_step { at >= 4 && ABOVE_PASSES -> path[NOTE] = 0; epoch_of[NOTE] = 0; win() } goto won
  :: d_step { at < 4 && ABOVE_PASSES } goto survey
#else
  :: d_step { ABOVE_PASSES } goto survey
#endif
  :: d_step { !ABOVE_PASSES } goto open_all
  fi;

survey: /* the epoch, then the words of level 2 and up, then the lane's hint */
#ifndef SURVEY_LATE
  if :: d_step { seen[me] = EPOCH } fi;
#endif
  if
  :: d_step { at < 4 && PASSES(R, SLOT(ABOVE(at))) -> bd = BOUND(R) }
  :: d_step { at >= 4 -> bd = UNSETTLED }
  :: d_step { at < 4 && !PASSES(R, SLOT(ABOVE(at))) -> seen[me] = 0 } goto open_all
  fi;
#ifdef SURVEY_LATE
  d_step { seen[me] = EPOCH };
#endif
#ifndef PRIVATE
  d_step { keep_path() };
#endif
  if :: d_step { keep_epoch(); win() } goto won fi;
#endif

open_all: /* tree.climb(): `open` in every word above */
  if
  :: d_step { ABOVE_CODE < REST && !BELOW_TOP -> open(); at = ABOVE(at) } goto open_all
  :: d_step { ABOVE_CODE < REST && BELOW_TOP -> open(); win() } goto won
  :: d_step { ABOVE_CODE >= REST } goto undo
  fi;

undo: /* undo(), or clear_slots() of a run's piece or of a reservation: clear, then merge() or publish() */
  if
#ifdef UNDO_NO_MERGE
  :: d_step { clear(); at = 0 } goto done
#else
  :: d_step { !LEFT(n, pat) -> clear(); ex = LEAVES_UNDONE } goto merge
  :: d_step { LEFT(n, pat) -> clear(); want = OFFER(at) } goto publish
#endif
  fi;
