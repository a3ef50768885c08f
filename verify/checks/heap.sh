#!/usr/bin/env bash
# heap.sh [--long]: runs whole heaps under shuttle; the slabs' races under loom; the heap's tests, with handlers and the
# ends of threads; and the latter two under Miri with strict provenance, except what takes Miri minutes. Tests its
# features that watch free memory, and the trait of nightly Rust. Its stress, which needs the machine to itself, is left
# to `cargo test`. Takes seven minutes, and half an hour more with all mutants; `--long` runs 25 times as many random
# schedules.
source "$(dirname "$0")/../check.sh" "$@"

package=(--package nbbs-heap)
build_mutant() { test_builds "$1" "${package[@]}"; }
catches() { test_notices "$1" "${package[@]}"; }
test_seconds=100
mutants_level=1
test_fails+='|^fatal runtime error|signal: [0-9]+, SIG(SEGV|ABRT|BUS)'

# all_of NUMBER: whether a report on standard input is of so many files of tests, each of which passed some.
all_of() { [ "$(grep -cE '^test result: ok\. [1-9]')" = "$1" ]; }

ours=clean executions=0 tests=0 watched=0 under_miri=0 schedules=0
# A share is half of the races, from another seed.
by_schedules() {
    local report
    report=$(NBBS_SEED=$((10000 * turn)) NBBS_DEPTH=$(fewer "$NBBS_DEPTH" 2) \
        cargo test "${package[@]}" --lib schedules:: -- --show-output 2>&1) || ours=FOUND
    printf '%s\n' "$report" >&2
    schedules=$(sed -n 's/.* under \([0-9]*\) schedules: .*/\1/p' <<<"$report" | awk '{ sum += $1 } END { print sum + 0 }')
    [ "$schedules" != 0 ] && all_of 1 <<<"$report" || { log "whole heaps under shuttle: FOUND"; ours=FOUND; }
}
# By name, as `cargo test` runs all of them, too: of the races under loom, of the library's other tests, and of the files
# of tests a share each.
by_itself() {
    local names races others files report
    names=$(cargo test --quiet "${package[@]}" --lib -- --list | sed -n 's/: test$//p')
    mapfile -t races < <(grep '::races::' <<<"$names" | share)
    mapfile -t others < <(grep -vE '::races::|^checks::schedules::' <<<"$names" | share)
    mapfile -t files < <(basename -s .rs heap/tests/*.rs | grep -vxE 'collections|hardened|nightly|watch' | share)
    report=$(cargo test "${package[@]}" --lib -- --show-output --exact "${races[@]}" "${others[@]}" 2>&1 &&
        cargo test "${package[@]}" "${files[@]/#/--test=}" -- --skip threads_with_caches --skip cpus_that_share 2>&1) || ours=FOUND
    printf '%s\n' "$report" >&2
    executions=$(sed -n 's/.*nothing in any of \([0-9]*\) executions/\1/p' <<<"$report" | awk '{ sum += $1 } END { print sum + 0 }')
    tests=$(passed <<<"$report")
    [ "$executions" -gt "$(fewer 1000 $((${#races[@]} - 1)))" ] && [ "$tests" -ge $((${#races[@]} + ${#others[@]} + ${#files[@]})) ] &&
        all_of $((1 + ${#files[@]})) <<<"$report" || { log "not everything was run"; ours=FOUND; }
}

# With free memory watched: by the pattern; with slots that wait, and with slots that are drawn by lot.
mapfile -t also < <(printf '%s\n' layouts placed refusals | share)
with() { cargo test "${package[@]}" --features "$1" "--test=$2" "${also[@]/#/--test=}" 2>&1; }
under_watch() {
    local report features
    report=$(with poison watch) && all_of $((1 + ${#also[@]})) <<<"$report" ||
        { printf '%s\n' "$report" >&2; log "free memory that is watched: FOUND"; ours=FOUND; }
    watched=$(passed <<<"$report")
    for features in $(printf '%s\n' quarantine shuffle,poison quarantine,shuffle | share); do
        report=$(with "$features" hardened) && all_of $((1 + ${#also[@]})) <<<"$report" ||
            { printf '%s\n' "$report" >&2; log "with $features: FOUND"; ours=FOUND; }
    done
}
pattern=$(printf '%s\n' "" ,poison | share | tail -n 1)
# Valgrind must report a read after a free, and nothing else: not the rest of the example, which is valid; nor the
# pattern that `poison` writes. libclang reads its headers.
by_valgrind() {
    local size status
    watched_build >&2 || { verify/install.sh debian valgrind libclang-dev && watched_build; } >&2 ||
        { log "could not run: valgrind and libclang-dev cannot be installed"; exit 1; }
    for size in none 100 100000; do
        status=0
        valgrind --quiet --error-exitcode=9 "$target/debug/examples/after_free" $size >"$said" 2>&1 || status=$?
        { [ $size = none ] && [ $status = 0 ]; } || { [ $status = 9 ] && grep -q 'inside a block of size .* free' "$said"; } ||
            { cat "$said" >&2; log "Valgrind on $size bytes that are read after their free: FOUND"; ours=FOUND; }
    done
}
watched_build() { command valgrind --version && cargo build --quiet "${package[@]}" --features "valgrind$pattern" --example after_free; }
# So must AddressSanitizer.
by_asan() {
    local size after_free=$target/address/$host/debug/examples/after_free
    sanitized build --quiet --example after_free
    "$after_free" >&2 || { log "AddressSanitizer sees what is not there"; ours=FOUND; }
    for size in 100 100000; do
        ! "$after_free" $size >"$said" 2>&1 && grep -q 'AddressSanitizer: use-after-poison' "$said" ||
            { log "a read of $size bytes after their free goes UNNOTICED by AddressSanitizer"; ours=FOUND; }
    done
    # Heaps in memory of former heaps, which must not see what is not there.
    ASAN_OPTIONS=detect_leaks=0 sanitized test --test layouts --test placed >"$said" 2>&1 && all_of 2 <"$said" ||
        { cat "$said" >&2; log "the heap's tests under AddressSanitizer: FOUND"; ours=FOUND; }
}
# The trait of nightly Rust is tested in the same build, as both take builds of their own of all that tests depend on.
sanitized() {
    CARGO_TARGET_DIR=$target/address RUSTFLAGS=-Zsanitizer=address cargo +nightly "$1" "${package[@]}" \
        --features "asan,nightly$pattern" --target "$host" "${@:2}"
}
collections_by_nightly() { sanitized test --test nightly 2>&1; }
collections_by_allocator_api2() { cargo test "${package[@]}" --features allocator-api2 --test collections 2>&1; }

nightly || { log "no nightly Rust"; exit 1; }
host=$(rustc -vV | sed -n 's/^host: //p')
by_tools() {
    local tool trait report
    for tool in $(printf '%s\n' valgrind asan | share); do "by_$tool"; done
    for trait in $(printf '%s\n' allocator_api2 nightly | share); do
        report=$("collections_by_$trait") && all_of 1 <<<"$report" ||
            { printf '%s\n' "$report" >&2; log "collections in a heap, by $trait: FOUND"; ours=FOUND; }
    done
}

by_miri() {
    local files
    verify/install.sh rustup component add miri --toolchain nightly >&2 &&
        cargo +nightly miri setup >&2 || { log "no Miri: install nightly with miri and rust-src"; exit 1; }
    mapfile -t files < <(printf '%s\n' --lib --test={refusals,regions,ends,reuse,layouts,placed,collections} | share)
    MIRIFLAGS="-Zmiri-strict-provenance -Zmiri-disable-isolation -Zmiri-ignore-leaks" cargo +nightly miri test "${package[@]}" \
        --features allocator-api2 "${files[@]}" >"$said" 2>&1 || ours=FOUND
    cat "$said" >&2
    under_miri=$(passed <"$said")
    all_of ${#files[@]} <"$said" || { log "not everything was run under Miri"; ours=FOUND; }
}

by_schedules
# What builds the heap anew each time: of these, too, a share.
for part in $(printf '%s\n' by_itself under_watch by_tools by_miri | share); do $part; done
try_mutants heap
finish "$schedules schedules of whole heaps, $executions executions under loom, $tests tests, $watched with free memory watched, $under_miri under Miri" 0/0 "$ours"
