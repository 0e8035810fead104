#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Enemies of the daemon: what they do hurts nobody but themselves, and nothing of them stays."""
import json
import os
import random

from harness import Daemon, Program, case, run_cases, wait_for
from perftest import run_pair

SEED = int(os.environ.get("UROCE_TEST_SEED", "20240229"), 0)


def start_enemy(d, i, seconds):
    return Program([d.own_program("hostile"), os.path.join(d.run_dir, "control.sock"),
                    f"uroce{i % 2}", str(SEED + i), str(seconds)])


def status(d):
    return json.loads(d.command("status", "--json").output)


def is_empty(d):
    s = status(d)
    return not s["clients"] and not s["qps"]


def resident_kb(d):
    with open(f"/proc/{d.proc.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))


def open_files(d):
    return len(os.listdir(f"/proc/{d.proc.pid}/fd"))


print(f"# UROCE_TEST_SEED={SEED}")


def others_are_unharmed(*options):
    with Daemon(*options) as d:
        enemies = [start_enemy(d, i, 6) for i in range(2)]
        run_pair(d, "ib_write_bw", "-n", "2000", "-s", "65536")
        run_pair(d, "ib_send_bw", "-n", "1000", "-s", "4096", "-e")
        for e in enemies:
            code = e.wait()
            assert code == 0, e.describe(code)
            print("# rounds, connections: " + e.output().strip())
        wait_for("nothing of them is left", lambda: is_empty(d), 10)
        run_pair(d, "ib_read_bw", "-n", "500", "-s", "4096")


@case("whoever scribbles over shared memory and sends noise hurts nobody else")
def _():
    others_are_unharmed()


@case("the same with several workers")
def _():
    others_are_unharmed("--workers", "3")


@case("killed at any instruction: no object, descriptor or memory of theirs stays")
def _():
    with Daemon() as d:
        chance = random.Random(SEED)
        status(d)  # once it answers, it is done with its start
        files = open_files(d)
        grown = 0
        for i in range(60):
            e = start_enemy(d, i, 60)
            wait_for("it is there", lambda: status(d)["clients"] or not e.is_alive())
            try:
                e.proc.wait(chance.random() * 0.05)
            except Exception:  # pylint: disable=broad-except
                pass
            assert e.is_alive(), e.describe(e.proc.returncode)
            e.kill()
            wait_for("the daemon has forgotten it", lambda: is_empty(d), 10)
            if i == 29:
                grown = -resident_kb(d)
        grown += resident_kb(d)
        wait_for("all descriptors are closed", lambda: open_files(d) == files, 10)
        assert grown < 1024, f"{grown} kB more after 30 dead clients"
        run_pair(d, "ib_write_bw", "-n", "500", "-s", "4096")


run_cases()
