#!/usr/bin/env bash
# lemmas.sh [--long]: a solver proves the arithmetic on codes, compiled from the library's own files, for every word,
# against what verify/lemmas states slot by slot. Takes about 5 minutes of one core; a share proves some lemmas;
# `--long` proves the release build, too. Installs the solver from PyPI, into the target folder, and the standard
# library for WebAssembly.
source "$(dirname "$0")/../check.sh" "$@"

lemmas=$root/verify/lemmas
python=$target/lemmas/venv/bin/python
wasm=wasm32-unknown-unknown

install_solver() {
    [ -x "$python" ] || python3 -m venv "$target/lemmas/venv" ||
        { log "could not run: no python3 with venv (python3-venv on Debian)" && return 1; }
    "$python" -m pip install --quiet --disable-pip-version-check --requirement "$lemmas/requirements.txt" ||
        { log "could not run: pip cannot install the solver" && return 1; }
}

compile() { cargo build --quiet --package verify-lemmas --target $wasm "$@"; }
# prove SECONDS PROFILE ARGUMENT...: proves the compiled code.
prove() { timeout "$1" "$python" -B "$lemmas/prove.py" "$CARGO_TARGET_DIR/$wasm/$2/verify_lemmas.wasm" "${@:3}"; }

build_mutant() { compile; }
# shellcheck disable=SC2046
catches() { found prove 300 debug $(of_mutant "$1" by); }

install_solver >&2
verify/install.sh rustup target add $wasm >&2 2>&1 || rustc --print target-libdir --target $wasm >/dev/null
compile && cargo build --quiet --package verify-lemmas

ours=clean
# Given all lemmas, `prove` checks that every function has one.
lemmas_of_share=()
[ "$shares" = 1 ] || mapfile -t lemmas_of_share < <(prove 60 debug --names | share)
report=$(prove 3600 debug --host "$target/debug/libverify_lemmas.so" "${lemmas_of_share[@]}" | tee -a /dev/stderr) || ours=FOUND
if [ $long = yes ]; then
    compile --release && cargo build --quiet --package verify-lemmas --release
    prove 3600 release --host "$target/release/libverify_lemmas.so" >&2 || ours=FOUND
fi

try_mutants lemmas
finish "$(tail -n 1 <<<"$report")" 0/0 $ours
