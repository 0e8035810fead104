#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Devices that come and go while daemon and programs run, and ports that go down and up."""
import json
import os
import shutil

from harness import (NOBODY, Daemon, Program, case, free_port, is_listening, need_nobody,
                     run_cases, wait_for)
from lab import ADDR, Lab


def status(d):
    return json.loads(d.command("status", "--json").output)


PACKET = "link=packet,interface=veth0"


def packets(d):
    return status(d)["devices"][0]["counters"]["rx_packets"]


def names(d):
    return [x["name"] for x in status(d)["devices"]]


def listed(d):
    lines = d.run("ibv_devices").output.splitlines()
    return sorted(line.split()[0] for line in lines[2:] if line.strip())


def pingpong(d, server, client, *more, host="localhost", **options):
    port = free_port()
    args = ["-g", "1", "-n", "200", "-c", "-p", port, *more]
    d.pair(["ibv_rc_pingpong", "-d", server, *args],
           ["ibv_rc_pingpong", "-d", client, *args, host], port, **options)


def watch(d, *argv):
    """A verbs program of ours that says what it sees."""
    p = d.start(d.own_program("verbs_events"), *argv)
    wait_for("the program has the device open", lambda: "open" in p.output() or not p.is_alive())
    return p


def said(p, what):
    wait_for(f"the program says '{what}'", lambda: what in p.output() or not p.is_alive())
    assert what in p.output(), p.describe(p.proc.poll())


@case("a new device is listed and carries traffic; removed, it is gone")
def _():
    with Daemon() as d:
        assert d.command("device", "add", "name=late").output.strip() == "late"
        assert listed(d) == ["late", "uroce0", "uroce1"], listed(d)
        pingpong(d, "late", "uroce0")
        pingpong(d, "uroce1", "late")
        out = d.command("device", "show", "late").output
        assert "late: ACTIVE, link switch" in out, out
        d.command("device", "del", "late")
        assert names(d) == ["uroce0", "uroce1"], names(d)
        assert listed(d) == ["uroce0", "uroce1"], listed(d)
        left = os.listdir(os.path.join(d.run_dir, "sys/class/infiniband"))
        assert sorted(left) == ["uroce0", "uroce1"], left
        pingpong(d, "uroce0", "uroce1")


@case("a program that lists again finds a new device, and opens it")
def _():
    with Daemon() as d:
        p = watch(d, "list", "uroce0", "late")
        d.command("device", "add", "name=late")
        said(p, "late is there, and opens")
        assert p.wait() == 0, p.describe(p.proc.poll())


@case("removal below a program: DEVICE_FATAL, requests come back flushed, EIO; its peer gives up")
def _():
    with Daemon("--workers", "2") as d:
        d.command("device", "add", "name=late")
        p = watch(d, "removal", "late")
        d.command("device", "del", "late")
        code = p.wait()
        assert code == 0, p.describe(code)
        wait_for("the daemon has forgotten the program", lambda: not status(d)["clients"])


@case("the same name comes again while a program still holds the old device")
def _():
    with Daemon() as d:
        d.command("device", "add", "name=late")
        p = watch(d, "hold", "late")
        d.command("device", "del", "late")
        said(p, "DEVICE_FATAL")
        d.command("device", "add", "name=late")
        assert listed(d) == ["late", "uroce0", "uroce1"], listed(d)
        pingpong(d, "late", "uroce1")
        p.kill()
        pingpong(d, "late", "uroce0")


@case("devices come and go while others carry traffic undisturbed")
def _():
    with Daemon("--workers", "2") as d:
        port = free_port()
        args = ["-x", "1", "-F", "-D", "6", "-s", "65536", "-p", port]
        s = d.start("ib_write_bw", "-d", "uroce0", *args)
        wait_for("the server listens", lambda: is_listening(port, s.pid) or not s.is_alive())
        c = d.start("ib_write_bw", "-d", "uroce1", *args, "localhost")
        wait_for("traffic flows", lambda: status(d)["devices"][0]["counters"]["rx_packets"] > 1000)
        turns = 0
        while c.is_alive() and turns < 80:
            name = d.command("device", "add", "link=switch").output.strip()
            assert name == "uroce2", name
            d.command("device", "del", name)
            turns += 1
        assert turns > 3, turns  # 80 of them go once around the numbers of the nodes
        code = c.wait()
        assert code == 0 and s.wait() == 0, c.describe(code) + s.describe(s.proc.poll())
        counters = status(d)["devices"][0]["counters"]
        assert counters["local_ack_timeout_err"] == 0, counters
        print(f"# {turns} devices came and went")


@case("the port of a device goes down and up: events, state, and traffic that waits")
def _():
    with Daemon() as d:
        p = watch(d, "ports", "uroce0")
        state = os.path.join(d.run_dir, "sys/class/infiniband/uroce0/ports/1/state")
        d.command("device", "set", "uroce0", "down")
        said(p, "PORT_ERR port 1, it is 1")
        with open(state, encoding="ascii") as f:
            assert f.read() == "1: DOWN\n"
        assert "uroce0: DOWN" in d.command("device", "show").output
        d.command("device", "set", "uroce0", "up")
        said(p, "PORT_ACTIVE port 1, it is 4")
        with open(state, encoding="ascii") as f:
            assert f.read() == "4: ACTIVE\n"
        p.kill()
        pingpong(d, "uroce0", "uroce1")


@case("what cannot be is told in a sentence")
def _():
    with Daemon() as d:
        for words, sentence in (
                (["add", "name=uroce0"], "there is a device uroce0 already"),
                (["add", "link=udp"], "needs either addr or interface"),
                (["add", "link=udp", "interface=nosuch0"], "nosuch0: No such device"),
                (["add", "speed=9"], "'speed' is none of"),
                (["del", "uroce7"], "there is no device uroce7"),
                (["set", "uroce0", "sideways"], "up or down"),
                (["show", "uroce7"], "there is no device uroce7")):
            out = d.command("device", *words, expect=1).output
            assert sentence in out, out
        for _ in range(14):
            d.command("device", "add", "link=switch")
        out = d.command("device", "add", "link=switch", expect=1).output
        assert "there are 16 devices" in out, out
        d.command("device", "frob", expect=2)
        d.command("device", "del", expect=2)


@case("udp devices, also one that is the last, come and go")
def _():
    lab = Lab(hosts="a")
    with lab, Daemon("--device", "link=udp,addr=127.0.0.1", netns=lab.netns["a"]) as d:
        d.command("device", "add", "name=right", "link=udp", "addr=127.0.0.2")
        pingpong(d, "uroce0", "right", host="127.0.0.1")
        out = d.command("device", "add", "name=again", "link=udp", "addr=127.0.0.2", expect=1)
        assert "4791 is taken" in out.output, out.output
        for name in ("right", "uroce0"):
            d.command("device", "del", name)
        assert not names(d)
        assert not listed(d)
        d.command("device", "add", "name=uroce0", "link=udp", "addr=127.0.0.1")
        d.command("device", "add", "name=right", "link=udp", "addr=127.0.0.2")
        pingpong(d, "right", "uroce0", host="127.0.0.2")


@case("as nobody: a udp device comes and goes")
def _():
    need_nobody()
    lab = Lab(hosts="a")
    with lab, Daemon("--device", "link=udp,addr=127.0.0.1", user=NOBODY,
                     netns=lab.netns["a"]) as d:
        d.command("device", "add", "name=right", "link=udp", "addr=127.0.0.2")
        pingpong(d, "uroce0", "right", host="127.0.0.1")
        d.command("device", "del", "right")
        assert listed(d) == ["uroce0"]


def gids(d, folder, device="uroce0"):
    top = os.path.join(d.run_dir, "sys/class/infiniband", device, "ports/1", folder)
    out = []
    for i in range(16):
        with open(os.path.join(top, str(i)), encoding="ascii") as f:
            out.append(f.read().strip())
    return out


@case("the interface goes down and up, and gets and loses addresses")
def _():
    lab = Lab()
    with lab, Daemon("--device", "link=udp,interface=veth0", netns=lab.netns["a"]) as a, \
            Daemon("--device", "link=udp,interface=veth0", netns=lab.netns["b"]) as b:
        p = watch(a, "ports", "uroce0")
        new = "0000:0000:0000:0000:0000:ffff:c633:6401"  # 198.51.100.1
        lab.ip("a", "addr", "add", "198.51.100.1/24", "dev", "veth0")
        said(p, "GID_CHANGE port 1")
        table = gids(a, "gids")
        assert new in table and table.index(new) > 1, table
        assert gids(a, "gid_attrs/ndevs")[table.index(new)] == "veth0"
        lab.ip("b", "addr", "add", "198.51.100.2/24", "dev", "veth0")
        there = "0000:0000:0000:0000:0000:ffff:c633:6402"
        wait_for("b has it too", lambda: there in gids(b, "gids"))
        port = free_port()
        args = ["-n", "100", "-c", "-p", port, "-g"]
        a.pair(["ibv_rc_pingpong", *args, table.index(new)],
               ["ibv_rc_pingpong", *args, gids(b, "gids").index(there), ADDR["a"]], port,
               client_daemon=b)
        before = p.output().count("GID_CHANGE")
        lab.ip("a", "addr", "del", "198.51.100.1/24", "dev", "veth0")
        wait_for("the GID is gone", lambda: new not in gids(a, "gids"))
        wait_for("one more event", lambda: p.output().count("GID_CHANGE") > before)
        assert gids(a, "gids")[:2] == table[:2]
        lab.ip("b", "link", "set", "veth0", "down")  # its peer loses the carrier
        said(p, "PORT_ERR port 1, it is 1")
        lab.ip("b", "link", "set", "veth0", "up")
        said(p, "PORT_ACTIVE port 1, it is 4")
        p.kill()


def mtu(d, name):
    return [x["mtu"] for x in status(d)["devices"] if x["name"] == name][0]


@case("the path MTU follows that of the interface, over udp and packet")
def _():
    for link in ("udp", "packet"):
        lab = Lab()
        device = f"link={link},interface=veth0"
        with lab, Daemon("--device", device, netns=lab.netns["a"]) as a, \
                Daemon("--device", device, netns=lab.netns["b"]) as b:
            for bytes_, path in ((1500, 1024), (9000, 4096)):
                for host, d in (("a", a), ("b", b)):
                    lab.ip(host, "link", "set", "veth0", "mtu", bytes_)
                    wait_for(f"path MTU {path}", lambda d=d, p=path: mtu(d, "uroce0") == p)
                assert f"active_mtu:\t\t{path} " in a.run("ibv_devinfo").output
                port = free_port()
                args = ["-d", "uroce0", "-x", "1", "-F", "-n", "50", "-s", "65536", "-m", path,
                        "-p", port]
                a.pair(["ib_write_bw", *args], ["ib_write_bw", *args, ADDR["a"]], port,
                       client_daemon=b)


@case("an interface that is removed and made anew")
def _():
    lab = Lab(hosts="a")

    def make():
        lab.ip("a", "link", "add", "left0", "type", "veth", "peer", "name", "right0")
        lab.ip("a", "addr", "add", f"{ADDR['a']}/24", "dev", "left0")
        for name in ("left0", "right0"):
            lab.ip("a", "link", "set", name, "up")

    with lab:
        make()
        with Daemon("--device", "link=udp,interface=left0", netns=lab.netns["a"]) as d:
            p = watch(d, "ports", "uroce0")
            lab.ip("a", "link", "del", "left0")
            said(p, "PORT_ERR port 1, it is 1")
            make()
            said(p, "PORT_ACTIVE port 1, it is 4")
            p.kill()
            pingpong(d, "uroce0", "uroce0", host="127.0.0.1")


@case("a packet device goes on when its interface is removed and made anew, and so do its QPs")
def _():
    lab = Lab()
    with lab, Daemon("--device", PACKET, netns=lab.netns["a"]) as a, \
            Daemon("--device", PACKET, netns=lab.netns["b"]) as b:
        p = watch(a, "ports", "uroce0")
        port = free_port()
        # A timeout of a second, seven times.
        args = ["ib_write_lat", "-d", "uroce0", "-F", "-x", "1", "-n", "10000", "-u", "18",
                "-p", port]
        s = a.start(*args)
        wait_for("the server listens", lambda: is_listening(port, s.pid))
        c = b.start(*args, ADDR["a"])
        wait_for("packets flow", lambda: packets(a) > 1000)
        lab.rejoin()
        said(p, "PORT_ERR port 1, it is 1")
        said(p, "PORT_ACTIVE port 1, it is 4")
        before = packets(a)
        wait_for("packets flow again", lambda: packets(a) > before + 1000)
        assert c.wait(90) == 0, c.describe(c.proc.poll())
        assert s.wait(30) == 0, s.describe(s.proc.poll())
        p.kill()
        for gid in "012":
            port = free_port()
            args = ["-d", "uroce0", "-n", "100", "-c", "-g", gid, "-p", port]
            a.pair(["ibv_rc_pingpong", *args], ["ibv_rc_pingpong", *args, ADDR["a"]], port,
                   client_daemon=b)


@case("packet devices come and go, and follow their interface")
def _():
    lab = Lab()
    spec = ["link=packet", "interface=veth0"]
    with lab, Daemon(netns=lab.netns["a"]) as a, Daemon(netns=lab.netns["b"]) as b:
        for turn in range(2):
            for d in (a, b):
                assert d.command("device", "add", *spec).output == "uroce2\n"
            port = free_port()
            args = ["-d", "uroce2", "-n", "100", "-c", "-g", "1", "-p", port]
            a.pair(["ibv_rc_pingpong", *args], ["ibv_rc_pingpong", *args, ADDR["a"]], port,
                   client_daemon=b)
            if not turn:
                for d in (a, b):
                    d.command("device", "del", "uroce2")
        p = watch(a, "ports", "uroce2")
        lab.ip("a", "addr", "add", "198.51.100.1/24", "dev", "veth0")
        said(p, "GID_CHANGE port 1")
        lab.ip("b", "addr", "add", "198.51.100.2/24", "dev", "veth0")
        new = [f"0000:0000:0000:0000:0000:ffff:c633:640{i}" for i in (1, 2)]
        wait_for("b has it too", lambda: new[1] in gids(b, "gids", "uroce2"))
        port = free_port()
        args = ["-d", "uroce2", "-n", "100", "-c", "-p", port, "-g"]
        a.pair(["ibv_rc_pingpong", *args, gids(a, "gids", "uroce2").index(new[0])],
               ["ibv_rc_pingpong", *args, gids(b, "gids", "uroce2").index(new[1]), ADDR["a"]],
               port, client_daemon=b)
        lab.ip("b", "link", "set", "veth0", "down")
        said(p, "PORT_ERR port 1, it is 1")
        lab.ip("b", "link", "set", "veth0", "up")
        said(p, "PORT_ACTIVE port 1, it is 4")
        p.kill()


ALONE = """
set -e
ip link set lo up
u() { "$BIN/uroce" "$@"; }
pair() { # SERVER'S DEVICE, CLIENT'S DEVICE, SERVER'S ADDRESS, PROGRAM...
    a=$1 b=$2 host=$3
    shift 3
    u run -- "$@" -d $a -p 18515 & server=$!
    until grep -q ':4853 .* 0A' /proc/net/tcp /proc/net/tcp6; do sleep 0.02; done
    u run -- "$@" -d $b -p 18515 $host
    wait $server
}
"$BIN/uroced" --run-dir $UROCE_RUN_DIR --device name=left,link=udp,addr=127.0.0.1 & daemon=$!
until u status >/dev/null 2>&1; do kill -0 $daemon; sleep 0.02; done
u device add name=right link=udp addr=127.0.0.2
pair left right 127.0.0.1 ibv_rc_pingpong -g 1 -n 100 -c
pair right left 127.0.0.2 ibv_ud_pingpong -g 1 -n 50
pair left right 127.0.0.1 ib_read_bw -x 1 -F -n 100 -s 65536
u device del right
u device show
u stop
wait $daemon
echo all is well
"""


@case("as nobody in a user and network namespace of his own")
def _():
    need_nobody()
    d = Daemon(user=NOBODY)  # not started: its programs, where nobody can run them
    try:
        p = Program(["unshare", "-Urn", "sh", "-c", ALONE], user=NOBODY,
                    env={**d.env(), "BIN": d.bin})
        code = p.wait()
        assert code == 0 and "all is well" in p.output(), p.describe(code)
        assert "left: ACTIVE, link udp" in p.output() and "right:" not in p.output(), p.output()
    finally:
        shutil.rmtree(d.top)


run_cases()
