#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""All of it again as a user with no rights at all: uid 65534, no capability left to gain."""
import re

from harness import Daemon, NOBODY, case, free_port, need_nobody, run_cases
from perftest import BW, LAT, few, run_pair, sizes


def daemon():
    need_nobody()
    return Daemon(user=NOBODY)


@case("neither daemon nor program has a capability")
def _():
    with daemon() as d:
        for path in (f"/proc/{d.proc.pid}/status", "/proc/self/status"):
            out = d.run("cat", path).output
            caps = re.findall(r"^Cap(?:Prm|Eff|Inh|Amb):\s*(\w+)", out, flags=re.M)
            assert caps and not any(int(c, 16) for c in caps), out
            assert re.search(r"^Uid:\s*65534\s+65534", out, flags=re.M), out


@case("uroce run starts a daemon of its own where none runs")
def _():
    need_nobody()
    d = Daemon(user=NOBODY)
    try:
        assert "uroce1" in d.run("ibv_devices").output
        assert "uroced" in d.command("status").output
        assert "has stopped" in d.command("stop").output
    finally:
        d.stop_others()
        d.log = open("/dev/null", "rb")
        d._remove()  # pylint: disable=protected-access


@case("ibv_devinfo lists two active devices")
def _():
    with daemon() as d:
        out = d.run("ibv_devinfo", "-v").output
        assert out.count("PORT_ACTIVE (4)") == 2, out


@case("ibv_rc_pingpong, polling and with events")
def _():
    with daemon() as d:
        for more in ([], ["-e"]):
            port = free_port()
            args = ["-g", "1", "-n", "200", "-s", "65536", "-c", "-p", port, *more]
            d.pair(["ibv_rc_pingpong", "-d", "uroce0", *args],
                   ["ibv_rc_pingpong", "-d", "uroce1", *args, "127.0.0.1"], port)


for _program, _variants in {**BW, **LAT}.items():
    for _variant in _variants:
        @case(" ".join([_program, *sizes(_program), *_variant]))
        def _(program=_program, variant=_variant):
            with daemon() as d:
                run_pair(d, program, *few(program), *sizes(program), *variant)


@case("ib_write_bw with sixteen queue pairs; ib_send_bw with events")
def _():
    with daemon() as d:
        run_pair(d, "ib_write_bw", "-n", "500", "-s", "4096", "-q", "16")
        run_pair(d, "ib_send_bw", "-n", "500", "-s", "4096", "-e")


@case("uroce doctor finds nothing wrong")
def _():
    with daemon() as d:
        out = d.command("doctor").output
        assert not re.search(r"^fail", out, flags=re.M), out


run_cases()
