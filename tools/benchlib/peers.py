# SPDX-License-Identifier: BSD-3-Clause
"""The others: what people use without us, and the physical limits."""
from harness import free_port

from benchlib import parse
from benchlib.stand import need, own_program, peers, run

UCX_TCP = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}
UCX_SHM = {"UCX_TLS": "posix,self"}


def ucx(env, test, size, count):
    """UCX's tagged messages between two processes of this machine."""
    port = free_port()
    base = ["ucx_perftest", "-p", port]
    warm_up = max(1, min(count // 10, 1000))
    out = peers(base, [*base, "-f", "-t", test, "-s", size, "-n", count, "-w", warm_up,
                       "127.0.0.1"], port, env=env)
    return parse.ucx(out)


def iperf3(volume, host="127.0.0.1", netns=(None, None)):
    """One TCP stream, written and read in pieces of 1 MiB."""
    port = free_port()
    out = peers(["iperf3", "-s", "-1", "-p", port],
                ["iperf3", "-c", host, "-p", port, "-l", "1M", "-n", volume, "-J"], port,
                netns=netns)
    return parse.iperf3(out)


def qperf_lat(size, seconds):
    """A TCP message there and back, waiting in the kernel."""
    port = free_port()
    out = peers(["qperf", "-lp", port],
                ["qperf", "127.0.0.1", "-lp", port, "-ip", free_port(), "-t", seconds, "-m",
                 size, "-uu", "tcp_lat"], port)
    return parse.qperf_lat(out)


def fi_pingpong(size, count):
    port = free_port()
    common = ["-p", "tcp", "-e", "msg", "-S", size, "-I", count]
    out = peers(["fi_pingpong", "-B", port, *common],
                ["fi_pingpong", "-P", port, *common, "127.0.0.1"], port)
    return parse.fi_pingpong(out)


def tcp_loop(how, size, count):
    return parse.own(run(own_program("tcp_loop"), how, size, count))


def ring_loop(what, count):
    return parse.own(run(own_program("ring_loop"), what, count))


def copy_loop(size, count):
    return parse.own(run(own_program("copy_loop"), size, count))


def link_loop(link, count):
    return parse.own(run(own_program("link_loop"), link, count))


def instructions(op, size):
    """What one message costs both engines: the difference of two runs, which repeats exactly."""
    need("valgrind")
    collect = [f"--toggle-collect={f}" for f in ("engine_rx", "engine_tx", "engine_doorbell")]
    n = [parse.callgrind(run("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                             *collect, own_program("engine_bench"), op, size, count, 64))
         for count in (500, 1500)]
    return {"instructions": (n[1] - n[0]) / 1000}
