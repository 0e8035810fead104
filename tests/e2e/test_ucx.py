#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""UCX on our devices: found by ucx_info, and every kind of ucx_perftest's operations, between the
two devices and within one."""
import re

from harness import Daemon, case, free_port, run_cases

COUNT = ["-n", "300", "-w", "30"]

# Transport -> operations of the UCT layer: test, and its further options.
UCT = {
    "rc_verbs": [["put_lat", "-D", "short", "-s", "8"], ["put_lat", "-D", "bcopy", "-s", "1024"],
                 ["put_bw", "-D", "zcopy", "-s", "65536"], ["get", "-D", "bcopy", "-s", "1024"],
                 ["get", "-D", "zcopy", "-s", "65536"], ["am_lat", "-s", "8"],
                 ["am_bw", "-D", "bcopy", "-s", "4096"], ["fadd", "-s", "8"],
                 ["cswap", "-s", "8"]],
    "ud_verbs": [["am_lat", "-s", "8"], ["am_bw", "-D", "bcopy", "-s", "2048"],
                 ["am_bw", "-D", "zcopy", "-s", "2048"]],
}
UCP = [["tag_lat", "-s", "8"], ["tag_bw", "-s", "100000"], ["tag_sync_lat", "-s", "8"],
       ["stream_bw", "-s", "4096"], ["ucp_put_lat", "-s", "8"], ["ucp_put_bw", "-s", "65536"],
       ["ucp_get", "-s", "65536"], ["ucp_add", "-s", "8"], ["ucp_fadd", "-s", "8"],
       ["ucp_swap", "-s", "8"], ["ucp_cswap", "-s", "8"], ["ucp_am_lat", "-s", "8"]]


def complete(devices, options, env=lambda device: []):
    """Both sides end well and the client has its line of results."""
    with Daemon() as d:
        port = free_port()
        server, client = ([*env(device), "ucx_perftest", "-p", port, *options(device), *COUNT]
                          for device in devices)
        out = d.pair(server, [*client, "127.0.0.1"], port)[1]
        assert re.search(r"^Final:\s+300\s", out, flags=re.M), out


def uct(transport, test, devices):
    complete(devices, lambda device: ["-d", f"{device}:1", "-x", transport, "-t", *test])


def ucp(transport, test, devices=("uroce0", "uroce1"), more=()):
    complete(devices, lambda device: ["-t", *test, *more],
             lambda device: ["env", f"UCX_TLS={transport},self", f"UCX_NET_DEVICES={device}:1"])


@case("ucx_info lists rc_verbs and ud_verbs of both devices")
def _():
    with Daemon() as d:
        out = d.run("ucx_info", "-d").output
    found = re.findall(r"Transport: (\S+)\s*\n#\s+Device: (uroce\d):1", out)
    assert sorted(found) == sorted((t, f"uroce{i}") for t in ("rc_verbs", "ud_verbs")
                                   for i in range(2)), out


@case("ucx_info finds 64-bit atomics, unlimited memory and a path MTU of 4096")
def _():
    with Daemon() as d:
        out = d.run("ucx_info", "-d").output
    memory, rest = out[out.index("Memory domain: uroce0"):].split("Transport: rc_verbs", 1)
    rc, ud = rest.split("Transport: ud_verbs", 1)
    assert re.search(r"register: unlimited", memory), memory
    for operation in ("atomic_fadd", "atomic_cswap"):
        assert re.search(rf"{operation}: 64 bit", rc), rc
    assert re.search(r"put_align_mtu: <= 4K", rc), rc
    assert re.search(r"am_bcopy: <= 4088", ud), ud


for _transport, _tests in UCT.items():
    for _test in _tests:
        case(f"UCT {_transport} {' '.join(_test)}")(
            lambda transport=_transport, test=_test: uct(transport, test, ("uroce0", "uroce1")))
    case(f"UCT {_transport} {' '.join(_tests[0])}, within one device")(
        lambda transport=_transport, test=_tests[0]: uct(transport, test, ("uroce0", "uroce0")))

for _transport in ("rc_v", "ud_v"):
    for _test in UCP:
        case(f"UCP {_transport} {' '.join(_test)}")(
            lambda transport=_transport, test=_test: ucp(transport, test))
    case(f"UCP {_transport} tag_lat, sleeping for events")(
        lambda transport=_transport: ucp(transport, UCP[0], more=("-E", "sleep")))


run_cases()
