#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Congestion from end to end: a marked packet, its CNP, and a sender that slows down.

No network here marks, so a fault rule does it, as a congested switch would."""
import contextlib
import json

from harness import Daemon, case, free_port, run_cases
from lab import ADDR, Lab

SIZE = "65536"


class Two:
    """server and client: (daemon, device) of a link; with Two(...) as (server, client)."""

    def __init__(self, link, congestion="dcqcn"):
        self.link, self.words = link, f"congestion={congestion}"

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        try:
            if self.link == "switch":
                d = self.stack.enter_context(Daemon(*[
                    w for name in ("left", "right")
                    for w in ("--device", f"name={name},link=switch,{self.words}")]))
                return [End(d, "left", "127.0.0.1"), End(d, "right", None)]
            lab = self.stack.enter_context(Lab())
            return [End(self.stack.enter_context(
                Daemon("--device", f"link={self.link},interface=veth0,{self.words}",
                       netns=lab.netns[h])), "uroce0", ADDR[h]) for h in "ab"]
        except BaseException:
            self.stack.__exit__(AssertionError, None, None)
            raise

    def __exit__(self, *why):
        return self.stack.__exit__(*why)


class End:
    def __init__(self, daemon, name, host):
        self.daemon, self.name, self.host = daemon, name, host

    def counters(self):
        status = json.loads(self.daemon.command("status", "--json").output)
        return next(d["counters"] for d in status["devices"] if d["name"] == self.name)

    def fault(self, *words):
        self.daemon.command("fault", "set", self.name, *words)


def run(server, client, program, *options):
    """What the client says."""
    port = free_port()
    args = [program, "-p", port, *options]
    return server.daemon.pair([*args, "-d", server.name],
                              [*args, "-d", client.name, server.host], port, deadline=120,
                              client_daemon=client.daemon)[1]


def bandwidth(server, client, *options):
    """MB/s of ib_write_bw."""
    out = run(server, client, "ib_write_bw", "-F", "-x", "1", "-s", SIZE, *options)
    rows = [line.split() for line in out.splitlines() if line.split()[:1] == [SIZE]]
    assert len(rows) == 1, out
    return float(rows[0][3])


def moved(end, before, name):
    return end.counters()[name] - before[name]


@case("marked packets are answered with CNPs, and the sender slows down: switch, udp, packet")
def _():
    for link in ("switch", "udp", "packet"):
        with Two(link) as (server, client):
            fast = bandwidth(server, client, "-n", "2000")
            assert not server.counters()["np_ecn_marked_roce_packets"], link
            server.fault("mark=100%", "dir=rx")
            slow = bandwidth(server, client, "-n", "500")
            there, here = server.counters(), client.counters()
            marked, sent = there["np_ecn_marked_roce_packets"], there["np_cnp_sent"]
            assert marked >= 500 * int(SIZE) // 4096, (link, there)
            # At most one CNP in 50 us (tests/unit/transport holds that), and each is heard.
            assert 0 < sent < marked, (link, there)
            assert here["rp_cnp_handled"] == sent and not here["rp_cnp_ignored"], (link, here)
            assert not there["rp_cnp_handled"], (link, there)
            assert slow < fast / 2, (link, fast, slow)
            # CNPs are for a queue pair: the next one begins at full speed.
            server.daemon.command("fault", "clear", server.name)
            again = bandwidth(server, client, "-n", "2000")
            assert again > 2 * slow, (link, fast, slow, again)


@case("one marked packet is one CNP, on the way out as on the way in")
def _():
    for link in ("switch", "udp", "packet"):
        with Two(link) as (server, client):
            for end, way in ((server, "rx"), (client, "tx")):
                before, heard = server.counters(), client.counters()
                end.daemon.command("fault", "set", end.name, "--once", "opcode=write",
                                   "nth=7", f"dir={way}", "action=mark")
                bandwidth(server, client, "-n", "100")
                assert moved(server, before, "np_ecn_marked_roce_packets") == 1, (link, way)
                assert moved(server, before, "np_cnp_sent") == 1, (link, way)
                assert moved(client, heard, "rp_cnp_handled") == 1, (link, way)
                assert moved(server, before, "out_of_sequence") == 0, (link, way)


@case("READ responses and UC messages are slowed down too; datagrams are only counted")
def _():
    with Two("udp") as (server, client):
        before = server.counters()
        client.fault("mark=100%", "dir=rx")
        run(server, client, "ib_read_bw", "-F", "-x", "1", "-s", SIZE, "-n", "100")
        assert moved(server, before, "rp_cnp_handled") > 0, server.counters()
        client.daemon.command("fault", "clear", client.name)
        server.fault("mark=100%", "dir=rx")
        heard = client.counters()
        run(server, client, "ib_write_bw", "-F", "-x", "1", "-s", SIZE, "-n", "100", "-c", "UC")
        assert moved(client, heard, "rp_cnp_handled") > 0, client.counters()
        sent = server.counters()["np_cnp_sent"]
        run(server, client, "ibv_ud_pingpong", "-g", "1", "-n", "100")
        assert server.counters()["np_cnp_sent"] == sent


@case("without congestion control packets leave not ECN-capable, and cannot be marked")
def _():
    for link in ("switch", "udp", "packet"):
        with Two(link, "off") as (server, client):
            server.fault("mark=100%", "dir=rx")
            bandwidth(server, client, "-n", "100")
            there = server.counters()
            assert not there["np_ecn_marked_roce_packets"] and not there["np_cnp_sent"], there
            shown = json.loads(server.daemon.command("fault", "show", server.name).output)
            assert shown[0]["counters"]["marked"] == 0 < shown[0]["counters"]["passed"], shown


run_cases()
