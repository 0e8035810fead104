#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the distribution's own tools say of our devices."""
import re

from harness import Daemon, case, run_cases


def devinfo():
    with Daemon() as d:
        return d.run("ibv_devinfo", "-v").output


def blocks(text):
    """ibv_devinfo's output, device by device."""
    parts = re.split(r"^hca_id:\s*", text, flags=re.M)[1:]
    return {p.split()[0]: p for p in parts}


INFO = {}


def info():
    if not INFO:
        INFO.update(blocks(devinfo()))
    return INFO


def field(block, name):
    m = re.search(rf"^\s*{re.escape(name)}:\s*(.*?)\s*$", block, flags=re.M)
    assert m, f"ibv_devinfo shows no {name}:\n{block}"
    return m.group(1)


@case("ibv_devices lists uroce0 and uroce1 with different GUIDs")
def _():
    with Daemon() as d:
        out = d.run("ibv_devices").output
    guids = dict(re.findall(r"^\s*(uroce\d+)\s+([0-9a-f]{16})\s*$", out, flags=re.M))
    assert sorted(guids) == ["uroce0", "uroce1"], out
    assert guids["uroce0"] != guids["uroce1"], out


@case("ibv_devinfo -v lists two devices whose port is active")
def _():
    assert sorted(info()) == ["uroce0", "uroce1"], info()
    for block in info().values():
        assert field(block, "state") == "PORT_ACTIVE (4)"
        assert field(block, "link_layer") == "Ethernet"
        assert field(block, "transport") == "InfiniBand (0)"
        assert field(block, "phys_state") == "LINK_UP (5)"


@case("GID 0 is link-local, made of the MAC; both GIDs are RoCE v2")
def _():
    for i in range(2):
        gid = field(info()[f"uroce{i}"], "GID[  0]")
        assert gid == f"fe80::55:52ff:fe4f:{i + 1:x}, RoCE v2", gid


@case("GID 1 is the IPv4-mapped address that -x 1 users expect")
def _():
    for i in range(2):
        gid = field(info()[f"uroce{i}"], "GID[  1]")
        assert gid == f"::ffff:198.18.0.{i + 1}, RoCE v2", gid


@case("there is no third GID")
def _():
    for block in info().values():
        assert len(re.findall(r"GID\[", block)) == 2, block


@case("node GUID and system image GUID come from the MAC and differ by device")
def _():
    guids = [field(info()[f"uroce{i}"], "node_guid") for i in range(2)]
    assert guids == ["0055:52ff:fe4f:0001", "0055:52ff:fe4f:0002"], guids


@case("the path MTU goes to 4096")
def _():
    for block in info().values():
        assert field(block, "max_mtu") == "4096 (5)"
        assert field(block, "active_mtu") == "4096 (5)"


@case("atomics are offered as UCX asks for them: ATOMIC_HCA exactly")
def _():
    for block in info().values():
        assert field(block, "atomic_cap") == "ATOMIC_HCA (1)"


@case("the limits are ones that programs can live with")
def _():
    least = {"max_qp": 1000, "max_cq": 1000, "max_mr": 1000, "max_pd": 100, "max_qp_wr": 8192,
             "max_cqe": 65536, "max_sge": 30, "max_sge_rd": 30, "max_qp_rd_atom": 16,
             "max_qp_init_rd_atom": 16, "max_pkeys": 1}
    for block in info().values():
        for name, value in least.items():
            assert int(field(block, name)) >= value, f"{name} is {field(block, name)}"
        assert int(field(block, "max_mr_size"), 16) >= 1 << 40
        assert int(field(block, "max_msg_sz"), 16) >= 1 << 30
        assert int(field(block, "gid_tbl_len")) == 16 if "gid_tbl_len" in block else True


@case("vendor, part and firmware are set, so that no tool prints nonsense")
def _():
    for block in info().values():
        assert int(field(block, "vendor_id"), 16), block
        assert field(block, "fw_ver"), block
        assert field(block, "phys_port_cnt") == "1", block


@case("the class tree has what readers of /sys look for")
def _():
    with Daemon() as d:
        for path, text in {
            "node_type": "1: CA", "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp",
            "ports/1/link_layer": "Ethernet", "ports/1/pkeys/0": "0xffff",
            "ports/1/gid_attrs/types/0": "RoCE v2", "ports/1/gid_attrs/types/1": "RoCE v2",
            "ports/1/gids/1": "0000:0000:0000:0000:0000:ffff:c612:0001",
            "device/modalias": "uroce:v1",
        }.items():
            out = d.run("cat", f"/sys/class/infiniband/uroce0/{path}").output
            assert out.strip() == text, f"{path}: {out!r}"
        out = d.run("ls", "/sys/class/infiniband/uroce0/ports/1").output.split()
        for name in ("counters", "hw_counters", "rate", "lid", "sm_lid", "cap_mask"):
            assert name in out, f"ports/1/{name} is missing"


@case("uroce run -d shows the program one device only")
def _():
    with Daemon() as d:
        out = d.run("ibv_devices", device="uroce1").output
        assert sorted(re.findall(r"uroce\d+", out)) == ["uroce1"], out


@case("uroce run inside uroce run sees the same devices")
def _():
    with Daemon() as d:
        out = d.run(d.uroce, "run", "--", d.uroce, "run", "--", "ibv_devices").output
        assert sorted(re.findall(r"uroce\d+", out)) == ["uroce0", "uroce1"], out


@case("a daemon with three devices and two workers shows all three")
def _():
    with Daemon("--devices", "3", "--workers", "2") as d:
        out = d.run("ibv_devices").output
        assert sorted(re.findall(r"uroce\d+", out)) == ["uroce0", "uroce1", "uroce2"], out


@case("the host's own network devices stay visible beside ours")
def _():
    with Daemon() as d:
        inside = d.run("ls", "/sys/class/net").output
        outside = d.run("ls", "/sys/class/net", under_run=False).output
        assert inside == outside
        shm = d.run("sh", "-c", "echo x > /dev/shm/uroce-e2e-$$ && rm /dev/shm/uroce-e2e-$$")
        assert shm.output == ""


run_cases()
