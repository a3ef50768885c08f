#!/usr/bin/env bash
# instrumented.sh: builds the library for ThreadSanitizer as README.md says, and installs it, static and shared, with
# gcc and clang. Programs that use it have no data race. A program that frees what another thread holds has one, and so
# has one that writes to what it has given back to a heap. With the usual library ThreadSanitizer reports a race that
# does not exist. Takes seconds, and three minutes the first time, for the standard library.
source "$(dirname "$0")/common.bash"
need cmake cmake
need pkg-config pkg-config
need g++ g++
need clang++ clang
need "$(clang++ -print-resource-dir)/lib/linux/libclang_rt.tsan-$(uname -m).a" libclang-rt-dev
need_nightly

prefix=$(installed_by_cmake "" -DNBBS_THREAD_SANITIZER=ON)

# compile COMPILER SOURCE LIBRARY: compiles a program and prints its path.
compile() {
    # shellcheck disable=SC2086
    $1 -O1 -g -fsanitize=thread "$2" -I"$prefix/include" "$3" "-Wl,-rpath,$prefix/lib" "${system_libraries[@]}" \
        -o "$work/program" && echo "$work/program"
}
# clean COMMAND...: whether a command succeeds, which it does not if there is a report.
clean() { [ "$(status_of "$@")" = 0 ] || { cat "$work/said" >&2; log "$*: FAILED"; return 1; }; }
# races COMMAND...
races() { fails "$@" >&2 && grep -q 'ThreadSanitizer: data race' "$work/said"; }

for library in "$prefix/lib/libnbbs.a" "$prefix/lib/libnbbs.so"; do
    for compiler in gcc clang; do
        for wrong in handover:free heap:write; do
            program=$(compile $compiler "capi/tests/race/${wrong%:*}.c" "$library")
            clean "$program"
            races "$program" wrong || { log "${library##*/}, $compiler: a wrong ${wrong#*:} goes UNNOTICED"; exit 1; }
        done
    done
    for compiler in g++ clang++; do
        clean "$(compile "$compiler -std=c++17" capi/examples/cpp/sessions.cpp "$library")"
    done
done
races "$(compile clang capi/tests/race/handover.c "$(library)")" ||
    { log "without instrumentation nothing is reported: README.md says otherwise"; exit 1; }
log "a wrong free, a wrong write to a heap: caught; no false race"
