#!/usr/bin/env bash
# shared.sh [--long]: members of a shared segment die, or are stopped, at every step, and so do recoverers; files that
# are not segments are refused; and 2,000 processes are killed, of which 1,000 are stopped first. Takes two minutes, and
# one or two for the mutants; `--long` kills 100,000, in half an hour.
source "$(dirname "$0")/../check.sh" "$@"

package=(--package nbbs-shared)
build_mutant() { test_builds "$1" "${package[@]}"; }
catches() { NBBS_DEPTH=1 test_notices "$1" "${package[@]}"; }
test_seconds=100
mutants_level=1

ours=clean
report=$(cargo test "${package[@]}" --lib --test segment --test heap --test fork -- --show-output 2>&1) || ours=FOUND
printf '%s\n' "$report" >&2
tests=$(passed <<<"$report")
mended=$(cargo test --quiet --package nbbs --test mend 2>&1) || ours=FOUND
printf '%s\n' "$mended" >&2
[ "$tests" -gt 30 ] && [ "$(passed <<<"$mended")" = 5 ] || { log "not everything was run"; ours=FOUND; }
covered=$(cargo test --quiet "${package[@]}" --test processes -- $([ $long = no ] && echo 2000 || echo 100000)) || ours=FOUND

try_mutants shared shared
finish "$tests tests; $covered" 0/0 "$ours"
