#!/usr/bin/env bash
# sanitizers.sh: the C and C++ suites under AddressSanitizer with UndefinedBehaviorSanitizer, and under ThreadSanitizer. Library
# and suites are instrumented both: the suites' threads write to the memory that they hold without any synchronisation,
# and a data race there is a fault of the allocator. Two minutes the first time, for the standard library.
source "$(dirname "$0")/common.bash"
need clang++ clang
need "$(clang++ -print-resource-dir)/lib/linux/libclang_rt.tsan-$(uname -m).a" libclang-rt-dev
need /usr/include/gtest/gtest.h libgtest-dev
need_nightly

# instrumented KIND: builds the library under a sanitizer whose runtime clang brings.
instrumented() {
    local build_std=()
    [ "$1" = address ] || build_std=(-Zbuild-std)
    CARGO_TARGET_DIR=$target/$1 RUSTFLAGS="-Zsanitizer=$1 -Zexternal-clangrt" cargo +nightly rustc --quiet \
        "${build_std[@]}" --target "$host" --package nbbs-c --crate-type staticlib >&2
    echo "$target/$1/$host/debug/libnbbs_c.a"
}

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
address=$(instrumented address)
thread=$(instrumented thread)
# Debian's clang is older than nightly's LLVM: its runtime has these three by their plain names only.
plain_names=-Wl,--defsym=__tsan_memcpy=memcpy,--defsym=__tsan_memmove=memmove,--defsym=__tsan_memset=memset
# run LANGUAGE STANDARD STANDARD: the suite of one language, under each sanitizer as another C++.
run() {
    local suite
    suite=$(suite "$1" clang++ "$address" address "-std=$2" -O1 -fsanitize=address,undefined -fno-sanitize-recover=all)
    "$suite" --gtest_brief=1 >&2
    suite=$(suite "$1" clang++ "$thread" thread "-std=$3" -O1 -fsanitize=thread -Wno-unused-command-line-argument \
        "$plain_names")
    "$suite" --gtest_brief=1 >&2
}
run c c++17 c++17
run cpp c++20 c++2b
