#!/usr/bin/env bash
# arena.sh [--long]: the typed arena under the oracle, loom, shuttle, every schedule of small races, a death at
# every step, and its corpus. Under three minutes; `--long` runs 100 times as many random schedules, and Miri.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/target ;; esac
export CARGO_TARGET_DIR=$target
log() { echo "arena: $*" >&2; }
long=no
[ "${1:-}" != --long ] || long=yes

ours=clean patients=0
[ $long = no ] || export NBBS_ITERATIONS=200000
report=$(cargo test --quiet --package nbbs-arena --features nbbs --tests -- --nocapture 2>&1) || ours=FOUND
printf '%s\n' "$report" >&2
schedules=$(sed -n 's/.*nothing under any of \([0-9]*\) schedules.*/\1/p' <<<"$report" | awk "{ sum += \$1 } END { print sum }")
# Two patients, the untagged list under the explorer and under stress: tests that expect the failure.
[ $ours = FOUND ] || patients=2
if [ $long = yes ]; then
    MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --package nbbs-arena --test objects \
        --test properties >&2 || ours=FOUND
fi

of_mutant() { perl -00 -ne 'print "$1\n" if /^name: *\Q'"$1"'\E$/m and /^'"$2"': *(.*)$/m' "$list"; }

# Makes DIR a workspace whose arena has the mutant NAME; the other members are links.
mutate() {
    local name=$1 dir=$2 file entry
    rm -rf "$dir/arena" && mkdir -p "$dir"
    cp Cargo.toml Cargo.lock "$dir/"
    for entry in "$root"/*; do
        case ${entry##*/} in
        arena | target | Cargo.*) ;;
        *) ln -sfn "$entry" "$dir/${entry##*/}" ;;
        esac
    done
    cp -R "$root/arena" "$dir/arena"
    file=$dir/arena/src/$(of_mutant "$name" file)
    FIND=$(of_mutant "$name" find) REPLACE=$(of_mutant "$name" replace) perl -0777 -i -pe '
        my $times = s/\Q$ENV{FIND}\E/$ENV{REPLACE}/g;
        die "found $times times: $ENV{FIND}\n" unless $times == 1;
    ' "$file"
}

list=$root/verify/mutants/arena.list copy=$target/mutants/arena
tried=0 caught=0
for name in $(sed -n 's/^name: *//p' "$list"); do
    tried=$((tried + 1))
    mutate "$name" "$copy" || continue
    build=(cargo test --quiet --package nbbs-arena --features nbbs --test "$(of_mutant "$name" by)")
    if ! (cd "$copy" && CARGO_TARGET_DIR=$target/mutants/target "${build[@]}" --no-run) >&2; then
        log "mutant $name does not build"
    elif (cd "$copy" && CARGO_TARGET_DIR=$target/mutants/target timeout 60 "${build[@]}") >/dev/null 2>&1; then
        log "mutant $name goes UNNOTICED"
    else
        log "mutant $name: caught"
        caught=$((caught + 1))
    fi
done

echo "CHECK arena | ${schedules:-0} schedules in full, ${NBBS_ITERATIONS:-2000} x 2 at random, loom | patients $patients/2 | mutants $caught/$tried | ours: $ours"
[ $ours = clean ] && [ $patients = 2 ] && [ $caught = $tried ]
