#!/usr/bin/env bash
# miri.sh [--long]: Miri on nbbs, whose threads write to what they hold without any synchronisation, under several seeds:
# each is another schedule and other stale values; and on the unsafe code of the pool. Three minutes on 2 cores that are
# free, once Miri's library is built; `--long` runs eight times as many seeds, and the pool's `properties`.
source "$(dirname "$0")/../check.sh" "$@"

seeds=8 pool=(--lib --test objects)
[ $long = no ] || seeds=64 pool+=(--test properties)

on_nbbs() { MIRIFLAGS="-Zmiri-many-seeds=0..$1" cargo +nightly miri test --package nbbs --test miri; }
on_pool() { MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --package nbbs-arena --features nbbs "$@"; }
# Sums what the runs say that they passed, one line each.
passed() { sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$1" | awk '{ sum += $1 } END { print sum + 0 }'; }

# That it builds is seen before, by a compiler that is quicker than Miri's.
build_mutant() { cargo check --quiet --package nbbs --test miri; }
# Miri's own verdict, of a thread that sees what it may not: no panic, no time-out.
catches() { ends 1 'Undefined Behavior: Data race detected' timeout 300 bash -c "$(declare -f on_nbbs); on_nbbs 32"; }

nightly && rustup component add miri --toolchain nightly >&2 &&
    cargo +nightly miri setup >&2 || { log "no Miri: install nightly with miri and rust-src"; exit 1; }
ours=clean
on_nbbs $seeds >"$said" 2>&1 || ours=FOUND
cat "$said" >&2
of_nbbs=$(passed "$said")
on_pool "${pool[@]}" >"$said" 2>&1 || ours=FOUND
cat "$said" >&2
of_pool=$(passed "$said")
[ "$of_nbbs" -ge $((4 * seeds)) ] && [ "$of_pool" -gt 0 ] || { log "not everything was run"; ours=FOUND; }
try_mutants miri
finish "$of_nbbs tests of nbbs over $seeds seeds, $of_pool of the pool" 0/0 "$ours"
