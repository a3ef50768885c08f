# To be sourced by the scripts beside it: where things are, and how the libraries are built.
set -euo pipefail
shopt -s inherit_errexit
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/$target ;; esac
export CARGO_TARGET_DIR=$target
step=$(basename "$0" .sh)
work=$target/capi/$step
mkdir -p "$work"
host=$(rustc -vV | sed -n 's/^host: //p')
# What a program needs beside the static library that has std in it.
system_libraries=(-lpthread -ldl -lm)

log() { echo "$step: $*" >&2; }

# need COMMAND-OR-FILE PACKAGE...: sees to Debian packages.
need() {
    command -v "$1" >/dev/null || [ -e "$1" ] && return
    shift
    local as=()
    [ "$(id -u)" = 0 ] || as=(sudo)
    log "installing $*"
    { "${as[@]}" apt-get update -qq && "${as[@]}" apt-get install -y -qq "$@"; } >&2 ||
        { log "could not run: $* cannot be installed"; exit 1; }
}

# need_cargo_c: sees to cargo-c, in the target directory unless it is there already.
need_cargo_c() {
    export PATH=$target/tools/bin:$PATH
    command -v cargo-cinstall >/dev/null && return
    need pkg-config pkg-config
    need /usr/include/openssl/ssl.h libssl-dev
    log "installing cargo-c"
    # The last version that the oldest supported Rust compiles. Not optimised: it runs for a second.
    CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --debug --locked \
        --root "$target/tools" --version 0.10.16 cargo-c >&2 ||
        { log "could not run: cargo-c cannot be installed"; exit 1; }
}

# need_nightly: sees to nightly Rust and the source of its standard library.
need_nightly() {
    { rustc +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal >&2; } &&
        rustup component add rust-src --toolchain nightly >&2 2>&1 ||
        { log "could not run: nightly Rust with rust-src cannot be installed"; exit 1; }
}

# library: builds the static library with debug assertions and prints where it is.
library() {
    cargo rustc --quiet --package nbbs-c --crate-type staticlib
    echo "$target/debug/libnbbs_c.a"
}

# installed: installs the package to a place of its own and prints where.
installed() {
    local prefix=$target/installed
    need_cargo_c
    rm -rf "$prefix"
    cargo cinstall --package nbbs-c --release --prefix "$prefix" --libdir "$prefix/lib" >&2
    echo "$prefix"
}

# suite LANGUAGE COMPILER LIBRARY NAME FLAG...: compiles the suite in capi/tests/LANGUAGE, two files at a time, and prints
# where it is.
suite() {
    local sources=capi/tests/$1 compiler=$2 library=$3 objects=$work/$1-$4
    shift 4
    mkdir -p "$objects"
    printf '%s\n' "$sources"/*_test.cc | xargs -P 2 -I FILE bash -c '
        "$@" -c FILE -o "'"$objects"'/$(basename FILE .cc).o"' compile \
        "$compiler" -std=c++17 -g -Wall -Wextra -Wpedantic -Werror "$@" -Icapi/include
    "$compiler" "$@" "$objects"/*.o "$library" -o "$objects/suite" -lgtest -lgtest_main "${system_libraries[@]}"
    echo "$objects/suite"
}
