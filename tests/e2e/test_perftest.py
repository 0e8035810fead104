#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified perftest between the two devices: each program, and the options that change paths."""
from harness import Daemon, case, run_cases
from perftest import BW, LAT, few, run_pair, sizes


def over_all_sizes(program, variant):
    with Daemon() as d:
        rows = run_pair(d, program, *few(program), *sizes(program), *variant)
        assert len(rows) >= (1 if "atomic" in program else 22), rows


for _program, _variants in {**BW, **LAT}.items():
    for _variant in _variants:
        _title = " ".join([_program, *sizes(_program), *_variant])
        case(_title)(lambda p=_program, v=_variant: over_all_sizes(p, v))


def with_options(program, *options):
    with Daemon() as d:
        for variant in {**BW, **LAT}[program]:
            run_pair(d, program, *options, *variant)


# A multiple of 100: perftest counts a whole moderation of 100 for each completion, and with several
# queue pairs stops polling too soon when the numbers do not come out even. And one of 8, for -l 8.
COUNT = "800"
SMALL = ["-n", COUNT, "-s", "4096"]

for _program in BW:
    _size = ["-n", COUNT] if "atomic" in _program else SMALL
    case(f"{_program} -q 16: sixteen queue pairs")(
        lambda p=_program, s=_size: with_options(p, *s, "-q", "16"))
    case(f"{_program} -l 8: lists of eight")(
        lambda p=_program, s=_size: with_options(p, *s, "-l", "8"))
    case(f"{_program} -b: both ways at once")(
        lambda p=_program, s=_size: with_options(p, *s, "-b"))

# perftest itself offers no events for WRITE.
for _program in ("ib_send_bw", "ib_read_bw", "ib_send_lat", "ib_read_lat", "ib_atomic_bw",
                 "ib_atomic_lat"):
    _size = ["-n", "300"] if "atomic" in _program else ["-n", "300", "-s", "4096"]
    case(f"{_program} -e: completion events")(
        lambda p=_program, s=_size: with_options(p, *s, "-e"))

for _program in ("ib_send_bw", "ib_write_bw", "ib_send_lat", "ib_write_lat"):
    case(f"{_program} -I 64: inline")(
        lambda p=_program: with_options(p, "-n", "500", "-s", "64", "-I", "64"))


for _program in ("ib_send_bw", "ib_write_bw", "ib_send_lat", "ib_write_lat"):
    case(f"{_program} -c UC")(lambda p=_program: with_options(p, *SMALL, "-c", "UC"))

for _program in ("ib_send_bw", "ib_send_lat"):
    case(f"{_program} -c UD")(lambda p=_program: with_options(p, *SMALL, "-c", "UD"))
    case(f"{_program} -c UD -e")(lambda p=_program: with_options(p, *SMALL, "-c", "UD", "-e"))
    for _type in ("RC", "UD"):
        case(f"{_program} -c {_type} -r 512: a shared receive queue")(
            lambda p=_program, t=_type: with_options(p, *SMALL, "-c", t, "-r", "512"))

for _program in [*BW, *LAT]:
    _size = ["-n", COUNT] if "atomic" in _program else SMALL
    case(f"{_program} -c XRC")(
        lambda p=_program, s=_size: with_options(p, *s, "-c", "XRC"))
for _program in ("ib_send_bw", "ib_read_bw", "ib_atomic_bw"):
    _size = ["-n", COUNT] if "atomic" in _program else SMALL
    case(f"{_program} -c XRC -q 8 -e: eight queue pairs, events")(
        lambda p=_program, s=_size: with_options(p, *s, "-c", "XRC", "-q", "8", "-e"))
case("ib_send_bw -c XRC -b: both ways at once")(
    lambda: with_options("ib_send_bw", *SMALL, "-c", "XRC", "-b"))


@case("ib_send_bw -c XRC -q 16 with two workers")
def _():
    with Daemon("--workers", "2") as d:
        run_pair(d, "ib_send_bw", *SMALL, "-c", "XRC", "-q", "16")


case("ib_send_bw -r 512 -q 8 -e: eight queue pairs on a shared receive queue")(
    lambda: with_options("ib_send_bw", *SMALL, "-r", "512", "-q", "8", "-e"))


@case("ib_write_bw from a device to itself")
def _():
    with Daemon() as d:
        run_pair(d, "ib_write_bw", *SMALL, devices=("uroce0", "uroce0"))


@case("ib_send_bw -q 16 -e with two workers")
def _():
    with Daemon("--workers", "2") as d:
        run_pair(d, "ib_send_bw", *SMALL, "-q", "16", "-e")


@case("ib_write_bw at path MTU 256 and 1024")
def _():
    with Daemon() as d:
        for mtu in ("256", "1024"):
            run_pair(d, "ib_write_bw", *SMALL, "-m", mtu)


@case("the daemon serves one pair after another without growing")
def _():
    with Daemon() as d:
        def resident():
            with open(f"/proc/{d.proc.pid}/statm", encoding="ascii") as f:
                return int(f.read().split()[1]) * 4096
        for _ in range(3):
            run_pair(d, "ib_write_bw", *SMALL, "-q", "16")
        first = resident()
        for _ in range(5):
            run_pair(d, "ib_write_bw", *SMALL, "-q", "16")
        assert resident() < first + (8 << 20), f"{first} bytes became {resident()}"


run_cases()
