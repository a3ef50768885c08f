#!/usr/bin/env bash
# explore.sh [--long]: runs the allocator's own code on words of a small shape, under every schedule with up to three
# preemptions: a seeded share of thousands of programs in prepared scenes. Checks whether a hundredth of it has the same
# ends without reductions, and which lines of the library a sixth of it reaches. Then each of the mutants must be
# caught. Takes five minutes; `--long` runs a share ten times as large, and NBBS_SHARE a smaller one of another seed.
# Installs llvm-tools, which count the lines.
source "$(dirname "$0")/../check.sh" "$@"

build_mutant() { cargo build --quiet --package verify-explore; }
# shellcheck disable=SC2046
catches() { finds "$1" timeout 300 "$CARGO_TARGET_DIR/debug/verify-explore" --first $(of_mutant "$1" by); }

# lines: prints how many lines of the library are reached. Fails if a line that must be reached is not.
lines() {
    local place=$target/coverage tools lcov=$target/coverage/lines.lcov
    verify/install.sh rustup component add llvm-tools >&2 2>&1 || { log "could not run: no llvm-tools" && return 1; }
    tools=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
    # In many codegen units: in one, the compiler counts forms of functions that are not used at all, such as those
    # without a lane.
    CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_CODEGEN_UNITS=256 CARGO_TARGET_DIR=$place RUSTFLAGS="-C instrument-coverage" \
        cargo build --quiet --package verify-explore &&
        LLVM_PROFILE_FILE=$place/explore.profraw "$place/debug/verify-explore" --seed 2 --thin 6 >&2 &&
        "$tools/llvm-profdata" merge "$place/explore.profraw" -o "$place/explore.profdata" &&
        "$tools/llvm-cov" export --format=lcov --instr-profile="$place/explore.profdata" "$place/debug/verify-explore" >"$lcov" &&
        python3 verify/explore/reached.py "$lcov" verify/explore/unreached.list
}

cargo build --quiet --package verify-explore
ours=clean
results=$("$target/debug/verify-explore" "$@" --seed $((turn + 1)) --thin "$shares" | tee -a /dev/stderr) || ours=FOUND
# compared: prints how many programs have the same ends without reductions. Fails if one has not.
compared() {
    "$target/debug/verify-explore" --compare --thin 100 | tee -a /dev/stderr |
        grep -o '[1-9][0-9]* compared)$' | tail -n 1 | tr -d ')'
}
# What shows that the explorer itself does its work; one of the two if a share is tried.
covered=$(tail -n 1 <<<"$results")
for view in $(printf '%s\n' compared lines | share); do
    shown=$($view | tee -a /dev/stderr) || ours=FOUND
    covered+=", $(tail -n 1 <<<"$shown")"
done
try_mutants explore
finish "$covered" 0/0 "$ours"
