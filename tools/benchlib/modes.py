# SPDX-License-Identifier: BSD-3-Clause
"""How much of everything is measured: full, quick, and smoke for the tests."""
from dataclasses import dataclass

from benchlib.stats import round_up


@dataclass(frozen=True)
class Mode:
    """Counts are for small messages; bigger ones get fewer, so that all take about a second."""
    name: str
    turns: int          # how often each thing is measured
    sweep_turns: int
    sizes: tuple        # of the sweep
    messages: int
    round_trips: int
    volume: int         # bytes at most in one measurement
    idle: tuple         # numbers of idle objects
    pairs: tuple
    seconds: int        # for what is measured by time
    depth: int = 2      # 1: not all variants of what takes long

    def bw_count(self, size):
        return round_up(min(self.messages, self.volume // size), 100)

    def lat_count(self, size):
        return round_up(min(self.round_trips, self.volume // 8 // size), 100)


FULL = Mode("full", 7, 3, tuple(1 << i for i in range(1, 24)), 400000, 20000, 2 << 30,
            (1, 10, 100, 1000, 10000), (1, 2, 4, 8), 3)
QUICK = Mode("quick", 3, 1, (2, 64, 1024, 4096, 65536, 1 << 20, 8 << 20), 200000, 10000, 1 << 30,
             (1, 1000, 10000), (1, 2, 4, 8), 1)
SMOKE = Mode("smoke", 1, 1, (64,), 200, 100, 1 << 21, (4,), (2,), 1, depth=1)

MODES = {m.name: m for m in (FULL, QUICK, SMOKE)}
