#!/usr/bin/env bash
# The README's first command, and the command's other faces, on the sample trace. About 2 minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --quiet
nbbs=$(pwd)/${CARGO_TARGET_DIR:-target}/release/nbbs
[ -x "$nbbs" ] || nbbs=${CARGO_TARGET_DIR:-target}/release/nbbs

cargo run --release --quiet
rows=$("$nbbs" replay --json --repeat 1)
[ "$(grep -c '"verified":true' <<<"$rows")" -ge 4 ] || { echo "not all verified: $rows"; exit 1; }
"$nbbs" bench limit --quick --json --arenas 1G --orders 0,9 --fills 0,99 >/dev/null
for words in "bench bulk --quick" "report --quick"; do
    # shellcheck disable=SC2086
    said=$("$nbbs" $words 2>&1) && { echo "$words: not refused without the suite"; exit 1; }
    grep -q -- "cargo run --release --features suite -- $words" <<<"$said" || { echo "$words: $said"; exit 1; }
done
if "$nbbs" replay Cargo.toml 2>/dev/null; then
    echo "a file that is no trace was accepted"
    exit 1
fi
echo "the command works, and refuses what is no trace"
