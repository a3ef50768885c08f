#!/usr/bin/env bash
# survivors.sh [SECONDS [ROUNDS]]: builds capi/bench/survivors with the library as it is released, and boost.interprocess, which it
# installs (Debian: libboost-dev) or says that it cannot, and runs it. Three minutes for 1 second and 5 rounds.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
cargo rustc --quiet --release --package nbbs-c --features shared --crate-type staticlib

flags=(-std=c++17 -O2 -Wall -Wextra -Icapi/include)
boost=boost/interprocess/managed_shared_memory.hpp
[ -e "/usr/include/$boost" ] || verify/install.sh debian libboost-dev >/dev/null 2>&1 || true
if [ -e "/usr/include/$boost" ]; then
    flags+=(-DWITH_BOOST)
else
    echo "survivors.sh: without boost.interprocess: libboost-dev cannot be installed" >&2
fi
mkdir -p "$target/capi"
"${CXX:-g++}" "${flags[@]}" capi/bench/survivors/main.cc "$target/release/libnbbs_c.a" -lpthread -ldl -lm -lrt \
    -o "$target/capi/survivors"
"$target/capi/survivors" "$@"
