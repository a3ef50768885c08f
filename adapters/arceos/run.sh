#!/usr/bin/env bash
# run.sh [--quick | --tests]: runs the tests and benchmarks of ArceOS' ax-allocator, unchanged from the published crate,
# with its allocators and with nbbs in their place, side by side. Takes five minutes, and two for building. `--quick`
# takes half a minute: it runs benchmarks once, and without the crate's buddy allocator, which takes a hundred times as
# long as the others. `--tests`, as CI runs it, runs no benchmarks.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
target=$(mkdir -p "${CARGO_TARGET_DIR:-$root/target}/arceos" && cd "${CARGO_TARGET_DIR:-$root/target}/arceos" && pwd)
export CARGO_TARGET_DIR=$target CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
said=$(mktemp)
trap 'rm -f "$said"' EXIT

failed() { tail -n 30 "$said"; echo "arceos: $*"; exit 1; }

# Its tests do not compile with the allocator traits of later ones.
nightly=nightly newest=2026-05-20
date=$(rustc +nightly --version --verbose 2>/dev/null | sed -n 's/^commit-date: //p')
[[ -n $date && ! $date > $newest ]] || nightly=nightly-$newest
rustc +$nightly --version >/dev/null 2>&1 ||
    "$root/verify/install.sh" rustup toolchain install $nightly --profile minimal >"$said" 2>&1 ||
    failed "its tests need nightly Rust, which cannot be installed: rustup toolchain install $nightly"
cargo +$nightly fetch --locked >"$said" 2>&1 || failed "ax-allocator cannot be fetched from crates.io: is there a network?"

# Tests that do not apply to ours: whether a bitmap that is too small panics, and the system's allocator once more.
skip=(--skip nbbs::pages::tests::test_init_capacity_exceeded --skip nbbs::bytes::system_alloc)
measure=(--noplot)
[ "${1:-}" != --quick ] || measure=(--noplot --quick '^(system|slab|tlsf|nbbs)/')

cargo +$nightly test --locked --release --test own -- "${skip[@]}" >"$said" 2>&1 || failed "tests fail"
[ "$(grep -cE '^test (own|nbbs)::.* ok$' "$said")" = 12 ] || failed "not all tests were run: has ax-allocator changed?"
if [ "${1:-}" != --tests ]; then
    rm -rf "$target/criterion"
    cargo +$nightly bench --locked --bench collections -- "${measure[@]}" >"$said.bench" 2>&1 ||
        { mv "$said.bench" "$said"; failed "the benchmarks fail"; }
    rm "$said.bench"
    cargo +$nightly run --locked --release --quiet -- "$target/criterion" <"$said"
fi
echo "arceos: ax-allocator's tests pass with its allocators and with nbbs in their place"
