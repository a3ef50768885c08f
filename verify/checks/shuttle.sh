#!/usr/bin/env bash
# shuttle.sh [--long]: runs the allocator's own code under random and PCT schedules, with 3 to 8 threads and the owner
# map on, by itself and behind caches; then the broken allocators, their sound twins and the mutants. Takes six minutes;
# `--long` runs fifty times as many races.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { cargo build --quiet --package verify-shuttle; }
# Runs the races that a mutant is in, or all.
# shellcheck disable=SC2046
catches() { finds "$1" timeout 120 "$CARGO_TARGET_DIR/debug/verify-shuttle" --first $(of_mutant "$1" by); }

cargo build --quiet --package verify-shuttle
results=$("$target/debug/verify-shuttle" "$@" --share "$turn/$shares" 2>/dev/null | tee -a /dev/stderr) || log "not all as expected"
value() { sed -n "s|^$1 \([0-9/]*\)\$|\1|p" <<<"$results"; }
ours=FOUND
if grep -q '^ours: 0 findings' <<<"$results"; then ours=clean; fi
try_mutants shuttle
finish "$(value races) races of 3 to 8 threads, $(value schedules) schedules; through caches $(value granted) blocks, $(value refused) refusals" "$(value patients)" "$ours"
