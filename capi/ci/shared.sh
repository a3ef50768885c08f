#!/usr/bin/env bash
# shared.sh: Rust and C can use the same segments: each recovers, takes and frees what the other has left. The C example
# runs, and loses nothing. Takes some seconds.
source "$(dirname "$0")/common.bash"
need gcc gcc

library=$(library)
for program in tests/shared/peer examples/c/survivors; do
    gcc -std=c11 -O1 -g -Wall -Wextra -Wpedantic -Werror -Icapi/include "capi/$program.c" "$library" \
        -o "$work/${program##*/}" "${system_libraries[@]}"
done
said=$(NBBS_PEER=$work/peer cargo test --quiet --package nbbs-shared --test peers -- --ignored 2>&1) ||
    { printf '%s\n' "$said" >&2; log "segments of Rust and C differ"; exit 1; }
[ "$(passed <<<"$said")" = 1 ] || { log "nothing was tried"; exit 1; }
"$work/survivors"
