#!/usr/bin/env bash
# signals.sh [--long]: a million signals whose handlers allocate and free on the lane that they interrupt, and a tenth
# as many in the cache of their CPU, and in that of their thread. Takes a minute; `--long` sends ten million.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { cargo build --quiet --package hardware --bin signals; }
catches() {
    local system
    system=$(of_mutant "$1" by)
    finds "$1" timeout 120 "$CARGO_TARGET_DIR/debug/signals" "${system:-nbbs}" 300000
}
harms() { found timeout 300 "$signals" "$1" 30000000; }

cargo build --quiet --package hardware --bin signals
signals=$target/debug/signals
ours=clean
most=$([ $long = no ] && fewer 1000000 250000 || echo 10000000)
covered=$("$signals" nbbs "$most") || ours=FOUND
for front in caches thread-caches; do
    covered+="; $front: $("$signals" "$front" $((most / 10)))" || ours=FOUND
done

# nb4 shows the same overlaps as nb1, whose path is longer, in a quarter of the time.
try_patients nb4 sl1 sl4 freelist-untagged freelist-sl
"$signals" freelist-tagged 100000 >&2 || { log "freelist-tagged is sound, but something was found"; ours=FOUND; }
try_mutants signals
finish "$covered" "$patients_caught/$patients_tried" "$ours"
