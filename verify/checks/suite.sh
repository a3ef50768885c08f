#!/usr/bin/env bash
# suite.sh: errors in front-ends, audits, refusals and bounds, which no check of interleavings looks at: each must fail the
# suite's own test of it. A minute and a half.
source "$(dirname "$0")/../check.sh" "$@"

# The test that has to notice a mutant: its file and, perhaps, its name.
test_of() { of_mutant "$1" by; }
build_mutant() {
    local test
    test=$(test_of "$1")
    cargo test --quiet --package nbbs --test "${test%% *}" --no-run
}
# A test that is not done in time has found nothing.
catches() {
    # shellcheck disable=SC2046
    { timeout 120 cargo test --quiet --package nbbs --test $(test_of "$1") || true; } | grep '^test result: FAILED'
}

list=$root/verify/mutants/suite.list
mapfile -t tests < <(sed -n 's/^by: *\([a-z_]*\).*/\1/p' "$list" | sort -u)
[ ${#tests[@]} -gt 0 ] || { log "could not run: $list names no test"; exit 1; }
ours=clean
report=$(cargo test --package nbbs "${tests[@]/#/--test=}" | tee /dev/stderr) || ours=FOUND
count=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' <<<"$report" | awk '{ sum += $1 } END { print sum + 0 }')
[ "$count" -gt 0 ] || ours=FOUND
try_mutants suite
finish "$count tests" 0/0 "$ours"
