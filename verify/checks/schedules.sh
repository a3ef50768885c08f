#!/usr/bin/env bash
# schedules.sh [--long]: runs the suite's own tests of races of two to four operations, under thousands of schedules,
# and under all with two preemptions, in which threads stop anywhere. Takes four minutes; `--long` repeats the random
# races with ten times the cases.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { test_builds "$1" --package nbbs; }
catches() { test_notices "$1" --package nbbs; }

ours=clean
suite=(--package nbbs --test schedules --test preemptions)
cargo test --quiet "${suite[@]}" --no-run
tests=$(cargo test "${suite[@]}" | tee -a /dev/stderr) || ours=FOUND
count=$(passed <<<"$tests")
[ "$count" -gt 0 ] || ours=FOUND
if [ $long = yes ]; then
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        cargo test --package nbbs --test schedules random_races >&2 || ours=FOUND
    done
fi

# The tests of the patients fail if a patient is not caught, or a sound twin is.
cargo test --quiet --package baselines --test patients --no-run
patients=$(cargo test --package baselines --test patients | tee -a /dev/stderr) || log "not all as expected"
caught=$(grep -cE '^test (schedules_catch|.*_as_the_table_says).* ok$' <<<"$patients" || true)
tried=$(grep -cE '^test (schedules_catch|.*_as_the_table_says)' <<<"$patients" || true)
grep -q '^test result: ok' <<<"$patients" || ours=FOUND
try_mutants schedules
finish "$count families of races" "$caught/$tried" "$ours"
