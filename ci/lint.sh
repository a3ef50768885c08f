#!/usr/bin/env bash
# Format, lints, documentation, and the rules that a grep can check. About 2 minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || verify/install.sh rustup component add "$component"
done

cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
# Without the feature `suite`, which its tests bring.
cargo clippy --package nbbs-bench --quiet -- -D warnings
cargo clippy --package nbbs --no-default-features --quiet -- -D warnings
cargo clippy --package nbbs-adapters --all-features --all-targets --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
RUSTDOCFLAGS="-D warnings" cargo doc --package nbbs-adapters --all-features --no-deps --quiet

dependencies=$(cargo tree --package nbbs --edges normal --prefix none | tail -n +2)
[ -z "$dependencies" ] || { echo "nbbs must depend on nothing, but: $dependencies"; exit 1; }

# Each published crate builds from what is in its package, and the licences are in it.
mapfile -t manifests < <(grep --files-without-match '^publish = false' ./*/Cargo.toml)
published=()
for manifest in "${manifests[@]}"; do
    published+=(--package "$(sed -n '/^\[package\]/,/^name/s/^name = "\(.*\)"/\1/p' "$manifest")")
    licences=$(cargo package --manifest-path "$manifest" --list --allow-dirty --quiet | grep -c '^LICENSE-' || true)
    [ "$licences" = 2 ] || { echo "$manifest: its package needs both LICENSE files"; exit 1; }
done
cargo package "${published[@]}" --allow-dirty --quiet

long=$(git ls-files '*.rs' '*.sh' | xargs wc -l | awk '$2 != "total" && $1 > 500')
[ -z "$long" ] || { echo "files over 500 lines:"; echo "$long"; exit 1; }

echo "format, lints, documentation and rules: in order"
