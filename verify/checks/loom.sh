#!/usr/bin/env bash
# loom.sh [--long]: the allocator's own code under loom, weak memory included; then the broken allocators and
# the mutants, each of which must be caught. About 2 minutes; `--long` allows one preemption more where their
# number is bounded.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
check=loom
source "$root/verify/mutants/try.bash"
cd "$root"

log "building"
cargo build --quiet --package verify-loom --features patients
loom=$target/debug/verify-loom

status=0 ours=clean
results=$("$loom" "$@" 2>/dev/null | tee >(cat >&2)) || { status=1 ours=FOUND; }
executions=$(grep -o '[0-9]* executions' <<<"$results" | awk '{ sum += $1 } END { print sum }')
complete=$(grep -c 'clean, all' <<<"$results" || true)
patients=$("$loom" --patients 2>/dev/null | tee >(cat >&2) | sed -n 's/^patients //p') || status=1
mutants=0/0
try_mutants verify-loom verify-loom || status=1

echo "CHECK loom | $(wc -l <<<"$results") races by memory model, $complete of them complete, $executions executions | patients $patients | mutants $mutants | ours: $ours"
exit "$status"
