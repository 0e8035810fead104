#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Our own verbs programs and the daemon, both built with ThreadSanitizer: no race in either.

libibverbs between them is the system's; a daemon of two workers has two engines for each device.
"""
import os
import sys

from harness import DEADLINE, Daemon, case, run_cases

SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support",
                            "tsan.supp")
os.environ["TSAN_OPTIONS"] = f"exitcode=66:suppressions={os.path.abspath(SUPPRESSIONS)}"
UDP = ["--device", "link=udp,addr=127.91.1.1", "--device", "link=udp,addr=127.91.1.2"]


def first_race(text):
    at = text.find("WARNING: ThreadSanitizer")
    return text[at:at + 6000] if at >= 0 else ""


def plug(daemon):
    """Another device comes and goes."""
    daemon.command("device", "add", "name=late")
    daemon.command("device", "set", "late", "down")
    daemon.command("device", "del", "late")


def watch(program, *options, meanwhile=None):
    """Runs it to its end; neither it nor the daemon may have raced."""
    with Daemon(*options) as d:
        p = d.start(d.own_program(program))
        while meanwhile and p.is_alive():
            meanwhile(d)
        code = p.wait(6 * DEADLINE)
        d.proc.terminate()
        daemon_code = d.proc.wait(DEADLINE)
        raced = first_race(p.output()) + first_race(d.log_text())
        assert not raced, raced
        assert code == 0, p.describe(code)
        assert daemon_code == 0, f"uroced ended with {daemon_code}:\n{d.log_text()}"


def add(program, title, *options, **more):
    case(f"{program}: {title}")(lambda: watch(program, *options, **more))


add("verbs_threads", "several threads on one queue, one worker")
add("verbs_threads", "several threads on one queue, two workers", "--workers", "2")
add("verbs_churn", "objects and contexts come and go, two workers", "--workers", "2")
add("verbs_queues", "shared queues and events, two workers", "--workers", "2")
add("verbs_windows", "regions and windows, two workers", "--workers", "2")
add("verbs_sharers", "eight QPs on one SRQ and one CQ, two workers", "--workers", "2")
add("verbs_order", "eight QPs, two workers", "--workers", "2")
add("verbs_order", "over udp", *UDP)
add("verbs_order", "while devices come and go, two workers", "--workers", "2", meanwhile=plug)

if __name__ == "__main__":
    sys.exit(run_cases())
