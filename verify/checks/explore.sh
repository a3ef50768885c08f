#!/usr/bin/env bash
# explore.sh [--long]: the allocator's own code on words of a small shape, under every schedule with up to three
# preemptions: a seeded share of thousands of programs in prepared scenes; then the mutants, each of which must
# be caught. Five minutes; `--long` runs a share ten times as large.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { cargo build --quiet --package verify-explore; }
catches() { finds "$1" verify-explore; }

cargo build --quiet --package verify-explore
explore=$target/debug/verify-explore
ours=clean
results=$("$explore" "$@" | tee /dev/stderr) || ours=FOUND
try_mutants explore
finish "$(tail -n 1 <<<"$results")" 0/0 "$ours"
