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
# If a share is tried, an eighth of the cases at least: fewer would leave operations out.
if [ $long = yes ]; then depth=(--long); else depth=(--share "$turn/$((shares < 8 ? shares : 8))"); fi
covered=$("$target/debug/stalls" ours "${depth[@]}") || ours=FOUND
patients=$("$target/debug/stalls" patients) || log "not all as expected"
try_mutants stalls
finish "$covered" "$patients" "$ours"
