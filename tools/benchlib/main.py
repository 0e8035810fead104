# SPDX-License-Identifier: BSD-3-Clause
"""Takes turns, collects rows, judges bars, writes."""
import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
import time

from benchlib import picture, report
from benchlib.bars import BARS
from benchlib.groups import GROUPS
from benchlib.modes import MODES
from benchlib.parse import Unreadable
from benchlib.stand import Absent
from benchlib.stats import median, spread


def say(text):
    print(text, file=sys.stderr, flush=True)


def first_line(why):
    return str(why).strip().splitlines()[0] if str(why).strip() else repr(why)


class Rows:
    """(member, size, metric) -> values, turn by turn; and what could not be measured."""

    def __init__(self, group):
        self.group, self.values, self.why = group, {}, {}

    def measure(self, key, member):
        name, size = key if isinstance(key, tuple) else (key, None)
        if (name, size) in self.why:
            return
        try:
            for metric, value in member().items():
                self.values.setdefault((name, size, metric), []).append(value)
        except Absent as why:
            self.why[name, size] = {"absent": first_line(why)}
        except (AssertionError, Unreadable) as why:
            say(f"{self.group}: {name}: {why}")
            self.why[name, size] = {"failed": first_line(why)}

    def listed(self):
        for (name, size, metric), values in self.values.items():
            yield {"group": self.group, "member": name, "size": size, "metric": metric,
                   "values": values, "median": median(values), "spread": spread(values)}
        for (name, size), why in self.why.items():
            yield {"group": self.group, "member": name, "size": size, **why}


def run_group(name, mode):
    what, setup = GROUPS[name]
    turns = mode.sweep_turns if name in ("sweep", "instructions") else mode.turns
    rows, start = Rows(name), time.monotonic()
    with contextlib.ExitStack() as stack:
        try:
            members = setup(stack, mode)
        except Absent as why:
            members = {"all": _raiser(why)}
        for turn in range(turns):
            for i, (key, member) in enumerate(members.items()):
                rows.measure(key, member)
                if sys.stderr.isatty():
                    print(f"\r{name}: turn {turn + 1} of {turns}, {i + 1} of {len(members)}   ",
                          end="", file=sys.stderr, flush=True)
    say(f"{chr(13) if sys.stderr.isatty() else ''}{name}: {what}: "
        f"{time.monotonic() - start:.0f} s{' ' * 20}")
    return list(rows.listed())


def _raiser(why):
    def member():
        raise why
    return member


def busy_jiffies():
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, irq, softirq, *_ = (int(x) for x in f.readline().split()[1:])
    return user + nice + system + irq + softirq


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


class Machine:
    """What it ran on, and how much of it others used meanwhile."""

    def __init__(self):
        self.busy, self.start = busy_jiffies(), time.monotonic()

    def describe(self):
        own = sum(getattr(resource.getrusage(who), field) for field in ("ru_utime", "ru_stime")
                  for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        seconds = time.monotonic() - self.start
        all_busy = (busy_jiffies() - self.busy) / os.sysconf("SC_CLK_TCK")
        top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        commit = subprocess.run(["git", "-C", top, "describe", "--always", "--dirty"], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return {"cpu": cpu_model(), "cores": os.cpu_count(),
                "cores_used": sorted(os.sched_getaffinity(0)), "kernel": platform.release(),
                "commit": commit.stdout.strip() or None,
                "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
                "seconds": round(seconds),
                "others_share": max(0.0, round((all_busy - own) / seconds / os.cpu_count(), 3))}


def judge(rows):
    values = {(r["group"], r["member"], r["metric"]): r["values"] for r in rows if "values" in r}
    judged = []
    for bar in BARS:
        figure = bar.figure(values)
        judged.append({"what": bar.what, "group": bar.group, "sign": bar.sign, "limit": bar.limit,
                       "figure": figure, "met": None if figure is None else bar.is_met(figure)})
    return judged


def measured(mode, only):
    machine, rows = Machine(), []
    try:
        for name in only or GROUPS:
            rows += run_group(name, mode)
    except KeyboardInterrupt:
        say("bench: interrupted; only whole groups are told of")
    bars = [b for b in judge(rows) if not only or b["group"] in only]
    return {"version": 1, "mode": mode.name, "machine": machine.describe(), "rows": rows,
            "bars": bars}


def write(path, text):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    say(f"wrote {path}")


def run(args, where):
    if args.list:
        for name, (what, _) in GROUPS.items():
            print(f"{name:14}{what}")
        return 0
    unknown = [name for name in args.only or () if name not in GROUPS]
    if unknown:
        say(f"bench: there is no group {', '.join(unknown)}; --list names them")
        return 2
    if args.from_json:
        with open(args.from_json, encoding="utf-8") as f:
            result = json.load(f)
    else:
        result = measured(MODES[args.mode], args.only)
        write(args.json or os.path.join(where, "bench.json"), json.dumps(result, indent=1) + "\n")
    print(report.plain(result))
    why_not = picture.draw(result, args.picture or os.path.join(where, "bench.png"))
    say(why_not or f"wrote {args.picture or os.path.join(where, 'bench.png')}")
    if args.write_doc:
        with open(args.write_doc, encoding="utf-8") as f:
            text = report.replaced(f.read(), report.markdown(result))
        write(args.write_doc, text)
    return 1 if any("failed" in r for r in result["rows"]) else 0
