#!/usr/bin/env bash
# pool.sh [--long]: runs the typed pool under loom, shuttle, every schedule of small races, a death at every step, and
# its corpus. Its stress, which needs the machine to itself, is left to `cargo test`, and Miri to miri.sh. Takes six
# minutes; `--long` runs 25 times as many random schedules.
source "$(dirname "$0")/../check.sh" "$@"

package=(--package nbbs-pool)
build_mutant() { test_builds "$1" "${package[@]}"; }
catches() { test_notices "$1" "${package[@]}"; }
mutants_level=1

ours=clean
report=$(cargo test "${package[@]}" --tests -- --show-output --skip by_pointer --skip by_local 2>&1) || ours=FOUND
printf '%s\n' "$report" >&2
# Prints how many tests of a file passed.
passed_of() {
    awk -v file="Running tests/$1(/main)?[.]rs" '/ Running /{ here = $0 ~ file } here && /^test .* ok$/{ n++ } END { print n + 0 }' \
        <<<"$report"
}
# said_in_all WORDS: prints the sum of the numbers that tests print in place of N.
said_in_all() { sed -n "s/.*${1/N/\\([0-9]*\\)}.*/\1/p" <<<"$report" | awk '{ sum += $1 } END { print sum + 0 }'; }
schedules=$(said_in_all 'nothing under any of N schedules') random=$(said_in_all 'under N random schedules')
races=$(passed_of loom)
[ "$schedules" != 0 ] && [ "$random" != 0 ] && [ "$races" != 0 ] || { log "not everything was run"; ours=FOUND; }
# The tests that expect the untagged list to fail.
patients() { grep -cE "^test the_untagged_list_fails.* \.\.\. ${1-}" <<<"$report" || true; }

try_mutants pool
covered="$schedules schedules in full, $random random ones, $races races under loom"
finish "$covered" "$(patients ok)/$(patients)" "$ours"
