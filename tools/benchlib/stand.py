# SPDX-License-Identifier: BSD-3-Clause
"""Where a measurement runs: daemons on one link or another, and pairs of programs on them."""
import contextlib
import os
import resource
import shutil
import tempfile

from harness import BUILD, Daemon, Program, free_port, is_listening, wait_for
from lab import ADDR, Lab, sh

LONGEST = 300
LOOP = {"a": "127.0.0.1", "b": "127.0.0.2"}


class Absent(Exception):
    """This cannot be measured here, and why."""


def own_program(name):
    return os.path.join(BUILD, "tests", "bench", name)


def need(program):
    if not shutil.which(program):
        raise Absent(f"{program} is not installed")


def finish(programs, deadline=LONGEST):
    """Waits for all; their outputs. None outlives the call."""
    try:
        for p in programs:
            code = p.wait(deadline)
            if code != 0:
                raise AssertionError(p.describe(code))
        return [p.output() for p in programs]
    finally:
        for p in programs:
            if p.is_alive():
                p.kill()


def run(*argv, env=None, netns=None):
    need(argv[0])
    return finish([Program([str(a) for a in argv], env=env, netns=netns)])[0]


def peers(server, client, port, env=None, netns=(None, None)):
    """The client's output, of programs that need no daemon; the server may run on."""
    need(server[0])
    s = Program([str(a) for a in server], env=env, netns=netns[0])
    try:
        wait_for(f"{server[0]} listens", lambda: is_listening(port, s.pid) or not s.is_alive(), 20)
        if not s.is_alive():
            raise AssertionError(s.describe(s.proc.returncode))
        return finish([Program([str(a) for a in client], env=env, netns=netns[1])])[0]
    finally:
        s.kill()


def scheduled(pid):
    """All threads of a process: CPU time in ns, and how often one was given a core."""
    ns = slices = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
            words = f.read().split()
        ns += int(words[0])
        slices += int(words[2])
    return ns, slices


class Stand:
    """Two devices that reach each other: both in one daemon, or one in each of two."""

    def __init__(self, stack, daemons, devices, host="127.0.0.1", gid="1"):
        self.daemons, self.devices, self.host, self.gid = daemons, devices, host, gid
        for d in daemons:
            try:
                stack.enter_context(d)
            except AssertionError as e:
                raise Absent(reason_of(str(e))) from e

    def cpu_ns(self):
        """Spent so far by the daemons and by the programs that have ended."""
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours = sum(scheduled(d.proc.pid)[0] for d in self.daemons)
        return ours + int((usage.ru_utime + usage.ru_stime) * 1e9)

    def _start(self, side, *argv):
        return self.daemons[-1 if side else 0].start(*argv)

    def perftest(self, program, *options, each_side=((), ())):
        """The client's output."""
        return self.perftests(1, program, *options, each_side=each_side)[0]

    def perftests(self, n, program, *options, each_side=((), ())):
        """n pairs at the same time: their clients' outputs."""
        need(program)
        ports = [free_port() for _ in range(n)]
        argv = [[program, "-d", self.devices[side], "-x", self.gid, "-F", *options,
                 *each_side[side]] for side in range(2)]
        servers = [self._start(0, *argv[0], "-p", port) for port in ports]
        clients = []
        try:
            for s, port in zip(servers, ports):
                wait_for(f"{program} listens",
                         lambda s=s, port=port: is_listening(port, s.pid) or not s.is_alive())
                if not s.is_alive():
                    raise AssertionError(s.describe(s.proc.returncode))
            clients = [self._start(1, *argv[1], "-p", port, self.host) for port in ports]
            return finish(clients + servers)[:n]
        finally:
            for p in servers + clients:
                if p.is_alive():
                    p.kill()

    def own(self, name, *argv):
        return finish([self._start(0, own_program(name), *argv)])[0]


def reason_of(text):
    """The first thing a daemon said when it would not start."""
    lines = [line.strip() for line in text.splitlines()[1:] if line.strip()]
    said = [line for line in lines if "error" in line or "uroced:" in line]
    return (said or lines or [text])[0]


def on_switch(stack, *options):
    return Stand(stack, [Daemon(*options)], ("uroce0", "uroce1"))


def on_udp_loopback(stack):
    daemons = [Daemon("--device", f"link=udp,addr={LOOP[h]}") for h in "ab"]
    return Stand(stack, daemons, ("uroce0", "uroce0"), LOOP["a"])


def on_memif(stack):
    top = tempfile.mkdtemp(prefix="uroce-bench-")
    stack.callback(shutil.rmtree, top, ignore_errors=True)
    daemons = [Daemon("--device", f"link=dpdk,addr=198.18.7.{i},devargs=net_memif0,role={role},"
                      f"socket={top}/memif.sock,socket-abstract=no")
               for i, role in enumerate(("server", "client"), 1)]
    return Stand(stack, daemons, ("uroce0", "uroce0"))


class Veth:
    """Two network namespaces joined by a veth pair; devices and sockets there."""

    def __init__(self, stack, mtu=4200):
        if os.geteuid():
            raise Absent("only root can make network namespaces")
        self.stack, self.lab = stack, stack.enter_context(Lab(mtu))

    def stand(self, device, *options):
        """A daemon at each end with this device, or Absent if this build cannot."""
        daemons = [Daemon("--device", device.format(host=h), *options, netns=self.lab.netns[h])
                   for h in "ab"]
        return Stand(self.stack, daemons, ("uroce0", "uroce0"), ADDR["a"])

    def add_veth1(self):
        """For AF_XDP, which takes all of its interface's packets (the programs meet on veth0) and
        no veth with a larger MTU; path MTU 2048."""
        lab = self.lab
        sh("ip", "link", "add", "veth1", "netns", lab.name["a"], "type", "veth", "peer", "name",
           "veth1", "netns", lab.name["b"])
        for i, host in enumerate("ab", 1):
            lab.ip(host, "link", "set", "veth1", "mtu", 3400)
            lab.ip(host, "addr", "add", f"198.51.100.{i}/24", "dev", "veth1")
            lab.ip(host, "link", "set", "veth1", "up")

    @property
    def netns(self):
        return self.lab.netns["a"], self.lab.netns["b"]


@contextlib.contextmanager
def shared_files(size):
    """A file of shared memory for each side, as perftest's --mmap wants."""
    names = [f"/dev/shm/uroce-bench-{os.getpid()}-{side}" for side in "ab"]
    try:
        for name in names:
            with open(name, "wb") as f:
                f.truncate(size)
        yield tuple((f"--mmap={name}",) for name in names)
    finally:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
