#!/usr/bin/env bash
# sanitizers.sh: runs the C and C++ suites under AddressSanitizer with UndefinedBehaviorSanitizer, and under
# ThreadSanitizer. Both library and suites are instrumented: the suites' threads write to the memory that they hold
# without any synchronisation, and a data race there is a fault of the allocator. Then two such faults on purpose must
# be reported: a wrong free, and verify/mutants/tsan.list. Takes two minutes, and one more the first time, for the
# standard library. If a share of the suites is tried, so is only what belongs to its sanitizer.
source "$(dirname "$0")/common.bash"
need clang++ clang
need "$(clang++ -print-resource-dir)/lib/linux/libclang_rt.tsan-$(uname -m).a" libclang-rt-dev
need /usr/include/gtest/gtest.h libgtest-dev
need_nightly

# instrumented KIND OPTION...: builds the library under a sanitizer whose runtime clang brings.
instrumented() {
    local build_std=()
    [ "$1" = address ] || build_std=(-Zbuild-std)
    CARGO_TARGET_DIR=$target/$1 RUSTFLAGS="-Zsanitizer=$1 -Zexternal-clangrt" cargo +nightly rustc --quiet \
        "${build_std[@]}" --target "$host" --package nbbs-c --features shared --crate-type staticlib "${@:2}" >&2 &&
        echo "$target/$1/$host/debug/libnbbs_c.a"
}

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
# Each suite under each sanitizer, as different C++; not optimised, as that takes most of the time, and leaves less to
# look at.
printf '%s\n' "address c c++17" "address cpp c++20" "thread c c++17" "thread cpp c++2b" | share >"$work/suites"
# suites SANITIZER LIBRARY FLAG...: runs those of the share.
suites() {
    local under language standard
    while read -r under language standard; do
        passes "the suite of $language, $under, $standard" \
            "$(suite "$language" clang++ "$2" "$1" "-std=$standard" -g1 -O0 "${@:3}" </dev/null)"
    done < <(grep "^$1 " "$work/suites")
}

if grep -q ^address "$work/suites"; then
    address=$(instrumented address)
    suites address "$address" -fsanitize=address,undefined -fno-sanitize-recover=all
fi
grep -q ^thread "$work/suites" || exit 0

thread=$(instrumented thread)
# Debian's clang is older than nightly's LLVM: its runtime only has these three under their plain names.
system_libraries+=(-Wl,--defsym=__tsan_memcpy=memcpy,--defsym=__tsan_memmove=memmove,--defsym=__tsan_memset=memset)
# A mutant of the allocator needs the suite of C.
grep -qx "thread c c++17" "$work/suites" || echo "thread c c++17" >>"$work/suites"
suites thread "$thread" -fsanitize=thread

# races COMMAND...: whether ThreadSanitizer reports a data race.
races() {
    fails "$@" || return
    grep -q 'ThreadSanitizer: data race' "$work/said" || { tail -n 20 "$work/said"; return 1; }
}

clang -std=c11 -O1 -g -Wall -Wextra -Wpedantic -Werror -fsanitize=thread -Icapi/include capi/tests/race/handover.c \
    "$thread" -o "$work/handover" "${system_libraries[@]}"
[ "$(status_of "$work/handover")" = 0 ] || { cat "$work/said" >&2; log "memory handed over by the arena: FAILED"; exit 1; }
races "$work/handover" wrong >&2 || { log "a wrong free goes UNNOTICED by ThreadSanitizer"; exit 1; }
log "a wrong free: caught by ThreadSanitizer"

# It is built where the library itself was, so that std is not built again. Cargo distinguishes the two only by another
# profile.
build_mutant() {
    local broken
    broken=$(instrumented thread --config profile.dev.package.nbbs.debug=1) &&
        clang++ -fsanitize=thread "$work"/c-thread/*.o "$broken" -o "$work/broken" \
            -lgtest -lgtest_main "${system_libraries[@]}"
}
catches() { races "$work/broken" --gtest_brief=1; }
catch_mutants tsan
