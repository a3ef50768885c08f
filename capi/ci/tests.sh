#!/usr/bin/env bash
# tests.sh: runs the C suite; then again with the library broken on purpose, each time in one place of
# verify/mutants/capi.list: the suite must fail. Takes about a minute.
source "$(dirname "$0")/common.bash"
need g++ g++
need /usr/include/gtest/gtest.h libgtest-dev

passes "the C suite" "$(suite c g++ "$(library)" plain -O0)"

build_mutant() {
    local broken
    broken=$(library) && g++ "$work"/c-plain/*.o "$broken" -o "$work/broken" -lgtest -lgtest_main "${system_libraries[@]}"
}
catches() { fails "$work/broken" --gtest_brief=1; }
mutants_level=1
catch_mutants capi
