#!/usr/bin/env bash
# signals.sh: threads, and the signal handlers that interrupt them, call the library: linked statically, as a shared
# library, and loaded by dlopen. The first call of some threads is made by a handler that has interrupted malloc. Then
# runs again with the library broken on purpose, each time in one place of verify/mutants/capi-signals.list. Takes about
# a minute.
source "$(dirname "$0")/common.bash"
need gcc gcc

# shared_library: builds the shared library with debug assertions and prints its path.
shared_library() {
    cargo rustc --quiet --package nbbs-c --features shared --crate-type cdylib && echo "$CARGO_TARGET_DIR/debug/libnbbs_c.so"
}

# program NAME KIND FLAG...: compiles a program of capi/tests/signals and prints its path.
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
mutants_level=1
# The one program that a mutant names must catch it.
catches() { found timeout "$limit" "$work/$(of_mutant "$1" by)-loaded" "$CARGO_TARGET_DIR/debug/libnbbs_c.so"; }
catch_mutants capi-signals
