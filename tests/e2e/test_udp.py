#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two daemons that reach each other through UDP sockets of the kernel."""
import json
import os

from harness import NOBODY, Daemon, case, free_port, is_listening, run_cases, wait_for
from lab import ADDR, Lab, sh
from perftest import BW, LAT

LOOP = {"a": "127.0.0.1", "b": "127.0.0.2"}


def pair(a, b, host, program, *options):
    """Server at daemon a, client at daemon b, each on its first device."""
    port = free_port()
    args = ["-d", "uroce0", "-p", port, *options]
    return a.pair([program, *args], [program, *args, host], port, deadline=120, client_daemon=b)


def perftest(a, b, host, program, *options):
    _, out = pair(a, b, host, program, "-F", *options)
    assert any(len(line.split()) >= 4 and line.split()[0].isdigit()
               for line in out.splitlines()), out


def all_of_perftest(a, b, host, *options):
    for program, variants in {**BW, **LAT}.items():
        size = [] if "atomic" in program else ["-s", "65536" if "bw" in program else "64"]
        for variant in variants:
            perftest(a, b, host, program, "-n", "100", *size, *variant, *options)


def packets(daemon):
    shown = json.loads(daemon.command("status", "--json").output)
    return shown["devices"][0]["counters"]["rx_packets"]


def on_loopback(*options, user=None):
    lab = Lab(hosts="a")
    return lab, [Daemon("--device", f"link=udp,addr={LOOP[h]}", *options, user=user,
                        netns=lab.netns["a"]) for h in "ab"]


def on_veth(*options, device="link=udp,interface=veth0", mtu=4200):
    lab = Lab(mtu)
    return lab, [Daemon("--device", device, *options, netns=lab.netns[h]) for h in "ab"]


@case("perftest, all programs, on 127.0.0.1 and 127.0.0.2")
def _():
    lab, (a, b) = on_loopback()
    with lab, a, b:
        all_of_perftest(a, b, LOOP["a"], "-x", "1")


@case("perftest, all programs, over veth, IPv4")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        all_of_perftest(a, b, ADDR["a"], "-x", "1")


@case("perftest, all programs, over veth, IPv6")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        all_of_perftest(a, b, ADDR["a"], "-x", "2")


@case("link-local GIDs (-g 0) over veth")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        pair(a, b, ADDR["a"], "ibv_rc_pingpong", "-g", "0", "-n", "200", "-c")


@case("an interface MTU of 1500 makes path MTU 1024 the largest")
def _():
    lab, (a, b) = on_veth(mtu=1500)
    with lab, a, b:
        out = a.run("ibv_devinfo", "-d", "uroce0").output
        assert "active_mtu:\t\t1024 (3)" in out, out
        perftest(a, b, ADDR["a"], "ib_write_bw", "-x", "1", "-n", "100", "-m", "1024")
        try:
            pair(a, b, ADDR["a"], "ibv_rc_pingpong", "-g", "1", "-m", "4096")
        except AssertionError as why:
            assert "Failed to modify QP to RTR" in str(why), why
        else:
            raise AssertionError("path MTU 4096 is accepted")


@case("sixteen queue pairs both ways at once, two workers in each daemon")
def _():
    lab, (a, b) = on_veth("--workers", "2")
    with lab, a, b:
        for program in BW:
            size = [] if "atomic" in program else ["-s", "16384"]
            perftest(a, b, ADDR["a"], program, "-x", "1", "-n", "100", "-q", "16", "-b", *size)


@case("completion events")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        pair(a, b, ADDR["a"], "ibv_rc_pingpong", "-g", "1", "-n", "200", "-e", "-c")


@case("as nobody, with no capability")
def _():
    lab, (a, b) = on_loopback(user=NOBODY)
    with lab, a, b:
        pair(a, b, LOOP["a"], "ibv_rc_pingpong", "-g", "1", "-n", "200", "-c")
        perftest(a, b, LOOP["a"], "ib_write_bw", "-x", "1", "-n", "200")


@case("a message never lasts for ever: the peer's daemon dies")
def _():
    lab, (a, b) = on_loopback()
    with lab, a:
        port = free_port()
        # Many requests are always under way; of a pingpong both sides may just be waiting.
        args = ["-d", "uroce0", "-x", "1", "-F", "-p", port, "-D", "120"]
        with b:
            s = b.start("ib_write_bw", *args)
            wait_for("the server listens", lambda: is_listening(port, s.pid))
            c = a.start("ib_write_bw", *args, LOOP["b"])
            wait_for("packets flow", lambda: packets(a) > 100)
        code = c.wait(60)
        assert code, c.describe(code)
        s.kill()


@case("a configuration file names devices of several links")
def _():
    lab = Lab(hosts="a")
    with lab:
        d = Daemon(netns=lab.netns["a"])
        path = os.path.join(d.top, "uroce.conf")
        with open(path, "w", encoding="ascii") as f:
            json.dump({"workers": 1, "devices": [
                {"name": "left", "link": "udp", "addr": "127.0.0.1"},
                {"name": "right", "link": "udp", "addr": "127.0.0.2", "mtu": 1500},
                {}]}, f)
        d.options = ["--config", path]
        with d:
            shown = json.loads(d.command("status", "--json").output)["devices"]
            assert [(x["name"], x["link"], x["mtu"]) for x in shown] == [
                ("left", "udp", 4096), ("right", "udp", 1024), ("uroce2", "switch", 4096)], shown
            ndev = os.path.join(d.run_dir, "sys/class/infiniband/left/ports/1/gid_attrs/ndevs/1")
            with open(ndev, encoding="ascii") as f:
                assert f.read() == "lo\n"
            port = free_port()
            args = ["-x", "1", "-F", "-n", "100", "-m", "1024", "-p", port]
            d.pair(["ib_send_bw", "-d", "left", *args],
                   ["ib_send_bw", "-d", "right", *args, "127.0.0.1"], port)


@case("a taken port and a wrong file are told in a sentence")
def _():
    lab, (a, b) = on_loopback()
    with lab, a:
        b.options = ["--device", "link=udp,addr=127.0.0.1"]
        try:
            b.__enter__()
        except AssertionError as why:
            assert "4791 is taken" in str(why), why
        else:
            b.__exit__(None)
            raise AssertionError("two daemons have one address")


def two_interfaces(lab):
    """A veth pair with both ends in one namespace, whose kernel takes its own packets back."""
    lab.ip("a", "link", "add", "left0", "type", "veth", "peer", "name", "right0")
    for name, address in (("left0", "192.0.2.1/24"), ("right0", "198.51.100.1/24")):
        lab.ip("a", "link", "set", name, "mtu", 4200)
        lab.ip("a", "addr", "add", address, "dev", name)
        sh("nsenter", f"--net={lab.netns['a']}", "sh", "-c",
           f"cd /proc/sys/net && echo 0 >ipv6/conf/{name}/accept_dad && "
           f"echo 1 >ipv4/conf/{name}/accept_local && echo 0 >ipv4/conf/{name}/rp_filter && "
           "echo 0 >ipv4/conf/all/rp_filter")
    for name in ("left0", "right0"):
        lab.ip("a", "link", "set", name, "up")
    for name in ("left0", "right0"):
        wait_for(f"{name} has a link-local address", lambda n=name: "fe80" in sh(
            "ip", "-n", lab.name["a"], "-6", "addr", "show", "dev", n, "scope", "link",
            "-tentative"))


@case("groups: members on two interfaces, once each, until they leave; one and two workers")
def _():
    for link in ("udp", "packet"):
        for workers in ("1", "2"):
            lab = Lab(hosts="a")
            with lab:
                two_interfaces(lab)
                with Daemon("--device", f"link={link},interface=left0", "--device",
                            f"link={link},interface=right0", "--workers", workers,
                            netns=lab.netns["a"]) as d:
                    r = d.run(d.own_program("verbs_datagram"), "group: members")
                    assert r.output.count("\nok ") == 2, (link, workers, r.output)
                    shown = sh("ip", "-n", lab.name["a"], "maddr", "show")
                    assert "239.1.2.3" not in shown and "ff0e::707" not in shown, shown


@case("a group is joined while a queue pair is in it")
def _():
    lab, (a, b) = on_veth()
    with lab, a, b:
        p = a.start(a.own_program("verbs_events"), "group", "uroce0")
        wait_for("it is a member", lambda: "member" in p.output() or not p.is_alive())
        shown = sh("ip", "-n", lab.name["a"], "maddr", "show", "dev", "veth0")
        assert "239.1.2.3" in shown, (shown, p.output())
        lab.rejoin()
        wait_for("the group is joined on the interface made anew", lambda: "239.1.2.3" in sh(
            "ip", "-n", lab.name["a"], "maddr", "show", "dev", "veth0"))
        p.kill()
        wait_for("the group is left", lambda: "239.1.2.3" not in sh(
            "ip", "-n", lab.name["a"], "maddr", "show", "dev", "veth0"))


run_cases()
