#!/usr/bin/env bash
# hardened.sh: heaps of libraries that CMake builds with NBBS_HEAP_CHECKS: a suite for poison, quarantine and shuffle,
# which must fail with a library built without them; and a read after a free, which AddressSanitizer and Valgrind must
# report with asan and valgrind, and must not without such a read. Takes two minutes.
source "$(dirname "$0")/common.bash"
need cmake cmake
need g++ g++
need /usr/include/gtest/gtest.h libgtest-dev
need valgrind valgrind
ls /usr/lib/llvm-*/lib/libclang.so >/dev/null 2>&1 || need /usr/lib/llvm libclang-dev

# checking CHECKS: builds the static library with these checks, and prints its path.
checking() {
    local out=$work/${1//;/-}
    { cmake -S capi -B "$out" -Wno-dev "-DNBBS_HEAP_CHECKS=$1" && cmake --build "$out" --target nbbs_build_static; } \
        >"$out.log" 2>&1 || { cat "$out.log" >&2; return 1; }
    echo "$out/static/release/libnbbs_c.a"
}

hardened=$(checking "poison;quarantine;shuffle")
passes "heaps with poison, quarantine and shuffle" "$(suite hardened g++ "$hardened" checked -O1)"
poisoned=$(suite hardened g++ "$(checking poison)" poisoned -O1)
[ "$(status_of "$poisoned" --gtest_filter=-*HandsOut*)" = 0 ] || { cat "$work/said" >&2; log "heaps with poison: FAILED"; exit 1; }
plain=$(suite hardened g++ "$(library)" plain -O1)
for name in FindsWritesAfterAFree RefusesASecondFreeAtOnce HandsOutWhatWasFreedLaterAndInNoOrder; do
    fails "$plain" --gtest_brief=1 "--gtest_filter=*.$name" >&2 || { log "$name passes without the checks"; exit 1; }
done

# reports NAME WORDS COMMAND...: whether the command is silent without a read after a free, and with one says the words.
reports() {
    local name=$1 words=$2 bytes
    shift 2
    [ "$(status_of "$@")" = 0 ] || { cat "$work/said" >&2; log "$name: reports what is not there"; return 1; }
    for bytes in 100 100000; do
        fails "$@" $bytes >&2 && grep -q "$words" "$work/said" ||
            { cat "$work/said" >&2; log "$name: a read of $bytes bytes after their free goes UNNOTICED"; return 1; }
    done
    log "$name: a read after a free is reported"
}
program() { gcc -std=c11 -g -O1 "${@:3}" -Icapi/include capi/tests/hardened/after_free.c "$1" -o "$2" "${system_libraries[@]}"; }

program "$(checking asan)" "$work/asan-program" -fsanitize=address
reports AddressSanitizer use-after-poison "$work/asan-program"
program "$(checking valgrind)" "$work/valgrind-program"
reports Valgrind 'inside a block of size .* free' valgrind --quiet --error-exitcode=9 "$work/valgrind-program"
