#!/usr/bin/env bash
# stress.sh [--long]: runs 2 to 16 threads with random delays between atomic steps; then on the processor's own words
# under ThreadSanitizer. Takes three minutes; `--long` takes twenty.
#
# ThreadSanitizer needs the nightly toolchain and its rust-src component: the script installs them, and fails if it
# cannot. With NO_SANITIZERS=1 it says that it leaves this out, and goes on. STRESS_SECONDS sets how long each of the
# two runs takes, otherwise 22 or 600, and 10 if a share is tried.
source "$(dirname "$0")/../check.sh" "$@"

host=$(rustc -vV | sed -n 's/^host: //p')
seconds=${STRESS_SECONDS:-$([ $long = no ] && fewer 22 10 || echo 600)}

# Builds `stress` in the current directory under ThreadSanitizer.
sanitized() {
    CARGO_TARGET_DIR=$CARGO_TARGET_DIR/thread RUSTFLAGS="-Zsanitizer=thread" \
        cargo +nightly build --quiet -Zbuild-std --target "$host" --package hardware --bin stress
}

# under_sanitizer SYSTEM SECONDS: runs it. Its status is 0 if nothing was found.
under_sanitizer() {
    TSAN_OPTIONS="halt_on_error=1 exitcode=3" \
        timeout $(($2 * 3 + 60)) "$CARGO_TARGET_DIR/thread/$host/debug/stress" "$1" "$2" --plain
}
race='WARNING: ThreadSanitizer: data race'

build_mutant() {
    case $1 in
    race-*) sanitized ;;
    *) cargo build --quiet --package hardware --bin stress ;;
    esac
}
catches() {
    case $1 in
    race-*) ends 3 "$race" under_sanitizer nbbs 20 ;;
    *) finds "$1" timeout 180 "$CARGO_TARGET_DIR/debug/stress" nbbs 120 ;;
    esac
}
harms() { found timeout 150 "$stress" "$1" 120; }

cargo build --quiet --package hardware --bin stress
stress=$target/debug/stress
ours=clean covered='' lists=()

# It takes minutes to find the overlaps of nb1 and nb4 here; the checks that choose their schedules find them in
# seconds.
try_patients freelist-untagged
for sound in $(printf '%s\n' sl1 sl4 freelist-tagged freelist-sl | share); do
    "$stress" $sound 3 >&2 || { log "$sound is sound, but something was found"; ours=FOUND; }
done

with_delays() {
    covered+=$("$stress" nbbs "$seconds") || ours=FOUND
    lists+=(stress)
}
with_sanitizer() {
    if [ "${NO_SANITIZERS:-0}" = 1 ]; then
        covered+="; ThreadSanitizer LEFT OUT"
        return
    fi
    nightly && sanitized || { log "no ThreadSanitizer: install nightly with rust-src"; exit 1; }
    under_sanitizer nbbs "$seconds" >&2 || { log "found under ThreadSanitizer"; ours=FOUND; }
    # This is not a patient: the owner map, which is quicker, keeps its overlaps from becoming races.
    covered+="; ThreadSanitizer $seconds s"
    lists+=(tsan)
}
# Of the two, too, a share.
for run in $(printf '%s\n' delays sanitizer | share); do "with_$run"; done
[ ${#lists[@]} = 0 ] || try_mutants "${lists[@]}"
finish "${covered#; }" "$patients_caught/$patients_tried" "$ours"
