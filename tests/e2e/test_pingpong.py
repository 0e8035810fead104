#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ibv_{rc,uc,ud,srq,xsrq}_pingpong: polling and with events, to the other device and to itself."""
from harness import Daemon, case, free_port, is_listening, run_cases, wait_for


def pingpong(server_dev, client_dev, size, *more):
    # -c checks every received byte; the buffer is refilled by nobody, so it holds from the start.
    with Daemon() as d:
        port = free_port()
        args = ["-g", "1", "-s", size, "-n", "200", "-p", port, *more]
        out = d.pair(["ibv_rc_pingpong", "-d", server_dev, *args],
                     ["ibv_rc_pingpong", "-d", client_dev, *args, "127.0.0.1"], port)
        for text in out:
            assert "200 iters in" in text, text


for _way, _devs in {"to the other device": ("uroce0", "uroce1"),
                    "to the own device": ("uroce0", "uroce0")}.items():
    for _size in (1, 65536):
        for _how, _opt in {"polling": [], "with events": ["-e"]}.items():
            case(f"ibv_rc_pingpong, {_size} bytes, {_how}, {_way}")(
                lambda devs=_devs, size=_size, opt=_opt: pingpong(*devs, size, *opt))


@case("ibv_rc_pingpong finds its data unchanged (-c)")
def _():
    pingpong("uroce0", "uroce1", 5000, "-c")


@case("ibv_rc_pingpong with link-local GIDs (-g 0)")
def _():
    with Daemon() as d:
        port = free_port()
        args = ["-g", "0", "-n", "50", "-p", port]
        d.pair(["ibv_rc_pingpong", "-d", "uroce0", *args],
               ["ibv_rc_pingpong", "-d", "uroce1", *args, "127.0.0.1"], port)


@case("ibv_rc_pingpong at every path MTU")
def _():
    with Daemon() as d:
        for mtu in (256, 512, 1024, 2048, 4096):
            port = free_port()
            args = ["-g", "1", "-n", "50", "-m", mtu, "-s", "10000", "-p", port, "-c"]
            d.pair(["ibv_rc_pingpong", "-d", "uroce0", *args],
                   ["ibv_rc_pingpong", "-d", "uroce1", *args, "127.0.0.1"], port)


def other_pingpong(program, server_dev, client_dev, *more):
    with Daemon() as d:
        port = free_port()
        args = ["-g", "1", "-n", "300", "-p", port, *more]
        out = d.pair([program, "-d", server_dev, *args],
                     [program, "-d", client_dev, *args, "127.0.0.1"], port)
        for text in out:
            assert "iters in" in text, text


for _program, _size in {"ibv_uc_pingpong": "8000", "ibv_ud_pingpong": "2048",
                        "ibv_srq_pingpong": "8000"}.items():
    for _how, _opt in {"polling": [], "with events": ["-e"]}.items():
        for _way, _devs in {"to the other device": ("uroce0", "uroce1"),
                            "to the own device": ("uroce0", "uroce0")}.items():
            case(f"{_program}, {_how}, {_way}")(
                lambda program=_program, devs=_devs, opt=_opt, size=_size:
                other_pingpong(program, *devs, "-s", size, *opt))


for _program, _size in {"ibv_uc_pingpong": "8000", "ibv_ud_pingpong": "2048",
                        "ibv_srq_pingpong": "8000"}.items():
    case(f"{_program} finds its data unchanged (-c)")(
        lambda program=_program, size=_size:
        other_pingpong(program, "uroce0", "uroce1", "-s", size, "-c"))

case("ibv_srq_pingpong in memory on demand (-o)")(
    lambda: other_pingpong("ibv_srq_pingpong", "uroce0", "uroce1", "-o"))


def xsrq_pingpong(daemon, clients, *more):
    """The server waits for all clients, then serves them on one SRQ."""
    port = free_port()
    args = ["-g", "1", "-n", "100", "-p", port, *more]
    programs = [daemon.start("ibv_xsrq_pingpong", "-d", "uroce0", "-c", clients, *args)]
    try:
        wait_for("the server listens", lambda: is_listening(port), 20)
        programs += [daemon.start("ibv_xsrq_pingpong", "-d", "uroce1", *args, "127.0.0.1")
                     for _ in range(clients)]
        for p in programs:
            code = p.wait()
            assert code == 0 and "success" in p.output(), p.describe(code)
    finally:
        for p in programs:
            if p.is_alive():
                p.kill()


# Each side sends to the other's SRQ by number: no QP of the receiver names it.
for _clients in (1, 3):
    @case(f"ibv_xsrq_pingpong with {_clients} clients")
    def _(clients=_clients):
        for more in ([], ["-e"], ["-o"]):
            with Daemon("--workers", "2") as d:
                xsrq_pingpong(d, clients, *more)


@case("ibv_srq_pingpong with 100 queue pairs and two workers")
def _():
    with Daemon("--workers", "2") as d:
        port = free_port()
        args = ["-g", "1", "-q", "100", "-n", "2000", "-e", "-p", port]
        d.pair(["ibv_srq_pingpong", "-d", "uroce0", *args],
               ["ibv_srq_pingpong", "-d", "uroce1", *args, "127.0.0.1"], port)


# Not -t with -e: ibv_rc_pingpong then takes a CQ that it finds empty after an event for an error,
# and an event whose completion an earlier poll took along is legal.
EXTRAS = {
    "by ibv_wr_*": ["-N"],
    "with completion timestamps": ["-t"],
    "by ibv_wr_*, with timestamps": ["-N", "-t"],
    "by ibv_wr_*, with events": ["-N", "-e"],
    "in device memory": ["-j"],
    "in device memory, by ibv_wr_*": ["-j", "-N"],
    "in memory on demand": ["-o"],
    "in memory on demand, prefetched": ["-o", "-P"],
    "in an implicit region": ["-O"],
    "in an implicit region, prefetched": ["-O", "-P"],
}

for _how, _opt in EXTRAS.items():
    case(f"ibv_rc_pingpong {_how} ({' '.join(_opt)})")(
        lambda opt=_opt: pingpong("uroce0", "uroce1", 4096, *opt))


run_cases()
