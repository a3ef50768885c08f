#!/usr/bin/env bash
# draw.sh CRATE N [SEED]: makes each of the errors that verify/draw.py draws in nbbs, pool, heap, shared or capi, in a
# copy of the workspace: checks whether it builds, and finds the first test of the quick suite that fails with it. Prints
# a line for each: caught, UNNOTICED, late (not done in five minutes), or no build. The quick suite is the part of
# `cargo test` of the crate that takes seconds, and for `capi` the C suite; errors that pass it are left to the rest of
# `cargo test`, and to the checks. Builds in target/mutants/drawn-CRATE, and takes a minute or two for each error.
# NAMES="draw-7-1 draw-7-9" runs only these.
source "$(dirname "$0")/../capi/ci/common.bash"
crate=$1 list=$target/drawn-$1.list said=$target/said-draw-$1
verify/draw.py "$@" >"$list"

# tests NAME...: prints the options that name these tests.
tests() { printf '%s' "$(printf -- '--test %s ' "$@" | sed 's/--test --/--/')"; }
case $crate in
nbbs)
    package=(--package nbbs)
    stages=("$(tests --lib properties refusals reserved owned batches corrupted cost zone_answers heals lanes)"
        "$(tests zones runs exhaustive settling preemptions huge attach wraps double_frees cuts)" "--doc")
    ;;
pool)
    package=(--package nbbs-pool)
    stages=("$(tests --lib objects properties sources growth)" "$(tests stalls deaths threads schedules)" "--doc")
    ;;
heap)
    package=(--package nbbs-heap)
    stages=("$(tests --lib ends front full placed ram refusals regions reuse small walk zeroed) -- --skip races::"
        "$(tests --lib layouts stress)" "--doc")
    ;;
shared)
    package=(--package nbbs-shared)
    stages=("$(tests fork heap memory segment)" "$(tests --lib steps processes)" "--doc")
    ;;
capi)
    package=(--package nbbs-c)
    stages=("--tests" C)
    suite c g++ "$(library)" plain -O1 >/dev/null
    ;;
*)
    log "$crate is none of nbbs, pool, heap, shared, capi"
    exit 2
    ;;
esac
# stage OPTION...: 0 if all pass.
stage() { timeout 300 nice cargo test --quiet "${package[@]}" "$@" >"$said" 2>&1; }
c_suite() {
    local broken
    broken=$(library) && g++ "$work"/c-plain/*.o "$broken" -o "$work/drawn" -lgtest -lgtest_main "${system_libraries[@]}" &&
        timeout 300 "$work/drawn" --gtest_brief=1 >"$said" 2>&1
}
# Prints what failed first.
first() { grep -m 1 -oE "^(    [a-z_:]+|\[  FAILED  \] [^ ]+|.*(SIGSEGV|SIGABRT).*|.*[Aa]ssert.*|.*panicked at.*)$" "$said" | cut -c 1-120; }
try() {
    local name=$1 options status
    cargo build --quiet "${package[@]}" --lib 2>/dev/null || { echo "no build"; return; }
    for options in "${stages[@]}"; do
        status=0
        # shellcheck disable=SC2086
        if [ "$options" = C ]; then c_suite || status=$?; else stage $options || status=$?; fi
        case $status in 0) ;; 124) echo "late: $options"; return ;; *) echo "caught: $(first)"; return ;; esac
    done
    echo "UNNOTICED"
}

copy=$(place_of_mutants "drawn-$crate")
names=${NAMES:-$(verify/mutate.sh "$list")} || exit
for name in $names; do
    start=$SECONDS
    verify/mutate.sh "$list" "$name" "$copy"
    echo "$name: $(cd "$copy" && CARGO_TARGET_DIR=$copy/target && try "$name"), $((SECONDS - start)) s"
done
