# SPDX-License-Identifier: BSD-3-Clause
"""What speed we promise: ratios of two rows of one group, or one row and a number."""
from dataclasses import dataclass

from benchlib.stats import median, ratio


@dataclass(frozen=True)
class Bar:
    what: str
    group: str
    over: tuple     # rows, as (member, metric); the best counts
    sign: str       # ">=" or "<="
    limit: float
    under: tuple = None  # (member, metric); None: the row itself is the figure

    def figure(self, values):
        """values: (group, member, metric) -> one value a turn. None if it was not measured."""
        found = []
        for row in self.over:
            v = values.get((self.group, *row))
            if not v:
                continue
            if self.under is None:
                found.append(median(v))
            else:
                r = ratio(v, values.get((self.group, *self.under), []))
                if r is not None:
                    found.append(r)
        if not found:
            return None
        return max(found) if self.sign == ">=" else min(found)

    def is_met(self, figure):
        return figure >= self.limit if self.sign == ">=" else figure <= self.limit


BW, RATE, TYP, P99 = "gbit_per_s", "messages_per_s", "typical_us", "p99_us"


def _against(group, sign, limit, over, under, what):
    return Bar(what, group, (over,), sign, limit, under)


BARS = [
    _against("write-1m", ">=", 1.2, ("write", BW), ("UCX tcp", BW),
             "RC WRITE 1 MiB, heap / UCX tcp"),
    _against("write-1m", ">=", 1.7, ("write, shared memory", BW), ("UCX tcp", BW),
             "RC WRITE 1 MiB, shared memory / UCX tcp"),
    _against("write-1m", ">=", 0.3, ("write, shared memory", BW), ("memcpy", BW),
             "RC WRITE 1 MiB, shared memory / memcpy"),
    *(_against("rate-64", ">=", 0.6, (op, RATE), ("ring loop", RATE),
               f"{op.upper()} 64 B rate / ring loop") for op in ("write", "send")),
    *(_against("latency-64", "<=", 1.5, (op, TYP), ("ring loop", TYP),
               f"{op.upper()} 64 B latency / ring loop") for op in ("write", "send")),
    *(_against("latency-64", "<=", 4, (op, P99), (op, TYP),
               f"{op.upper()} 64 B p99 / typical") for op in ("write", "send")),
    *(_against("latency-64", "<=", 1, (op, TYP), ("TCP, busy-polled", TYP),
               f"{op.upper()} 64 B latency / busy-polled TCP") for op in ("write", "send")),
    _against("events-64", "<=", 1.2, ("send -e", TYP), ("qperf tcp_lat", TYP),
             "SEND -e 64 B latency / qperf tcp_lat"),
    _against("udp-1m", ">=", 0.7, ("udp", BW), ("UCX tcp", BW),
             "two daemons, udp over loopback, 1 MiB / UCX tcp"),
    Bar("two daemons, packet or udp over veth, 1 MiB / iperf3", "veth",
        (("packet", BW), ("udp", BW)), ">=", 1.5, ("iperf3", BW)),
    _against("links", ">=", 4, ("packet", BW), ("dpdk af_packet", BW),
             "the packet link alone / DPDK's af_packet"),
    Bar("rate beside 10,000 idle QPs / alone", "idle-qps", (("10000 idle QPs", "ratio"),),
        ">=", 0.9),
    Bar("rate beside 10,000 MRs / alone", "idle-mrs", (("10000 MRs", "ratio"),), ">=", 0.9),
    Bar("idle daemon: wake-ups a second", "idle", (("daemon", "wakeups_per_s"),), "<=", 0),
    Bar("idle daemon: MiB resident", "idle", (("daemon", "resident_mib"),), "<=", 100),
]
