#!/usr/bin/env bash
# processes.sh [--long]: processes that share an arena in one mapping and are killed in the middle of their calls; others
# go on beside them, and attach afterwards. Where processes begin that name no lane. Two minutes; `--long` ten more.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { cargo build --quiet --package hardware --bin processes; }
catches() {
    local part
    part=$(of_mutant "$1" by)
    # shellcheck disable=SC2086
    finds "$1" timeout 60 "$CARGO_TARGET_DIR/debug/processes" ${part:-nbbs 20}
}

cargo build --quiet --package hardware --bin processes
processes=$target/debug/processes
ours=clean
covered=$("$processes" nbbs $([ $long = no ] && echo 20 || echo 600)) || ours=FOUND
lanes=$("$processes" lanes) || ours=FOUND

caught=0 tried=0
for patient in nb1 nb4 sl1 sl4; do
    tried=$((tried + 1))
    if found timeout 90 "$processes" $patient 60; then
        caught=$((caught + 1))
    else
        log "$patient goes UNNOTICED"
    fi
done
try_mutants processes
finish "$covered; $lanes" "$caught/$tried" "$ours"
