#!/usr/bin/env bash
# Runs the tests of OSTD, the kernel below Asterinas, in a kernel that boots in QEMU: with its frame allocator and with
# nbbs in its place, side by side. Everything comes from published crates. Needs the nightly Rust that OSTD names, and
# QEMU; installs them, or says that it cannot. Takes three minutes, nearly all for building.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
target=$(mkdir -p "${CARGO_TARGET_DIR:-$root/target}/asterinas" && cd "${CARGO_TARGET_DIR:-$root/target}/asterinas" && pwd)
export CARGO_TARGET_DIR=$target CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
said=$(mktemp)
trap 'rm -f "$said"' EXIT

failed() { tail -n 30 "$said"; echo "asterinas: $*"; exit 1; }

cargo fetch --locked >"$said" 2>&1 || failed "OSTD cannot be fetched from crates.io: is there a network?"
# Beside OSTD, cargo has unpacked the crate whose sources show how to build such a kernel.
ostd=$(cargo metadata --locked --offline --format-version 1 2>"$said" | grep -o '"manifest_path":"[^"]*/ostd-[0-9.]*/' | cut -d '"' -f 4) ||
    failed "no package ostd"
osdk=${ostd%ostd-*}cargo-osdk-${ostd##*/ostd-}
script=$osdk/src/base_crate/x86_64.ld.template
toolchain=$(sed -n 's/^channel = "\(.*\)"/\1/p' "$osdk/src/commands/new/rust-toolchain.toml.template" 2>/dev/null || true)
[ -f "$script" ] && [ -n "$toolchain" ] || failed "cargo-osdk has changed: no linker script, or no toolchain"
machine=x86_64-unknown-none
"$root/verify/install.sh" rustup toolchain install "$toolchain" --profile minimal --component rust-src --target $machine >"$said" 2>&1 ||
    failed "no $toolchain: $(tail -n 1 "$said")"
if ! command -v qemu-system-x86_64 >/dev/null; then
    "$root/verify/install.sh" debian --no-install-recommends qemu-system-x86 >"$said" 2>&1 ||
        failed "qemu-system-x86 cannot be installed: this needs root on a Debian with a network"
fi

# As `cargo osdk test` does it.
export RUSTFLAGS="--cfg ktest --check-cfg cfg(ktest) -C link-arg=-T$script -C relocation-model=static -C relro-level=off
    -C panic=unwind -C force-unwind-tables=yes -C no-redzone=y -C target-feature=+ermsb"
export OSDK_BUILD_USERNAME=ci OSDK_BUILD_HOSTNAME=ci OSDK_BUILD_RUSTC=$toolchain
build=(--locked --target $machine -Zbuild-std=core,alloc,compiler_builtins -Zbuild-std-features=compiler-builtins-mem)

# boots FEATURE: boots the kernel, and writes the output of the tests to $target/FEATURE.log. OSTD ends QEMU with 33 if
# all passed. With less than 4 GiB it does not find its ACPI tables.
boots() {
    local got=0 log=$target/${1:-nbbs}.log
    cargo "+$toolchain" build "${build[@]}" --features "$1" >"$said" 2>&1 || failed "the kernel does not build"
    timeout 120 qemu-system-x86_64 -machine q35 -cpu max -m 4G -smp 2 -display none -no-reboot -monitor none \
        -device isa-debug-exit,iobase=0xf4,iosize=0x04 -serial "file:$said" \
        -kernel "$target/$machine/debug/asterinas" </dev/null || got=$?
    [ $got = 33 ] || failed "${1:-nbbs}: status $got, not 33"
    grep -a '^test ostd::' "$said" | sed 's/\x1b\[[0-9;]*m//g' | cut -d ' ' -f 2 | sort >"$log"
    [ "$(wc -l <"$log")" -gt 200 ] || failed "${1:-nbbs}: not all tests were run"
}

boots own
boots ""
cmp -s "$target/own.log" "$target/nbbs.log" || failed "other tests with nbbs than with its own"
by_module() { cut -d : -f 3 "$target/$1.log" | uniq -c; }
echo " tests of OSTD that pass     its own   nbbs in its place"
join -1 2 -2 2 <(by_module own) <(by_module nbbs) | awk '{ printf " %-24s %10d %19d\n", $1, $2, $3 }'
echo "asterinas: OSTD boots on nbbs, and its $(wc -l <"$target/nbbs.log") tests pass, as they do with its own frame allocator"
