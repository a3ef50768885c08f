/* Merging empty words, and keeping the bounds honest (tree/inspect.rs). */

publish:
  if
#ifdef NO_PUBLISH
  :: d_step { settled() } goto done
#elif defined(PUBLISH_STOPS)
  :: d_step { ABOVE_ALLOWS -> settled() } goto done
  :: d_step { !BELOW_TOP && !ABOVE_ALLOWS -> raise(); at = ABOVE(at) } goto publish
  :: d_step { BELOW_TOP && !ABOVE_ALLOWS -> raise(); settled() } goto done
#else
  :: d_step { !BELOW_TOP -> raise(); at = ABOVE(at) } goto publish
  :: d_step { BELOW_TOP -> raise(); settled() } goto done
#endif
  fi;

merge: /* the word itself */
  if
  :: d_step { CODES(at) -> want = OFFER(at) } goto publish
  :: d_step { !CODES(at) }
  fi;
  /* the word above it; a free may leave the merge to others, which the code does once it has lost it three times */
  if
  :: d_step { ABOVE_CODE == SPLIT -> sl = 1 << SLOT(at) } goto inspect
#ifdef LEAVE_SILENTLY
  :: d_step { ABOVE_CODE == SPLIT && ex -> settled() } goto done
#else
  :: d_step { ABOVE_CODE == SPLIT && ex -> want = UNSETTLED } goto publish
#endif
#ifdef CLEAR_AGAIN
  :: d_step { ABOVE_CODE == FREE && (word[ABOVE(at)] & MARK) -> unmark() } goto merge
#endif
  :: d_step { ABOVE_CODE == FREE && !BELOW_TOP -> unmark_above(); at = ABOVE(at) } goto merge
  :: d_step { ABOVE_CODE == FREE && BELOW_TOP -> unmark_above(); settled() } goto done
  :: d_step { ABOVE_CODE >= REST -> settled() } goto done
  fi;

inspect: /* the mark, then the epoch */
#ifdef INSPECT_SWAPPED
  if :: d_step { REMEMBER(IN); look_first() } fi;
  do
  :: d_step { td && SAME(IN) -> look_at_next() }
  :: d_step { !(td && SAME(IN)) } break
  od;
#endif
#ifdef EPOCH_EARLY
  if :: d_step { !HAS_EPOCH(IN) } :: d_step { HAS_EPOCH(IN) -> pass_epoch() } fi;
#endif
#ifdef EPOCH_STALE
  if :: d_step { seen[me] = EPOCH } fi;
#endif
  if
#ifdef INSPECT_SWAPPED
  :: d_step { !SAME(IN) && sl != 3 -> inspected() } goto merge
  :: d_step { !SAME(IN) && sl == 3 -> inspected(); at = 0 } goto done
  :: d_step { !HAS_EPOCH(IN) && SAME(IN) -> mark() } goto look_below
  :: d_step { HAS_EPOCH(IN) && SAME(IN) -> mark() } goto epoch
#elif defined(NO_EPOCH) || defined(EPOCH_EARLY) || defined(EPOCH_LATE)
  :: d_step { mark(); look_first() } goto look_below
#elif defined(HELP_NO_EPOCH)
  :: d_step { HAS_EPOCH(IN) && !(word[IN] & MARK) -> mark(); look_first() } goto epoch
  :: d_step { !HAS_EPOCH(IN) || (word[IN] & MARK) -> mark(); look_first() } goto look_below
#else
  :: d_step { !HAS_EPOCH(IN) -> mark(); look_first(); SEEN_IN_VAIN } goto look_below
  :: d_step { HAS_EPOCH(IN) -> mark(); look_first() } goto epoch
#endif
  fi;
epoch: /* pass_epoch(): one attempt; if it fails, another thread has ended the epoch since */
#ifdef EPOCH_AT_ONCE            /* the load and the attempt in one step: fewer states */
  if :: d_step { pass_epoch() } fi;
  goto look_below;
#elif !defined(EPOCH_STALE)
  if :: d_step { seen[me] = EPOCH } fi;
#endif
  if
  :: d_step { seen[me] == EPOCH -> seen[me] = 0; pass_epoch() }
  :: d_step { seen[me] != EPOCH -> seen[me] = 0; forget_epochs() }
  fi;
look_below: /* if the word has changed, the commit will fail whatever the rest of the reads finds */
#ifdef EPOCH_LATE
  if :: d_step { td || !HAS_EPOCH(IN) } :: d_step { !td && HAS_EPOCH(IN) -> pass_epoch() } fi;
#endif
  if
  :: d_step { td && SAME(IN) -> look_at_next() } goto look_below
  :: d_step { !td && SAME(IN) && sl != 3 -> commit(); inspected() } goto merge
  :: d_step { !td && SAME(IN) && sl == 3 && em && IN < R -> commit(); inspected() } goto merge
  :: d_step { !td && SAME(IN) && sl == 3 && !(em && IN < R) -> commit(); inspected(); at = 0 } goto done
#ifdef MERGE_ONCE
  :: d_step { !SAME(IN) -> inspected(); settled() } goto done
#else
  :: d_step { !SAME(IN) && sl != 3 -> inspected() } goto merge
  :: d_step { !SAME(IN) && sl == 3 -> inspected(); at = 0 } goto done
#endif
  fi;

split_over: /* after its first look at the word above `at`, which has no epoch to end: it takes nothing back */
  if
  :: d_step { CODES(at) }
  :: d_step { !CODES(at) -> at = 0 } goto done
  fi;
  if :: d_step { mark() } fi;
#ifdef SPLIT_OVER_BLIND
#define STILL_IN_USE true
#else
#define STILL_IN_USE CODES(at)
#endif
  if
  :: d_step { ABOVE_CODE == FREE && STILL_IN_USE }
  :: d_step { !(ABOVE_CODE == FREE && STILL_IN_USE) } goto split_nothing
  fi;
  if
  :: d_step { SAME(IN) -> split(); inspected(); at = 0 } goto done
  :: d_step { !SAME(IN) -> inspected(); at = 0 } goto done
  fi;
split_nothing:
  if
  :: d_step { SAME(IN) -> unmark(); inspected(); at = 0 } goto done
  :: d_step { !SAME(IN) -> inspected(); at = 0 } goto done
  fi;
