#!/usr/bin/env bash
# stalls.sh [--long]: a thread stops for good, or for long, after every step of every operation. The others must go on,
# and what is left must be whole. Takes two minutes, and five for the mutants; `--long` also stops the second thread
# everywhere, and lets the threads go on in every order.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { cargo build --quiet --package stalls; }
# Runs in the mutant's own `scenes`, or in all.
catches() {
    local scenes
    scenes=$(of_mutant "$1" scenes)
    finds "$1" timeout 300 "$CARGO_TARGET_DIR/debug/stalls" ours $scenes
}

cargo build --quiet --package stalls
ours=clean
depth=$([ $long = no ] || echo --long)
covered=$("$target/debug/stalls" ours $depth) || ours=FOUND
patients=$("$target/debug/stalls" patients) || log "not all as expected"
try_mutants stalls
finish "$covered" "$patients" "$ours"
