#!/usr/bin/env bash
# fuzz.sh [--long]: fuzzes operation programs, races, and operations on pools, heaps and caches, which the oracles
# judge, beginning with the corpus. Then fuzzes races on the broken allocators, which must be caught, and on a sound one.
# Takes six minutes; `--long` takes ten minutes a target. Installs cargo-fuzz from crates.io if it is missing; needs
# nightly and a C++ compiler.
source "$(dirname "$0")/../check.sh" "$@"

nightly || { log "no nightly toolchain"; exit 1; }
# Not optimised: it only calls cargo.
cargo fuzz --version >/dev/null 2>&1 || CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo install --quiet --debug cargo-fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Mutants are built in the same place, so nothing else is built twice.
build() { cargo +nightly fuzz build --fuzz-dir verify/fuzz --target-dir "$target/fuzz" --sanitizer none "$@"; }
# corpus TARGET: unpacks the kept inputs, and prints their path.
corpus() {
    local folder=$scratch/corpus/$1
    [ -d "$folder" ] || { mkdir -p "$folder" && tar -xf "$root/verify/fuzz/corpus/$1.tar" -C "$folder"; }
    echo "$folder"
}
# fuzz TARGET SECONDS CORPUS...: fuzzes a target; new inputs go to the first corpus. Inputs are long from the start:
# libFuzzer's growing length takes half a minute to reach what a program of few operations cannot show.
fuzz() {
    local name=$1 seconds=$2
    shift 2
    timeout $((seconds + 60)) "$target/fuzz/$host/release/$name" -max_total_time="$seconds" \
        -max_len=400 -len_control=0 -timeout=20 -artifact_prefix="$scratch/" -print_final_stats=1 "$@" 2>&1
}
build_mutant() { build "${1%%-*}"; }
# It begins without a corpus, which would be too much help; only the race has one, which it needs.
catches() {
    local name=${1%%-*} seeds=()
    [ "$name" != races ] || seeds=("$(corpus "$name")")
    mkdir -p "$scratch/$1"
    { fuzz "$name" 90 "$scratch/$1" "${seeds[@]}" || true; } |
        grep -m 1 "panicked at"
}

# Whether the fuzzer, given the race of neighbours but not its schedule, finds a unit handed out twice.
patient() {
    mkdir -p "$scratch/$1"
    PATIENT=$1 fuzz patients "$2" "$scratch/$1" "$(corpus patients)"
}
harms() { { patient "$1" 90 || true; } | grep -m 1 'handed out twice'; }

# found_in TARGET STATUS: keeps the input of a finding, and its output for the end.
ours=clean findings=
found_in() {
    ours=FOUND
    mkdir -p "$target/fuzz-found"
    find "$scratch" -maxdepth 1 -type f -exec mv -t "$target/fuzz-found" {} +
    findings+="found in $1, status $2; its input is in $target/fuzz-found:"$'\n'
    findings+="$(grep -A 3 -E 'panicked at|ERROR: libFuzzer|^Base64' <<<"$output" | cut -c 1-400)"$'\n'
}

build >&2
seconds=$([ $long = no ] && fewer 8 3 || echo 600)
total=0
for name in programs races pool heap caches; do
    mkdir -p "$scratch/$name"
    output=$(fuzz $name "$seconds" "$scratch/$name" "$(corpus $name)") || found_in $name $?
    tail -n 8 <<<"$output" >&2
    total=$((total + $(sed -n 's/^stat::number_of_executed_units: *//p' <<<"$output" | head -n 1)))
done
inputs=$(find "$scratch/corpus" -type f | wc -l)

build --features patients patients >&2
try_patients nb1 nb4 freelist-untagged
# Its sound twin.
output=$(patient freelist-tagged 4) || found_in freelist-tagged $?

try_mutants fuzz fuzz-pool fuzz-heap
printf %s "$findings" >&2
finish "$total inputs, $inputs kept" "$patients_caught/$patients_tried" "$ours"
