#!/usr/bin/env bash
# debian.sh: Debian's packages are built without any other crate, lintian has no complaint, and apt installs them. The
# examples build and run with nothing else, as debian/tests says. Then the packages are removed. Takes a minute.
source "$(dirname "$0")/common.bash"
need git git
need dpkg-buildpackage dpkg-dev
need dh debhelper
need lintian lintian
need cmake cmake
need gcc gcc
need g++ g++
need pkg-config pkg-config
! dpkg-query --show 'libnbbs*' >/dev/null 2>&1 ||
    { log "could not run: packages of nbbs are installed, and would be replaced"; exit 1; }

as_packagers_do
export DEB_BUILD_OPTIONS=parallel=2
source=$(capi/packaging/debian.sh "$work")
cd "$source"
# Rust need not be Debian's, whose stable release has an older one. Everything else that is needed is there.
missing=$(dpkg-checkbuilddeps 2>&1 | sed 's/.*dependencies: //; s/\(cargo\|rustc\) ([^)]*)//g' | tr -d ' ') || true
[ -z "$missing" ] || { log "could not run: to build, there is missing $missing"; exit 1; }
dpkg-buildpackage --no-check-builddeps -us -uc >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }
cd "$work"
lintian --allow-root --fail-on error,warning ./*.changes >&2

packages=(libnbbs0.1 libnbbs-dev)
remove() { "$root/verify/install.sh" remove "${packages[@]}" >"$work/removed" 2>&1 || { cat "$work/removed" >&2; return 1; }; }
trap remove EXIT
"$root/verify/install.sh" debian "$work"/libnbbs{0.1,-dev}_*.deb >"$work/installed" 2>&1 || { cat "$work/installed" >&2; exit 1; }
mkdir examples
AUTOPKGTEST_TMP=$work/examples "$source/debian/tests/link" >&2
remove
trap - EXIT
