#!/usr/bin/env bash
# freestanding.sh: the library for kernels links with nothing else, needs no thread-locals and no unwinding, and works
# in a static program that has no C library. Prints what the basic calls take. Takes half a minute.
source "$(dirname "$0")/common.bash"
need gcc gcc
need ld binutils

bare=x86_64-unknown-none
rustup target list --installed | grep -qx $bare || verify/install.sh rustup target add $bare >&2 ||
    { log "could not run: the Rust target $bare cannot be installed"; exit 1; }
cargo rustc --quiet --package nbbs-c --profile freestanding --no-default-features --features freestanding \
    --target $bare --crate-type staticlib
library=$target/$bare/freestanding/libnbbs_c.a

flags=(-std=c11 -O2 -ffreestanding -fno-stack-protector -fno-pie -Wall -Wextra -Wpedantic -Werror -Icapi/include)
for program in basic all; do
    for source in start $program; do
        gcc "${flags[@]}" -c "capi/tests/freestanding/$source.c" -o "$work/$source.o"
    done
    ld -static -nostdlib --gc-sections --fatal-warnings -o "$work/$program" "$work/start.o" "$work/$program.o" "$library"
    [ -z "$(nm --undefined-only "$work/$program")" ] || { log "$program: undefined symbols"; exit 1; }
    ! readelf --segments --wide "$work/$program" | grep -E 'TLS|GNU_EH_FRAME|INTERP' ||
        { log "$program: thread-locals, unwinding or a loader"; exit 1; }
    "$work/$program" || { log "$program: step $? failed"; exit 1; }
done
! nm "$work/basic" | grep -E 'core3fmt|unwind' || { log "basic: text or unwinding is linked in"; exit 1; }
# capi/README.md says 74 KiB. The compiler takes up to two more or fewer even when only a comment changes: it decides
# anew what it copies.
most=$((78 * 1024)) bytes=$(size "$work/basic" | awk 'NR == 2 { print $1 }')
echo "freestanding: attach, alloc and free take $(((bytes + 1023) / 1024)) KiB of code and constants"
[ "$bytes" -le $most ] || { log "basic: more than $most bytes of code and constants"; exit 1; }
