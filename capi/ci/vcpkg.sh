#!/usr/bin/env bash
# vcpkg.sh: checks the port for vcpkg. Runs `vcpkg install` if there is vcpkg, by VCPKG_ROOT or in the path; otherwise
# says so, and CMake runs the port with stand-ins for vcpkg's functions. Then builds the C++ example with what was
# installed. Takes half a minute.
source "$(dirname "$0")/common.bash"
need git git
need cmake cmake
need g++ g++
need pkg-config pkg-config

version=$(sed -n 's/.*NBBS_VERSION "\(.*\)"/\1/p' capi/include/nbbs.h)
grep -q "\"version\": \"$version\"" capi/packaging/vcpkg/nbbs/vcpkg.json ||
    { log "vcpkg.json is not of version $version"; exit 1; }
as_packagers_do
PATH=${VCPKG_ROOT:+$VCPKG_ROOT:}$PATH

# Both ways leave the package in $prefix.
by_vcpkg() {
    prefix=$work/installed/x64-linux
    vcpkg format-manifest capi/packaging/vcpkg/nbbs/vcpkg.json && git diff --exit-code capi/packaging/vcpkg/nbbs/vcpkg.json &&
        vcpkg install nbbs --triplet=x64-linux --overlay-ports="$root/capi/packaging/vcpkg" --binarysource=clear \
            --x-install-root="$work/installed" --x-buildtrees-root="$work/buildtrees" --x-packages-root="$work/packages"
}
by_stand_ins() {
    prefix=$work/package
    cmake "-DPORT_DIR=$root/capi/packaging/vcpkg/nbbs" "-DPREFIX=$work" -DLINKAGE=static "-DVERSION=$version" \
        -P capi/packaging/vcpkg/stand-ins.cmake
}
how=by_vcpkg
command -v vcpkg >/dev/null || { how=by_stand_ins; log "no vcpkg here: the port is run with stand-ins for its functions"; }
$how >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }

[ ! -e "$prefix/lib/libnbbs.so" ] || { log "a static package has a shared library"; exit 1; }
[ -s "$prefix/share/nbbs/copyright" ] || [ $how = by_stand_ins ] || { log "no copyright"; exit 1; }
cp -R capi/examples/cpp "$work/example"
{ cmake -S "$work/example" -B "$work/build" "-DCMAKE_PREFIX_PATH=$prefix" && cmake --build "$work/build"; } \
    >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
"$work/build/sessions" >&2
