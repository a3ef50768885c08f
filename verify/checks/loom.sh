#!/usr/bin/env bash
# loom.sh [--long]: runs the allocator's own code under loom, including weak memory, and what is weaker on RISC-V, where
# fences stand for sequentially consistent reads. Then each of the broken allocators and the mutants must be caught.
# Takes ten minutes; `--long` allows one preemption more where their number is bounded.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { RUSTFLAGS=$(of_mutant "$1" flags) cargo build --quiet --package verify-loom; }
# shellcheck disable=SC2046
catches() { finds "$1" timeout 300 "$CARGO_TARGET_DIR/debug/verify-loom" --first $(of_mutant "$1" by); }

cargo build --quiet --package verify-loom --features patients
loom=$target/debug/verify-loom
ours=clean
mapfile -t races < <("$loom" --names)
mapfile -t chosen < <(printf '%s\n' "${races[@]}" | share)
results=$("$loom" "$@" "${chosen[@]}" 2>/dev/null | tee -a /dev/stderr) || ours=FOUND
# What lanes know of paths, and what a claim acquires: here a read between two fences is relaxed. In all other races the
# accesses are those of the model Fences above.
flags='--cfg nbbs_fenced'
RUSTFLAGS=$flags cargo build --quiet --package verify-loom --target-dir "$target/fenced"
fenced=$target/fenced/debug/verify-loom
mapfile -t weaker < <("$fenced" --names | grep -E '/Bare$|^(known-|climb-beside|stale-notes|claim-or-merge|free-or-tighten|merge-or-tighten)' | share)
for race in "${weaker[@]}"; do
    "$fenced" "$@" "$race" 2>/dev/null | tee -a /dev/stderr | grep clean >/dev/null || { log "$flags: $race FOUND"; ours=FOUND; }
done
executions=$(grep -o '[0-9]* executions' <<<"$results" | awk '{ sum += $1 } END { print sum }')
complete=$(grep -c 'clean, all' <<<"$results" || true)
patients=$("$loom" --patients 2>/dev/null | tee -a /dev/stderr | sed -n 's/^patients //p') || log "not all as expected"
try_mutants loom loom-fenced
[ "$(wc -l <<<"$results")" = ${#chosen[@]} ] || { log "not everything was run"; ours=FOUND; }
finish "${#chosen[@]} of ${#races[@]} races by memory model, $complete of them complete, $executions executions; ${#weaker[@]} with fences as on RISC-V" "$patients" "$ours"
