# SPDX-License-Identifier: BSD-3-Clause
"""uroce inside the guest, whose kernel has ib_core: beside rxe0, beside nothing, and without it."""
import glob
import os
import re
import shutil
import subprocess

from harness import BUILD, case

PORT = 18999
ENV = "export LD_LIBRARY_PATH=/host/uroce/lib UROCE_RUN_DIR=/tmp/uroce"
UROCE = "/host/uroce/uroce"
# DPDK looks there for what it loads by itself; of all that, the daemon needs memory pools.
PLUGINS = "/usr/lib/x86_64-linux-gnu/dpdk/pmds-*/librte_mempool_ring.so*"


def libraries(path):
    """What the dynamic linker finds for it on this host: name and file."""
    told = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", told, re.M))


def give(guest):
    """The build, as it lies in place, and the libraries that the guest has not."""
    top = os.path.join(guest.dir, "uroce")
    os.makedirs(os.path.join(top, "provider"))
    os.mkdir(os.path.join(top, "lib"))
    programs = [os.path.join(BUILD, n) for n in ("uroce", "uroced")]
    providers = [p for p in glob.glob(os.path.join(BUILD, "provider", "*.so"))
                 if os.path.isfile(p)]
    for path in programs:
        shutil.copy(path, top)
    for path in providers:
        shutil.copy(path, os.path.join(top, "provider"))
    plugins = glob.glob(PLUGINS)
    assert plugins, f"{PLUGINS}: there is none"
    for path in plugins:
        folder = os.path.dirname(path)
        shutil.copy(path, os.path.join(top, "lib"))
        guest.run(f"mkdir -p {folder} && cp /host/uroce/lib/{os.path.basename(path)} {folder}")
    has = guest.run("ls /usr/lib/x86_64-linux-gnu").split()
    for path in programs + providers + plugins:
        for name, file in libraries(path).items():
            if name not in has:
                shutil.copy(file, os.path.join(top, "lib", name))


class Inside:
    """Commands in the guest; the first one starts the daemon there."""

    def __init__(self, wire):
        self.wire, self.is_given = wire, False

    def run(self, command, deadline=120.0):
        if not self.is_given:
            give(self.wire.guest)
            self.is_given = True
        return self.wire.guest.run(f"{ENV}; {command}", deadline)

    def assert_listed(self, *names):
        out = self.run(f"{UROCE} run -- ibv_devices")
        found = sorted(re.findall(r"^\s+(\S+)\s+[0-9a-f]{16}$", out, re.M))
        assert found == sorted(names), out

    def pingpong(self, server, client, gid=1):
        """Both in the guest. The client asks until the server listens."""
        args = f"-g {gid} -n 50 -c -p {PORT}"
        self.run(f"{UROCE} run -- ibv_rc_pingpong -d {server} {args} >/tmp/server 2>&1 & "
                 f"until grep -q ':{PORT:04X} .* 0A' /proc/net/tcp /proc/net/tcp6; "
                 "do sleep 0.05; done; "
                 f"{UROCE} run -- ibv_rc_pingpong -d {client} {args} localhost || "
                 "{ cat /tmp/server; exit 1; }; wait")

    def doctor(self, below_run=False):
        run = f"{UROCE} run -- " if below_run else ""
        out = self.run(f"{run}{UROCE} doctor")
        found = re.search(r"^(\S+) +RDMA netlink +(.*)$", out, re.M)
        assert found, out
        return found.groups()


def add_cases(wire):
    inside = Inside(wire)

    @case("inside the guest: rxe0 and ours are listed, and each carries a pingpong")
    def _():
        inside.assert_listed("rxe0", "uroce0", "uroce1")
        inside.pingpong("uroce0", "uroce1")
        inside.pingpong("rxe0", "rxe0")
        out = inside.run(f"{UROCE} run -- sh -c 'ibv_devices; LD_LIBRARY_PATH=/host/uroce/lib "
                         f"{UROCE} device add name=late; ibv_devices'")
        assert len(re.findall(r"^\s+late\s", out, re.M)) == 1, out
        inside.pingpong("late", "uroce0")
        inside.run(f"{UROCE} device del late")
        level, text = inside.doctor()
        assert (level, "answers with rxe0" in text) == ("warn", True), (level, text)
        level, text = inside.doctor(below_run=True)
        assert (level, "beside ours there is rxe0" in text) == ("ok", True), (level, text)

    @case("inside the guest: ib_core without a device does not hide ours")
    def _():
        wire.guest.run("rdma link delete rxe0")
        plain = wire.guest.run("ibv_devices")
        assert "uroce" not in plain, plain
        inside.assert_listed("uroce0", "uroce1")
        inside.pingpong("uroce1", "uroce0")
        level, text = inside.doctor()
        assert (level, "answers with no device" in text) == ("warn", True), (level, text)

    @case("inside the guest: a kernel without ib_core is told apart")
    def _():
        wire.guest.run("while true; do for m in $(cut -d' ' -f1 /proc/modules | grep -E "
                       "'^(rdma|ib_|iw_)'); do rmmod $m 2>/dev/null; done; "
                       "[ -e /sys/module/ib_core ] || break; done")
        inside.assert_listed("uroce0", "uroce1")
        level, text = inside.doctor()
        assert (level, text) == ("ok", "not answered here"), (level, text)
        wire.guest.run("mkdir -p /lib/modules/$(uname -r); cd /lib/modules/$(uname -r); "
                       "echo 'alias net-pf-16-proto-20 ib_core' >modules.alias")
        level, text = inside.doctor()
        assert (level, "loads ib_core as soon as" in text) == ("warn", True), (level, text)
        out = inside.run(f"{UROCE} stop")
        assert "has stopped" in out, out
