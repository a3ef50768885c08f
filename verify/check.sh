# To be sourced by the scripts in verify/checks: where things are, and mutants in turn.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/$target ;; esac
export CARGO_TARGET_DIR=$target
check=$(basename "$0" .sh)
long=no
[ "${1:-}" != --long ] || long=yes
mutants_caught=0 mutants_tried=0

log() { echo "$check: $*" >&2; }

# Sees to the nightly toolchain with its source.
nightly() {
    rustc +nightly --version >/dev/null 2>&1 ||
        rustup toolchain install nightly --profile minimal >&2 2>&1 || return 1
    rustup component add rust-src --toolchain nightly >&2 2>&1
}

# Runs a command on one core, where threads that take turns wake each other in half the time.
on_one_core() {
    local core
    core=$(taskset -cp $$ 2>/dev/null | sed 's/.*: *//; s/[-,].*//') || true
    if [ -n "$core" ]; then taskset -c "$core" "$@"; else "$@"; fi
}

# Whether a command ends with 3, by which our programs say that they found something.
found() {
    local status=0
    "$@" >&2 || status=$?
    [ $status = 3 ]
}

# The words of `KEY: ...` in a mutant's block: of_mutant NAME KEY.
of_mutant() {
    awk -v RS= -v name="$1" '$0 ~ "(^|\n)name: " name "(\n|$)"' "$list" | sed -n "s/^$2: *//p"
}

# Runs a checker until it prints its first finding: of_mutant's `by`, or all that it checks. A race that takes
# too long is no finding.
finds() {
    local finding
    # shellcheck disable=SC2046
    finding=$(timeout 120 "$CARGO_TARGET_DIR/debug/$2" --first $(of_mutant "$1" by) 2>/dev/null |
        grep -m 1 FOUND | grep -v 'not done in time' || true)
    echo "${finding:0:160}"
    [ -n "$finding" ]
}

# For each mutant of a list: `build_mutant NAME` and `catches NAME`, which the script defines, in a copy of the
# workspace. A mutant that does not build is not caught. Each list builds in a place of its own: cargo takes what one
# copy built for what another would, if that is older. try_mutants LIST [CRATE]
try_mutants() {
    local list=$root/verify/mutants/$1.list name copy=$target/mutants/$1
    for name in $("$root/verify/mutate.sh" "$list"); do
        mutants_tried=$((mutants_tried + 1))
        CRATE=${2:-nbbs} "$root/verify/mutate.sh" "$list" "$name" "$copy"
        if ! (cd "$copy" && CARGO_TARGET_DIR=$copy/target && build_mutant "$name") >&2; then
            log "mutant $name does not build"
        elif (cd "$copy" && CARGO_TARGET_DIR=$copy/target && catches "$name") >&2; then
            log "mutant $name: caught"
            mutants_caught=$((mutants_caught + 1))
        else
            log "mutant $name goes UNNOTICED"
        fi
    done
}

# finish COVERED PATIENTS OURS: prints the line, and fails unless all is well. PATIENTS is caught/tried.
finish() {
    local covered=$1 patients=$2 ours=$3
    echo "CHECK $check | $covered | patients $patients | mutants $mutants_caught/$mutants_tried | ours: $ours"
    [ "$ours" = clean ] && [ "${patients%/*}" = "${patients#*/}" ] && [ "$mutants_caught" = "$mutants_tried" ]
}
