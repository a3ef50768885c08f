#!/usr/bin/env bash
# miri.sh [--long]: runs Miri on nbbs, whose threads write to what they hold without any synchronisation, under several
# seeds: each gives another schedule and other stale values. Also runs it on the unsafe code of the pool. Takes five
# minutes on 2 idle cores, once Miri's library is built; `--long` runs eight times as many seeds, and the pool's
# `properties`.
source "$(dirname "$0")/../check.sh" "$@"

# Thousands of objects take minutes.
mapfile -t seeds < <(seq 0 7 | share)
pool=(--lib --test objects -- --skip 4096 --skip what_is_live_is_dropped)
[ $long = no ] || seeds=({0..63}) pool=(--lib --test objects --test properties)

# One seed runs after the other: at the same time, they would write into each other's lines.
on_nbbs() {
    local seed
    for seed in "$@"; do
        MIRIFLAGS=-Zmiri-seed=$seed cargo +nightly miri test --package nbbs --test miri || return
    done
}
# Tests leak static memory on purpose; those of the library count what is dropped.
on_pool() { MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks" cargo +nightly miri test --package nbbs-pool "$@"; }

# The package of a mutant, and the test that runs it.
of_pool() { grep -q "^name: $1\$" "$root/verify/mutants/miri-pool.list"; }
# Whether it builds is checked before, by a compiler that is quicker than Miri's.
build_mutant() { if of_pool "$1"; then cargo check --quiet --package nbbs-pool; else cargo check --quiet --package nbbs; fi; }
# Only Miri's own verdict counts, not a panic or a time-out. Tests of the pool show it under any schedule, and those of
# nbbs under some seeds.
catches() {
    if of_pool "$1"; then
        # shellcheck disable=SC2046
        ends 1 'Undefined Behavior: (memory access failed|Data race detected|.*dangling)' within 300 on_pool $(of_mutant "$1" by)
    else
        ends 1 'Undefined Behavior: Data race detected' within 300 on_nbbs {0..31}
    fi
}
# within SECONDS FUNCTION...
within() { timeout "$1" bash -c "$(declare -f "$2"); ${*:2}"; }

nightly && verify/install.sh rustup component add miri --toolchain nightly >&2 &&
    cargo +nightly miri setup >&2 || { log "no Miri: install nightly with miri and rust-src"; exit 1; }
ours=clean
on_nbbs "${seeds[@]}" >"$said" 2>&1 || ours=FOUND
cat "$said" >&2
nbbs=$(passed <"$said")
{ on_pool "${pool[@]}" && on_pool --test sources bytes_pass; } >"$said" 2>&1 || ours=FOUND
cat "$said" >&2
objects=$(passed <"$said")
[ "$nbbs" -ge $((4 * ${#seeds[@]})) ] && [ "$objects" -gt 0 ] || { log "not everything was run"; ours=FOUND; }
try_mutants miri miri-pool
finish "$nbbs tests of nbbs under ${#seeds[@]} seeds, $objects of the pool" 0/0 "$ours"
