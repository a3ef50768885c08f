#!/usr/bin/env bash
# conan.sh: Conan makes the package from this tree, static and shared, without any server, and the recipe's test program
# builds with it and runs. Takes a minute; installs Conan into the target directory.
source "$(dirname "$0")/common.bash"
need git git
need cmake cmake
need gcc gcc
need python3 python3

tools=$target/tools/conan
[ -x "$tools/bin/conan" ] || {
    need /usr/share/doc/python3-venv python3-venv
    log "installing conan"
    { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet 'conan>=2.4,<3'; } >&2 ||
        { rm -rf "$tools"; log "could not run: conan cannot be installed from PyPI"; exit 1; }
}
as_packagers_do
export CONAN_HOME=$work/home
conan() { "$tools/bin/conan" "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; return 1; }; }

conan profile detect
# The test program is built here, not in its source folder.
conf=(--conf "tools.cmake.cmake_layout:test_folder=$work/test" --conf tools.cmake.cmaketoolchain:user_presets=)
for shared in False True; do
    [ $shared = True ] && expected=libnbbs.so || expected=libnbbs.a
    conan create capi/packaging/conan --no-remote --options "nbbs/*:shared=$shared" "${conf[@]}"
    grep -q '^nbbs [0-9]' "$work/log" || { log "shared=$shared: the test program has not run"; exit 1; }
    packaged=$(sed -n 's/.*Package folder //p' "$work/log" | tail -n 1)/lib
    [ "$(find "$packaged" \( -name '*.a' -o -name '*.so' \) -printf '%f')" = "$expected" ] ||
        { log "shared=$shared: not $expected but $(ls "$packaged")"; exit 1; }
done
