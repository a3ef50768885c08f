#!/usr/bin/env bash
# signals.sh: threads and the signal handlers that interrupt them call the library: linked statically, as a shared library,
# and loaded by dlopen; threads whose first call is made by a handler that has interrupted malloc. Then with the library
# broken on purpose, each time in one place of verify/mutants/capi-signals.list. About a minute.
source "$(dirname "$0")/common.bash"
need gcc gcc

# shared_library: builds the shared library with debug assertions and prints where it is.
shared_library() {
    cargo rustc --quiet --package nbbs-c --features shared --crate-type cdylib && echo "$CARGO_TARGET_DIR/debug/libnbbs_c.so"
}

# program NAME KIND FLAG...: compiles a program of capi/tests/signals and prints where it is.
program() {
    gcc -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Wpedantic -Werror -Icapi/include "capi/tests/signals/$1.c" \
        -o "$work/$1-$2" "${@:3}" "${system_libraries[@]}" && echo "$work/$1-$2"
}

static=$(library)
shared=$(shared_library)
for name in first handlers; do
    commands=("$(program $name static "$static")" "$(program $name shared "$shared")"
        "$(program $name loaded -DLOADED) $shared")
    for command in "${commands[@]}"; do
        # shellcheck disable=SC2086
        [ "$(status_of $command)" = 0 ] || { cat "$work/said" >&2; log "$command: FAILED"; exit 1; }
        log "${command%% *}: $(cat "$work/said")"
    done
done

build_mutant() { shared_library; }
# A mutant is caught by the one program that it names.
catches() { found timeout "$limit" "$work/$(of_mutant "$1" by)-loaded" "$CARGO_TARGET_DIR/debug/libnbbs_c.so"; }
catch_mutants capi-signals capi
