"""The simulated machines. A cycle is that of a core of 2.4 GHz."""

from rvsim import (
    Backend, BranchPredictor, Cache, Coherence, Config, HomeAgent, Interconnect, MemoryController,
)

CLOCK_MHZ = 2400


def machine(harts, mesh):
    """Returns a machine with a number of cores, and an interconnect."""
    return Config(
        hart_count=harts,
        cpu_clock_mhz=CLOCK_MHZ,
        width=4,
        branch_predictor=BranchPredictor.TAGE(),
        backend=Backend.OutOfOrder(
            rob_size=192, store_buffer_size=56, issue_queue_size=96, load_queue_size=72,
            load_ports=2, store_ports=1,
        ),
        l1i=Cache("32KB", ways=8, latency=1),
        l1d=Cache("32KB", ways=8, latency=3),
        l2=Cache("512KB", ways=8, latency=12),
        l3=Cache("32MB", ways=16, latency=30),
        inclusion_policy=Cache.NINE(),
        memory_controller=MemoryController.Simple(latency=216),
        coherence=Coherence(
            home_agent=HomeAgent.SnoopFilter(),
            interconnect=mesh,
            txn_entries=128,
        ),
        ram_size="256MB",
        console="captured",
    )


# The machine of a server, with an interconnect better than most, and one with an interconnect worse than most: further
# from one node to the next, and narrow. Distance alone would not make a counter dearer that all cores share, as a core
# goes on adding while the line is asked for. `nbbs bench cores` checks that such a counter is dearer on "far".
MESHES = {
    "server": Interconnect.Mesh(hop_latency=2, bytes_per_cycle=32),
    "far": Interconnect.Mesh(hop_latency=8, bytes_per_cycle=4),
}
