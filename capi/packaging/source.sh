#!/usr/bin/env bash
# source.sh DIRECTORY: puts the source of the C library there, as DIRECTORY/nbbs-VERSION: the files that git knows, without
# the tests' dependencies, so that it builds where crates.io is out of reach. Prints where.
set -euo pipefail
mkdir -p "$1"
directory=$(realpath "$1")
cd "$(dirname "$0")/../.."
version=$(sed -n 's/.*NBBS_VERSION "\(.*\)"/\1/p' capi/include/nbbs.h)
to=$directory/nbbs-$version
[ ! -e "$to" ] || { echo "source.sh: $to is there already" >&2; exit 1; }

mkdir "$to"
git ls-files -z {nbbs,heap,pool}/{Cargo.toml,README.md,src} capi Cargo.toml README.md CHANGELOG.md 'LICENSE-*' \
    ':!capi/header' ':!capi/packaging' ':!capi/ci' | tar --create --null --files-from=- | tar --extract --directory "$to"

# without SECTIONS LINES MANIFEST: a manifest without these sections and lines, which are patterns.
without() {
    awk -v sections="$1" -v lines="$2" '/^\[/ { left_out = $0 ~ sections } !left_out && $0 !~ lines' "$3" >"$3.new"
    mv "$3.new" "$3"
}
# What is optional cargo would look for, too.
without '^$' 'optional = true' "$to/capi/Cargo.toml"
for crate in nbbs pool heap; do
    without 'dev-dependencies|^[[][[]example' 'optional = true' "$to/$crate/Cargo.toml"
done
# Features of the heap that take a crate: here they are refused.
sed -i -E '/"nbbs-heap\/(shuffle|valgrind)"/d' "$to/capi/Cargo.toml"
sed -i -E 's/^([a-z0-9-]+) = \[.*"dep:.*/\1 = []/' "$to"/{nbbs,pool,heap,capi}/Cargo.toml
without 'profile[.](dev|release[.]package)' '^(#|(testkit|baselines|nix|default-members|exclude) )' "$to/Cargo.toml"
sed -i 's/^members = .*/members = ["nbbs", "pool", "heap", "capi"]/' "$to/Cargo.toml"
cargo generate-lockfile --quiet --offline --manifest-path "$to/Cargo.toml"
echo "$to"
