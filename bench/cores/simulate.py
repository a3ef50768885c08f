"""simulate.py IMAGE MACHINE HARTS REQUEST: runs the image once; the image reads the request from its console.

Prints a JSON object: what the image wrote to its console, and what the simulator counted while it measured.
"""

import json
import sys

from machine import CLOCK_MHZ, MESHES, machine
from rvsim import Simulator

# The cycles after which a run is given up: more than a second on the simulated machine, and hours on the host.
LIMIT = 4_000_000_000


def run(image, config, request):
    simulator = Simulator(config, binary=image)
    simulator.write_console(request + "\n")
    end, status = simulator.run_to(cycles=LIMIT, guest_breaks=False)
    console = simulator.read_console()
    if end != "exit" or status != 0:
        return {"failed": console.strip() or f"it ended by {end}, status {status}"}
    ((_, stats),) = simulator.stats_dumps
    return {
        "clock_mhz": CLOCK_MHZ,
        "console": console,
        # On one hart nothing has to be kept coherent.
        "transfers": stats.get("coherence.ha.c2c_transfers", 0),
        "instructions": stats["system.retired_insts"],
    }


if __name__ == "__main__":
    _, image, name, harts, request = sys.argv
    print(json.dumps(run(image, machine(int(harts), MESHES[name]), request)))
