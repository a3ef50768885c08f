#!/usr/bin/env bash
# packages.sh: builds the C++ example with nothing but what CMake installs, through pkg-config and through CMake; and
# from source by CMake's add_subdirectory, static and shared, and by its FetchContent, which gets the last commit from
# this repository. Builds the examples in C through CMake. Takes half a minute.
source "$(dirname "$0")/common.bash"
need g++ g++
need cmake cmake
need pkg-config pkg-config
need git git
# Installs without DESTDIR, and with one, to the same place below it.
rm -rf "$work" && mkdir -p "$work"
prefix=$(installed_by_cmake "" -DNBBS_SHARED_MEMORY=ON)
staged=$(installed_by_cmake "$work/stage" -DNBBS_SHARED_MEMORY=ON)
[ "$(files "$prefix")" = "$(files "$staged")" ] || { log "DESTDIR has other files"; exit 1; }
has_soname "$prefix"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
# Away from the repository, except for the build that has it as a subdirectory.
mkdir -p "$work/examples"
cp -R capi/examples/c capi/examples/cpp "$work/examples"
example=$work/examples/cpp

expected='lines: 8000
buffer: 1563 units
closed twice: NBBS_CODE_NO_OBJECT
units in use: 0'
# runs PROGRAM: whether it prints what it should.
runs() {
    local printed
    printed=$("$1") && [ "$printed" = "$expected" ] || { log "$1 printed: $printed"; return 1; }
}
# uses PROGRAM yes|no: whether it loads the shared library.
uses() {
    local found=no
    ! readelf --dynamic "$1" | grep -q 'NEEDED.*libnbbs' || found=yes
    [ $found = "$2" ] || { log "$1: loads libnbbs.so: $found"; return 1; }
}
# configure DIRECTORY NAME OPTION...
configure() { cmake -S "$1" -B "$work/$2" -Wno-dev "${@:3}" >"$work/$2.log" 2>&1; }
# build DIRECTORY NAME OPTION...
build() {
    { configure "$@" && cmake --build "$work/$2" >>"$work/$2.log" 2>&1; } || { cat "$work/$2.log" >&2; return 1; }
}

# by_pkg_config [--static]: builds the example with the installed package, with the shared library or without it, and
# runs it.
by_pkg_config() {
    local flags
    flags=$(pkg-config "$@" --cflags --libs nbbs)
    # shellcheck disable=SC2086
    g++ -std=c++17 ${1:+-static} "$example/sessions.cpp" $flags -pthread -o "$work/sessions"
    runs "$work/sessions"
    uses "$work/sessions" "$([ $# = 0 ] && echo yes || echo no)"
}
by_pkg_config
by_pkg_config --static

# What nbbs.h declares is what the library has, also where that is without shared memory.
echo '#include <nbbs.h>
      int main(void) { nbbs_shared_detach(0); return 0; }' >"$work/detach.c"
detaches() {
    PKG_CONFIG_PATH=$1/lib/pkgconfig gcc -Werror=implicit-function-declaration "$work/detach.c" \
        $(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs nbbs) -o "$work/detach" 2>"$work/said"
}
mkdir -p "$work/asks"
echo 'cmake_minimum_required(VERSION 3.18)
      project(asks LANGUAGES C)
      find_package(nbbs REQUIRED)
      get_target_property(definitions nbbs::static INTERFACE_COMPILE_DEFINITIONS)
      message(STATUS "it says [${definitions}]")' >"$work/asks/CMakeLists.txt"
# says PREFIX: what find_package says of the library there.
says() { cmake -S "$work/asks" -B "$work/asks$1" "-DCMAKE_PREFIX_PATH=$1" | sed -n 's/.*it says \[\(.*\)\]/\1/p'; }
without=$(installed_by_cmake "$work/without" -DNBBS_SHARED_MEMORY=OFF)
detaches "$prefix" || { log "nbbs_shared_detach is missing"; cat "$work/said" >&2; exit 1; }
! detaches "$without" && grep -q 'implicit declaration' "$work/said" || { log "nbbs_shared_detach is declared"; exit 1; }
[ "$(says "$prefix") $(says "$without")" = " NBBS_WITHOUT_SHARED_MEMORY" ] || { log "find_package says other things"; exit 1; }

build "$work/examples/c" c "-DCMAKE_PREFIX_PATH=$prefix"
for program in plain frames objects heap survivors; do
    "$work/c/$program" >&2
done

build "$example" package "-DCMAKE_PREFIX_PATH=$prefix"
runs "$work/package/sessions"
uses "$work/package/sessions" yes
[ "$("$work/package/words")" = $'roses: 12\nrefused: 0' ] || { log "words: $("$work/package/words")"; exit 1; }
runs "$work/package/sessions_static"
uses "$work/package/sessions_static" no

# A version that does not exist is not found.
sed -i 's/find_package(nbbs [0-9.]*/find_package(nbbs 99.0/' "$example/CMakeLists.txt"
! configure "$example" later "-DCMAKE_PREFIX_PATH=$prefix" && grep -q nbbs "$work/later.log" ||
    { log "find_package(nbbs 99.0) finds $prefix"; exit 1; }

for kind in static shared; do
    [ $kind = static ] && shared=OFF uses=no || shared=ON uses=yes
    build capi/examples/cpp/subdirectory $kind -DBUILD_SHARED_LIBS=$shared
    runs "$work/$kind/sessions"
    uses "$work/$kind/sessions" $uses
done

commit=$(git rev-parse HEAD) || { log "could not run: no git repository to fetch from"; exit 1; }
build "$example/fetch" fetched "-DNBBS_REPOSITORY=file://$root" "-DNBBS_TAG=$commit"
[ "$(git -C "$work/fetched/_deps/nbbs-src" rev-parse HEAD)" = "$commit" ] || { log "fetched is not $commit"; exit 1; }
runs "$work/fetched/sessions"
uses "$work/fetched/sessions" no
