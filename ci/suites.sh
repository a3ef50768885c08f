#!/usr/bin/env bash
# Runs the tests of crates that others wrote with the heap as their global allocator: hash tables, thread pools, a JSON
# parser and others, taken from crates.io. .ci/run runs one of them, which the commit chooses, in a minute or two; all of
# them take a quarter of an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
exec heap/suites.sh
