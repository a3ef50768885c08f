#!/usr/bin/env bash
# signals.sh [--long]: a million signals whose handlers allocate and free on the lane that they interrupt.
# A minute; ten million with `--long`.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { cargo build --quiet --package hardware --bin signals; }
catches() { finds "$1" timeout 120 "$CARGO_TARGET_DIR/debug/signals" nbbs 300000; }

cargo build --quiet --package hardware --bin signals
signals=$target/debug/signals
ours=clean
covered=$("$signals" nbbs $([ $long = no ] && echo 1000000 || echo 10000000)) || ours=FOUND

caught=0 tried=0
for patient in nb1 nb4 sl1 sl4 arena-untagged arena-sl; do
    tried=$((tried + 1))
    if found timeout 300 "$signals" $patient 30000000; then
        caught=$((caught + 1))
    else
        log "$patient goes UNNOTICED"
    fi
done
"$signals" arena-tagged 100000 >&2 || { log "arena-tagged is sound, but something was found"; ours=FOUND; }
try_mutants signals
finish "$covered" "$caught/$tried" "$ours"
