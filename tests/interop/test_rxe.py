#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""uroce against Linux's rdma_rxe: a guest of Debian's kernel on a tap, our daemon on the other end.

All of it runs in a network namespace of its own. usage: test_rxe.py [PART OF A CASE'S NAME]
"""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

import build_guest  # noqa: E402
import inside  # noqa: E402
from capture import tshark_complaints  # noqa: E402
from guest import Guest  # noqa: E402
from harness import (BUILD, Daemon, Skip, case, free_port, is_listening,  # noqa: E402
                     run_cases, wait_for)
from roce import Capture  # noqa: E402

HOST, GUEST = "192.0.2.1", "192.0.2.2"
MTU = 4200
INSIDE = "UROCE_INTEROP_GUEST"
# A QP's timeout: 69 s, so that a slow machine is not taken for a loss. rxe's timer, once set, runs
# on when its answer has come, and repeats whatever is under way when it ends.
PATIENT = 24


def have_qemu():
    """QEMU, and tshark if it can be had: through tools/deps, which says what is wrong."""
    done = subprocess.run([os.path.join(HERE, "..", "..", "tools", "deps"), "interop"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return None if shutil.which("qemu-system-x86_64") else \
        done.stdout.strip().replace("\n", " ") or "QEMU is not installed"


def skip_all(why):
    print(f"1..0 # SKIP {' '.join(why.split())}")
    sys.exit(0)


def enter():
    """Builds the guest, then runs this program again where no interface is anybody else's."""
    why = have_qemu()
    if why:
        skip_all(why)
    try:
        image = build_guest.build()
    except build_guest.CannotBuild as error:
        skip_all(str(error))
    os.environ[INSIDE] = image
    unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        skip_all("network namespaces are not allowed here")
    os.execvp("unshare", [*unshare, sys.executable, os.path.abspath(__file__), *sys.argv[1:]])


class Wire:
    """The guest, the tap and our daemon."""

    guest = daemon = None

    def start(self):
        for command in (
                "ip link set lo up", "ip tuntap add dev tap0 mode tap",
                # A guest that waits for its core must not cost packets: 4 MiB are 16,000 of 256.
                f"ip link set tap0 mtu {MTU} txqueuelen 20000", f"ip addr add {HOST}/24 dev tap0",
                "ip addr add fd91::1/64 dev tap0 nodad", "ip link set tap0 up"):
            subprocess.run(command.split(), check=True)
        self.guest = Guest(os.environ[INSIDE], netns=None, tap="tap0", ip=f"{GUEST}/24",
                           ip6="fd91::2/64", mtu=MTU)
        self.guest.__enter__()
        self.daemon = Daemon("--device", "link=udp,interface=tap0")
        self.daemon.__enter__()
        self.wire_data = self.guest.put(os.path.join(BUILD, "tests", "interop", "wire_data"))

    def stop(self, kind=None):
        if self.daemon:
            self.daemon.__exit__(kind)
        if self.guest:
            self.guest.__exit__()

    def counters(self):
        shown = json.loads(self.daemon.command("status", "--json").output)
        return shown["devices"][0]["counters"]

    def pair(self, server_is_guest, argv, deadline=120):
        """One program on both sides; both must end with 0. Returns the client's output."""
        port = free_port()
        ours = ["-d", "uroce0", "-p", str(port)]
        theirs = ["-d", "rxe0", "-p", str(port)]
        program, *options = [str(a) for a in argv]
        if server_is_guest:
            server = self.guest.start(" ".join([program, *theirs, *options]))
            self.guest.wait_listening(port, server)
            return self._both(server, lambda: self.daemon.start(program, *ours, *options, GUEST),
                              deadline)
        server = self.daemon.start(program, *ours, *options)
        return self._both(server, lambda: self._start_in_guest(
            port, server, [program, *theirs, *options, HOST]), deadline)

    def _start_in_guest(self, port, server, argv):
        wait_for("the server listens",
                 lambda: is_listening(port, server.pid) or not server.is_alive())
        return self.guest.start(" ".join(argv))

    def _both(self, server, start_client, deadline):
        """Whatever happens, no program of this side outlives its case."""
        client = None
        try:
            client = start_client()
            return self._end(server, client, deadline)
        finally:
            for p in (server, client):
                if hasattr(p, "kill") and p.is_alive():
                    p.kill()

    def _end(self, server, client, deadline):
        codes = client.wait(deadline), server.wait(15)
        if codes != (0, 0):
            said = [x.describe(code) if hasattr(x, "pid") else x.describe()
                    for x, code in ((client, codes[0]), (server, codes[1]))]
            raise AssertionError("\n".join(said) + f"\n{self.counters()}, "
                                 f"the tap dropped {tap_drops()} in all")
        return client.output()

    def data(self, gid, mtu, longest, timeout=PATIENT, deadline=150):
        """wire_data on both sides: it checks every byte itself."""
        port = free_port()
        args = [str(n) for n in (gid, mtu, port, longest, timeout)]
        ours = os.path.join(BUILD, "tests", "interop", "wire_data")
        server = self.daemon.start(ours, "uroce0", *args)
        out = self._both(server, lambda: self._start_in_guest(
            port, server, [self.wire_data, "rxe0", *args, HOST]), deadline)
        assert "every byte right" in out, out


wire = Wire()


# What is counted, by either side, when something was lost, or taken for lost.
OUR_SIGNS = ("local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err", "out_of_sequence",
             "duplicate_request", "link_drops", "rx_icrc_encapsulated")
THEIR_SIGNS = ("out_of_seq_request", "rcvd_seq_err", "completer_retry_err", "retry_exceeded_err",
               "send_err")


def tap_drops():
    """What the kernel lost on its way into the guest."""
    shown = subprocess.run(["ip", "-s", "-j", "link", "show", "tap0"], check=True,
                           stdout=subprocess.PIPE).stdout
    return json.loads(shown)[0]["stats64"]["tx"]["dropped"]


def signs_of_loss():
    ours = wire.counters()
    shown = wire.guest.run("cd /sys/class/infiniband/rxe0/ports/1/hw_counters && grep . *")
    theirs = dict(line.split(":") for line in shown.split())
    return {**{"uroce " + k: ours[k] for k in OUR_SIGNS},
            "the tap dropped": tap_drops(),
            **{"rxe " + k: int(theirs[k]) for k in THEIR_SIGNS},
            # A peer that is slow to answer is asked once more by a probe of one packet.
            "more repeated than probes": ours["retransmitted_packets"] > ours["tx_packets"] // 100,
            "rxe saw more repeated than uroce sent":
                int(theirs["duplicate_request"]) > ours["retransmitted_packets"]}


class Lossless:
    """with Lossless(): nothing is sent twice, on either side."""

    def __enter__(self):
        self.before = signs_of_loss()

    def __exit__(self, kind, *_):
        if kind is None:
            after = signs_of_loss()
            more = {k: after[k] - n for k, n in self.before.items() if after[k] > n}
            assert not more, f"signs of loss where nothing was lost: {more}"


def assert_no_icrc_errors():
    dmesg = wire.guest.run("dmesg | grep -ci icrc || true").strip()
    assert dmesg == "0", wire.guest.run("dmesg | grep -i icrc | tail")
    bad = {k: v for k, v in wire.counters().items() if "icrc" in k and v}
    assert not bad, bad


WAYS = {"rxe is the server": True, "uroce is the server": False}

PERFTEST = [["ib_send_bw", "-s", "65536", "-n", "20"],
            ["ib_write_bw", "-s", "65536", "-n", "20"],
            ["ib_read_bw", "-s", "65536", "-n", "20", "-o", "8"],
            ["ib_atomic_bw", "-A", "FETCH_AND_ADD", "-n", "100", "-o", "8"],
            ["ib_atomic_bw", "-A", "CMP_AND_SWAP", "-n", "100", "-o", "8"],
            ["ib_send_lat", "-s", "64", "-n", "100"],
            ["ib_write_lat", "-s", "64", "-n", "100"],
            ["ib_read_lat", "-s", "64", "-n", "100", "-o", "8"],
            ["ib_atomic_lat", "-n", "100", "-o", "8"]]


SOME = PERFTEST[1:4] + PERFTEST[5:6]


def perftest(server_is_guest, gid, mtu, programs):
    with Lossless():
        for argv in programs:
            size = [] if "atomic" in argv[0] else ["-m", mtu]
            out = wire.pair(server_is_guest, [*argv, "-x", gid, "-F", "-u", PATIENT, *size])
            assert re.search(r"^ *\d+ +\d+ +[\d.]+", out, re.M), out
    assert_no_icrc_errors()


for _way, _is_guest in WAYS.items():
    for _gid, _family in {1: "IPv4", 2: "IPv6"}.items():
        case(f"ibv_rc_pingpong, {_family}, {_way}")(
            lambda g=_is_guest, i=_gid: wire.pair(
                g, ["ibv_rc_pingpong", "-g", i, "-n", "200", "-c"]))
    for _kind in ("uc", "ud"):
        case(f"ibv_{_kind}_pingpong, {_way}")(
            lambda g=_is_guest, k=_kind: wire.pair(
                g, [f"ibv_{k}_pingpong", "-g", "1", "-n", "100"]))
    case(f"ibv_srq_pingpong, {_way}")(
        lambda g=_is_guest: wire.pair(g, ["ibv_srq_pingpong", "-g", "1", "-n", "100", "-q", "4"]))
    for _mtu, _gid, _family, _some in ((256, 1, "IPv4", SOME), (1024, 2, "IPv6", PERFTEST),
                                       (4096, 1, "IPv4", SOME)):
        case(f"perftest, path MTU {_mtu}, {_family}, {_way}, nothing sent twice")(
            lambda g=_is_guest, m=_mtu, i=_gid, p=_some: perftest(g, i, m, p))


def data_under_capture(gid, mtu, longest):
    pcap = os.path.join(wire.daemon.top, "wire.pcap")
    with Lossless(), Capture("tap0", pcap) as capture:
        wire.data(gid, mtu, longest)
    capture.assert_right()
    print(f"# {capture.frames} frames, all ICRCs right")
    assert_no_icrc_errors()
    return pcap


for _mtu, _gid, _family, _longest in ((256, 1, "IPv4", 300007), (1024, 2, "IPv6", 1 << 20),
                                      (4096, 1, "IPv4", 4 << 20)):
    case(f"every operation, lengths to {_longest}, both ways, path MTU {_mtu}, {_family}: all "
         "ICRCs right on the wire, nothing sent twice")(
        lambda m=_mtu, i=_gid, n=_longest: data_under_capture(i, m, n))


@case("tshark finds no frame malformed")
def _():
    if not shutil.which("tshark"):
        raise Skip("tshark is not installed")
    pcap = data_under_capture(1, 2048, 65535)
    said = tshark_complaints(pcap, "_ws.malformed || !infiniband")
    assert not said, said[:2000]


@case("every operation with one frame in a hundred lost")
def _():
    wire.daemon.command("fault", "set", "uroce0", "drop=1%", "seed=7")
    try:
        # rxe waits a timeout for each READ response that is lost: 0.5 s are enough of it.
        wire.data(1, 1024, 300007, timeout=17)
    finally:
        wire.daemon.command("fault", "clear")
    assert_no_icrc_errors()


inside.add_cases(wire)  # the last: they take rxe0 away

if __name__ == "__main__":
    if INSIDE not in os.environ:
        enter()
    try:
        wire.start()
        run_cases()
    finally:
        wire.stop(sys.exc_info()[0] if not isinstance(sys.exc_info()[1], SystemExit) else None)
