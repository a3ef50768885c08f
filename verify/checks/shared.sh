#!/usr/bin/env bash
# shared.sh [--long]: members of a shared segment die, or are stopped, at every step, and so do recoverers; files that
# are not segments are refused; and 2,000 processes are killed, of which 1,000 are stopped first. Takes two minutes, and
# half an hour for all mutants; `--long` kills 100,000, in half an hour.
source "$(dirname "$0")/../check.sh" "$@"

package=(--package nbbs-shared)
build_mutant() { test_builds "$1" "${package[@]}"; }
catches() { NBBS_DEPTH=1 test_notices "$1" "${package[@]}"; }
test_seconds=100
mutants_level=1

ours=clean
# By name: of the library's own tests and of the files a share each.
own=$(cargo test --quiet "${package[@]}" --lib -- --list | sed -n 's/: test$//p')
mapfile -t some < <(share <<<"$own")
mapfile -t files < <(printf '%s\n' segment creation steps heap fork memory descriptors | share)
report=$(cargo test "${package[@]}" --lib -- --show-output --exact "${some[@]}" 2>&1 &&
    cargo test "${package[@]}" "${files[@]/#/--test=}" -- --show-output 2>&1) || ours=FOUND
printf '%s\n' "$report" >&2
tests=$(passed <<<"$report") programs=$(grep -cE '^test result: ok\. [1-9]' <<<"$report" || true)
mended=$(cargo test --quiet --package nbbs --test mend 2>&1) || ours=FOUND
printf '%s\n' "$mended" >&2
[ "$tests" -ge $((${#some[@]} + ${#files[@]})) ] && [ "$programs" = $((1 + ${#files[@]})) ] &&
    [ "$(passed <<<"$mended")" = 8 ] || { log "not everything was run"; ours=FOUND; }
covered=$(cargo test --quiet "${package[@]}" --test processes -- $([ $long = no ] && fewer 2000 400 || echo 100000)) || ours=FOUND

try_mutants shared
finish "$tests tests; $covered" 0/0 "$ours"
