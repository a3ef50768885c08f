#!/usr/bin/env bash
# arena.sh [--long]: the typed arena under the oracle, loom, shuttle, every schedule of small races, a death at
# every step, and its corpus. Under three minutes; `--long` runs 100 times as many random schedules, and Miri:
# four minutes more.
source "$(dirname "$0")/../check.sh" "$@"

# run_test SECONDS MUTANT ...: the test that has to notice a mutant.
run_test() { timeout "$1" cargo test --quiet --package nbbs-arena --features nbbs --test "$(of_mutant "$2" by)" "${@:3}"; }
build_mutant() { run_test 300 "$1" --no-run; }
catches() { ! run_test 60 "$1" >/dev/null 2>&1; }

ours=clean patients=0
[ $long = no ] || export NBBS_ITERATIONS=200000
report=$(cargo test --quiet --package nbbs-arena --features nbbs --tests -- --nocapture 2>&1) || ours=FOUND
printf '%s\n' "$report" >&2
schedules=$(sed -n 's/.*nothing under any of \([0-9]*\) schedules.*/\1/p' <<<"$report" | awk "{ sum += \$1 } END { print sum }")
# Two patients, the untagged list under the explorer and under stress: tests that expect the failure.
[ $ours = FOUND ] || patients=2
if [ $long = yes ]; then
    nightly && rustup component add miri --toolchain nightly >&2
    MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --package nbbs-arena --features nbbs --lib \
        --test objects --test properties >&2 || ours=FOUND
fi

try_mutants arena arena
finish "${schedules:-0} schedules in full, ${NBBS_ITERATIONS:-2000} x 2 at random, loom" "$patients/2" "$ours"
