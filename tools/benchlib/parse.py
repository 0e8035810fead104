# SPDX-License-Identifier: BSD-3-Clause
"""What the programs print, as numbers: gbit_per_s, messages_per_s, typical_us, p99_us, p999_us."""
import json
import re


class Unreadable(Exception):
    """A program's output has not the line that is looked for."""


def rows_of_numbers(text, at_least):
    """Lines that consist of that many numbers or more, as lists of floats."""
    rows = []
    for line in text.splitlines():
        try:
            row = [float(word) for word in line.split()]
        except ValueError:
            continue
        if len(row) >= at_least:
            rows.append(row)
    return rows


def last_row(text, at_least, program):
    rows = rows_of_numbers(text, at_least)
    if not rows:
        raise Unreadable(f"{program} printed no line of results:\n{text}")
    return rows[-1]


def perftest_bw(text):
    """ib_*_bw --report_gbits: bytes, iterations, peak, average, million messages a second. Small
    sizes have too few digits there, so bits follow from messages."""
    size, _, _, _, mpps = last_row(text, 5, "perftest")[:5]
    return {"gbit_per_s": mpps * size * 8e-3, "messages_per_s": mpps * 1e6}


def perftest_lat(text):
    """ib_*_lat: bytes, iterations, min, max, typical, average, stdev, 99 %, 99.9 %."""
    row = last_row(text, 9, "perftest")
    return {"typical_us": row[4], "p99_us": row[7], "p999_us": row[8]}


def ucx(text):
    """ucx_perftest's "Final:" line: count, median, average and overall time, average and overall
    MiB/s, average and overall messages/s."""
    m = re.search(r"^(?:Final:)?\s+(\d+)((?:\s+[\d.]+){7})\s*$", text, flags=re.M)
    if not m:
        raise Unreadable(f"ucx_perftest printed no result:\n{text}")
    typical, _, _, _, mib, _, rate = (float(x) for x in m.group(2).split())
    return {"gbit_per_s": mib * (1 << 20) * 8e-9, "messages_per_s": rate, "typical_us": typical}


def iperf3(text):
    try:
        end = json.loads(text)["end"]
        return {"gbit_per_s": end["sum_received"]["bits_per_second"] * 1e-9}
    except (ValueError, KeyError) as e:
        raise Unreadable(f"iperf3 printed no result:\n{text}") from e


UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "sec": 1e6}


def qperf_lat(text):
    m = re.search(r"latency\s*=\s*([\d.]+)\s*(ns|us|ms|sec)", text)
    if not m:
        raise Unreadable(f"qperf printed no latency:\n{text}")
    return {"typical_us": float(m.group(1)) * UNITS[m.group(2)]}


SCALE = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def fi_pingpong(text):
    """bytes, sent, acknowledged, total, time, MB/sec, usec/xfer, Mxfers/sec; sizes end in k, m."""
    m = re.findall(r"^(\d+)([kmg]?)\s+\S+\s+\S+\s+\S+\s+[\d.]+s\s+([\d.]+)\s+([\d.]+)\s+[\d.]+\s*$",
                   text, flags=re.M)
    if not m:
        raise Unreadable(f"fi_pingpong printed no result:\n{text}")
    return {"gbit_per_s": float(m[-1][2]) * 8e-3, "typical_us": float(m[-1][3])}


def own(text):
    """Lines of a name and a number, as our own programs print."""
    found = dict(re.findall(r"^([a-z]\w*) ([\d.]+(?:e[+-]?\d+)?)$", text, flags=re.M))
    if not found:
        raise Unreadable(f"no results in:\n{text}")
    return {name: float(value) for name, value in found.items()}


def callgrind(text):
    m = re.search(r"Collected : (\d+)", text)
    if not m:
        raise Unreadable(f"callgrind told no count:\n{text}")
    return int(m.group(1))
