#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark's arithmetic, and that it reads what the programs print."""
import os
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "tools"), os.path.join(TOP, "tests", "e2e")]
# pylint: disable=wrong-import-position
from benchlib import parse, picture, report, stats
from benchlib.bars import BARS, Bar
from benchlib.groups import GROUPS
from benchlib.main import judge
from benchlib.modes import MODES
from harness import case, run_cases

BW = """
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 64         100000           0.00               0.14   \t\t   0.272267
---------------------------------------------------------------------------------------
"""
LAT = """
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec] ...
  64     10000       5.47       2021.15     9.46   \t     16.30   62.95  66.72  1262.26
"""
UCX_BW = "[thread 0]  3105  3.468 321.704 321.704  3108.45 3108.45  3108 3108\n" \
         "Final:      5000  3.519 229.052 286.589  4365.82 3489.32  4366 3489\n"
UCX_FINAL_ONLY = "   100000   0.573   0.620   0.620    98.43    98.43  1612642  1612642\n"
FI = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n" \
     "64      1k      =1k      125k        0.02s      7.72       8.30       0.12\n"


def close(a, b):
    assert abs(a - b) <= 1e-6 * abs(b), f"{a} is not {b}"


def refuses(what, text):
    try:
        what(text)
    except parse.Unreadable:
        return
    raise AssertionError(f"{what.__name__} read results in {text!r}")


@case("the median of an odd and of an even number of values; of none there is none")
def _():
    assert stats.median([3, 1, 2]) == 2 and stats.median([4, 1, 2, 3]) == 2.5
    try:
        stats.median([])
    except ValueError:
        return
    raise AssertionError("a median of nothing")


@case("a ratio is the median of the turns' quotients, not the quotient of medians")
def _():
    # Turn 2 was slow for both.
    assert stats.ratio([10, 2, 12], [5, 1, 4]) == 2
    assert stats.ratio([10, 2], [5]) == 2, "a turn without its other side does not count"
    assert stats.ratio([1], [0]) is None and stats.ratio([], []) is None


@case("the spread of equal values is nothing")
def _():
    assert stats.spread([5, 5, 5]) == 0 and stats.spread([5]) == 0
    assert stats.spread([1, 2, 3, 4, 5]) > 0.3


@case("perftest's counts are multiples of 100 at every size of every mode")
def _():
    assert stats.round_up(1, 100) == 100 and stats.round_up(101, 100) == 200
    for mode in MODES.values():
        for size in mode.sizes:
            for n in (mode.bw_count(size), mode.lat_count(size)):
                assert n >= 100 and n % 100 == 0, (mode.name, size, n)


@case("perftest's bandwidth: rates follow from messages, whose digits suffice")
def _():
    r = parse.perftest_bw(BW)
    close(r["messages_per_s"], 272267)
    close(r["gbit_per_s"], 272267 * 64 * 8e-9)


@case("perftest's latency: typical, 99 and 99.9 percent")
def _():
    assert parse.perftest_lat(LAT) == {"typical_us": 9.46, "p99_us": 66.72, "p999_us": 1262.26}


@case("UCX: the final line, with and without its name; MiB are 2^20 bytes")
def _():
    close(parse.ucx(UCX_BW)["gbit_per_s"], 3489.32 * 1048576 * 8e-9)
    assert parse.ucx(UCX_FINAL_ONLY)["typical_us"] == 0.573


@case("qperf's units, iperf3's JSON, fi_pingpong's table, our own lines")
def _():
    for text, us in (("latency  =  13640 ns", 13.64), ("latency   =  10 us", 10),
                     ("  latency  =  1.5 ms", 1500)):
        close(parse.qperf_lat(text)["typical_us"], us)
    close(parse.iperf3('{"end": {"sum_received": {"bits_per_second": 2.5e10}}}')["gbit_per_s"], 25)
    assert parse.fi_pingpong(FI)["typical_us"] == 8.3
    assert parse.own("ratio 0.9\nmessages_per_s 1234\n") == {"ratio": 0.9, "messages_per_s": 1234}
    assert parse.callgrind("==1== Collected : 1234\n") == 1234


@case("output without results is refused, not read as nought")
def _():
    for what in (parse.perftest_bw, parse.perftest_lat, parse.ucx, parse.qperf_lat, parse.iperf3,
                 parse.fi_pingpong, parse.own, parse.callgrind):
        for text in ("", "Couldn't connect to 127.0.0.1:18515\n", "{}"):
            refuses(what, text)


@case("a bar: met on its limit, the best of its rows counts, nothing measured is no verdict")
def _():
    bar = Bar("x", "g", (("a", "m"), ("b", "m")), ">=", 1.5, ("c", "m"))
    values = {("g", "a", "m"): [2, 2], ("g", "b", "m"): [6, 3], ("g", "c", "m"): [4, 2]}
    assert bar.figure(values) == 1.5 and bar.is_met(1.5) and not bar.is_met(1.49)
    assert bar.figure({}) is None
    low = Bar("x", "g", (("a", "m"),), "<=", 0)
    assert low.figure({("g", "a", "m"): [0, 0, 4]}) == 0 and low.is_met(0) and not low.is_met(0.5)


@case("bars speak of groups that exist; what was not measured is told")
def _():
    assert all(bar.group in GROUPS for bar in BARS)
    judged = judge([])
    assert len(judged) == len(BARS) and all(b["met"] is None for b in judged)


RESULT = {
    "mode": "quick", "bars": judge([]),
    "machine": {"date": "d", "commit": None, "cpu": "c", "cores": 2, "cores_used": [0],
                "kernel": "k", "seconds": 1, "others_share": 0.5},
    "rows": [
        {"group": "rate-64", "member": "write", "size": None, "metric": "messages_per_s",
         "values": [1], "median": 123456.0, "spread": 0},
        {"group": "rate-64", "member": "send", "size": None, "absent": "no such luck"},
        {"group": "sweep", "member": "write bandwidth", "size": 4096, "metric": "gbit_per_s",
         "values": [1], "median": 12.34, "spread": 0},
    ],
}


@case("both tables hold the figures, and why one is missing")
def _():
    for text in (report.plain(RESULT), report.markdown(RESULT)):
        for part in ("123,456", "no such luck", "4 KiB", "12.3", "1 of 2 cores", "50%"):
            assert part in text, f"no {part} in:\n{text}"


@case("the document keeps what stands around the markers; without markers it is refused")
def _():
    old = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    assert report.replaced(old, "new") == old.replace("old", "new")
    try:
        report.replaced("no markers", "new")
    except SystemExit:
        return
    raise AssertionError("a document without markers was written")


@case("a picture of what there is; none of nothing")
def _():
    text = picture.script(RESULT["rows"], "x.png")
    assert "4096 12.34" in text and text.count("\nplot ") == 1
    assert picture.script([], "x.png") is None


run_cases()
