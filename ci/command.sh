#!/usr/bin/env bash
# Runs the README's first command, and the other subcommands, on the sample trace. Takes about 2 minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --quiet
nbbs=$(pwd)/${CARGO_TARGET_DIR:-target}/release/nbbs
[ -x "$nbbs" ] || nbbs=${CARGO_TARGET_DIR:-target}/release/nbbs

cargo run --release --quiet
rows=$("$nbbs" replay --json --rounds 1)
[ "$(grep -c '"verified":true' <<<"$rows")" -ge 4 ] || { echo "not all verified: $rows"; exit 1; }
"$nbbs" bench limit --quick --json --arena 1G --orders 0,9 --fills 0,99 >/dev/null
# Workloads run without the feature `suite`, on the available allocators; the suite's allocators and the page do not.
rows=$("$nbbs" bench bulk requests pool --quick --json --threads 1,2 --duration 0.001)
for workload in bulk requests pool; do
    grep -q "\"workload\":\"$workload\"" <<<"$rows" || { echo "$workload: no rows"; exit 1; }
done
said=$("$nbbs" bench bulk --allocators nobody 2>&1) && { echo "nobody: not refused"; exit 1; }
grep -q -- "with \`--features suite\` there are more" <<<"$said" || { echo "nobody: $said"; exit 1; }
said=$("$nbbs" bench bulk --allocators talc 2>&1) && { echo "talc: not refused without the suite"; exit 1; }
grep -q -- "talc needs the feature \`suite\`: cargo run --release --features suite -- bench bulk --allocators talc" <<<"$said" ||
    { echo "talc: $said"; exit 1; }
said=$("$nbbs" report --quick 2>&1) && { echo "report: not refused without the suite"; exit 1; }
grep -q -- "cargo run --release --features suite -- report --quick" <<<"$said" || { echo "report: $said"; exit 1; }
if "$nbbs" replay Cargo.toml 2>/dev/null; then
    echo "a file that is not a trace was accepted"
    exit 1
fi
echo "the command works, and refuses a file that is not a trace"
