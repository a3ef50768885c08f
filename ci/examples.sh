#!/usr/bin/env bash
# Runs the examples that can run here: those of the library and of the heap, of the pool and of shared segments, and
# those for Linux, whose checks must find what `--broken` does. Takes two minutes. The heap's example that is a library
# belongs to the test `unload`, and the one that reads after a free to `ci/prove heap`.
set -euo pipefail
cd "$(dirname "$0")/.."
said=$(mktemp)
trap 'rm -f "$said"' EXIT

failed() { tail -n 30 "$said"; echo "examples: $*"; exit 1; }

for example in nbbs/examples/*.rs; do
    name=$(basename "$example" .rs)
    cargo run --quiet --package nbbs --example "$name" >"$said" 2>&1 || failed "$name fails"
done

cargo build --release --quiet --package linux-memory
# As `cargo test` builds them: a release would build all that tests depend on once more.
cargo build --quiet --package nbbs-pool --example messages
cargo build --quiet --package nbbs-shared --example survivors
cargo build --quiet --package nbbs-heap --features allocator-api2 --example one_line --example in_a_heap --example growing
target_dir=${CARGO_TARGET_DIR:-target}

# says PATTERN COMMAND...: checks that a command succeeds, and prints a line like this.
says() {
    timeout 120 "$target_dir/$2" "${@:3}" >"$said" 2>&1 || failed "${*:2} fails"
    grep -qE -- "$1" "$said" || failed "${*:2} does not say: $1"
}
# finds PATTERN COMMAND...: checks that a command fails, and prints a line like this.
finds() {
    if timeout 120 "$target_dir/$2" "${@:3}" >"$said" 2>&1; then failed "${*:2} finds nothing"; fi
    grep -qE -- "$1" "$said" || failed "${*:2} does not say: $1"
}

says 'just what was in use' release/reservation --churn 200
finds 'is not 0x0, which its holder left there' release/reservation --churn 200 --broken
finds '^reservation: --hold 1000000000: at most half' release/reservation --hold 1000000000
says '[1-9][0-9]* of them with a frame in hand.*nothing is lost' release/balloon --kills 40
finds 'the guest ended' release/balloon --broken
finds '^balloon: --memory 1000000000: at most half' release/balloon --memory 1000000000
says '^0 are in use; the pool grew to [0-9]+ slots' debug/examples/messages
says '^0 messages lost, 0 bytes lost' debug/examples/survivors 2
# Whoever reads may leave early: the example ends then, quietly, and its processes with it.
"$target_dir/debug/examples/survivors" 3600 2>"$said" | head -n 1 >/dev/null || failed "survivors fails for head"
[ ! -s "$said" ] || failed "survivors complains about head"
says '^31676 words counted by 4 threads, all in a heap of [1-9]' debug/examples/one_line
says '^ 80 MiB in use, +[0-9]+ MiB given to the heap' debug/examples/growing
says '^a further MiB is refused: true' debug/examples/in_a_heap
says '^free again: ([0-9]+) of \1 KiB' debug/examples/in_a_heap
echo "the examples work, and what is broken on purpose is found"
