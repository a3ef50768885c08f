#!/usr/bin/env bash
# suite.sh: makes errors above the protocol, in audits, refusals, bounds, cuts, spares and caches. With each, the
# test of it must fail. Takes three minutes.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { test_builds "$1" --package nbbs; }
catches() { test_notices "$1" --package nbbs; }
mutants_level=1

list=$root/verify/mutants/suite.list
mapfile -t tests < <(sed -n 's/^name: *//p' "$list" | share | while read -r name; do of_mutant "$name" by; done | sort -u)
[ ${#tests[@]} -gt 0 ] || { log "could not run: $list names no test"; exit 1; }
ours=clean count=0
for test in "${tests[@]}"; do
    # shellcheck disable=SC2086
    more=$(cargo test --package nbbs --test $test | tee -a /dev/stderr | passed) || ours=FOUND
    [ "$more" -gt 0 ] || ours=FOUND
    count=$((count + more))
done
try_mutants suite
finish "$count tests" 0/0 "$ours"
