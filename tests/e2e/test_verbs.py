#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs our own verbs programs below `uroce run` and passes their cases on, numbered anew."""
import re
import sys

from harness import NOBODY, Daemon, Skip, need_nobody

# Addresses of 127/8 that nobody else is likely to have a daemon on.
UDP = ["--device", "link=udp,addr=127.91.0.1", "--device", "link=udp,addr=127.91.0.2"]

RUNS = [
    ("verbs_data", {}),
    ("verbs_order", {}),
    ("verbs_memory", {}),
    ("verbs_errors", {}),
    ("verbs_misuse", {}),
    ("verbs_share", {}),
    ("verbs_device_memory", {}),
    ("verbs_fork", {}),
    ("verbs_datagram", {}),
    ("verbs_queues", {}),
    ("verbs_windows", {}),
    ("verbs_windows", {"options": ["--workers", "2"], "title": ", two workers"}),
    ("verbs_threads", {}),
    ("verbs_sharers", {"options": ["--workers", "2"], "title": ", two workers"}),
    ("verbs_threads", {"options": ["--workers", "2"], "title": ", two workers"}),
    ("verbs_churn", {"options": ["--workers", "2"], "title": ", two workers"}),
    ("verbs_queues", {"options": ["--workers", "2"], "title": ", two workers"}),
    ("verbs_datagram", {"options": ["--workers", "2"], "title": ", two workers"}),
    ("verbs_data", {"options": ["--workers", "2"], "title": ", two workers"}),
    ("verbs_order", {"options": ["--workers", "2"], "title": ", two workers"}),
    ("verbs_data", {"user": NOBODY, "title": ", as nobody"}),
    ("verbs_memory", {"user": NOBODY, "title": ", as nobody"}),
    ("verbs_share", {"user": NOBODY, "title": ", as nobody"}),
    ("verbs_data", {"options": UDP, "title": ", over udp"}),
    ("verbs_order", {"options": UDP, "title": ", over udp"}),
    ("verbs_errors", {"options": UDP, "title": ", over udp"}),
]

LINE = re.compile(r"^(ok|not ok) \d+ - (.*)$")


def run(program, options=(), user=None, title=""):
    """Yields TAP lines without numbers: (is_ok, name, remarks)."""
    with Daemon(*options, user=user) as d:
        p = d.start(d.own_program(program))
        code = p.wait(280)
        text = p.output()
    plan, told, remarks = None, 0, []
    for line in text.splitlines():
        m = LINE.match(line)
        if m:
            told += 1
            yield m.group(1) == "ok", f"{program}{title}: {m.group(2)}", remarks
            remarks = []
        elif line.startswith("1.."):
            plan = int(line[3:])
        else:
            remarks.append(line)
    if told != plan or code not in (0, 1):
        remarks.append(f"ended with {code} after {told} of {plan} cases")
        yield False, f"{program}{title}: runs to its end", remarks


def main():
    n = failed = 0
    for program, more in RUNS:
        if "user" in more:
            try:
                need_nobody()
            except Skip as why:
                n += 1
                print(f"ok {n} - {program}{more['title']} # SKIP {why}")
                continue
        try:
            for is_ok, name, remarks in run(program, **more):
                n += 1
                failed += not is_ok
                for line in remarks:
                    print("# " + line.lstrip("# "))
                print(f"{'ok' if is_ok else 'not ok'} {n} - {name}", flush=True)
        except AssertionError as why:
            n += 1
            failed += 1
            print("\n".join("# " + line for line in str(why).splitlines()))
            print(f"not ok {n} - {program}{more.get('title', '')}: the daemon is fine")
    print(f"1..{n}")
    return 1 if failed else 0


sys.exit(main())
