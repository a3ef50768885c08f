# Sourced by the scripts beside it: how the libraries are built, and how their suites are run.
source "$(dirname "${BASH_SOURCE[0]}")/../../verify/check.sh"
shopt -s inherit_errexit
work=$target/capi/$check
mkdir -p "$work"
host=$(rustc -vV | sed -n 's/^host: //p')
# The libraries that a program needs beside the static library, which has std in it.
system_libraries=(-lpthread -ldl -lm)
# The suites take seconds. A program that takes longer than this hangs, on any machine.
limit=300

# need COMMAND-OR-FILE PACKAGE...: installs Debian packages if the command or file is missing.
need() {
    command -v "$1" >/dev/null || [ -e "$1" ] && return
    shift
    log "installing $*"
    verify/install.sh debian "$@" >&2 ||
        { log "could not run: $* cannot be installed"; exit 1; }
}

# need_cargo_c: installs cargo-c into the target directory if it is missing.
need_cargo_c() {
    export PATH=$target/tools/bin:$PATH
    command -v cargo-cinstall >/dev/null && return
    need pkg-config pkg-config
    need /usr/include/openssl/ssl.h libssl-dev
    log "installing cargo-c"
    # The last version that the oldest supported Rust compiles. It is not optimised, as it only runs for a second.
    CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --debug --locked \
        --root "$target/tools" --version 0.10.16 cargo-c >&2 ||
        { log "could not run: cargo-c cannot be installed"; exit 1; }
}

# need_nightly: installs nightly Rust and the source of its standard library.
need_nightly() { nightly || { log "could not run: nightly Rust with rust-src cannot be installed"; exit 1; }; }

# library: builds the static library, with shared memory and debug assertions, and prints its path.
library() {
    cargo rustc --quiet --package nbbs-c --features shared --crate-type staticlib && echo "$CARGO_TARGET_DIR/debug/libnbbs_c.a"
}

# installed_by_cmake [DESTDIR [OPTION...]]: builds the package and installs it by CMake, to $work/usr below DESTDIR.
# Prints the path.
installed_by_cmake() {
    local prefix=$work/usr
    { cmake -S capi -B "$work/alone" -Wno-dev "-DCMAKE_INSTALL_PREFIX=$prefix" -DCMAKE_INSTALL_LIBDIR=lib "${@:2}" &&
        env ${1:+"DESTDIR=$1"} cmake --install "$work/alone"; } >"$work/alone.log" 2>&1 || { cat "$work/alone.log" >&2; return 1; }
    echo "${1-}$prefix"
}

# as_packagers_do: makes the step begin with nothing, and cargo without anything downloaded, but with the installed
# Rust, since some packagers have another HOME.
as_packagers_do() {
    rm -rf "$work" && mkdir -p "$work"
    RUSTUP_HOME=$(rustup show home)
    export RUSTUP_HOME CARGO_HOME=$work/cargo
}

# files DIRECTORY: lists its files.
files() { (cd "$1" && find . -not -type d | sort); }

# has_soname PREFIX: whether the shared library installed there names the versions that may replace it.
has_soname() {
    readelf --dynamic "$1/lib/libnbbs.so" | grep -q 'SONAME.*libnbbs\.so\.0\.1' || { log "no soname in $1"; return 1; }
}

# suite LANGUAGE COMPILER LIBRARY NAME FLAG...: compiles the suite in capi/tests/LANGUAGE, two files at a time, and
# prints its path. GoogleTest's header, which takes longer to compile than most tests, is compiled once for all.
suite() {
    local sources=capi/tests/$1 library=$3 objects=$work/$1-$4
    local compile=("$2" -std=c++17 -Wall -Wextra -Wpedantic -Werror "${@:5}")
    mkdir -p "$objects"
    echo '#include <gtest/gtest.h>' >"$objects/gtest.h"
    "${compile[@]}" -x c++-header "$objects/gtest.h" -o "$objects/gtest.h.gch"
    printf '%s\n' "$sources"/*_test.cc | xargs -P 2 -I FILE bash -c '
        "$@" -c FILE -o "'"$objects"'/$(basename FILE .cc).o"' compile \
        "${compile[@]}" -include "$objects/gtest.h" -Icapi/include
    "$2" "${@:5}" "$objects"/*.o "$library" -o "$objects/suite" -lgtest -lgtest_main "${system_libraries[@]}"
    echo "$objects/suite"
}

# status_of COMMAND...: runs a command, at most for the limit, and writes its output, and what bash says about its end,
# to $work/said. Prints its status, or 124 if it did not end.
status_of() {
    local status=0
    { timeout "$limit" "$@"; } >"$work/said" 2>&1 || status=$?
    echo "$status"
}

# passes NAME SUITE: whether a suite has tests and all pass. Prints how many, or the output if not.
passes() {
    local status passed
    status=$(status_of "$2" --gtest_brief=1)
    passed=$(sed -n 's/^\[  PASSED  \] \([1-9][0-9]* tests\?\)\.$/\1/p' "$work/said")
    [ "$status" != 0 ] || [ -z "$passed" ] || { log "$1: $passed passed"; return; }
    cat "$work/said" >&2
    log "$1: FAILED with status $status"
    return 1
}

# fails COMMAND...: whether a command finds a fault: it runs, and ends by itself with a failure. If not, prints the end
# of its output.
fails() {
    local status
    status=$(status_of "$@")
    case $status in
    0) ;;
    124) echo "not done in $limit s" ;;
    126 | 127) echo "cannot be run" ;;
    *) return 0 ;;
    esac
    tail -n 20 "$work/said"
    return 1
}

# catch_mutants LIST: runs try_mutants; succeeds if there were mutants and all were caught.
catch_mutants() {
    try_mutants "$@"
    [ "$mutants_tried" != 0 ] && [ "$mutants_caught" = "$mutants_tried" ]
}
