# SPDX-License-Identifier: BSD-3-Clause
"""What the end-to-end tests stand on: cases and TAP, a private daemon, programs with a deadline.

A test file defines cases with @case and ends with run_cases(). Nothing here waits for a fixed
time: every wait is for an event and has a deadline, after which what ran is killed and what it
said is shown.
"""
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

BUILD = os.environ.get("UROCE_BUILD") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
NOBODY = 65534
DEADLINE = 60.0

_cases = []


class Skip(Exception):
    """Raised by a case that cannot run here; says why."""


def case(name):
    """Registers a function as a test case. The name states what must be so."""
    def add(function):
        _cases.append((name, function))
        return function
    return add


def run_cases():
    """Runs all cases and exits. An argument, if given, is a part of the names to run."""
    chosen = [c for c in _cases if len(sys.argv) < 2 or sys.argv[1] in c[0]]
    failed = 0
    print(f"1..{len(chosen)}", flush=True)
    for i, (name, function) in enumerate(chosen, 1):
        start = time.monotonic()
        try:
            function()
            line = f"ok {i} - {name}"
        except Skip as why:
            line = f"ok {i} - {name} # SKIP {why}"
        except Exception:  # pylint: disable=broad-except
            failed += 1
            for text in traceback.format_exc().splitlines():
                print("# " + text)
            line = f"not ok {i} - {name}"
        print(line, flush=True)
        print(f"# took {time.monotonic() - start:.1f} s", flush=True)
    sys.exit(1 if failed else 0)


def wait_for(what, condition, deadline=DEADLINE):
    """Asks condition() until it is true; AssertionError names what did not happen in time."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what}: not within {deadline:.0f} s"
        time.sleep(0.005)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_listening(port, pid="self"):
    """Whether some socket in that process's network namespace listens on the TCP port."""
    for table in (f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6"):
        try:
            with open(table, encoding="ascii") as f:
                for line in f:
                    fields = line.split()
                    if fields[1].endswith(f":{port:04X}") and fields[3] == "0A":
                        return True
        except OSError:
            pass
    return False


def into(netns):
    """What to put before a command that shall run in that network namespace."""
    return ["nsenter", f"--net={netns}"] if netns else []


class Program:
    """A started program whose output goes to a file; never outlives its test."""

    def __init__(self, argv, env=None, user=None, name=None, netns=None):
        self.argv, self.name = argv, name or os.path.basename(argv[0])
        self.file = tempfile.TemporaryFile(mode="w+b")
        full_env = dict(os.environ)
        full_env.update(env or {})
        if user is not None:
            argv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
                    "--inh-caps=-all", "--bounding-set=-all", *argv]
        argv = into(netns) + argv
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.file,
                                     stderr=subprocess.STDOUT, env=full_env, cwd="/",
                                     start_new_session=True)

    @property
    def pid(self):
        return self.proc.pid

    def output(self):
        self.file.flush()
        return os.pread(self.file.fileno(), 1 << 24, 0).decode("utf-8", "replace")

    def wait(self, deadline=DEADLINE):
        """Its exit code; None if it did not end in time (it is then killed)."""
        try:
            return self.proc.wait(deadline)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def is_alive(self):
        return self.proc.poll() is None

    def kill(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.proc.wait()

    def describe(self, code):
        said = "\n".join("    " + line for line in self.output().splitlines()[-60:])
        end = "did not end in time" if code is None else f"exit code {code}"
        return f"{' '.join(self.argv)}: {end}; it said:\n{said}"


class Result:
    def __init__(self, code, output):
        self.code, self.output = code, output


class Daemon:
    """A uroced of our own in a temporary run directory; with a user, all of it is that user's.

    netns: the file of a network namespace, in which it and the programs it is given run.
    """

    def __init__(self, *options, user=None, netns=None):
        self.user, self.options, self.netns = user, list(options), netns
        self.top = tempfile.mkdtemp(prefix="uroce-e2e-")
        self.run_dir = os.path.join(self.top, "run")
        self.bin = BUILD
        self.program = None
        if user is not None:
            self._copy_build()
            os.mkdir(self.run_dir, 0o700)
            os.chown(self.run_dir, user, user)

    def _copy_build(self):
        """Another user may not be able to read the build tree; the same layout elsewhere does."""
        self.bin = os.path.join(self.top, "build")
        os.makedirs(os.path.join(self.bin, "provider"))
        os.chmod(self.top, 0o755)
        for name in ("uroce", "uroced"):
            shutil.copy(os.path.join(BUILD, name), os.path.join(self.bin, name))
        for name in os.listdir(os.path.join(BUILD, "provider")):
            if ".so" in name and os.path.isfile(os.path.join(BUILD, "provider", name)):
                shutil.copy(os.path.join(BUILD, "provider", name),
                            os.path.join(self.bin, "provider", name))
        for path in glob.glob(os.path.join(BUILD, "tests", "e2e", "verbs_*")):
            if os.path.isfile(path) and os.access(path, os.X_OK):
                shutil.copy(path, self.bin)

    @property
    def uroce(self):
        return os.path.join(self.bin, "uroce")

    def own_program(self, name):
        """A program of tests/e2e, where this daemon's user can execute it."""
        if self.user is not None:
            return os.path.join(self.bin, name)
        return os.path.join(BUILD, "tests", "e2e", name)

    def __enter__(self):
        ready, theirs = os.pipe()
        os.set_inheritable(theirs, True)
        argv = [os.path.join(self.bin, "uroced"), "--run-dir", self.run_dir, "--ready-fd",
                str(theirs), *self.options]
        self.log = open(os.path.join(self.top, "uroced.log"), "w+b")
        pre = None
        if self.user is not None:
            argv = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups",
                    "--inh-caps=-all", "--bounding-set=-all", *argv]
        argv = into(self.netns) + argv
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log,
                                     stderr=subprocess.STDOUT, pass_fds=(theirs,), cwd="/",
                                     preexec_fn=pre, start_new_session=True)
        os.close(theirs)
        byte = os.read(ready, 1)  # the daemon's end of file, at the latest when it dies
        os.close(ready)
        if not byte:
            self.proc.wait()
            said = self.log_text()
            self._remove()
            raise AssertionError(f"uroced ended with {self.proc.returncode} at once:\n{said}")
        return self

    def stop_others(self):
        """A daemon that a case had `uroce run` start in our place must not outlive the case."""
        if os.path.exists(os.path.join(self.run_dir, "control.sock")):
            Program([self.uroce, "stop"], env=self.env(), user=self.user).wait(20)

    def __exit__(self, kind, *_):
        code = 0
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
            try:
                code = self.proc.wait(15)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
                code = "killed: it did not stop within 15 s of SIGTERM"
        self.stop_others()
        said = self.log_text()
        self._remove()
        if kind is None:
            assert code == 0, f"uroced ended with {code}; its log:\n{said}"
        else:
            print("# uroced's log:")
            for line in said.splitlines()[-40:]:
                print("#   " + line)

    def _remove(self):
        self.log.close()
        shutil.rmtree(self.top, ignore_errors=True)

    def log_text(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    def env(self):
        return {"UROCE_RUN_DIR": self.run_dir}

    def start(self, *argv, env=None, under_run=True, device=None, user=None):
        """Starts a program below `uroce run`, as this daemon's user."""
        run = [self.uroce, "run"] + (["-d", device] if device else []) + ["--"]
        return Program((run if under_run else []) + [str(a) for a in argv],
                       env={**self.env(), **(env or {})},
                       user=self.user if user is None else user, netns=self.netns)

    def run(self, *argv, deadline=DEADLINE, expect=0, **more):
        """Runs it to its end; its exit code must be as expected (None: any)."""
        program = self.start(*argv, **more)
        code = program.wait(deadline)
        assert code is not None and expect in (None, code), program.describe(code)
        return Result(code, program.output())

    def command(self, *argv, expect=0, deadline=DEADLINE):
        """Runs `uroce ...` itself."""
        return self.run(self.uroce, *argv, under_run=False, expect=expect, deadline=deadline)

    def pair(self, server, client, port, deadline=DEADLINE, client_daemon=None):
        """Runs a server and, once it listens on port, its client, at client_daemon if it is
        another one. Both must end with 0."""
        s = self.start(*server)
        c = None
        try:
            wait_for(f"{' '.join(map(str, server))} listens",
                     lambda: is_listening(port, s.pid) or not s.is_alive(), 20)
            if s.is_alive():
                c = (client_daemon or self).start(*client)
            end = time.monotonic() + deadline
            code_c = c.wait(deadline) if c else 0
            code_s = s.wait(max(1.0, min(10.0, end - time.monotonic())) if code_c == 0 else 2)
            if code_c or code_s or code_c is None or code_s is None or not c:
                told = s.describe(code_s) + ("\n" + c.describe(code_c) if c else "")
                raise AssertionError(told + "\n" + self._status())
            return s.output(), c.output()
        finally:
            for p in (s, c):
                if p and p.is_alive():
                    p.kill()

    def _status(self):
        p = Program([self.uroce, "status"], env=self.env(), user=self.user)
        p.wait(10)
        return "uroce status:\n" + p.output()


def need_root():
    if os.geteuid():
        raise Skip("only root can make network namespaces of its own")


def need_nobody():
    """Root, to become another user, who may make a user namespace (not in a chroot, for one)."""
    if os.geteuid():
        raise Skip("needs root, to become another user")
    p = Program(["unshare", "--user", "true"], user=NOBODY)
    if p.wait(10):
        raise Skip("an ordinary user may not make user namespaces here")
