#!/usr/bin/env bash
# linearizability.sh [--long]: histories of small races, under shuttle, under every schedule with few
# preemptions and on real threads, against the sequential buddy; then the broken allocators and the mutants.
# About 1 minute; `--long` runs fifty times as many random races.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
check=linearizability
source "$root/verify/mutants/try.bash"
cd "$root"

log "building"
cargo build --quiet --package verify-shuttle
status=0
results=$("$target/debug/linearizability" "$@" 2>/dev/null | tee >(cat >&2)) || status=1
value() { sed -n "s|^$1 \([0-9/]*\)\$|\1|p" <<<"$results"; }
ours=clean
if grep -q '^ours, .*FOUND' <<<"$results" || [ -z "$(value histories)" ]; then ours=FOUND; fi
mutants=0/0
try_mutants verify-shuttle linearizability || status=1

echo "CHECK linearizability | $(value histories) histories, $(value refusals) refusals, all honest | patients $(value patients) | mutants $mutants | ours: $ours"
exit "$status"
