#!/usr/bin/env bash
# tests.sh: the C suite; then with the library broken on purpose, each time in one place of verify/mutants/capi.list: the
# suite must fail. About a minute.
source "$(dirname "$0")/common.bash"
need g++ g++
need /usr/include/gtest/gtest.h libgtest-dev

suite=$(suite c g++ "$(library)" plain -O1)
"$suite" --gtest_brief=1 >&2

list=verify/mutants/capi.list copy=$target/mutants/capi unnoticed=0
for name in $(verify/mutate.sh "$list"); do
    CRATE=capi verify/mutate.sh "$list" "$name" "$copy"
    broken=$(cd "$copy" && CARGO_TARGET_DIR=$target/mutants/target &&
        cargo rustc --quiet --package nbbs-c --crate-type staticlib && echo "$CARGO_TARGET_DIR/debug/libnbbs_c.a") ||
        { log "mutant $name does not build"; unnoticed=$((unnoticed + 1)); continue; }
    g++ "$work"/c-plain/*.o "$broken" -o "$work/broken" -lgtest -lgtest_main "${system_libraries[@]}"
    if timeout 60 "$work/broken" --gtest_brief=1 >/dev/null 2>&1; then
        log "mutant $name goes UNNOTICED"
        unnoticed=$((unnoticed + 1))
    else
        log "mutant $name: caught"
    fi
done
[ $unnoticed = 0 ]
