#!/usr/bin/env bash
# loom.sh [--long]: the allocator's own code under loom, weak memory included; then the broken allocators and
# the mutants, each of which must be caught. Eight minutes; `--long` allows one preemption more where their
# number is bounded.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { cargo build --quiet --package verify-loom; }
# shellcheck disable=SC2046
catches() { finds "$1" timeout 300 "$CARGO_TARGET_DIR/debug/verify-loom" --first $(of_mutant "$1" by); }

cargo build --quiet --package verify-loom --features patients
loom=$target/debug/verify-loom
ours=clean
mapfile -t races < <("$loom" --names)
mapfile -t chosen < <(printf '%s\n' "${races[@]}" | share)
results=$("$loom" "$@" "${chosen[@]}" 2>/dev/null | tee /dev/stderr) || ours=FOUND
executions=$(grep -o '[0-9]* executions' <<<"$results" | awk '{ sum += $1 } END { print sum }')
complete=$(grep -c 'clean, all' <<<"$results" || true)
patients=$("$loom" --patients 2>/dev/null | tee /dev/stderr | sed -n 's/^patients //p') || log "not all as expected"
try_mutants loom
[ "$(wc -l <<<"$results")" = ${#chosen[@]} ] || { log "not everything was run"; ours=FOUND; }
finish "${#chosen[@]} of ${#races[@]} races by memory model, $complete of them complete, $executions executions" "$patients" "$ours"
