# Sourced by the scripts in verify/checks: where things are, what counts as a finding, and how mutants are tried.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source verify/share.bash
target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/$target ;; esac
export CARGO_TARGET_DIR=$target
# Loom's small stacks have no room to print one.
export RUST_BACKTRACE=0
check=$(basename "$0" .sh)
long=no
[ "${1:-}" != --long ] || long=yes
# Of the suite's tests.
export NBBS_DEPTH=$([ $long = no ] && echo 4 || echo 100)
# How far mutants are optimised. A script sets it to 1 if its mutants are caught in seconds, which is less than it takes
# to optimise them.
mutants_level=2
mutants_caught=0 mutants_tried=0 mutants_listed=0 patients_caught=0 patients_tried=0
said=$target/said-$check
mkdir -p "$target"

log() { echo "$check: $*" >&2; }

# Installs the nightly toolchain with its source.
nightly() { verify/install.sh nightly rust-src >&2 2>&1; }

# of_mutant NAME KEY: prints the words of `KEY: ...` in a mutant's block.
of_mutant() {
    awk -v RS= -v name="$1" '$0 ~ "(^|\n)name: " name "(\n|$)"' "$list" | sed -n "s/^$2: *//p"
}

# What our programs print about memory that is handed out twice, lost, kept from its holder, or wrongly refused. It does
# not match what they print about a panic, a wait, or a search that was not done in time.
harm='handed out (twice|of an arena|, not aligned)|while it was reserved|returned, but|could not be freed|not whole'
harm+='|cannot be had|still held|nobody held it|audit: |answered .*, not |refused order|at every instant|no order explains'
harm+='|overlap in units|Causality violation|: lost$'

# ends STATUS PATTERN COMMAND...: whether a command ends with this status and a line of its output matches, which is
# printed. A time-out, a crash, or a finding of another kind does not count.
ends() {
    local status=0
    "${@:3}" >"$said" 2>&1 || status=$?
    [ $status = "$1" ] && grep -m 1 -E -- "$2" "$said" | cut -c 1-200 >&2 && return
    { tail -n 5 "$said" && echo "status $status"; } >&2
    return 1
}

# Whether a command ends with 3, with which our programs say that they found something.
found() {
    local status=0
    "$@" >&2 || status=$?
    [ $status = 3 ]
}

# finds NAME COMMAND...: the same, and the finding is what the mutant NAME must show: its `shows`, a pattern, or any
# harm.
finds() {
    local shows
    shows=$(of_mutant "$1" shows)
    ends 3 "${shows:-$harm}" "${@:2}"
}

# What is printed if a test fails: at its end, or by a panic on top of its own.
test_fails='^test result: FAILED|^panic in a destructor during cleanup'

# test_builds NAME PACKAGE... and test_notices NAME PACKAGE...: whether the test that has to notice a mutant builds, and
# whether it fails, or prints what the mutant `shows`. The mutant's `by` names the file and, perhaps, the name of the
# test, and begins with `--lib` if the test is the library's own; its `features` are those to test with. A test may take
# this many seconds:
test_seconds=200
test_builds() {
    local arguments
    read -ra arguments <<<"$(test_of "$1")"
    [ "${arguments[0]}" = --lib ] && arguments=(--lib) || arguments=("${arguments[@]:0:2}")
    # shellcheck disable=SC2046
    cargo test --quiet "${@:2}" $(test_features "$1") "${arguments[@]}" --no-run
}
# shellcheck disable=SC2046
test_notices() {
    local shows
    shows=$(of_mutant "$1" shows)
    ends 101 "${shows:-$test_fails}" timeout "$test_seconds" cargo test --quiet "${@:2}" $(test_features "$1") $(test_of "$1")
}
test_of() { of_mutant "$1" by | sed '/^--lib/!s/^/--test /'; }
test_features() { of_mutant "$1" features | sed 's/^/--features /'; }

# Prints how many tests passed, from a report of `cargo test` on standard input.
passed() { { grep -oE '^test result: ok\. [0-9]+ passed' || true; } | awk '{ sum += $4 } END { print sum + 0 }'; }

# try_patients NAME...: runs `harms NAME`, which the script defines, for each patient, or for a share of them.
try_patients() {
    local name
    for name in $(printf '%s\n' "$@" | share); do
        patients_tried=$((patients_tried + 1))
        if harms "$name" >&2; then
            patients_caught=$((patients_caught + 1))
        else
            log "patient $name goes UNNOTICED"
        fi
    done
}

# place_of_mutants LIST: prints where a list's mutants are built. The workspace's builds of other people's crates are
# linked there, so that they are not built again; files that cargo writes in place are copied.
place_of_mutants() {
    local place=$target/mutants/$1 folder how
    for folder in $(cd "$target" && ls -d {debug,{thread,miri}/{,*/}debug}/{deps,build,.fingerprint} 2>/dev/null); do
        [ ! -d "$place/target/$folder" ] || continue
        mkdir -p "$place/target/$folder"
        # Another check may be building: files that come and go meanwhile are built here. Miri's programs are files of
        # arguments, which cargo writes in place, too.
        case $folder in miri/*) how=-a ;; */deps) how=-al ;; *) how=-a ;; esac
        cp $how "$target/$folder/." "$place/target/$folder" 2>/dev/null || true
    done
    echo "$place"
}

# try_mutants LIST...: runs `build_mutant NAME` and `catches NAME`, which the script defines, for each mutant of the
# lists, or of their share, which is drawn as if they were one, in a copy of the workspace. A mutant that does not build
# is not caught. Each list builds in a place of its own: cargo would take the build of one copy for that of another, if
# that is older.
try_mutants() {
    local list entry names all=()
    for list in "$@"; do
        names=$("$root/verify/mutate.sh" "$root/verify/mutants/$list.list") ||
            { log "could not run: $list.list is not in order"; exit 1; }
        mapfile -t -O ${#all[@]} all < <(sed "s/^/$list:/" <<<"$names")
    done
    mutants_listed=$((mutants_listed + ${#all[@]}))
    for entry in $(printf '%s\n' "${all[@]}" | share); do
        # shellcheck disable=SC2086
        try_mutant ${entry//:/ }
    done
    # A run of shares tries few of each list: what it has built is not worth its place on the disk.
    [ "$shares" = 1 ] || rm -rf "${@/#/$target/mutants/}"
}

# try_mutant LIST NAME
try_mutant() {
    local list=$root/verify/mutants/$1.list name=$2 copy start=$SECONDS
    copy=$(place_of_mutants "$1")
    mutants_tried=$((mutants_tried + 1))
    "$root/verify/mutate.sh" "$list" "$name" "$copy"
    in_copy() { (cd "$copy" && export CARGO_TARGET_DIR=$copy/target CARGO_PROFILE_DEV_OPT_LEVEL=$mutants_level && "$@"); }
    if ! in_copy build_mutant "$name" >&2; then
        log "mutant $name does not build"
    elif in_copy catches "$name" >&2; then
        log "mutant $name: caught, $((SECONDS - start)) s"
        mutants_caught=$((mutants_caught + 1))
    else
        log "mutant $name goes UNNOTICED"
    fi
}

# finish COVERED PATIENTS OURS: prints the result line, and fails unless all is well. PATIENTS is caught/tried.
finish() {
    local covered=$1 patients=$2 ours=$3
    [ $mutants_tried = $mutants_listed ] || covered+=" (of $mutants_listed mutants a share)"
    echo "CHECK $check | $covered | patients $patients | mutants $mutants_caught/$mutants_tried | ours: $ours"
    [ "$ours" = clean ] && [ "${patients%/*}" = "${patients#*/}" ] && [ "$mutants_caught" = "$mutants_tried" ]
}
