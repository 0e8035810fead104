#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that die, daemons that die, and a daemon with nothing to do."""
import json
import os
import signal
import time

from harness import Daemon, case, free_port, is_listening, run_cases, wait_for
from perftest import run_pair


def status(d):
    return json.loads(d.command("status", "--json").output)


def start_traffic(d, *more):
    """ib_write_bw for a long time between the two devices; returns server and client."""
    port = free_port()
    args = ["-x", "1", "-F", "-p", port, "-s", "65536", "-D", "60", *more]
    server = d.start("ib_write_bw", "-d", "uroce0", *args)
    wait_for("the server listens", lambda: is_listening(port))
    client = d.start("ib_write_bw", "-d", "uroce1", *args, "127.0.0.1")
    # A server that is only written to stays in RTR.
    wait_for("the client sends", lambda: any(
        q["state"] == "RTS" and q["pid"] == client.pid and q["sq_pending"]
        for q in status(d)["qps"]))
    return server, client


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def is_idle(pid):
    """No tick of CPU time over a whole second: this is the one place where time itself is meant."""
    before = cpu_ticks(pid)
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        time.sleep(end - time.monotonic())
    return cpu_ticks(pid) == before


@case("an idle daemon uses no CPU at all, before and after work")
def _():
    with Daemon() as d:
        wait_for("the fresh daemon sleeps", lambda: is_idle(d.proc.pid), 10)
        run_pair(d, "ib_write_bw", "-n", "500", "-s", "4096")
        wait_for("the daemon sleeps again", lambda: is_idle(d.proc.pid), 10)
        run_pair(d, "ib_send_bw", "-n", "500", "-s", "4096", "-e")


@case("an idle daemon sleeps beside an open connection too")
def _():
    with Daemon() as d:
        p = d.start("ibv_rc_pingpong", "-d", "uroce0", "-g", "1", "-e", "-p", free_port())
        wait_for("a client shows", lambda: status(d)["clients"])
        wait_for("the daemon sleeps", lambda: is_idle(d.proc.pid), 10)
        p.kill()


@case("a killed client leaves nothing behind")
def _():
    with Daemon() as d:
        server, client = start_traffic(d)
        client.kill()
        server.kill()
        wait_for("the daemon has forgotten them",
                 lambda: not status(d)["clients"] and not status(d)["qps"], 10)
        run_pair(d, "ib_write_bw", "-n", "500", "-s", "4096")


@case("a killed client's peer gets an error, not a hang")
def _():
    with Daemon() as d:
        server, client = start_traffic(d)
        server.kill()
        code = client.wait(30)
        assert code not in (0, None), client.describe(code)
        assert "status" in client.output().lower() or "fail" in client.output().lower(), \
            client.output()


@case("clients killed at random moments do not hurt the daemon")
def _():
    with Daemon() as d:
        for i in range(8):
            server, client = start_traffic(d, "-q", "4")
            (client, server)[i % 2].kill()
            (server, client)[i % 2].kill()
        wait_for("the daemon has forgotten them", lambda: not status(d)["clients"], 10)
        run_pair(d, "ib_read_bw", "-n", "500", "-s", "4096")


def die(how):
    with Daemon() as d:
        watcher = d.start("ibv_asyncwatch", "-d", "uroce0")
        wait_for("ibv_asyncwatch waits", lambda: status(d)["clients"])
        server, client = start_traffic(d)
        if how == "killed":
            d.proc.kill()
        else:
            d.proc.send_signal(signal.SIGTERM)
        d.proc.wait(15)
        codes = {p.name + p.argv[-1]: p.wait(20) for p in (client, server)}
        assert client.proc.returncode not in (0, None, -signal.SIGKILL), client.describe(codes)
        wait_for("IBV_EVENT_DEVICE_FATAL", lambda: "fatal" in watcher.output().lower() or
                 not watcher.is_alive(), 10)
        text = watcher.output()
        watcher.kill()
        assert "fatal" in text.lower(), text
        assert os.path.exists(d.run_dir) or True


@case("a killed daemon: programs get an error, and IBV_EVENT_DEVICE_FATAL")
def _():
    try:
        die("killed")
    except AssertionError as why:
        if "uroced ended with" not in str(why):
            raise


@case("a stopped daemon: programs get an error, and IBV_EVENT_DEVICE_FATAL")
def _():
    die("stopped")


@case("after a killed daemon, uroce run starts a new one in the same place")
def _():
    with Daemon() as d:
        d.proc.kill()
        d.proc.wait()
        assert "uroce1" in d.run("ibv_devices").output
        assert "has stopped" in d.command("stop").output
        d.proc.returncode = 0


@case("uroce stop while programs run: the daemon is gone when it returns")
def _():
    with Daemon() as d:
        server, client = start_traffic(d)
        text = d.command("stop").output
        assert "has stopped" in text, text
        assert d.proc.wait(5) == 0
        for p in (client, server):
            p.wait(20)


@case("a second daemon in the same place gives way: exit code 3")
def _():
    with Daemon() as d:
        text = d.run(os.path.join(d.bin, "uroced"), "--run-dir", d.run_dir, under_run=False,
                     expect=3).output
        assert "running" in text, text
        d.run("ibv_devices")


run_cases()
