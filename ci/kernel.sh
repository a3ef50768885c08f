#!/usr/bin/env bash
# kernel.sh: examples/kernel in QEMU, in software emulation: on 4 and 8 CPUs, with 128 MiB, with 4 GiB and the hole below,
# and with an odd size. Then the same with a spin lock, of which the watchdog must find the deadlock, and with one cache
# for all CPUs, of which the owner map must find frames held twice. Its format and lints. Installs QEMU from Debian's
# packages and the target by rustup, or says that it cannot. A minute and a half.
set -euo pipefail
cd "$(dirname "$0")/../examples/kernel"
export CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
target=x86_64-unknown-none
said=$(mktemp)
trap 'rm -f "$said"' EXIT

failed() { echo "kernel: $*"; exit 1; }

install=../../verify/install.sh
$install rustup target add $target >"$said" 2>&1 || failed "no target $target: $(tail -n 1 "$said")"
for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || $install rustup component add "$component"
done
if ! command -v qemu-system-x86_64 >/dev/null; then
    $install debian --no-install-recommends qemu-system-x86 >"$said" 2>&1 ||
        failed "qemu-system-x86 cannot be installed: it takes root on a Debian with a network"
fi

# boots WORD STATUS FEATURE MEMORY CPUS: the kernel, built with the feature or none, ends so and says so.
boots() {
    local word=$1 status=$2 feature=$3 got=0
    cargo build --release --quiet --features "$feature"
    timeout 60 cargo run --release --quiet --features "$feature" -- "${@:4}" >"$said" 2>&1 || got=$?
    if [ $got != "$status" ] || ! grep -q "^kernel: $word" "$said"; then
        cat "$said"
        failed "${feature:-as it is}, on $4 and $5 CPUs: status $got, not $status for $word"
    fi
    echo "kernel: ${feature:-as it is}, on $4 and $5 CPUs: $word, $SECONDS s so far"
}

cargo fmt --check
for feature in "" locked broken; do
    cargo clippy --release --quiet --features "$feature" -- -D warnings
done
# QEMU ends with twice the kernel's status, and one.
boots Passed 33 "" 128M 4
boots Passed 33 "" 4G 8
boots Passed 33 "" 333M 8
boots Deadlock 35 locked 128M 4
boots Overlap 37 broken 128M 4
echo "the kernel: boots and judges itself in order, and what is broken on purpose is found"
