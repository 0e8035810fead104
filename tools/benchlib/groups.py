# SPDX-License-Identifier: BSD-3-Clause
"""What is measured. A group sets up its stands and returns members, which then take turns; each
member, when called, measures once and returns metrics."""
import os
import time

from benchlib import parse, peers
from benchlib.stand import (Absent, Veth, on_memif, on_switch, on_udp_loopback, scheduled,
                            shared_files)
from benchlib.stats import round_up

MIB = 1 << 20
GROUPS = {}


def group(name, what):
    def add(function):
        GROUPS[name] = (what, function)
        return function
    return add


def absent_if(make):
    """make()'s stand; where there is none, one whose every use says why."""
    try:
        return make()
    except Absent as why:
        return _Nowhere(why)


class _Nowhere:
    def __init__(self, why):
        self.why = why

    def perftest(self, *_args, **_more):
        raise self.why


def bw(stand, mode, program, size, *more, **sides):
    out = stand.perftest(program, "-s", str(size), "-n", str(mode.bw_count(size)), "-N",
                         "--report_gbits", *more, **sides)
    return parse.perftest_bw(out)


def lat(stand, mode, program, size, *more, **sides):
    out = stand.perftest(program, "-s", str(size), "-n", str(mode.lat_count(size)), *more, **sides)
    return parse.perftest_lat(out)


INLINE = ("-I", "64", "-t", "128")


@group("write-1m", "RC WRITE of 1 MiB on the switch")
def _(stack, mode):
    s = on_switch(stack)
    sides = stack.enter_context(shared_files(8 * MIB))
    n = mode.bw_count(MIB)
    return {
        "write": lambda: bw(s, mode, "ib_write_bw", MIB),
        "write, shared memory": lambda: bw(s, mode, "ib_write_bw", MIB, each_side=sides),
        "UCX tcp": lambda: peers.ucx(peers.UCX_TCP, "tag_bw", MIB, n),
        "UCX posix": lambda: peers.ucx(peers.UCX_SHM, "tag_bw", MIB, n),
        "iperf3": lambda: peers.iperf3(mode.volume),
        "memcpy": lambda: peers.copy_loop(MIB, 4 * n),
    }


@group("rate-64", "message rate, 64 bytes, one QP, inline")
def _(stack, mode):
    s = on_switch(stack)
    n = mode.messages
    return {
        "write": lambda: bw(s, mode, "ib_write_bw", 64, *INLINE),
        "send": lambda: bw(s, mode, "ib_send_bw", 64, *INLINE),
        "ring loop": lambda: peers.ring_loop("rate", 5 * n),
        "UCX tcp": lambda: peers.ucx(peers.UCX_TCP, "tag_bw", 64, n),
        "UCX posix": lambda: peers.ucx(peers.UCX_SHM, "tag_bw", 64, n),
    }


@group("latency-64", "latency, 64 bytes, one way, polling")
def _(stack, mode):
    s = on_switch(stack)
    n = mode.round_trips
    return {
        "write": lambda: lat(s, mode, "ib_write_lat", 64, "-I", "64"),
        "send": lambda: lat(s, mode, "ib_send_lat", 64, "-I", "64"),
        "read": lambda: lat(s, mode, "ib_read_lat", 64),
        "ring loop": lambda: peers.ring_loop("latency", n),
        "TCP, busy-polled": lambda: peers.tcp_loop("busy", 64, n),
        "UCX tcp": lambda: peers.ucx(peers.UCX_TCP, "tag_lat", 64, n),
        "UCX posix": lambda: peers.ucx(peers.UCX_SHM, "tag_lat", 64, n),
        "libfabric tcp": lambda: peers.fi_pingpong(64, n),
    }


@group("events-64", "latency, 64 bytes, one way, waiting in the kernel")
def _(stack, mode):
    s = on_switch(stack)
    n = mode.round_trips
    return {
        "send -e": lambda: lat(s, mode, "ib_send_lat", 64, "-I", "64", "-e"),
        "read -e": lambda: lat(s, mode, "ib_read_lat", 64, "-e"),
        "qperf tcp_lat": lambda: peers.qperf_lat(64, mode.seconds),
        "TCP, blocking": lambda: peers.tcp_loop("block", 64, n),
    }


@group("udp-1m", "RC WRITE of 1 MiB, two daemons, udp link over loopback")
def _(stack, mode):
    s = absent_if(lambda: on_udp_loopback(stack))
    return {
        "udp": lambda: bw(s, mode, "ib_write_bw", MIB),
        "UCX tcp": lambda: peers.ucx(peers.UCX_TCP, "tag_bw", MIB, mode.bw_count(MIB)),
        "iperf3": lambda: peers.iperf3(mode.volume),
    }


# Devices for Veth.stand(); dpdk's vdev arguments are those of DPDK's guides.
VETH_LINKS = {
    "udp": "link=udp,interface=veth0",
    "packet": "link=packet,interface=veth0",
    "dpdk af_packet": "link=dpdk,devargs=net_af_packet0,iface=veth0,blocksz=69632,framesz=4352,"
                      "framecnt=1024,qdisc_bypass=1",
    "dpdk af_xdp": "link=dpdk,devargs=net_af_xdp0,iface=veth1",
}


def over_wire(stand, mode, program, *more):
    if "bw" in program:
        return bw(stand, mode, program, MIB, "-t", "16", *more)
    few = str(round_up(mode.round_trips // 10, 100))  # four pollers on two cores take their time
    return parse.perftest_lat(stand.perftest(program, "-s", "64", "-n", few, *more))


@group("veth", "two daemons over veth, MTU 4200: WRITE of 1 MiB, latency of 64 bytes")
def _(stack, mode):
    try:
        veth = Veth(stack)
    except Absent as why:
        nowhere = _Nowhere(why)
        return {"udp": nowhere.perftest, "packet": nowhere.perftest}
    veth.add_veth1()
    members = {}
    for name, device in VETH_LINKS.items():
        # One pair of daemons at a time: idle ones would hold the interface too.
        def measure(program, device=device):
            with stack.__class__() as own:
                veth.stack = own
                return over_wire(veth.stand(device), mode, program)
        members[name] = lambda m=measure: m("ib_write_bw")
        members[name + ", latency"] = lambda m=measure: m("ib_write_lat")
    members["iperf3"] = lambda: peers.iperf3(mode.volume, "192.0.2.1", veth.netns)
    return members


@group("links", "packets of 4 KiB over veth by a link alone, one thread each")
def _(stack, mode):
    n = mode.volume // 4096
    return {
        "packet": lambda: peers.link_loop("packet", n),
        "dpdk af_packet": lambda: peers.link_loop("af_packet", n),
    }


@group("memif", "two daemons joined by memif: WRITE of 1 MiB, latency of 64 bytes")
def _(stack, mode):
    s = absent_if(lambda: on_memif(stack))
    return {
        "memif": lambda: over_wire(s, mode, "ib_write_bw"),
        "memif, latency": lambda: over_wire(s, mode, "ib_write_lat"),
    }


@group("idle-qps", "WRITEs of 64 bytes on one QP beside idle QPs")
def _(stack, mode):
    s = on_switch(stack)
    return {(f"{n} idle QPs", n): lambda n=n: parse.own(
        s.own("verbs_scale", "qps", n, mode.messages)) for n in mode.idle}


@group("idle-mrs", "WRITEs of 64 bytes on one QP beside MRs")
def _(stack, mode):
    s = on_switch(stack)
    return {(f"{n} MRs", n): lambda n=n: parse.own(
        s.own("verbs_scale", "mrs", n, mode.messages)) for n in mode.idle}


@group("idle", "a daemon with two devices and nothing to do")
def _(stack, mode):
    pid = on_switch(stack).daemons[0].proc.pid

    def measure():
        """A thread that is given no core makes no system call."""
        time.sleep(1)  # whatever starting left to do
        _, before = scheduled(pid)
        time.sleep(mode.seconds)
        with open(f"/proc/{pid}/statm", encoding="ascii") as f:
            pages = int(f.read().split()[1])
        return {"wakeups_per_s": (scheduled(pid)[1] - before) / mode.seconds,
                "resident_mib": pages * os.sysconf("SC_PAGE_SIZE") / MIB}
    return {"daemon": measure}


@group("registration", "registering and connecting")
def _(stack, mode):
    s = on_switch(stack)
    n = max(5, mode.messages // 4000)
    return {
        "regions": lambda: parse.own(s.own("verbs_scale", "registrations", n)),
        "connections": lambda: parse.own(s.own("verbs_scale", "connections", n * 4)),
    }


def sum_of(outputs):
    """perftest's rates, of pairs that ran for the same time at the same time."""
    found = [parse.perftest_bw(out) for out in outputs]
    return {name: sum(f[name] for f in found) for name in found[0]}


@group("pairs", "client pairs at the same time")
def _(stack, mode):
    s = on_switch(stack)
    timed = ("-D", str(mode.seconds), "-f", "0", "--report_gbits")
    members = {}
    for n in mode.pairs:
        members[f"{n} pairs, 64 KiB", n] = lambda n=n: sum_of(
            s.perftests(n, "ib_write_bw", "-s", "65536", *timed))
        members[f"{n} pairs, 64 bytes", n] = lambda n=n: sum_of(
            s.perftests(n, "ib_write_bw", "-s", "64", *INLINE, *timed))
    return members


def cpu_of(stand, counts, program, size, *more):
    """CPU time of daemon and both programs for one message: the difference of a short and a long
    run, so that starting them does not count."""
    spent = []
    for n in counts:
        before = stand.cpu_ns()
        stand.perftest(program, "-s", str(size), "-n", str(n), "-N", *more)
        spent.append(stand.cpu_ns() - before)
    per_message = (spent[1] - spent[0]) / (counts[1] - counts[0])
    return {"cpu_ns_per_message": per_message, "cpu_ns_per_byte": per_message / size}


@group("cpu", "CPU time, daemon and both programs together")
def _(stack, mode):
    s = on_switch(stack)
    members = {}
    for size, more in ((64, INLINE), (MIB, ()))[:mode.depth]:
        n = mode.bw_count(size)
        for op in ("write", "send", "read"):
            flags = () if op == "read" else more
            members[f"{op}, {size} bytes", size] = lambda op=op, size=size, n=n, flags=flags: (
                cpu_of(s, (n, 3 * n), f"ib_{op}_bw", size, *flags))
    return members


@group("instructions", "instructions in both engines for one message (callgrind)")
def _(_stack, mode):
    return {(f"{op}, {size} bytes", size): lambda op=op, size=size: peers.instructions(op, size)
            for op, size in (("write", 64), ("send", 64), ("read", 64),
                             ("write", 65536))[:2 * mode.depth]}


@group("workers", "one worker and two: WRITEs on eight QPs")
def _(stack, mode):
    stands = {n: on_switch(stack, "--workers", str(n)) for n in (1, 2)}
    members = {}
    for n, s in stands.items():
        members[f"{n} workers, 64 KiB", n] = lambda s=s: bw(
            s, mode, "ib_write_bw", 65536, "-q", "8")
        members[f"{n} workers, 64 bytes", n] = lambda s=s: bw(
            s, mode, "ib_write_bw", 64, "-q", "8", *INLINE)
    return members


@group("sweep", "all sizes on the switch")
def _(stack, mode):
    s = on_switch(stack)
    members = {}
    for size in mode.sizes:
        for op in ("write", "read", "send"):
            members[f"{op} bandwidth", size] = lambda op=op, size=size: bw(
                s, mode, f"ib_{op}_bw", size)
            members[f"{op} latency", size] = lambda op=op, size=size: lat(
                s, mode, f"ib_{op}_lat", size)
        if size <= 4096:
            members["UD send bandwidth", size] = lambda size=size: bw(
                s, mode, "ib_send_bw", size, "-c", "UD")
            members["UD send latency", size] = lambda size=size: lat(
                s, mode, "ib_send_lat", size, "-c", "UD")
        members["UCX tcp bandwidth", size] = lambda size=size: peers.ucx(
            peers.UCX_TCP, "tag_bw", size, mode.bw_count(size))
        members["UCX tcp latency", size] = lambda size=size: peers.ucx(
            peers.UCX_TCP, "tag_lat", size, mode.lat_count(size))
    return members
