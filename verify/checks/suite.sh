#!/usr/bin/env bash
# suite.sh: errors in front-ends, audits, refusals and bounds, which no check of interleavings looks at: each must fail the
# suite's own test of it. A minute and a half.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { test_builds "$1" --package nbbs; }
catches() { test_notices "$1" --package nbbs; }

list=$root/verify/mutants/suite.list
mapfile -t tests < <(sed -n 's/^by: *\([a-z_]*\).*/\1/p' "$list" | sort -u)
[ ${#tests[@]} -gt 0 ] || { log "could not run: $list names no test"; exit 1; }
ours=clean
report=$(cargo test --package nbbs "${tests[@]/#/--test=}" | tee /dev/stderr) || ours=FOUND
count=$(passed <<<"$report")
[ "$count" -gt 0 ] || ours=FOUND
try_mutants suite
finish "$count tests" 0/0 "$ours"
