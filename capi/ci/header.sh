#!/usr/bin/env bash
# header.sh: nbbs.h and nbbs/nb.h agree with the source, and compile by themselves, without a warning, as any C and C++
# that their users have. Takes some seconds.
source "$(dirname "$0")/common.bash"
need gcc gcc
need g++ g++
need clang clang

# made_of_source HEADER ARGUMENT...
made_of_source() {
    cargo run --quiet --package nbbs-header "${@:2}" | diff "capi/include/$1" - >&2 || {
        echo "$1 differs from the source: cargo run -p nbbs-header ${*:2} >capi/include/$1" >&2
        exit 1
    }
}
made_of_source nbbs.h
made_of_source nbbs/nb.h nb

# Compiles standard input, in the current language and with the current compiler.
compiles() {
    "$compiler" -x "$dialect" -std="$language" -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion \
        -Wshadow -Wundef -Werror \
        -Icapi/include -fsyntax-only -
}
for language in c99 c11 c17 c2x c++17 c++20 c++2b; do
    case $language in c++*) dialect=c++ gnu=g++ ;; *) dialect=c gnu=gcc ;; esac
    for compiler in $gnu clang; do
        echo '#include <nbbs.h>
              static uint64_t metadata[NBBS_METADATA_BYTES(262144) / 8];
              nbbs_code use(nbbs_arena *arena);
              nbbs_code use(nbbs_arena *arena) {
                  return nbbs_attach(arena, metadata, sizeof metadata, 262144, NULL);
              }' | compiles
        # A program that defines names like those of nbbs.h.
        echo '#include <nbbs/nb.h>
              enum { nbbs_max_order = 9, nbbs_alloc = 1 };
              void *use(void);
              void *use(void) { return nb_set_max_order(nbbs_max_order) ? NULL : nb_alloc(nbbs_alloc); }' | compiles
    done
done
