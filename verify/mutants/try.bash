# Shared by the checks: mutants of nbbs, each built in a copy of the workspace. To be sourced.
# Expects `root`, the workspace, and `check`, the check's name.

target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/target ;; esac
export CARGO_TARGET_DIR=$target
log() { echo "$check: $*" >&2; }

# The lines `KEY: ...` of a mutant's block in a list.
of_mutant() {
    awk -v RS= -v name="$2" '$0 ~ "(^|\n)name: " name "(\n|$)"' "$1" | sed -n "s/^$3: *//p"
}

# try_mutants PACKAGE BINARY: builds PACKAGE with each mutant of the check's list and runs BINARY --first, with
# the words of the mutant's `by` if it has any. A mutant is caught if a line says FOUND. Sets `mutants` to
# "caught/tried"; fails if one was not caught.
try_mutants() {
    local package=$1 binary=$2 list=$root/verify/mutants/$check.list
    local copy=$target/mutants/$check tried=0 caught=0 name found
    for name in $("$root/verify/mutate.sh" "$list"); do
        tried=$((tried + 1))
        "$root/verify/mutate.sh" "$list" "$name" "$copy"
        if ! (cd "$copy" && CARGO_TARGET_DIR=$target/mutants/target \
            cargo build --quiet --package "$package" >&2); then
            log "$name does not build"
            continue
        fi
        # shellcheck disable=SC2046
        found=$(timeout 120 "$target/mutants/target/debug/$binary" --first $(of_mutant "$list" "$name" by) \
            2>/dev/null | grep -m 1 'FOUND' | grep -v 'not done in time' || true)
        if [ -n "$found" ]; then
            caught=$((caught + 1))
            log "$name: caught: ${found:0:160}"
        else
            log "$name: NOT caught"
        fi
    done
    mutants=$caught/$tried
    [ "$tried" -gt 0 ] && [ "$caught" = "$tried" ]
}
