#!/usr/bin/env bash
# arena.sh [--long]: the typed arena under the oracle, loom, shuttle, every schedule of small races, a death at
# every step, and its corpus. Under three minutes; `--long` runs 100 times as many random schedules. Miri: miri.sh.
source "$(dirname "$0")/../check.sh" "$@"

tests() { cargo test --package nbbs-arena --features nbbs "$@"; }
# The test that has to notice a mutant: its file and, perhaps, its name.
test_of() { of_mutant "$1" by; }
build_mutant() {
    local test
    test=$(test_of "$1")
    tests --quiet --test "${test%% *}" --no-run
}
# shellcheck disable=SC2046
catches() { test_fails on_one_core timeout 200 cargo test --package nbbs-arena --features nbbs --test $(test_of "$1"); }

ours=clean
export NBBS_ITERATIONS=$([ $long = no ] && echo 2000 || echo 200000)
report=$(tests --tests -- --show-output 2>&1) || ours=FOUND
printf '%s\n' "$report" >&2
# How many tests of a file passed.
passed() {
    awk -v file="Running tests/$1(/main)?\\.rs" '/ Running /{ here = $0 ~ file } here && /^test .* ok$/{ n++ } END { print n + 0 }' \
        <<<"$report"
}
schedules=$(sed -n 's/.*nothing under any of \([0-9]*\) schedules.*/\1/p' <<<"$report" | awk '{ sum += $1 } END { print sum + 0 }')
random=$(passed shuttle) races=$(passed loom)
[ "$schedules" != 0 ] && [ "$random" != 0 ] && [ "$races" != 0 ] || { log "not everything was run"; ours=FOUND; }
# The tests that expect the untagged list to fail.
patients() { grep -cE "^test the_untagged_list_fails.* \.\.\. ${1-}" <<<"$report" || true; }

try_mutants arena arena
covered="$schedules schedules in full, $random tests under $NBBS_ITERATIONS random schedules each, $races races under loom"
finish "$covered" "$(patients ok)/$(patients)" "$ours"
