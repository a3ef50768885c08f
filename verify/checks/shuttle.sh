#!/usr/bin/env bash
# shuttle.sh [--long]: the allocator's own code under random and PCT schedules, 3 to 8 threads, the owner map
# on; then the broken allocators, their sound twins and the mutants. About 2 minutes; `--long` runs fifty times
# as many races.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
check=shuttle
source "$root/verify/mutants/try.bash"
cd "$root"

log "building"
cargo build --quiet --package verify-shuttle
status=0
results=$("$target/debug/verify-shuttle" "$@" 2>/dev/null | tee >(cat >&2)) || status=1
value() { sed -n "s|^$1 \([0-9/]*\)\$|\1|p" <<<"$results"; }
ours=FOUND
if grep -q '^ours: .* 0 findings' <<<"$results"; then ours=clean; fi
mutants=0/0
try_mutants verify-shuttle verify-shuttle || status=1

echo "CHECK shuttle | $(value races) races of 3 to 8 threads, $(value schedules) schedules | patients $(value patients) | mutants $mutants | ours: $ours"
exit "$status"
