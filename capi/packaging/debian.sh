#!/usr/bin/env bash
# debian.sh DIRECTORY: lays out there what Debian's tools build packages of: nbbs_VERSION.orig.tar.gz, and nbbs-VERSION with
# debian/ in it. Prints where the latter is.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
source=$("$here/source.sh" "$1")
directory=${source%/*} version=${source##*-}
packaged=$(sed -n '1s/nbbs (\(.*\)-[^-]*).*/\1/p' "$here/debian/changelog")
[ "$packaged" = "$version" ] || { echo "debian.sh: debian/changelog is of $packaged, nbbs.h of $version" >&2; exit 1; }

tar --create --gzip --directory "$directory" --file "$directory/nbbs_$version.orig.tar.gz" "nbbs-$version"
cp -R "$here/debian" "$source/debian"
echo "$source"
