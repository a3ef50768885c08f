#!/usr/bin/env bash
# adapters.sh [--long]: tests the adapters with all their features, and builds each feature by itself; runs ArceOS' own
# tests, with its allocators and with nbbs in their place. Takes a minute, and as much for building. `--long` runs its
# benchmarks, OSTD's tests in QEMU, and the adapters' unsafe code under Miri: a quarter of an hour more, mostly for
# building.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --package nbbs-adapters --all-features --quiet
source verify/share.bash
for feature in $(printf '%s\n' x86_64 aarch64-paging virtio-drivers ax-allocator bootloader_api uefi-raw | share); do
    RUSTFLAGS="-D warnings" cargo check --package nbbs-adapters --features "$feature" --quiet
done

if [ "${1:-}" != --long ]; then
    adapters/arceos/run.sh --tests
    echo "adapters: tests, features and ArceOS' tests pass"
    exit
fi
adapters/arceos/run.sh
adapters/asterinas/run.sh
verify/install.sh nightly miri rust-src >/dev/null 2>&1 ||
    { echo "Miri cannot be installed: rustup component add miri rust-src --toolchain nightly"; exit 1; }
miri() {
    MIRIFLAGS="-Zmiri-strict-provenance -Zmiri-ignore-leaks" \
        cargo +nightly miri test --package nbbs-adapters --all-features --quiet "$@"
}
miri --test aarch64_paging --test virtio --test ax_allocator
miri --doc
echo "adapters: tests, features, ArceOS' tests and Miri pass"
