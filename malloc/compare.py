#!/usr/bin/env python3
"""Runs programs with each malloc that is installed, by turns, and prints a table.

Medians, as multiples of the time with the C library's malloc, and the most memory that the program had.

Takes what of these is installed: Debian's libmimalloc2.0, libjemalloc2, libtcmalloc-minimal4. Needs g++ and sqlite3.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
OTHERS = {
    "mimalloc": "libmimalloc.so.2",
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}
QUERY = """create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 300000)
    insert into t select x, hex(x * x) from c; create index i on t(b); select count(*) from t where b like '3%'"""


def mallocs():
    """Returns the libraries to preload, by name; None for the C library's own malloc."""
    nbbs = HERE.parent / "target/release/libnbbs_malloc.so"
    if not nbbs.exists():
        sys.exit("nbbs is not built: cargo build --release -p nbbs-malloc")
    found = {"glibc": None, "nbbs": nbbs}
    for name, file in OTHERS.items():
        paths = [Path(folder, file) for folder in FOLDERS if Path(folder, file).exists()]
        if paths:
            found[name] = paths[0]
        else:
            print(f"not installed: {file}", file=sys.stderr)
    return found


def programs(folder):
    """Returns the commands to run, by what they do."""
    for tool in ["g++", "sqlite3"]:
        if not shutil.which(tool):
            sys.exit(f"not installed: {tool}")
    for name in ["words", "random_sizes", "batches", "large_blocks", "turns", "shrunk_buffers"]:
        source = HERE / "programs" / f"{name}.cpp"
        subprocess.run(["g++", "-O2", "-std=c++17", "-pthread", source, "-o", f"{folder}/{name}"], check=True)
    words = str(HERE / "programs/words.cpp")
    return {
        "`g++ -O2`": ["g++", "-O2", "-std=c++17", "-c", words, "-o", "/dev/null"],
        "`python3`: JSON, expressions, threads": [sys.executable, str(HERE / "programs/objects.py")],
        "`sqlite3`: 300,000 rows, an index": ["sqlite3", ":memory:", QUERY],
        "maps of strings in C++, 4 threads": [f"{folder}/words"],
        "500 blocks of 33 to 900 KB, replaced": [f"{folder}/large_blocks", "500", "20000"],
        "64 threads, 50 MiB each, in turn": [f"{folder}/turns", "64", "50"],
        "1,000 buffers of 1 MiB, shrunk to fit": [f"{folder}/shrunk_buffers", "1000"],
        "nothing but random sizes, 1 thread": [f"{folder}/random_sizes", "1", "10000000"],
        "the same, 4 threads": [f"{folder}/random_sizes", "4", "5000000"],
        "20 blocks of 64 bytes, freed in turn": [f"{folder}/batches", "20", "2000000"],
        "1,600 of them": [f"{folder}/batches", "1600", "25000"],
    }


def run(command, library):
    """Runs a command. Returns its seconds, and the most KiB that it had."""
    environment = dict(os.environ, **({"LD_PRELOAD": str(library)} if library else {}))
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command[:2])} with {library}: status {status}")
    return time.perf_counter() - start, usage.ru_maxrss


def positive(text):
    """Returns a number of rounds."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected at least 1 round, not {text}")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rounds", nargs="?", type=positive, default=7)
    rounds = parser.parse_args().rounds
    libraries = mallocs()
    print("| | " + " | ".join(libraries) + " |")
    print("|---" * (len(libraries) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name, command in programs(folder).items():
            found = {malloc: [] for malloc in libraries}
            for _ in range(rounds):
                for malloc, library in libraries.items():
                    found[malloc].append(run(command, library))
            seconds = {malloc: statistics.median(taken for taken, _ in runs) for malloc, runs in found.items()}
            most = {malloc: max(kib for _, kib in runs) >> 10 for malloc, runs in found.items()}
            cells = [f"{seconds[malloc] / seconds['glibc']:.2f}, {most[malloc]} MiB" for malloc in libraries]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
