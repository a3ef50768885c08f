#!/usr/bin/env bash
# header.sh: nbbs.h is what the source says, and compiles by itself, without a warning, as any C and C++ that its users
# have. Some seconds.
source "$(dirname "$0")/common.bash"
need gcc gcc
need g++ g++
need clang clang

cargo run --quiet --package nbbs-header | diff capi/include/nbbs.h - >&2 || {
    echo "nbbs.h differs from the source: cargo run -p nbbs-header >capi/include/nbbs.h" >&2
    exit 1
}
for language in c99 c11 c17 c++17 c++20; do
    case $language in c++*) dialect=c++ gnu=g++ ;; *) dialect=c gnu=gcc ;; esac
    for compiler in $gnu clang; do
        echo '#include <nbbs.h>
              static uint64_t metadata[NBBS_METADATA_BYTES(262144) / 8];
              nbbs_code use(nbbs_arena *arena);
              nbbs_code use(nbbs_arena *arena) {
                  return nbbs_attach(arena, metadata, sizeof metadata, 262144, NULL);
              }' |
            "$compiler" -x "$dialect" -std="$language" -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror \
                -Icapi/include -fsyntax-only -
    done
done
