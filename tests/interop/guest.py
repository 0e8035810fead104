# SPDX-License-Identifier: BSD-3-Clause
"""A QEMU guest with Linux's own RoCE in software, on a tap of a network namespace of ours."""
import os
import shutil
import socket
import subprocess
import tempfile
import threading

from harness import into, wait_for

KERNEL_ARGS = ("console=ttyS0 quiet mitigations=off nopti random.trust_cpu=on tsc=reliable "
               "no_timer_check nowatchdog rcupdate.rcu_expedited=1 panic=-1 net.ifnames=0 "
               "rdinit=/init")


class Job:
    """A command that runs in the guest."""

    def __init__(self, guest, number, command):
        self.guest, self.number, self.command = guest, number, command
        self.ended = threading.Event()
        self.code = None

    def output(self):
        try:
            with open(os.path.join(self.guest.dir, f"{self.number}.out"), encoding="utf-8",
                      errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def wait(self, deadline=60.0):
        """Its exit code; None if it did not end in time."""
        self.ended.wait(deadline)
        return self.code

    def describe(self):
        end = "did not end in time" if self.code is None else f"exit code {self.code}"
        said = "\n".join("    " + line for line in self.output().splitlines()[-40:])
        return f"in the guest: {self.command}: {end}; it said:\n{said}"


class Guest:
    """with Guest(image, netns=FILE, tap=NAME, ip=..., ip6=..., mtu=...) as g: g.run("command")"""

    def __init__(self, image, netns, tap, ip, ip6, mtu):
        self.image, self.netns, self.tap = image, netns, tap
        self.append = f"{KERNEL_ARGS} rxe.ip={ip} rxe.ip6={ip6} rxe.mtu={mtu}"
        self.dir = tempfile.mkdtemp(prefix="uroce-guest-")
        self.jobs = []
        self.is_ready = threading.Event()

    def _argv(self):
        off = ",".join(f"{o}=off" for o in (
            "csum", "guest_csum", "gso", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo",
            "host_tso4", "host_tso6", "host_ecn", "host_ufo"))
        # Whatever ends us, it ends with us.
        return [*into(self.netns), "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64",
                "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max",
                "-m", "1024", "-M", "pc,usb=off,hpet=off", "-display", "none",
                "-nodefaults", "-no-user-config", "-no-reboot", "-monitor", "none",
                "-kernel", os.path.join(self.image, "vmlinux"),
                "-initrd", os.path.join(self.image, "initramfs.cpio"), "-append", self.append,
                "-chardev", f"file,id=console,path={self.dir}/console", "-serial",
                "chardev:console",
                "-chardev", f"socket,id=jobs,path={self.dir}/jobs,server=on,wait=off",
                "-serial", "chardev:jobs",
                "-device", "virtio-rng-pci",
                "-fsdev", f"local,id=host,path={self.dir},security_model=none,multidevs=remap",
                "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
                "-netdev", f"tap,id=net,ifname={self.tap},script=no,downscript=no",
                "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:77:00:02,romfile=,{off}"]

    def __enter__(self):
        self.qemu = subprocess.Popen(self._argv(), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     start_new_session=True)
        try:
            self._connect()
            wait_for("the guest is up", lambda: self.is_ready.is_set() or self.has_ended(), 180)
            assert not self.has_ended(), "the guest ended:\n" + self.console()
        except BaseException:
            self.__exit__()
            raise
        return self

    def has_ended(self):
        return self.qemu.poll() is not None

    def _connect(self):
        path = os.path.join(self.dir, "jobs")
        self.line = socket.socket(socket.AF_UNIX)
        wait_for("QEMU starts", lambda: not self.line.connect_ex(path) or self.has_ended())
        assert not self.has_ended(), self.qemu.stdout.read().decode()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        rest = b""
        while True:
            try:
                got = self.line.recv(4096)
            except OSError:
                got = b""
            if not got:
                return
            *lines, rest = (rest + got).split(b"\n")
            for line in lines:
                self._hear(line.decode("ascii", "replace").split())

    def _hear(self, words):
        if words == ["ready"]:
            self.is_ready.set()
        elif len(words) == 3 and words[0] == "done":
            job = self.jobs[int(words[1])]
            job.code = int(words[2])
            job.ended.set()

    def __exit__(self, *_):
        try:
            self.line.sendall(b"quit\n")
            self.qemu.wait(5)
        except (OSError, AttributeError, subprocess.TimeoutExpired):
            self.qemu.kill()
        self.qemu.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def console(self):
        with open(os.path.join(self.dir, "console"), encoding="utf-8", errors="replace") as f:
            return "".join(f.readlines()[-40:])

    def start(self, command):
        assert not self.has_ended(), "the guest ended:\n" + self.console()
        job = Job(self, len(self.jobs), command)
        self.jobs.append(job)
        with open(os.path.join(self.dir, f"{job.number}.cmd"), "w", encoding="utf-8") as f:
            f.write(command + "\n")
        self.line.sendall(b"%d\n" % job.number)
        return job

    def run(self, command, deadline=60.0):
        job = self.start(command)
        assert job.wait(deadline) == 0, job.describe() + "\n" + self.console()
        return job.output()

    def put(self, path):
        """Gives the guest a program; returns its name there."""
        shutil.copy(path, self.dir)
        return "/host/" + os.path.basename(path)

    def wait_listening(self, port, job):
        """Until some socket of the guest listens on the TCP port."""
        # The guest asks itself: the host does not see its sockets.
        probe = self.start(f"until cat /proc/net/tcp /proc/net/tcp6 | grep -q ':{port:04X} .* 0A'; "
                           "do sleep 0.05; done")
        wait_for(f"{job.command} listens", lambda: probe.ended.is_set() or job.ended.is_set())
        assert not job.ended.is_set(), job.describe()
