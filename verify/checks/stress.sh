#!/usr/bin/env bash
# stress.sh [--long]: 2 to 16 threads with random delays between atomic steps; then on the processor's own words
# under ThreadSanitizer and AddressSanitizer. Four minutes; `--long` half an hour.
#
# The sanitizers need the nightly toolchain, and ThreadSanitizer its rust-src component: the script adds the
# component, and fails where it cannot. With NO_SANITIZERS=1 it says that it left them out, and goes on.
# STRESS_SECONDS: how long each of the three runs takes, otherwise 22 or 600.
source "$(dirname "$0")/../check.sh" "$@"

host=$(rustc -vV | sed -n 's/^host: //p')
seconds=${STRESS_SECONDS:-$([ $long = no ] && echo 22 || echo 600)}

# sanitized KIND: builds `stress` in the current directory under a sanitizer, in $CARGO_TARGET_DIR/KIND.
sanitized() {
    local build_std=()
    [ "$1" = address ] || build_std=(-Zbuild-std)
    CARGO_TARGET_DIR=$CARGO_TARGET_DIR/$1 RUSTFLAGS="-Zsanitizer=$1" \
        cargo +nightly build --quiet "${build_std[@]}" --target "$host" --package hardware --bin stress
}

# under KIND SYSTEM SECONDS: runs it; 0 if nothing was found.
under() {
    TSAN_OPTIONS="halt_on_error=1 exitcode=3" ASAN_OPTIONS="exitcode=3:detect_leaks=0" \
        timeout $(($3 * 3 + 60)) "$CARGO_TARGET_DIR/$1/$host/debug/stress" "$2" "$3" --plain
}

build_mutant() {
    case $1 in
    race-*) sanitized thread ;;
    *) cargo build --quiet --package hardware --bin stress ;;
    esac
}
catches() {
    case $1 in
    race-*) found under thread nbbs 20 ;;
    *) found timeout 90 "$CARGO_TARGET_DIR/debug/stress" nbbs 40 ;;
    esac
}

cargo build --quiet --package hardware --bin stress
stress=$target/debug/stress
ours=clean
covered=$("$stress" nbbs "$seconds") || ours=FOUND

caught=0 tried=0
must_find() {
    tried=$((tried + 1))
    if found "$@"; then caught=$((caught + 1)); else log "UNNOTICED: $*"; fi
}
for patient in nb1 nb4 arena-untagged; do
    must_find timeout 280 "$stress" $patient 240
done
for sound in sl1 sl4 arena-tagged arena-sl; do
    "$stress" $sound 3 >&2 || { log "$sound is sound, but something was found"; ours=FOUND; }
done

if [ "${NO_SANITIZERS:-0}" = 1 ]; then
    covered="$covered; sanitizers LEFT OUT"
else
    nightly &&
        sanitized thread && sanitized address || { log "no sanitizers: install nightly with rust-src"; exit 1; }
    for kind in thread address; do
        under $kind nbbs "$seconds" >&2 || { log "found under the $kind sanitizer"; ours=FOUND; }
    done
    # An overlap is a race on the memory, too.
    must_find under thread arena-untagged 20
    covered="$covered; thread and address sanitizer $seconds s each"
    try_mutants tsan
fi
try_mutants stress
finish "$covered" "$caught/$tried" "$ours"
