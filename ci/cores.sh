#!/usr/bin/env bash
# Checks conflict freedom on a simulated machine of 8 cores: if nothing is shared, pairs, bulk and churn of arenas with
# their own lanes, with a lane for each core and behind caches, and hits of pool and heap move less than 0.1 lines a pair
# from cache to cache, and do at least 7.5 times what one core does. Cores that share a lane must be found, and a line
# that all cores share must be dearer on the machine that is called far. Also checks format and lints. Installs the
# simulator from PyPI, and a target by rustup, or says that it cannot. Takes three minutes; `nbbs bench cores` measures
# up to 64 cores, and other allocators.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
said=$(mktemp)
trap 'rm -f "$said"' EXIT

failed() { echo "cores: $*"; exit 1; }

target=riscv64gc-unknown-none-elf
verify/install.sh rustup target add $target >"$said" 2>&1 || failed "no target $target: $(tail -n 1 "$said")"
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    verify/install.sh debian --no-install-recommends python3-venv >"$said" 2>&1 ||
        failed "python3-venv cannot be installed: this needs root on a Debian with a network"
fi
target_dir=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
(cd bench/cores && cargo fmt --check && cargo clippy --quiet --locked --release --target-dir "$target_dir/cores" -- -D warnings)
# The command as `cargo test` builds it.
cargo test --quiet --no-run --test cores

# judged ALLOCATORS LOOPS [OPTION...]: writes the rows of a run on 1 and 8 cores to $said. Its status is the command's.
judged() {
    "$target_dir/debug/nbbs" bench cores --quick --check --json --threads 8 --allocators "$1" --loops "$2" "${@:3}" >"$said"
}

judged nbbs,nbbs-lanes,nbbs-cache,nbbs-pool,nbbs-heap pairs,bulk,churn,objects ||
    { cat "$said"; failed "cores that share nothing meet"; }
# Three allocators in three loops, a pool and a heap: each is judged on 8 cores, and nothing is found wrong.
judged_rows=$(grep -v '"phase":"counters"' "$said" | grep '"threads":8,' | grep -c '"violation":null.*"beside_one":') || true
[ "$judged_rows" = 11 ] || { cat "$said"; failed "$judged_rows rows were judged, not 11"; }
# Other commands verify: a row must not say that this one does.
grep -q '"verified":true' "$said" && { cat "$said"; failed "a row says that it was verified"; }
worst=$(grep -v '"phase":"counters"' "$said" | sed -n '/"threads":8/s/.*"beside_one":\([0-9.]*\).*/\1/p' | sort -n | head -n 1)
if judged nbbs-one-lane pairs || [ $? != 1 ]; then cat "$said"; failed "cores that share a lane are not found"; fi
grep -q '"violation":"8 cores that share nothing' "$said" || { cat "$said"; failed "cores that share a lane are not named"; }
judged nbbs-lanes pairs --machine far || { cat "$said"; failed "the far machine is no dearer than the server"; }
echo "8 simulated cores do at least $worst times what one does if nothing is shared; cores that share a lane are found"
