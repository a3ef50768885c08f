/* How a free tells the words above what it cleared (block/free.rs). */

#ifdef FREE_SWAPPED
tell_early: /* the looks at the words above, before the clear */
  if
  :: d_step { ABOVE_ALLOWS && at < 4 -> at = ABOVE(at) } goto tell_early
  :: d_step { ABOVE_ALLOWS && at >= 4 }
  :: d_step { !ABOVE_ALLOWS -> clear(); want = (CODES(at) -> OFFER(at) : UNSETTLED) } goto publish
  fi;
  if :: d_step { clear(); settled() } goto done fi;
#endif
tell: /* clear_near() and look_above() with the offer of the block; or clear_slowly() with that of the word */
  if
#ifndef DEEP
  :: d_step { at < 4 && ABOVE_ALLOWS && MAY_KNOW } goto know
#ifndef PRIVATE
  :: d_step { at < 4 && ABOVE_ALLOWS } goto tell_top
#else
  :: d_step { at < 4 && ABOVE_ALLOWS && !KNOWS } goto tell_top
#endif
  :: d_step { at >= 4 && ABOVE_ALLOWS -> settled() } goto done
#endif
  :: goto publish
  :: d_step { want = ex } goto publish
  fi;
#ifndef DEEP
tell_top: /* survey() again */
#ifndef LOOK_LATE
  if :: d_step { seen[me] = EPOCH } fi;
#endif
  if
  :: d_step { PATH_IN_ORDER -> bd = BOUND(R) }
  :: d_step { !PATH_IN_ORDER -> seen[me] = 0; at = ABOVE(at) } goto publish
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
#endif
