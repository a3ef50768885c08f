#!/usr/bin/env bash
# linearizability.sh [--long]: checks histories of small races, under shuttle, also behind a cache, under every schedule
# with few preemptions and on real threads, against the sequential buddy; then the broken allocators and the mutants.
# Takes four minutes; `--long` runs fifty times as many random races.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { cargo build --quiet --package verify-shuttle; }
# Runs the part that a mutant is in, or all.
# shellcheck disable=SC2046
catches() { finds "$1" timeout 120 "$CARGO_TARGET_DIR/debug/linearizability" --first $(of_mutant "$1" by); }

cargo build --quiet --package verify-shuttle
results=$("$target/debug/linearizability" "$@" --share "$turn/$shares" 2>/dev/null | tee -a /dev/stderr) || log "not all as expected"
value() { sed -n "s|^$1 \([0-9/]*\)\$|\1|p" <<<"$results"; }
ours=clean
if grep -q '^ours, .*FOUND' <<<"$results" || [ -z "$(value histories)" ]; then ours=FOUND; fi
try_mutants linearizability
finish "$(value histories) histories, $(value refusals) refusals, all honest" "$(value patients)" "$ours"
