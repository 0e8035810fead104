#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Devices on DPDK's ethdevs: memif between two daemons, and drivers on veth pairs."""
import json
import os
import shutil
import tempfile

from capture import Capture, checked_packets
from harness import Daemon, Skip, case, free_port, run_cases, wait_for
from lab import ADDR, Lab, sh
from perftest import BW, LAT


def pair(a, b, program, *options, host="127.0.0.1"):
    """Server at daemon a, client at daemon b, each on its first device."""
    port = free_port()
    args = ["-d", "uroce0", "-p", port, *options]
    return a.pair([program, *args], [program, *args, host], port, deadline=120, client_daemon=b)


def perftest(a, b, program, *options, **more):
    _, out = pair(a, b, program, "-F", *options, **more)
    assert any(len(line.split()) >= 4 and line.split()[0].isdigit()
               for line in out.splitlines()), out


def all_of_perftest(a, b, *options, **more):
    for program, variants in {**BW, **LAT}.items():
        size = [] if "atomic" in program else ["-s", "65536" if "bw" in program else "64"]
        for variant in variants:
            perftest(a, b, program, "-n", "100", *size, *variant, *options, **more)


def device(daemon):
    return json.loads(daemon.command("status", "--json").output)["devices"][0]


class Memif:
    """Two daemons joined by shared memory, in no network at all."""

    def __init__(self, *options, words="", addresses=("198.18.7.1", "198.18.7.2")):
        self.top = tempfile.mkdtemp(prefix="uroce-e2e-")
        path = os.path.join(self.top, "memif.sock")
        self.daemons = [
            Daemon("--device", f"link=dpdk,addr={addresses[i]}{words},devargs=net_memif0,"
                   f"role={role},socket={path},socket-abstract=no", *options)
            for i, role in enumerate(("server", "client"))]

    def __enter__(self):
        self.daemons[0].__enter__()
        try:
            self.daemons[1].__enter__()
        except BaseException:
            self.daemons[0].__exit__(AssertionError)
            raise
        return self.daemons

    def __exit__(self, *why):
        try:
            self.daemons[1].__exit__(*why)
        finally:
            self.daemons[0].__exit__(*why)
            shutil.rmtree(self.top, ignore_errors=True)


@case("memif: perftest, all programs, IPv4")
def _():
    with Memif() as (a, b):
        assert "active_mtu:\t\t4096 (5)" in a.run("ibv_devinfo", "-d", "uroce0").output
        all_of_perftest(a, b, "-x", "1")


@case("memif: IPv6, link-local GIDs, UD, and a device that reaches itself")
def _():
    with Memif(addresses=("fd92::1", "fd92::2")) as (a, b):
        for gid in "01":
            pair(a, b, "ibv_rc_pingpong", "-g", gid, "-n", "200", "-c")
            pair(a, b, "ibv_ud_pingpong", "-g", gid, "-n", "200")
            pair(a, a, "ibv_rc_pingpong", "-g", gid, "-n", "200", "-c")
        perftest(a, b, "ib_write_bw", "-x", "1", "-n", "200", "-s", "65537")


@case("memif: two workers, sixteen queue pairs both ways, a VLAN")
def _():
    with Memif("--workers", "2", words=",vlan=77") as (a, b):
        for program in BW:
            size = [] if "atomic" in program else ["-s", "16384"]
            perftest(a, b, program, "-x", "1", "-n", "100", "-q", "16", "-b", *size)


@case("memif: one packet in a hundred is lost: everything arrives")
def _():
    with Memif() as (a, b):
        for d in (a, b):
            d.command("fault", "set", "uroce0", "drop=1%", "seed=5")
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
            perftest(a, b, program, "-x", "1", "-n", "100", "-s", "65536")


@case("memif: the other daemon dies and comes back: programs then work again")
def _():
    with Memif() as (a, b):
        perftest(a, b, "ib_write_bw", "-x", "1", "-n", "50")
        b.__exit__(None)
        # A message to nobody ends in an error, and holds up nothing.
        top = b.top
        b.top = tempfile.mkdtemp(prefix="uroce-e2e-")
        b.run_dir = os.path.join(b.top, "run")
        assert not os.path.exists(top)
        b.__enter__()
        perftest(a, b, "ib_write_bw", "-x", "1", "-n", "50")


class AfPacket:
    """Two daemons on a veth pair through the af_packet driver; the kernels own the addresses."""

    def __init__(self, mtu, words):
        self.lab = Lab(mtu)
        self.daemons = [Daemon("--device", f"link=dpdk,devargs=net_af_packet0,iface=veth0,{words}",
                               netns=self.lab.netns[h]) for h in "ab"]

    def __enter__(self):
        self.lab.__enter__()
        try:
            for d in self.daemons:
                d.__enter__()
        except BaseException:
            self.__exit__(AssertionError)
            raise
        return self.daemons

    def __exit__(self, *why):
        for d in self.daemons:
            if hasattr(d, "proc") and d.proc.poll() is None:
                d.__exit__(*why)
        self.lab.__exit__()


@case("af_packet: perftest, all programs, MTU 4200; UD over IPv6")
def _():
    with AfPacket(4200, "framesz=4352,blocksz=69632,framecnt=512,qdisc_bypass=1") as (a, b):
        all_of_perftest(a, b, "-x", "1", host=ADDR["a"])
        pair(a, b, "ibv_ud_pingpong", "-g", "2", "-n", "200", host=ADDR["a"])


@case("af_packet: MTU 1500, and 9000")
def _():
    with AfPacket(1500, "framecnt=512") as (a, b):
        assert device(a)["mtu"] == 1024
        perftest(a, b, "ib_write_bw", "-x", "2", "-n", "100", "-s", "65537", host=ADDR["a"])
    with AfPacket(9000, "framesz=9216,blocksz=36864,framecnt=256") as (a, b):
        assert device(a)["mtu"] == 4096
        perftest(a, b, "ib_read_bw", "-x", "1", "-n", "100", "-s", "65537", host=ADDR["a"])


@case("tap: devices with addresses of their own behind bridges; they answer ping")
def _():
    lab = Lab(1500)
    address = {"a": "192.0.2.11", "b": "192.0.2.12"}
    a, b = (Daemon("--device", f"link=dpdk,addr={address[h]},devargs=net_tap0,iface=tap0",
                   netns=lab.netns[h]) for h in "ab")
    with lab, a, b:
        for h in "ab":
            lab.ip(h, "link", "add", "br0", "type", "bridge")
            for interface in ("tap0", "veth0"):
                lab.ip(h, "link", "set", interface, "master", "br0")
                lab.ip(h, "link", "set", interface, "up")
            lab.ip(h, "addr", "flush", "dev", "veth0")
            lab.ip(h, "addr", "add", f"{ADDR[h]}/24", "dev", "br0")
            # Its own link-local address could not be used for the first two seconds.
            lab.ip(h, "link", "set", "br0", "addrgenmode", "none")
            lab.ip(h, "link", "set", "br0", "up")
            lab.ip(h, "addr", "add", f"fe80::{h}/64", "dev", "br0", "nodad")
        all_of_perftest(a, b, "-x", "1", host=ADDR["a"])
        pair(a, b, "ibv_ud_pingpong", "-g", "0", "-n", "200", host=ADDR["a"])
        inside = ["nsenter", f"--net={lab.netns['b']}", "ping", "-c", "2", "-i", "0.2", "-w", "10"]
        gid0 = device(a)["gids"][0]
        for size, to in (("1000", address["a"]), ("1001", f"{gid0}%br0")):
            sh(*inside, "-s", size, to)  # until two are answered


def add_veth1(lab):
    """The driver takes all packets of its interface: programs meet on another."""
    sh("ip", "link", "add", "veth1", "netns", lab.name["a"], "type", "veth", "peer", "name",
       "veth1", "netns", lab.name["b"])
    for h, host in (("a", 1), ("b", 2)):
        lab.ip(h, "link", "set", "veth1", "mtu", 3400)
        lab.ip(h, "addr", "add", f"198.51.100.{host}/24", "dev", "veth1")
        lab.ip(h, "link", "set", "veth1", "up")


def have_af_xdp(lab):
    """Whether the kernel lets an XDP program into a veth here; the driver says why not."""
    d = Daemon("--device", "link=dpdk,devargs=net_af_xdp0,iface=veth1", netns=lab.netns["a"])
    try:
        d.__enter__()
    except AssertionError as why:
        said = str(why).splitlines()
        raise Skip(f"no AF_XDP here: {said[-1] if said else why}") from why
    d.__exit__(None)


@case("af_xdp: the interface's addresses, ARP of our own")
def _():
    lab = Lab(1500)
    a, b = (Daemon("--device", "link=dpdk,devargs=net_af_xdp0,iface=veth1", netns=lab.netns[h])
            for h in "ab")
    with lab:
        add_veth1(lab)
        have_af_xdp(lab)
        with a, b:
            assert device(a)["mtu"] == 2048
            all_of_perftest(a, b, "-x", "1", host=ADDR["a"])
            # Each of its mbufs more than once, both ways: none must be lost to the kernel.
            perftest(a, b, "ib_write_bw", "-x", "1", "-n", "1000", "-s", "65537", "-b",
                     host=ADDR["a"])
            pair(a, b, "ibv_ud_pingpong", "-g", "1", "-n", "200", host=ADDR["a"])


def gid_index(daemon, gid):
    wait_for(f"the device has {gid}", lambda: gid in device(daemon)["gids"])
    return str(device(daemon)["gids"].index(gid))


def new_addresses(lab, a, b, interface):
    """An address more at both ends, while the devices run; and traffic over it."""
    for h, host in (("a", 1), ("b", 2)):
        lab.ip(h, "addr", "add", f"203.0.113.{host}/24", "dev", interface)
    new = [gid_index(d, f"0000:0000:0000:0000:0000:ffff:cb00:710{i}")
           for i, d in ((1, a), (2, b))]
    port = free_port()
    args = ["ibv_rc_pingpong", "-d", "uroce0", "-n", "200", "-c", "-p", port, "-g"]
    a.pair([*args, new[0]], [*args, new[1], ADDR["a"]], port, deadline=60, client_daemon=b)
    lab.ip("a", "addr", "del", "203.0.113.1/24", "dev", interface)
    wait_for("the address is gone", lambda: not any("cb00:7101" in g for g in device(a)["gids"]))
    perftest(a, b, "ib_write_bw", "-x", "1", "-n", "100", host=ADDR["a"])


@case("af_packet, af_xdp: addresses that the interface gets and loses later")
def _():
    with AfPacket(4200, "framesz=4352,blocksz=69632,framecnt=512") as (a, b):
        lab = Lab.__new__(Lab)
        lab.name = {h: os.path.basename(d.netns) for h, d in zip("ab", (a, b))}
        with Capture(a.netns, "veth0") as capture:
            new_addresses(lab, a, b, "veth0")
        seen = checked_packets(capture.path)
        assert seen["IPv4"] > 400 and seen["icmp"] == 0, seen
    lab = Lab(1500)
    a, b = (Daemon("--device", "link=dpdk,devargs=net_af_xdp0,iface=veth1", netns=lab.netns[h])
            for h in "ab")
    with lab:
        add_veth1(lab)
        have_af_xdp(lab)
        with a, b:
            new_addresses(lab, a, b, "veth1")


@case("devices on memif and af_packet come and go while the daemons run")
def _():
    lab = Lab(4200)
    top = tempfile.mkdtemp(prefix="uroce-e2e-")
    words = {h: [["link=dpdk", f"addr=198.18.7.{i}", f"devargs=net_memif0,role={role},"
                  f"socket={top}/memif.sock,socket-abstract=no"],
                 ["link=dpdk", "devargs=net_af_packet0,iface=veth0,framesz=4352,blocksz=69632"]]
             for i, (h, role) in enumerate((("a", "server"), ("b", "client")), 1)}
    a, b = (Daemon("--devices=1", netns=lab.netns[h]) for h in "ab")
    try:
        with lab, a, b:
            for turn in range(3):
                for spec in range(2):
                    for h, d in (("a", a), ("b", b)):
                        d.command("device", "add", f"name=new{spec}", *words[h][spec])
                    port = free_port()
                    args = ["ib_write_bw", "-d", f"new{spec}", "-F", "-x", "1", "-n", "100", "-s",
                            "65536", "-p", port]
                    a.pair(args, [*args, ADDR["a"]], port, deadline=60, client_daemon=b)
                for spec in range(2):
                    for d in (a, b):
                        d.command("device", "del", f"new{spec}")
                        assert len(json.loads(d.command("status", "--json").output)["devices"]) \
                            == 2 - spec, turn
    finally:
        shutil.rmtree(top, ignore_errors=True)


@case("an af_xdp device cannot be added later, and that is told in a sentence")
def _():
    lab = Lab(1500)
    with lab:
        add_veth1(lab)
        with Daemon(netns=lab.netns["a"]) as d:
            r = d.command("device", "add", "link=dpdk", "devargs=net_af_xdp0,iface=veth1",
                          expect=1)
            assert "--device" in r.output and "BPF" in r.output, r.output
            assert len(json.loads(d.command("status", "--json").output)["devices"]) == 2


@case("af_xdp: an MTU that its buffers do not hold is not taken up")
def _():
    lab = Lab(1500)
    with lab:
        add_veth1(lab)
        have_af_xdp(lab)
        lab.ip("a", "link", "set", "veth1", "mtu", 9000)
        with Daemon("--device", "link=dpdk,devargs=net_af_xdp0,iface=veth1",
                    netns=lab.netns["a"]) as d:
            assert device(d)["mtu"] == 2048, device(d)
            assert "buffers hold IP packets of at most" in d.log_text(), d.log_text()
            # Nor when the interface's MTU is raised later.
            for mtu, path_mtu in ((1500, 1024), (9000, 2048)):
                lab.ip("a", "link", "set", "veth1", "mtu", mtu)
                wait_for(f"the path MTU is {path_mtu}", lambda m=path_mtu: device(d)["mtu"] == m)


@case("devargs that no driver takes are told in a sentence")
def _():
    for devargs, words in (("net_none0", "net_none0"), ("net_memif0,role=nobody", "net_memif0")):
        d = Daemon("--device", f"link=dpdk,addr=198.18.7.1,devargs={devargs}")
        try:
            d.__enter__()
        except AssertionError as why:
            assert "dpdk link does not open" in str(why) and words in str(why), why
        else:
            d.__exit__(None)
            raise AssertionError(devargs)


run_cases()
