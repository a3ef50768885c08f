#!/usr/bin/env bash
# processes.sh [--long]: kills processes that share an arena in one mapping in the middle of their calls; others go on
# beside them, and attach afterwards. Also checks where processes begin that name no lane. Takes two minutes; `--long`
# takes ten more.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { cargo build --quiet --package hardware --bin processes; }
catches() {
    local part
    part=$(of_mutant "$1" by)
    # shellcheck disable=SC2086
    finds "$1" timeout 100 "$CARGO_TARGET_DIR/debug/processes" ${part:-nbbs 60}
}
harms() { found timeout 90 "$processes" "$1" 60; }

cargo build --quiet --package hardware --bin processes
processes=$target/debug/processes
ours=clean
covered=$("$processes" nbbs $([ $long = no ] && fewer 20 8 || echo 600)) || ours=FOUND
lanes=$("$processes" lanes) || ours=FOUND

try_patients nb1 nb4 sl1 sl4
try_mutants processes
finish "$covered; $lanes" "$patients_caught/$patients_tried" "$ours"
