#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two daemons on the ends of a veth pair, through packet sockets: whole frames, super-frames."""
import json
import os

from capture import Capture, checked_packets, tshark_complaints
from harness import Daemon, case, free_port, is_listening, run_cases, wait_for
from lab import ADDR, ADDR6, Lab, sh
from perftest import BW, LAT

PACKET = "link=packet,interface=veth0"
UDP = "link=udp,interface=veth0"


def pair(a, b, program, *options, host=ADDR["a"]):
    """Server at daemon a, client at daemon b, each on its first device."""
    port = free_port()
    args = ["-d", "uroce0", "-p", port, *options]
    return a.pair([program, *args], [program, *args, host], port, deadline=120, client_daemon=b)


def perftest(a, b, program, *options):
    _, out = pair(a, b, program, "-F", *options)
    assert any(len(line.split()) >= 4 and line.split()[0].isdigit()
               for line in out.splitlines()), out


def all_of_perftest(a, b, *options):
    for program, variants in {**BW, **LAT}.items():
        size = [] if "atomic" in program else ["-s", "65536" if "bw" in program else "64"]
        for variant in variants:
            perftest(a, b, program, "-n", "100", *size, *variant, *options)


def device(daemon):
    return json.loads(daemon.command("status", "--json").output)["devices"][0]


def packets(daemon):
    return device(daemon)["counters"]["rx_packets"]


def on_veth(*options, devices=(PACKET, PACKET), mtu=4200):
    lab = Lab(mtu)
    return lab, [Daemon("--device", devices[i], *options, netns=lab.netns[h])
                 for i, h in enumerate("ab")]


@case("perftest, all programs, IPv4")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        all_of_perftest(a, b, "-x", "1")


@case("perftest, all programs, IPv6")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        all_of_perftest(a, b, "-x", "2")


@case("MTU 9000, two workers, sixteen queue pairs both ways")
def _():
    lab, (a, b) = on_veth("--workers", "2", mtu=9000)
    with lab, a, b:
        assert "active_mtu:\t\t4096 (5)" in a.run("ibv_devinfo", "-d", "uroce0").output
        for program in BW:
            size = [] if "atomic" in program else ["-s", "16384"]
            perftest(a, b, program, "-x", "1", "-n", "100", "-q", "16", "-b", *size)


@case("MTU 1500 makes path MTU 1024; a message of every length modulo 4")
def _():
    lab, (a, b) = on_veth(mtu=1500)
    with lab, a, b:
        assert "active_mtu:\t\t1024 (3)" in a.run("ibv_devinfo", "-d", "uroce0").output
        for size in (1, 2, 3, 4, 1025, 65537, 1048575):
            perftest(a, b, "ib_write_bw", "-x", "1", "-n", "20", "-s", str(size))
            perftest(a, b, "ib_read_bw", "-x", "2", "-n", "20", "-s", str(size))


@case("pingpong: RC, UC, UD and SRQ, over every GID, with events")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        for gid in "012":
            pair(a, b, "ibv_rc_pingpong", "-g", gid, "-n", "200", "-c", "-e")
            pair(a, b, "ibv_ud_pingpong", "-g", gid, "-n", "200")
        pair(a, b, "ibv_uc_pingpong", "-g", "1", "-n", "200")
        pair(a, b, "ibv_srq_pingpong", "-g", "1", "-n", "200")


@case("a device reaches itself")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        for gid in "012":
            pair(a, a, "ibv_rc_pingpong", "-g", gid, "-n", "200", "-c", host="127.0.0.1")


@case("a packet link and a udp link understand each other")
def _():
    for devices in ((PACKET, UDP), (UDP, PACKET)):
        lab, (a, b) = on_veth(devices=devices)
        with lab, a, b:
            for gid in "12":
                for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
                    perftest(a, b, program, "-x", gid, "-n", "200", "-s", "65536", "-b"
                             if program != "ib_read_bw" else "-F")
                pair(a, b, "ibv_ud_pingpong", "-g", gid, "-n", "200")


@case("one packet in a hundred is lost: everything arrives")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        for d in (a, b):
            d.command("fault", "set", "uroce0", "drop=1%", "seed=3")
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
            perftest(a, b, program, "-x", "1", "-n", "100", "-s", "65536")


@case("the link goes down and up in the middle: traffic resumes")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        port = free_port()
        args = ["-d", "uroce0", "-g", "1", "-p", port, "-n", "30000", "-c"]
        s = a.start("ibv_rc_pingpong", *args)
        wait_for("the server listens", lambda: is_listening(port, s.pid))
        c = b.start("ibv_rc_pingpong", *args, ADDR["a"])
        wait_for("packets flow", lambda: packets(a) > 1000)
        lab.ip("a", "link", "set", "veth0", "down")
        before = packets(a)
        lab.ip("a", "link", "set", "veth0", "up")
        wait_for("packets flow again", lambda: packets(a) > before + 1000)
        assert c.wait(60) == 0, c.describe(c.proc.poll())
        assert s.wait(30) == 0, s.describe(s.proc.poll())


@case("a peer that does not answer is told as retries that ran out")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        # The programs meet over IPv4; nobody has the MAC that RDMA over IPv6 goes to.
        lab.ip("b", "neigh", "replace", ADDR6["a"], "lladdr", "02:00:00:00:00:77", "dev", "veth0")
        port = free_port()
        args = ["-d", "uroce0", "-g", "2", "-p", port, "-n", "1000"]
        s = a.start("ibv_rc_pingpong", *args)
        wait_for("the server listens", lambda: is_listening(port, s.pid))
        c = b.start("ibv_rc_pingpong", *args, ADDR["a"])
        assert c.wait(60) == 1 and "transport retry counter exceeded" in c.output(), c.describe(0)
        s.kill()


@case("a peer that moves to another MAC is found there")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        pair(a, b, "ibv_rc_pingpong", "-g", "1", "-n", "200")
        lab.ip("b", "neigh", "replace", ADDR["a"], "lladdr", "02:00:00:00:00:77", "dev", "veth0")
        mac = json.loads(sh("ip", "-n", lab.name["a"], "-j", "link", "show", "veth0"))
        port = free_port()
        args = ["-d", "uroce0", "-g", "1", "-p", port, "-n", "200"]
        s = a.start("ibv_rc_pingpong", *args)
        wait_for("the server listens", lambda: is_listening(port, s.pid))
        lab.ip("b", "neigh", "replace", ADDR["a"], "lladdr", mac[0]["address"], "dev", "veth0")
        c = b.start("ibv_rc_pingpong", *args, ADDR["a"])
        assert c.wait(60) == 0 and s.wait(30) == 0, c.describe(c.proc.poll())


@case("what is captured has no malformed packet, and right ICRCs")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        # So the kernel cuts super-frames and sums before the wire, as for a plain card.
        for host in "ab":
            sh("nsenter", f"--net={lab.netns[host]}", "ethtool", "-K", "veth0",
               "tx-udp-segmentation", "off", "tx-checksum-ip-generic", "off")
        with Capture(lab.netns["a"], "veth0") as capture:
            for gid in "12":
                for program in ("ib_write_bw", "ib_read_bw"):
                    perftest(a, b, program, "-x", gid, "-n", "20", "-s", "65537")
                perftest(a, b, "ib_atomic_bw", "-x", gid, "-n", "20")
                pair(a, b, "ibv_ud_pingpong", "-g", gid, "-n", "20")
        seen = checked_packets(capture.path)
        assert seen["IPv4"] > 500 and seen["IPv6"] > 500, seen
        assert seen["id"] > 10, "no super-frame was cut"
        assert not tshark_complaints(capture.path), tshark_complaints(capture.path)
        assert seen["icmp"] == 0, "the kernel answers port 4791"


@case("without CAP_NET_RAW it says what is missing")
def _():
    lab = Lab()
    with lab:
        d = Daemon("--device", PACKET, netns=lab.netns["a"])
        d.netns = None
        program = ["nsenter", f"--net={lab.netns['a']}", "setpriv", "--bounding-set=-net_raw",
                   "--inh-caps=-net_raw", os.path.join(d.bin, "uroced"), "--run-dir", d.run_dir,
                   "--device", PACKET]
        result = d.run(*program, under_run=False, expect=1)
        assert "CAP_NET_RAW" in result.output, result.output


@case("an interface that is none, or has no MAC, is told in a sentence")
def _():
    lab = Lab(hosts="a")
    with lab:
        for interface, words in (("none0", "No such device"), ("lo", "no MAC address")):
            d = Daemon("--device", f"link=packet,interface={interface}", netns=lab.netns["a"])
            try:
                d.__enter__()
            except AssertionError as why:
                assert words in str(why), why
            else:
                d.__exit__(None)
                raise AssertionError(interface)


run_cases()
