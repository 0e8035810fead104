#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The counter files that programs read: they hold what passed, and each keeps to itself."""
from harness import Daemon, case, free_port, run_cases, wait_for

ROUNDS, SIZE = 300, 4096


def read(d, device, name):
    """As a program below `uroce run` sees it."""
    return int(d.run("cat", f"/sys/class/infiniband/{device}/ports/1/{name}").output)


def traffic(d):
    port = free_port()
    args = ["-g", "1", "-n", ROUNDS, "-s", SIZE, "-p", port]
    d.pair(["ibv_rc_pingpong", "-d", "uroce0", *args],
           ["ibv_rc_pingpong", "-d", "uroce1", *args, "127.0.0.1"], port)


@case("counters/ and hw_counters/ show the messages that passed")
def _():
    with Daemon() as d:
        assert read(d, "uroce0", "counters/port_xmit_packets") == 0
        traffic(d)
        for dev in ("uroce0", "uroce1"):
            wait_for(f"{dev}: rdma_recvs",
                     lambda dev=dev: read(d, dev, "hw_counters/rdma_recvs") >= ROUNDS, 30)
            for way in ("xmit", "rcv"):
                packets = read(d, dev, f"counters/port_{way}_packets")
                words = read(d, dev, f"counters/port_{way}_data")
                assert packets >= ROUNDS * SIZE // 4096, (dev, way, packets)
                # Every message and its acknowledgement, a little more for what was repeated.
                assert ROUNDS * SIZE <= words * 4 <= 2 * ROUNDS * (SIZE + 200), (dev, way, words)
        for name in ("symbol_error", "link_downed", "port_rcv_errors"):
            assert read(d, "uroce0", "counters/" + name) == 0, name
        for name in ("rx_write_requests", "rx_read_requests", "cq_overrun", "drop_no_qp"):
            assert read(d, "uroce0", "hw_counters/" + name) == 0, name


@case("counter files stay still when nothing passes")
def _():
    with Daemon() as d:
        traffic(d)
        wait_for("rdma_recvs", lambda: read(d, "uroce0", "hw_counters/rdma_recvs") >= ROUNDS, 30)
        before = read(d, "uroce0", "hw_counters/rdma_recvs")
        d.run("ibv_devinfo", "-v")
        assert read(d, "uroce0", "hw_counters/rdma_recvs") == before


run_cases()
