#!/usr/bin/env bash
# Checks format, lints, documentation, and the rules that a grep can check. Takes about 2 minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || verify/install.sh rustup component add "$component"
done

cargo fmt --all --check
for apart in examples/*/ adapters/arceos/ adapters/asterinas/; do (cd "$apart" && cargo fmt --check); done
cargo clippy --workspace --all-targets --quiet -- -D warnings
# Without the feature `suite`, which the package's tests enable.
cargo clippy --package nbbs-bench --quiet -- -D warnings
cargo clippy --package nbbs --no-default-features --quiet -- -D warnings
cargo clippy --package nbbs-heap --no-default-features --quiet -- -D warnings
cargo clippy --package nbbs-c --features shared --all-targets --quiet -- -D warnings
# All features except `nightly`.
cargo clippy --package nbbs-heap --features allocator-api2,portable-atomic,poison,asan --all-targets --quiet -- -D warnings
cargo clippy --package baselines --no-default-features --quiet -- -D warnings
cargo clippy --package nbbs-adapters --all-features --all-targets --quiet -- -D warnings
# With private items first, so that what stays in `target/doc` is what users see.
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --quiet
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
RUSTDOCFLAGS="-D warnings" cargo doc --package nbbs-adapters --all-features --no-deps --quiet

dependencies=$(cargo tree --package nbbs --edges normal --prefix none | tail -n +2)
[ -z "$dependencies" ] || { echo "nbbs must depend on nothing, but depends on $dependencies"; exit 1; }

# layers CRATE GROUP...: no module of the crate names one of a later group. The groups are its layers, from below.
layers() {
    local crate=$1 group file module named rank=0 wrong=0
    local -A ranks=()
    shift
    for group; do
        rank=$((rank + 1))
        for module in $group; do ranks[$module]=$rank; done
    done
    while IFS=: read -r file named; do
        module=${file#"$crate"/src/} module=${module%%/*} module=${module%.rs}
        [ "$module" = lib ] || [ "${ranks[$named]:?no layer}" -le "${ranks[$module]:?no layer}" ] ||
            { echo "$file names crate::$named, which is a layer above" && wrong=1; }
    done < <(find "$crate/src" -name '*.rs' -not -path '*/tests*' -not -path '*/checks/*' -not -path '*/races*' -exec awk '
        FNR == 1 { tests = 0 }
        /#\[cfg\(.*test/ { tests = 1 }
        !tests && !/^ *\/\// {
            while (match($0, /crate::[a-z_]+::/)) {
                print FILENAME ":" substr($0, RSTART + 7, RLENGTH - 9)
                $0 = substr($0, RSTART + RLENGTH)
            }
        }' {} +)
    return $wrong
}
layers nbbs "word layout sync copy error request" tree lane block run "look mend" api "cache metadata zones"
layers heap "class error unwind watch words" slabs region cache look operations "api small"

# Each published crate builds from the contents of its package, beside the packages of the others, and has the licences.
# This is not cargo's own verification, which may take the others from its cache, as they were when they last had this
# version.
packages=${CARGO_TARGET_DIR:-target}/package
unpacked=$packages/unpacked
rm -rf "$packages" && mkdir -p "$unpacked"
mapfile -t manifests < <(grep --files-without-match '^publish = false' ./*/Cargo.toml)
mapfile -t published < <(sed --separate '/^\[package\]/,/^name/!d; s/^name = "\(.*\)"/\1/; t; d' "${manifests[@]}")
cargo package "${published[@]/#/--package=}" --allow-dirty --no-verify --quiet
for package in "$packages"/*.crate; do
    tar --extract --file "$package" --directory "$unpacked"
done
(
    cd "$unpacked"
    { echo '[workspace]'; echo 'resolver = "3"'; echo 'members = ["*"]'; echo '[patch.crates-io]'; } >Cargo.toml
    for crate in */; do
        [ "$(find "$crate" -name 'LICENSE-*' | wc -l)" = 2 ] || { echo "$crate: the package must contain both licences"; exit 1; }
        echo "${crate%-*} = { path = \"${crate%/}\" }" >>Cargo.toml
    done
    CARGO_TARGET_DIR=target cargo check --workspace --quiet
)

# Each check tries a share of its mutants: that all fit the code is seen here.
for list in verify/mutants/*.list; do verify/mutate.sh "$list" >/dev/null; done

long=$(git ls-files '*.rs' '*.sh' '*.c' '*.cc' '*.cpp' '*.h' '*.hpp' '*.py' '*.pml' | grep -vx 'capi/include/nbbs.h' |
    xargs wc -l | awk '$2 != "total" && $1 > 500')
[ -z "$long" ] || { echo "files over 500 lines:"; echo "$long"; exit 1; }

echo "format, lints, documentation and rules are in order"
