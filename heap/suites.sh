#!/usr/bin/env bash
# suites.sh [CRATE...]: the unit tests of crates that others wrote, with a heap of this project as their global allocator;
# of serde_json, which has none, those in tests/. Takes the crates from crates.io, at the versions below, and leaves
# nothing in the tree. Without a CRATE it runs the share of the list that NBBS_SHARE says, or all: a quarter of an hour.
set -euo pipefail
heap=$(cd "$(dirname "$0")" && pwd)
source "$heap/../verify/share.bash"
target=${CARGO_TARGET_DIR:-$heap/../target}/suites
all=(hashbrown@0.15.5 indexmap@2.11.4 rayon@1.11.0 crossbeam-epoch@0.9.18 regex-automata@0.4.11 tokio@1.47.1 serde_json@1.0.154)
if [ $# = 0 ]; then
    mapfile -t all < <(printf '%s\n' "${all[@]}" | share)
else
    all=("$@")
fi
mkdir -p "$target/fetch/src"
target=$(cd "$target" && pwd)

# Brings the sources by a package that depends on them.
{
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n[dependencies]\n'
    for crate in "${all[@]}"; do echo "${crate%@*} = \"=${crate#*@}\""; done
} >"$target/fetch/Cargo.toml"
touch "$target/fetch/src/lib.rs"
cargo fetch --quiet --manifest-path "$target/fetch/Cargo.toml" ||
    { echo "suites: crates.io cannot be reached for ${all[*]}"; exit 1; }
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src

failed=0
for crate in "${all[@]}"; do
    name=${crate%@*} copy=$target/${crate/@/-}
    rm -rf "$copy"
    cp -r "$(find "$sources" -maxdepth 2 -name "${crate/@/-}" | head -n 1)" "$copy"
    printf '\n[dev-dependencies.nbbs-heap]\npath = "%s"\n[workspace]\n' "$heap" >>"$copy/Cargo.toml"
    suite=(--lib) root=src/lib.rs
    case $name in
    tokio) suite+=(--features full,test-util) ;;
    serde_json) suite=(--test test) root=tests/test.rs ;;
    esac
    printf '\n#[cfg(test)]\n#[global_allocator]\nstatic HEAP: nbbs_heap::Heap<{ 1 << 30 }> = nbbs_heap::Heap::new();\n' >>"$copy/$root"
    if (cd "$copy" && CARGO_TARGET_DIR=$target/target timeout 900 cargo test "${suite[@]}") >"$target/$name.log" 2>&1 &&
        grep -q '^test result: ok\. [1-9]' "$target/$name.log"; then
        echo "$crate: $(grep '^test result' "$target/$name.log")"
    else
        failed=1
        echo "$crate: FAILED: $target/$name.log"
        tail -n 5 "$target/$name.log"
    fi
done
[ $failed = 0 ] || exit 1
echo "${all[*]}: their tests pass in a heap of this project, in $SECONDS s"
