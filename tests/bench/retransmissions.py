#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is sent twice although nothing gets lost: perftest on the switch, three programs and more
threads than cores. Prints the counters of both devices for each run; the e2e tests' harness runs
it, so UROCE_BUILD says where the build is."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
# pylint: disable=wrong-import-position
from harness import Daemon
from perftest import run_pair

RUNS = [
    ("ib_write_bw", "-q", "8", "-s", "65536", "-D", "3"),
    ("ib_write_bw", "-q", "8", "-s", "65536", "-D", "3", "-b"),
    ("ib_send_bw", "-q", "8", "-s", "65536", "-D", "3"),
    ("ib_read_bw", "-q", "8", "-s", "65536", "-D", "3"),
    ("ib_write_lat", "-n", "20000"),
]


def counters(d):
    total = {}
    for device in json.loads(d.command("status", "--json").output)["devices"]:
        for name, value in device["counters"].items():
            total[name] = total.get(name, 0) + value
    return total


def main():
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}")
    for program, *args in RUNS:
        with Daemon() as d:
            run_pair(d, program, *args)
            c = counters(d)
        share = c["retransmitted_packets"] / c["tx_packets"]
        print(f"{' '.join([program, *args])}: {c['tx_packets']} packets, "
              f"{c['retransmitted_packets']} of them again ({share:.4%}), "
              f"{c['local_ack_timeout_err']} timeouts", flush=True)


main()
