#!/usr/bin/env bash
# Checks other platforms: the oldest supported Rust; a part of the tests with it, on 32 bits (i686, with those of the
# heap) and, under qemu, on AArch64; tests of threads' caches where thread-locals are keys of the C library, as on
# Android; what the README's two commands build, for macOS and Windows, where nothing is run; builds without an operating
# system; the message for a target without 64-bit atomics. Installs what it needs by rustup and from Debian's packages, or
# says that it cannot. Takes nine minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
said=$(mktemp)
target_dir=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
trap 'rm -f "$said"' EXIT

failed() { echo "ports: $*"; exit 1; }

source verify/share.bash
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
[ -n "$rust" ] || failed "Cargo.toml names no rust-version"
# Each of them builds all that is built for it: a share is tried.
mapfile -t without_os < <(printf '%s\n' aarch64-unknown-none riscv64gc-unknown-none-elf x86_64-unknown-none wasm32-unknown-unknown | share)
mapfile -t other_systems < <(printf '%s\n' aarch64-apple-darwin x86_64-pc-windows-gnu | share)
without_atomics=thumbv7em-none-eabihf
without_swaps=thumbv6m-none-eabi
verify/install.sh rustup toolchain install "$rust" --profile minimal >"$said" 2>&1 || failed "no Rust $rust: $(tail -n 1 "$said")"
verify/install.sh rustup target add i686-unknown-linux-gnu aarch64-unknown-linux-gnu "${other_systems[@]}" "${without_os[@]}" $without_atomics $without_swaps >"$said" 2>&1 ||
    failed "not every target can be installed: $(tail -n 1 "$said")"
tools=(gcc-i686-linux-gnu libc6-dev-i386-cross gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
if ! dpkg -s "${tools[@]}" >/dev/null 2>&1; then
    verify/install.sh debian --no-install-recommends "${tools[@]}" >"$said" 2>&1 || failed "${tools[*]} cannot be installed: this needs root on a Debian with a network"
fi

# The library's own tests, and those that are quick and do not depend on the order of bytes, the size of a word or
# speed.
package=nbbs tests=(attach batches lost_merges lost_races miri owned settling)

# tested NAME COMMAND...: runs the tests, not optimised, as optimising would take longer than running them. Every file
# of them must have run, and passed some.
tested() {
    local name=$1 files=$((${#tests[@]} + 1)) passed
    if ! "${@:2}" test --config profile.dev.opt-level=0 --package $package --lib "${tests[@]/#/--test=}" >"$said" 2>&1; then
        tail -n 40 "$said"
        failed "tests fail: $name"
    fi
    passed=$(sed -n 's/^test result: ok\. \([1-9][0-9]*\) passed.*/\1/p' "$said")
    [ "$(wc -l <<<"$passed")" = $files ] || failed "not all of $files files of tests were run: $name"
    echo "ports: $(($(tr '\n' '+' <<<"$passed")0)) tests in $files files: $name, $SECONDS s so far"
}

# Static, so that neither platform needs the other's loader.
export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=i686-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64
on() { RUSTFLAGS="-C target-feature=+crt-static" cargo "$2" --target "$1" "${@:3}"; }

cargo "+$rust" check --quiet --package nbbs --package nbbs-pool --package nbbs-heap --package nbbs-adapters --package nbbs-c
# One of the four if a share is tried.
platforms=$(printf '%s\n' "Rust $rust" i686 AArch64 "thread-locals by keys" | share)
if grep -q Rust <<<"$platforms"; then tested "Rust $rust" cargo "+$rust"; fi
if grep -q i686 <<<"$platforms"; then
    tested "32 bits, i686" on i686-unknown-linux-gnu
    # Without the races, as loom does not build there; `unload`, as a static program loads no library; `handlers`, which
    # takes a minute; and `stress`, which needs the machine to itself.
    (
        package=nbbs-heap tests=(ends front full layouts panics placed ram refusals regions reuse small walk zeroed)
        tested "the heap, 32 bits, i686" on i686-unknown-linux-gnu
    )
fi
if grep -q AArch64 <<<"$platforms"; then
    # Without those that take a minute under qemu.
    tests=(batches lost_merges lost_races miri owned)
    tested "AArch64, under qemu" on aarch64-unknown-linux-gnu
fi
if grep -q keys <<<"$platforms"; then
    # It takes a library `std` of its own.
    verify/install.sh nightly rust-src >"$said" 2>&1 ||
        failed "nightly Rust and its rust-src cannot be installed: $(tail -n 1 "$said")"
    host=$(rustc -vV | sed -n 's/^host: //p')
    by_keys() {
        RUSTFLAGS=-Zhas-thread-local=no CARGO_TARGET_DIR=$target_dir/keys \
            cargo +nightly "$@" -Zbuild-std --target "$host"
    }
    tests=(cache_stress cache_threads fork owned)
    tested "thread-locals by keys of the C library" by_keys
fi

for target in "${other_systems[@]}"; do
    RUSTFLAGS='-D warnings' cargo check --quiet --tests --examples --target "$target" >"$said" 2>&1 ||
        { tail -n 40 "$said"; failed "what the README's commands build does not build for $target"; }
    echo "ports: what the README's commands build passes the compiler for $target"
done

# bare TARGET PACKAGE FEATURES: builds a package, not optimised, as it is not run.
bare() {
    cargo build --quiet --config profile.dev.opt-level=0 \
        --target "$1" --package "$2" --no-default-features --features "$3"
}

for target in "${without_os[@]}"; do
    bare "$target" nbbs ""
    bare "$target" nbbs-pool nbbs
    bare "$target" nbbs-heap ""
    case $target in
    x86_64*) bare "$target" nbbs-adapters x86_64,virtio-drivers,bootloader_api,uefi-raw ;;
    aarch64*) bare "$target" nbbs-adapters aarch64-paging,virtio-drivers,uefi-raw ;;
    *) bare "$target" nbbs-adapters virtio-drivers ;;
    esac
    echo "ports: nbbs, nbbs-pool, nbbs-heap and nbbs-adapters build for $target"
done

# told WORDS PACKAGE FEATURES: checks that the build fails, and says why.
told() {
    if bare $without_atomics "$2" "$3" >"$said" 2>&1; then failed "$2 with '$3' builds for $without_atomics"; fi
    grep -qF -- "$1" "$said" || { tail -n 20 "$said"; failed "$2 with '$3' does not say: $1"; }
}
told 'enable the feature `portable-atomic` of nbbs' nbbs ""
told 'enable the feature `portable-atomic`' nbbs-pool ""
told "say in the program's own Cargo.toml how" nbbs portable-atomic
bare $without_atomics nbbs portable-atomic/fallback
bare $without_atomics nbbs-pool nbbs,portable-atomic/fallback
bare $without_atomics nbbs-heap portable-atomic/fallback
bare $without_atomics nbbs-c freestanding,portable-atomic/fallback
echo "ports: $without_atomics is told of portable-atomic, and builds with it"
# A Linux program that has nothing but the heap.
if ! (cd examples/freestanding && cargo run --quiet --locked --target-dir "$target_dir/freestanding") >"$said" 2>&1; then
    tail -n 20 "$said"
    failed "examples/freestanding does not run"
fi
grep -qF 'no init, no libc' "$said" || failed "examples/freestanding does not say how much is in its heap"
echo "ports: examples/freestanding runs, without std and libc"

# code LEVEL [FEATURE]: prints the bytes of the firmware's code at an `opt-level`.
code() {
    (cd examples/firmware && CARGO_PROFILE_RELEASE_OPT_LEVEL=$1 cargo build --quiet --locked --release \
        --target-dir "$target_dir/firmware" "${@:2}") >"$said" 2>&1 || return
    size "$target_dir/firmware/$without_atomics/release/firmware" | awk 'NR == 2 { print $1 }'
}
# heap_code MOST LEVEL [FEATURE]: sets $bytes to the part of it that belongs to the heap, which must not exceed MOST.
heap_code() {
    local with without
    with=$(code "${@:2}") && without=$(code "$2" --features without) ||
        { tail -n 20 "$said"; failed "examples/firmware does not link"; }
    bytes=$((with - without))
    [ "$bytes" -gt 0 ] || failed "examples/firmware has no heap"
    [ "$bytes" -le "$1" ] || failed "examples/firmware, ${*:2}: $bytes bytes of code for the heap, more than $1"
}
heap_code 2250 z --features pairs; pairs=$bytes
heap_code 3650 z --features resize; resize=$bytes
heap_code 6550 s
# The same for a machine without any atomics that swap.
(cd examples/firmware && cargo build --quiet --locked --target $without_swaps --target-dir "$target_dir/firmware") >"$said" 2>&1 ||
    { tail -n 20 "$said"; failed "examples/firmware does not link for $without_swaps"; }
cargo test --quiet --package nbbs-heap --test ram -- --nocapture >"$said" 2>&1 || { tail -n 20 "$said"; failed "small heaps keep more memory to themselves than they may"; }
ram=$(sed -n 's/^bytes of bookkeeping: //p' "$said")
[ -n "$ram" ] || failed "heap/tests/ram.rs does not say how much small heaps keep to themselves"
echo "ports: bytes that a small heap keeps to itself before the first allocation: $ram"
echo "ports: examples/firmware links for $without_swaps and $without_atomics: bytes of code to allocate and free $pairs, to resize too $resize, with collections $bytes"
echo "Rust $rust, tests on ${platforms//$'\n'/, }, ${other_systems[*]}, ${without_os[*]}, $without_atomics and $without_swaps are in order"
