#!/usr/bin/env bash
# install.sh debian PACKAGE...: installs Debian's packages, as root or by sudo.
# install.sh remove PACKAGE...: removes them again.
# install.sh rustup ARGUMENT...: calls rustup.
# install.sh nightly COMPONENT...: installs nightly Rust, unless there is one, which stays as it is, and its components.
# Only one at a time: neither tool tolerates a second instance.
set -euo pipefail
exec 9>"${TMPDIR:-/tmp}/nbbs-install.lock"
flock 9
tool=$1
shift
as=()
[ "$(id -u)" = 0 ] || as=(sudo)
export DEBIAN_FRONTEND=noninteractive
case $tool in
debian)
    "${as[@]}" apt-get update -qq
    "${as[@]}" apt-get install -y -qq "$@"
    ;;
remove) "${as[@]}" apt-get remove -y -qq "$@" ;;
rustup) rustup "$@" ;;
nightly)
    rustc +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal
    rustup component add --toolchain nightly "$@"
    ;;
*)
    echo "install.sh: expected debian, remove, rustup or nightly, not $tool"
    exit 2
    ;;
esac
