#!/usr/bin/env bash
# heap.sh: the heap's races under loom, its tests, with handlers and the ends of threads, and both under Miri with strict
# provenance, less what takes it minutes. Its stress, which wants the machine for itself, is left to `cargo test`. Three
# minutes; six with all mutants.
source "$(dirname "$0")/../check.sh" "$@"

package=(--package nbbs-heap)
# By which test a mutant is caught: of a file, or of the library.
by() {
    local by
    by=$(of_mutant "$1" by)
    case $by in --lib*) echo "$by" ;; *) echo "--test $by" ;; esac
}
build_mutant() {
    local arguments
    read -ra arguments <<<"$(by "$1")"
    case ${arguments[0]} in --lib) arguments=(--lib) ;; *) arguments=("${arguments[@]:0:2}") ;; esac
    cargo test --quiet "${package[@]}" "${arguments[@]}" --no-run
}
catches() {
    local shows arguments
    shows=$(of_mutant "$1" shows)
    read -ra arguments <<<"$(by "$1")"
    ends 101 "${shows:-$test_fails|^fatal runtime error|signal: [0-9]+, SIG(SEGV|ABRT|BUS)}" \
        timeout 100 cargo test --quiet "${package[@]}" "${arguments[@]}"
}

ours=clean
report=$(cargo test "${package[@]}" --lib --tests -- --show-output --skip threads_with_caches --skip cpus_that_share 2>&1) ||
    ours=FOUND
printf '%s\n' "$report" >&2
executions=$(sed -n 's/.*nothing in any of \([0-9]*\) executions/\1/p' <<<"$report" | awk '{ sum += $1 } END { print sum + 0 }')
tests=$(passed <<<"$report")
[ "$executions" -gt 1000 ] && [ "$tests" -gt 30 ] || { log "not everything was run"; ours=FOUND; }

nightly && verify/install.sh rustup component add miri --toolchain nightly >&2 &&
    cargo +nightly miri setup >&2 || { log "no Miri: install nightly with miri and rust-src"; exit 1; }
MIRIFLAGS="-Zmiri-strict-provenance -Zmiri-disable-isolation -Zmiri-ignore-leaks" cargo +nightly miri test "${package[@]}" \
    --lib --test refusals --test regions --test ends --test layouts --test placed --test zeroed >"$said" 2>&1 || ours=FOUND
cat "$said" >&2
under_miri=$(passed <"$said")
[ "$under_miri" -gt 10 ] || { log "not everything was run under Miri"; ours=FOUND; }

try_mutants heap heap
finish "$executions executions under loom, $tests tests, $under_miri under Miri" 0/0 "$ours"
