#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two devices of one daemon on the switch, with an uplink to another daemon on a veth pair."""
import json

from capture import Capture, checked_packets, tshark_complaints
from harness import Daemon, case, free_port, is_listening, run_cases, wait_for
from lab import ADDR, Lab, sh

PROGRAMS = ("ib_write_bw", "ib_read_bw", "ib_send_bw")


class Host:
    """Device `left` and `right` on host A's switch, and host B's only device."""

    def __init__(self, devices, *options, mtu=4200, prepare=lambda lab: None, outside="veth0"):
        self.lab, self.prepare = Lab(mtu), prepare
        words = [w for name, d in zip(("left", "right"), devices)
                 for w in ("--device", f"name={name},link=switch,{d}")]
        self.a = Daemon(*words, *options, netns=self.lab.netns["a"])
        self.b = Daemon("--device", f"link=packet,interface={outside}", netns=self.lab.netns["b"])

    def __enter__(self):
        self.lab.__enter__()
        try:
            self.prepare(self.lab)
            self.a.__enter__()
            self.b.__enter__()
        except BaseException:
            self.__exit__(AssertionError)
            raise
        return self

    def __exit__(self, *why):
        for d in (self.a, self.b):
            if hasattr(d, "proc") and d.proc.poll() is None:
                d.__exit__(*why)
        self.lab.__exit__()

    def pair(self, server, client, program, *options):
        """server and client: "left", "right" (of A) or "b"."""
        daemon = {"left": self.a, "right": self.a, "b": self.b}
        name = {"left": "left", "right": "right", "b": "uroce0"}
        same = daemon[server] is daemon[client]
        host = "127.0.0.1" if same else ADDR["b" if server == "b" else "a"]
        port = free_port()
        args = [program, "-p", port, *options]
        return daemon[server].pair([*args, "-d", name[server]], [*args, "-d", name[client], host],
                                   port, deadline=120, client_daemon=daemon[client])

    def perftest(self, server, client, program, *options):
        _, out = self.pair(server, client, program, "-F", "-x", "1", *options)
        assert any(len(line.split()) >= 4 and line.split()[0].isdigit()
                   for line in out.splitlines()), out

    def everywhere(self, *options):
        """Each program inside, to the peer and from it, over both devices."""
        ways = (("left", "right"), ("left", "b"), ("b", "right"), ("right", "b"), ("b", "left"),
                ("right", "left"), ("left", "left"))
        for i, (server, client) in enumerate(ways):
            for program in (PROGRAMS[i % 3], PROGRAMS[(i + 1) % 3]):
                self.perftest(server, client, program, *options)

    def devices(self):
        return {d["name"]: d
                for d in json.loads(self.a.command("status", "--json").output)["devices"]}


def second_address(lab):
    lab.ip("a", "addr", "add", "192.0.2.11/24", "dev", "veth0")


def plain_cards(lab):
    """The kernel cuts super-frames and sums before the wire."""
    for host in "ab":
        sh("nsenter", f"--net={lab.netns[host]}", "ethtool", "-K", "veth0",
           "tx-udp-segmentation", "off", "tx-checksum-ip-generic", "off")


def second_interface(lab):
    """Host B bridges both of A's interfaces and is itself on the bridge."""
    sh("ip", "link", "add", "veth1", "netns", lab.name["a"], "type", "veth", "peer", "name",
       "veth1", "netns", lab.name["b"])
    lab.ip("b", "link", "add", "br0", "type", "bridge")
    lab.ip("b", "link", "set", "br0", "mtu", lab.mtu)
    lab.ip("b", "addr", "flush", "dev", "veth0")
    lab.ip("b", "addr", "add", f"{ADDR['b']}/24", "dev", "br0")
    for h in "ab":
        lab.ip(h, "link", "set", "veth1", "mtu", lab.mtu)
        lab.ip(h, "link", "set", "veth1", "up")
    for interface in ("veth0", "veth1"):
        lab.ip("b", "link", "set", interface, "master", "br0")
    lab.ip("b", "link", "set", "br0", "up")
    # Each interface answers for its own address only.
    sh("nsenter", f"--net={lab.netns['a']}", "sh", "-c",
       "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore")
    lab.ip("a", "addr", "add", "192.0.3.11/24", "dev", "veth1")
    lab.ip("b", "addr", "add", "192.0.3.2/24", "dev", "br0")


UDP = [f"uplink=udp,addr={a}" for a in (ADDR["a"], "192.0.2.11")]
# An address that no kernel has: the device answers ARP for it itself.
DPDK = ("uplink=dpdk,addr=192.0.2.21,devargs=net_af_packet0,iface=veth0,framesz=4352,"
        "blocksz=69632,framecnt=512")


def udp(*options):
    return Host(UDP, *options, prepare=second_address)


@case("udp uplink: between the devices, to the peer and back, and to itself")
def _():
    with udp() as h:
        h.everywhere("-n", "100", "-s", "16385")
        for gid in "01":
            h.pair("left", "right", "ibv_ud_pingpong", "-g", gid, "-n", "200")
        h.pair("left", "b", "ibv_ud_pingpong", "-g", "1", "-n", "200")
        shown = h.a.command("device", "show").output
        assert "link switch with uplink udp" in shown, shown


@case("a dpdk uplink with an address of its own beside a udp uplink, two workers")
def _():
    with Host([DPDK, UDP[0]], "--workers", "2", prepare=plain_cards) as h:
        h.everywhere("-n", "100", "-s", "16385", "-q", "4")
        h.pair("right", "b", "ibv_ud_pingpong", "-g", "1", "-n", "200")
        h.pair("b", "left", "ibv_ud_pingpong", "-g", "1", "-n", "200")
        r = h.a.command("device", "add", "name=more", "link=dpdk", "addr=192.0.2.22",
                        "devargs=net_af_packet1,iface=veth0", expect=1)
        assert "more" in r.output and "half of the packets" in r.output, r.output


@case("what is for the other device stays inside; what leaves is whole and right")
def _():
    with udp() as h:
        with Capture(h.lab.netns["a"], "veth0") as inside, Capture(h.lab.netns["a"], "lo") as lo:
            for program in PROGRAMS:
                h.perftest("left", "right", program, "-n", "100", "-s", "65536")
            h.pair("right", "left", "ibv_rc_pingpong", "-g", "1", "-n", "100", "-c")
        for capture in (inside, lo):
            seen = checked_packets(capture.path)
            assert seen["IPv4"] == 0 and seen["IPv6"] == 0, seen
        plain_cards(h.lab)
        with Capture(h.lab.netns["b"], "veth0") as outside:
            for program in PROGRAMS:
                h.perftest("left", "b", program, "-n", "20", "-s", "65537")
                h.perftest("b", "right", program, "-n", "20", "-s", "65537")
        seen = checked_packets(outside.path)
        assert seen["IPv4"] > 500 and seen["icmp"] == 0, seen
        assert not tshark_complaints(outside.path), tshark_complaints(outside.path)


@case("both ways at once")
def _():
    with udp() as h:
        port = free_port()
        args = ["-g", "1", "-p", port, "-n", "20000", "-c"]
        s = h.a.start("ibv_rc_pingpong", "-d", "left", *args)
        wait_for("the server listens", lambda: is_listening(port, s.pid))
        c = h.a.start("ibv_rc_pingpong", "-d", "right", *args, "127.0.0.1")
        for program in PROGRAMS:
            h.perftest("b", "left", program, "-n", "100", "-s", "65536")
            h.perftest("right", "b", program, "-n", "100", "-s", "65536")
        assert c.wait(60) == 0, c.describe(c.proc.poll())
        assert s.wait(30) == 0, s.describe(s.proc.poll())


@case("one packet in a hundred is lost: everything arrives")
def _():
    with udp() as h:
        for name in ("left", "right"):
            h.a.command("fault", "set", name, "drop=1%", "seed=7")
        h.everywhere("-n", "100", "-s", "65536")


@case("packet uplinks: a link that goes down takes its port down, and up again")
def _():
    devices = ["uplink=packet,interface=veth0", "uplink=packet,interface=veth1"]
    with Host(devices, prepare=second_interface, outside="br0") as h:
        h.perftest("left", "right", "ib_write_bw", "-n", "100", "-s", "65536")
        h.perftest("b", "left", "ib_write_bw", "-n", "100", "-s", "65536")

        def sent():
            return h.devices()["left"]["counters"]["link_tx_packets"]

        port = free_port()
        args = ["-g", "1", "-p", port, "-n", "20000", "-c"]
        s = h.b.start("ibv_rc_pingpong", "-d", "uroce0", *args)
        wait_for("the server listens", lambda: is_listening(port, s.pid))
        c = h.a.start("ibv_rc_pingpong", "-d", "left", *args, ADDR["b"])
        before = sent()
        wait_for("packets flow", lambda: sent() > before + 1000)
        h.lab.ip("a", "link", "set", "veth0", "down")
        wait_for("left is down", lambda: h.devices()["left"]["state"] == "DOWN")
        assert h.devices()["right"]["state"] == "ACTIVE"
        h.lab.ip("a", "link", "set", "veth0", "up")
        wait_for("left is up", lambda: h.devices()["left"]["state"] == "ACTIVE")
        assert c.wait(60) == 0, c.describe(c.proc.poll())
        assert s.wait(30) == 0, s.describe(s.proc.poll())


@case("a device of the switch comes and goes beside one that works")
def _():
    with udp() as h:
        port = free_port()
        args = ["-g", "1", "-p", port, "-n", "30000", "-c"]
        s = h.b.start("ibv_rc_pingpong", "-d", "uroce0", *args)
        wait_for("the server listens", lambda: is_listening(port, s.pid))
        c = h.a.start("ibv_rc_pingpong", "-d", "left", *args, ADDR["b"])
        for _ in range(3):
            h.a.command("device", "del", "right")
            assert "right" not in h.devices()
            h.a.command("device", "add", "name=right", "link=switch", "uplink=udp",
                        "addr=192.0.2.11")
            h.perftest("left", "right", "ib_write_bw", "-n", "100")
            h.perftest("b", "right", "ib_write_bw", "-n", "100")
        assert c.wait(60) == 0, c.describe(c.proc.poll())
        assert s.wait(30) == 0, s.describe(s.proc.poll())


@case("two uplinks with one MAC are told in a sentence")
def _():
    with udp() as h:
        for name, code in (("one", 0), ("two", 1)):
            r = h.a.command("device", "add", f"name={name}", "link=switch", "uplink=packet",
                            "interface=veth0", expect=code)
        assert "MAC" in r.output, r.output


run_cases()
