#!/usr/bin/env python3
"""compare.py [ROUNDS]: runs programs with each malloc that is installed, and prints how long they take.

By turns, in one run: medians, as multiples of the time with the C library's malloc, and the most memory that they
had. Takes what of these is installed: Debian's libmimalloc2.0, libjemalloc2, libtcmalloc-minimal4; g++ and sqlite3.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
MALLOCS = {
    "glibc": None,
    "nbbs": str(HERE.parent / "target/release/libnbbs_malloc.so"),
    "mimalloc": f"{LIBRARIES}/libmimalloc.so.2",
    "jemalloc": f"{LIBRARIES}/libjemalloc.so.2",
    "tcmalloc": f"{LIBRARIES}/libtcmalloc_minimal.so.4",
}
QUERY = """create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 300000)
    insert into t select x, hex(x * x) from c; create index i on t(b); select count(*) from t where b like '3%'"""


def programs(folder):
    """Returns the commands to run, by name."""
    for name in ["words", "random_sizes"]:
        source = HERE / "programs" / f"{name}.cpp"
        subprocess.run(["g++", "-O2", "-std=c++17", "-pthread", source, "-o", f"{folder}/{name}"], check=True)
    source = str(HERE / "programs/words.cpp")
    return {
        "g++ -O2": ["g++", "-O2", "-std=c++17", "-c", source, "-o", "/dev/null"],
        "python3": [shutil.which("python3"), str(HERE / "programs/objects.py")],
        "sqlite3": ["sqlite3", ":memory:", QUERY],
        "words, 4 threads": [f"{folder}/words"],
        "random sizes, 1 thread": [f"{folder}/random_sizes", "1", "10000000"],
        "random sizes, 4 threads": [f"{folder}/random_sizes", "4", "5000000"],
    }


def run(command, library):
    """Runs a command. Returns its seconds, and the most KiB that it had."""
    environment = dict(os.environ, **({"LD_PRELOAD": library} if library else {}))
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command[:2])} with {library}: status {status}")
    return time.perf_counter() - start, usage.ru_maxrss


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    mallocs = {name: path for name, path in MALLOCS.items() if path is None or Path(path).exists()}
    if "nbbs" not in mallocs:
        sys.exit("nbbs is not built: cargo build --release -p nbbs-malloc")
    print("| | " + " | ".join(mallocs) + " |")
    print("|---" * (len(mallocs) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name, command in programs(folder).items():
            found = {malloc: [] for malloc in mallocs}
            for _ in range(rounds):
                for malloc, library in mallocs.items():
                    found[malloc].append(run(command, library))
            seconds = {malloc: statistics.median(time for time, _ in runs) for malloc, runs in found.items()}
            most = {malloc: max(kib for _, kib in runs) >> 10 for malloc, runs in found.items()}
            cells = [f"{seconds[malloc] / seconds['glibc']:.2f}, {most[malloc]} MiB" for malloc in mallocs]
            print(f"| {name} ({seconds['glibc']:.2f} s) | " + " | ".join(cells) + " |", flush=True)


main()
