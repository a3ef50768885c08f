#!/usr/bin/env python3
"""reached.py LCOV LIST: compares the lines of the layers of nbbs/src below api that no schedule reached with those that need not be reached.

Prints how many lines were reached; with a status of 3, which were not although they had to be, or which LIST names and
are not there.
"""

import re
import sys
from pathlib import Path

LIBRARY = re.compile(r".*/nbbs/src/((?:block|lane|look|run|tree|word)/.*)")


def counts(lcov):
    """Returns how often each line was executed, by file and number. An instance of a generic function counts for its line."""
    found, path = {}, None
    for line in lcov.read_text().splitlines():
        key, _, value = line.partition(":")
        if key == "SF":
            path = value if LIBRARY.match(value) else None
        elif key == "DA" and path:
            number, count = map(int, value.split(",")[:2])
            found[path, number] = found.get((path, number), 0) + count
    return found


def name(path, number):
    text = Path(path).read_text().splitlines()[number - 1].strip()
    return f"{LIBRARY.match(path)[1]}: {text}"


def main():
    found = counts(Path(sys.argv[1]))
    # A brace by itself says nothing about what was executed.
    lines = {key: name(*key) for key in found if re.search(r"\w", name(*key).partition(": ")[2])}
    allowed = {line for line in Path(sys.argv[2]).read_text().splitlines() if line and not line.startswith("#")}
    missing = {lines[key] for key in lines if found[key] == 0}
    for line in sorted(missing - allowed):
        print(f"no schedule reached {line}")
    gone = allowed - set(lines.values())
    for line in sorted(gone):
        print(f"not there: {line}")
    print(f"{sum(found[key] > 0 for key in lines)} of {len(lines)} lines reached")
    return 3 if missing - allowed or gone or not lines else 0


sys.exit(main())
