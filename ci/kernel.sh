#!/usr/bin/env bash
# kernel.sh: boots examples/kernel in QEMU, in software emulation: on x86-64 with 4 and 8 CPUs, 128 MiB, 4 GiB with the
# hole below, and an odd size; on RISC-V with 4 CPUs. Then with a spin lock, whose deadlock the watchdog must find, and
# with blocks that stay free when they are handed out, of which the owner map must find one. Also checks format and
# lints. Installs QEMU from Debian's packages and the targets by rustup, or says that it cannot. Takes a minute and a
# half.
set -euo pipefail
cd "$(dirname "$0")/../examples/kernel"
export CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
pc=x86_64-unknown-none virt=riscv64gc-unknown-none-elf
said=$(mktemp)
trap 'rm -f "$said"' EXIT

failed() { echo "kernel: $*"; exit 1; }

install=../../verify/install.sh
$install rustup target add $pc $virt >"$said" 2>&1 || failed "not every target can be installed: $(tail -n 1 "$said")"
for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || $install rustup component add "$component"
done
tools=(qemu-system-x86 qemu-system-misc)
if ! dpkg -s "${tools[@]}" >/dev/null 2>&1; then
    $install debian --no-install-recommends "${tools[@]}" >"$said" 2>&1 ||
        failed "${tools[*]} cannot be installed: this needs root on a Debian with a network"
fi

# boots WORD STATUS TARGET FEATURE MEMORY CPUS: checks that the kernel, built with the feature, or with none for -, ends
# with this status and prints this word.
boots() {
    local word=$1 status=$2 got=0 feature=${4#-}
    local how="${3%%-*} ${feature:-as it is}, $5, $6 CPUs" build=(--release --quiet --target "$3" --features "$feature")
    cargo clippy "${build[@]}" -- -D warnings
    cargo build "${build[@]}"
    timeout 60 cargo run "${build[@]}" -- "$5" "$6" >"$said" 2>&1 || got=$?
    if [ $got != "$status" ] || ! grep -q "^kernel: $word" "$said"; then
        cat "$said"
        failed "$how: status $got, not $status for $word"
    fi
    echo "kernel: $how: $word, $SECONDS s so far"
}

cargo fmt --check
# QEMU ends with twice the kernel's status, plus one.
# As it is with several sizes of memory, and broken on purpose; of each a share.
source ../../verify/share.bash
whole=("$pc - 128M 4" "$virt - 128M 4" "$pc - 4G 8" "$pc - 333M 8")
broken=("Deadlock 35 $pc locked 128M 4" "Overlap 37 $pc broken 128M 4" "Deadlock 35 $virt locked 128M 4")
mapfile -t tried < <(
    printf 'Passed 33 %s\n' "${whole[@]}" | share
    printf '%s\n' "${broken[@]}" | share
)
# shellcheck disable=SC2086
for boot in "${tried[@]}"; do boots $boot; done
echo "the kernel works wherever it boots, ${#tried[@]} times, and what is broken on purpose is found"
