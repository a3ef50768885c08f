/* The steps of one operation, included into the processes of worker.pml and search.pml. Each option of an `if`
   is one access to one shared word, with the local work up to the next one; `goto` takes no step.

   The block in hand is (n, pat). `at` is the word from which a climb, a merge or a publish goes up; `want` the
   offer that a free wants the words above to allow for, 0 during an allocation; `ex` the exact one; `sl` the
   slots that an inspection looks into (3: tighten), `td` those still to be read, `em` those found empty, `bd` a
   bound. Exits: won; done. */

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

/* ---- climb.rs: knows_way_up(), or on the slow path straight on to climb() */
look:
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

know: /* knows_path(), for an allocation and for a free */
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
  :: d_step { SAW_PATH(ABOVE(at), want) && PATH_OF(seen[me]) }
  :: d_step { !(SAW_PATH(ABOVE(at), want) && PATH_OF(seen[me])) && !want -> seen[me] = 0 } goto climb
  :: d_step { !(SAW_PATH(ABOVE(at), want) && PATH_OF(seen[me])) && want -> seen[me] = 0 } goto tell_top
  fi;
  if
  :: d_step { full_epoch[NOTE] == seen[me] && !want -> seen[me] = 0; win() } goto won
  :: d_step { full_epoch[NOTE] == seen[me] && want -> seen[me] = 0; settled() } goto done
  :: d_step { full_epoch[NOTE] != seen[me] && !want -> seen[me] = 0 } goto climb
  :: d_step { full_epoch[NOTE] != seen[me] && want -> seen[me] = 0 } goto tell_top
  fi;
#endif

climb: /* the look at the word above, then survey() or climb_all() */
  if
#ifdef PRIVATE
  :: d_step { at >= 4 && ABOVE_PASSES -> path[NOTE] = 0; path_epoch[NOTE] = 0; full_epoch[NOTE] = 0; win() } goto won
  :: d_step { at < 4 && ABOVE_PASSES } goto survey
#else
  :: d_step { ABOVE_PASSES } goto survey
#endif
  :: d_step { !ABOVE_PASSES } goto open
  fi;

survey: /* the epoch, then the words of level 2 and up, then the lane's hint */
#ifndef SURVEY_LATE
  if :: d_step { seen[me] = EPOCH } fi;
#endif
  if
  :: d_step { at < 4 && PASSES(R, SLOT(ABOVE(at))) -> bd = BOUND(R) }
  :: d_step { at >= 4 -> bd = UNSETTLED }
  :: d_step { at < 4 && !PASSES(R, SLOT(ABOVE(at))) -> seen[me] = 0 } goto open
  fi;
#ifdef SURVEY_LATE
  d_step { seen[me] = EPOCH };
#endif
#ifndef PRIVATE
  d_step { keep_path() };
#endif
  if :: d_step { keep_epoch(); win() } goto won fi;

open: /* climb_all(): open() of every word above */
  if
  :: d_step { ABOVE_CODE < REST && at < 4 -> do_open(); at = ABOVE(at) } goto open
  :: d_step { ABOVE_CODE < REST && at >= 4 -> do_open(); win() } goto won
  :: d_step { ABOVE_CODE >= REST } goto undo
  fi;

undo: /* undo(), or release_in_leaf() of a hole: clear_word(), then merge() or publish() */
  if
#ifdef UNDO_NO_MERGE
  :: d_step { clear(); at = 0 } goto done
#else
  :: d_step { IS_HOLE(n, pat) || !LEFT(n, pat) -> clear() } goto merge
  :: d_step { !IS_HOLE(n, pat) && LEFT(n, pat) -> clear(); want = OFFER(at) } goto publish
#endif
  fi;

#ifdef FREE_SWAPPED
tell_early: /* the looks at the words above, before the clear */
  if
  :: d_step { ABOVE_ALLOWS && at < 4 -> at = ABOVE(at) } goto tell_early
  :: d_step { ABOVE_ALLOWS && at >= 4 }
  :: d_step { !ABOVE_ALLOWS -> clear(); want = (CODES(at) -> OFFER(at) : UNSETTLED) } goto publish
  fi;
  if :: d_step { clear(); settled() } goto done fi;
#endif
/* ---- free.rs: clear_near() and look_above() with the offer of the block; or clear_slowly() with that of the
   word, which publishes at once */
tell:
  if
  :: d_step { at < 4 && ABOVE_ALLOWS && MAY_KNOW } goto know
#ifndef PRIVATE
  :: d_step { at < 4 && ABOVE_ALLOWS } goto tell_top
#else
  :: d_step { at < 4 && ABOVE_ALLOWS && !KNOWS } goto tell_top
#endif
  :: d_step { at >= 4 && ABOVE_ALLOWS -> settled() } goto done
  :: goto publish
  :: d_step { want = ex } goto publish
  fi;
tell_top: /* survey() again */
#ifndef LOOK_LATE
  if :: d_step { seen[me] = EPOCH } fi;
#endif
  if
  :: d_step { ALLOWS(R, 0) -> bd = BOUND(R) }
  :: d_step { !ALLOWS(R, 0) -> seen[me] = 0; at = ABOVE(at) } goto publish
  fi;
#ifdef LOOK_LATE
  d_step { seen[me] = EPOCH };
#endif
#ifndef PRIVATE
  d_step { keep_path() };
#endif
  if
  :: d_step { bd >= want -> keep_epoch(); settled() } goto done
  :: d_step { bd < want -> keep_epoch(); at = ABOVE(at) } goto publish
  fi;

/* ---- merge.rs */
publish:
  if
#ifdef NO_PUBLISH
  :: d_step { settled() } goto done
#elif defined(PUBLISH_STOPS)
  :: d_step { ABOVE_ALLOWS -> settled() } goto done
  :: d_step { at < 4 && !ABOVE_ALLOWS -> raise(); at = ABOVE(at) } goto publish
  :: d_step { at >= 4 && !ABOVE_ALLOWS -> raise(); settled() } goto done
#else
  :: d_step { at < 4 -> raise(); at = ABOVE(at) } goto publish
  :: d_step { at >= 4 -> raise(); settled() } goto done
#endif
  fi;

merge: /* the word itself */
  if
  :: d_step { CODES(at) -> want = OFFER(at) } goto publish
  :: d_step { !CODES(at) }
  fi;
  /* the word above it */
  if
  :: d_step { ABOVE_CODE == SPLIT -> sl = 1 << SLOT(at) } goto inspect
  :: d_step { ABOVE_CODE == FREE && at < 4 -> at = ABOVE(at) } goto merge
  :: d_step { ABOVE_CODE == FREE && at >= 4 -> at = 0 } goto done
  :: d_step { ABOVE_CODE >= REST -> at = 0 } goto done
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
  if :: d_step { IN < R } :: d_step { IN == R -> pass_epoch() } fi;
#endif
  if
#ifdef INSPECT_SWAPPED
  :: d_step { !SAME(IN) && sl != 3 -> inspected() } goto merge
  :: d_step { !SAME(IN) && sl == 3 -> inspected(); at = 0 } goto done
  :: d_step { IN < R && SAME(IN) -> set_mark() } goto look_below
  :: d_step { IN == R && SAME(IN) -> set_mark() } goto epoch
#elif defined(NO_EPOCH) || defined(EPOCH_EARLY) || defined(EPOCH_LATE)
  :: d_step { set_mark(); look_first() } goto look_below
#elif defined(HELP_NO_EPOCH)
  :: d_step { IN == R && !(word[IN] & MARK) -> set_mark(); look_first() } goto epoch
  :: d_step { IN < R || (word[IN] & MARK) -> set_mark(); look_first() } goto look_below
#else
  :: d_step { IN < R -> set_mark(); look_first() } goto look_below
  :: d_step { IN == R -> set_mark(); look_first() } goto epoch
#endif
  fi;
epoch:
  if :: d_step { pass_epoch() } fi;
look_below: /* if the word has changed, the commit will fail whatever the rest of the reads finds */
#ifdef EPOCH_LATE
  if :: d_step { td || IN < R } :: d_step { !td && IN == R -> pass_epoch() } fi;
#endif
  if
  :: d_step { td && SAME(IN) -> look_at_next() } goto look_below
  :: d_step { !td && SAME(IN) && sl != 3 -> commit(); inspected() } goto merge
  :: d_step { !td && SAME(IN) && sl == 3 && em && IN < R -> commit(); inspected() } goto merge
  :: d_step { !td && SAME(IN) && sl == 3 && !(em && IN < R) -> commit(); inspected(); at = 0 } goto done
#ifdef MERGE_ONCE
  :: d_step { !SAME(IN) -> inspected(); at = 0 } goto done
#else
  :: d_step { !SAME(IN) && sl != 3 -> inspected() } goto merge
  :: d_step { !SAME(IN) && sl == 3 -> inspected(); at = 0 } goto done
#endif
  fi;

/* ---- search.rs: split_over(), after its read of the slot above `at` */
split_over:
  if
#ifdef SPLIT_OVER_SETTLED
  :: d_step { SAME(ABOVE(at)) && CODES(at) -> want = OFFER(at) }
#else
  :: d_step { SAME(ABOVE(at)) && CODES(at) }
#endif
  :: d_step { !SAME(ABOVE(at)) || !CODES(at) -> FORGET(ABOVE(at)); at = 0 } goto done
  fi;
  if
  :: d_step { SAME(ABOVE(at)) -> FORGET(ABOVE(at)); do_split_over() } goto merge
  :: d_step { !SAME(ABOVE(at)) -> FORGET(ABOVE(at)); want = 0; at = 0 } goto done
  fi;
