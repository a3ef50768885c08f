#!/usr/bin/env bash
# loop.sh [PAIRS [HELD]]: builds capi/bench/loop.cc with the library as it is released, and mimalloc if that is installed (Debian:
# libmimalloc-dev), and runs it. Half a minute for 4,000,000 pairs, unless something else is running.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
cargo rustc --quiet --release --package nbbs-c --crate-type staticlib

flags=(-std=c++17 -O2 -Wall -Wextra -Icapi/include)
libraries=(-lpthread -ldl -lm)
header=$(ls /usr/include/mimalloc.h /usr/include/mimalloc-*/mimalloc.h 2>/dev/null | head -n 1 || true)
if [ -n "$header" ]; then
    flags+=(-DWITH_MIMALLOC "-I$(dirname "$header")") libraries=(-lmimalloc "${libraries[@]}")
fi
mkdir -p "$target/capi"
"${CXX:-g++}" "${flags[@]}" capi/bench/loop.cc "$target/release/libnbbs_c.a" "${libraries[@]}" -o "$target/capi/loop"
"$target/capi/loop" "$@"
