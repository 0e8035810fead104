#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The `uroce` command: exit codes, sentences, and life without the right daemon."""
import json
import os
import re
import shutil
import signal
import socket
import tempfile

import fake_daemon
from harness import BUILD, NOBODY, Daemon, Program, Skip, case, need_nobody, run_cases, wait_for

UROCE = os.path.join(BUILD, "uroce")


def uroce(*argv, run_dir="/nonexistent/run", expect=0, env=None):
    p = Program([UROCE, *argv], env={"UROCE_RUN_DIR": run_dir, **(env or {})})
    code = p.wait(20)
    assert code == expect, p.describe(code)
    return p.output()


class TempDir:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="uroce-e2e-")
        return self.path

    def __exit__(self, *_):
        own = os.path.join(self.path, "run")
        for run_dir in (self.path, own):
            if os.path.exists(os.path.join(run_dir, "uroced.pid")):
                Program([UROCE, "stop"], env={"UROCE_RUN_DIR": run_dir}).wait(20)
        shutil.rmtree(self.path, ignore_errors=True)


@case("--version names the version, --help the commands")
def _():
    assert re.fullmatch(r"uroce \d+\.\d+\.\d+\n", uroce("--version"))
    text = uroce("--help")
    for command in ("run", "status", "doctor", "stop", "fault"):
        assert re.search(rf"^  {command}\b", text, flags=re.M), text


@case("an unknown command, or none, is a usage error: 2")
def _():
    for argv in (["frobnicate"], [], ["--frobnicate"], ["status", "--frobnicate"], ["stop", "x"],
                 ["fault"], ["fault", "frobnicate"]):
        text = uroce(*argv, expect=2)
        assert "Try `uroce" in text, text


@case("without a daemon: status fails and says how to start one; stop has nothing to do")
def _():
    with TempDir() as d:
        text = uroce("status", run_dir=d, expect=1)
        assert text.count("\n") == 1 and "no daemon runs in" in text and "uroce run" in text, text
        assert uroce("status", "--json", run_dir=d, expect=1) == text
        assert "nothing to stop" in uroce("stop", run_dir=d, expect=0)
        assert "no daemon runs in" in uroce("fault", "show", run_dir=d, expect=1)


@case("a socket that a dead daemon left is no daemon")
def _():
    with TempDir() as d:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.bind(os.path.join(d, "control.sock"))
        s.close()
        assert "no daemon runs in" in uroce("status", run_dir=d, expect=1)


@case("a daemon of another version is named as such, by every command")
def _():
    with TempDir() as d, fake_daemon.FakeDaemon(d, version=999):
        for argv, code in ((["status"], 1), (["fault", "show"], 1), (["run", "--", "true"], 125)):
            text = uroce(*argv, run_dir=d, expect=code)
            assert "another version" in text and "uroce stop" in text, text
            assert text.count("another version") == 1, text
        assert re.search(r"^fail\s+daemon", uroce("doctor", run_dir=d, expect=1), flags=re.M)


@case("stop ends a daemon of another version by signal")
def _():
    with TempDir() as d:
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with fake_daemon.FakeDaemon(d, version=999):
                signal.pause()
            os._exit(1)
        wait_for("the fake daemon", lambda: os.path.exists(os.path.join(d, "control.sock")))
        # It must be reaped to be gone, so uroce stop runs beside us.
        p = Program([UROCE, "stop"], env={"UROCE_RUN_DIR": d})
        _, status = os.waitpid(pid, 0)
        code = p.wait(20)
        assert code == 0 and os.WTERMSIG(status) == signal.SIGTERM, p.describe(code)


@case("what a status of nonsense shows is a sentence, not a crash")
def _():
    for text in ("", "{", "[1,2]", '{"devices": 3, "qps": {"a": 1}, "clients": [1, null]}'):
        with TempDir() as d, fake_daemon.FakeDaemon(d, texts={fake_daemon.ADMIN_STATUS: text}):
            p = Program([UROCE, "status"], env={"UROCE_RUN_DIR": d})
            assert p.wait(20) in (0, 1), p.describe(p.proc.returncode)


@case("the exit code of uroce run is the program's; 128 + N of a signal is the shell's to say")
def _():
    with Daemon() as d:
        for code in (0, 1, 7, 125):
            d.run("sh", "-c", f"exit {code}", expect=code)
        d.run("sh", "-c", "kill -TERM $$", expect=-signal.SIGTERM)


@case("uroce run: 127 if there is no program, 126 if it cannot be executed, 125 if uroce fails")
def _():
    with Daemon() as d:
        assert "no such program" in d.run("/nonexistent/program", expect=127).output
        assert "cannot be executed" in d.run("/etc/passwd", expect=126).output
        text = d.run("true", device="uroce9", expect=125).output
        assert "no device uroce9; it has uroce0, uroce1" in text, text
        assert "PROGRAM is missing" in d.command("run", expect=125).output


@case("no process of uroce stays: the program has its pid, and signals reach it")
def _():
    with Daemon() as d:
        p = d.start("sh", "-c", "trap 'exit 9' TERM; echo ready $$; while :; do sleep 0.01; done")
        wait_for("the program is ready", lambda: "ready" in p.output())
        assert f"ready {p.pid}\n" == p.output(), p.output()
        os.kill(p.pid, signal.SIGTERM)
        assert p.wait(10) == 9


@case("the program's environment gets nothing but RDMAV_DRIVERS")
def _():
    with Daemon() as d:
        inside = dict(line.split("=", 1) for line in d.run("env").output.splitlines())
        outside = dict(line.split("=", 1)
                       for line in d.run("env", under_run=False).output.splitlines())
        drivers = inside.pop("RDMAV_DRIVERS")
        assert drivers.endswith("/provider/liburoce"), drivers
        for name in ("_", "PWD", "SHLVL"):
            inside.pop(name, None)
            outside.pop(name, None)
        assert inside == outside
        more = d.run("sh", "-c", "echo $RDMAV_DRIVERS", env={"RDMAV_DRIVERS": "/x/liby"}).output
        assert more == drivers + ":/x/liby\n", more


@case("the working directory stays, and no descriptor leaks to the program")
def _():
    with Daemon() as d:
        assert d.run("pwd").output == "/\n"
        assert d.run("sh", "-c", "cd /sys/class && exec \"$0\" run -- pwd", d.uroce,
                     under_run=False).output == "/sys/class\n"
        assert d.run("ls", "/proc/self/fd").output.split() == ["0", "1", "2", "3"]


@case("the host sees nothing of a program's devices")
def _():
    with Daemon() as d:
        d.run("true")
        assert not os.path.exists("/sys/class/infiniband/uroce0")
        assert not os.path.exists("/dev/infiniband/uverbs100")


@case("RDMA netlink is refused to the program, other netlink is not")
def _():
    script = ("import socket\n"
              "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()\n"
              "try:\n"
              "    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)\n"
              "except OSError as e:\n"
              "    print(e.errno)\n")
    with Daemon() as d:
        assert d.run("/usr/bin/python3", "-c", script).output == "93\n"


@case("two uroce run at once start one daemon between them")
def _():
    with TempDir() as d:
        env = {"UROCE_RUN_DIR": os.path.join(d, "run")}
        programs = [Program([UROCE, "run", "--", "ibv_devices"], env=env) for _ in range(6)]
        codes = [p.wait(60) for p in programs]
        text = uroce("stop", run_dir=env["UROCE_RUN_DIR"])
        assert codes == [0] * 6, "\n".join(p.describe(c) for p, c in zip(programs, codes))
        with open(os.path.join(env["UROCE_RUN_DIR"], "uroced.log"), encoding="utf-8") as f:
            log = f.read()
        assert "already running" not in log, log
        assert "has stopped" in text, text


@case("the daemon that uroce run starts outlives the program and its session; stop ends it")
def _():
    with TempDir() as d:
        uroce("run", "--", "true", run_dir=d)
        status = json.loads(uroce("status", "--json", run_dir=d))
        pid = status["pid"]
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            assert int(f.read().rsplit(")", 1)[1].split()[3]) != os.getsid(0)
        assert os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
        assert "has stopped" in uroce("stop", run_dir=d)
        # It has ended; whoever adopted it may take a moment to reap it.
        wait_for("the process is gone", lambda: not os.path.exists(f"/proc/{pid}"), 10)
        assert "no daemon runs" in uroce("status", run_dir=d, expect=1)


@case("a run directory that is a link, or another user's, is refused")
def _():
    need_nobody()
    with TempDir() as d:
        os.chmod(d, 0o755)
        theirs = os.path.join(d, "theirs")
        os.mkdir(theirs, 0o755)
        os.symlink(theirs, os.path.join(d, "link"))
        for path in ("link", "theirs"):
            p = Program([UROCE, "run", "--", "true"], user=NOBODY,
                        env={"UROCE_RUN_DIR": os.path.join(d, path)})
            code = p.wait(20)
            if code == 126 or "Permission denied" in p.output() and "uroce:" not in p.output():
                raise Skip("nobody cannot read the build tree")
            assert code == 125 and "run directory" in p.output() or "not a directory" in \
                p.output() or "cannot be written" in p.output(), p.describe(code)


@case("status lists clients and queue pairs while they live, as text and as JSON")
def _():
    with Daemon() as d:
        p = d.start("ibv_rc_pingpong", "-d", "uroce0", "-g", "1")
        wait_for("the queue pair shows", lambda: json.loads(
            d.command("status", "--json").output)["qps"])
        status = json.loads(d.command("status", "--json").output)
        assert [c["pid"] for c in status["clients"]] == [p.pid], status["clients"]
        qp = status["qps"][0]
        assert qp["pid"] == p.pid and qp["device"] == "uroce0", qp
        assert qp["comm"] == "ibv_rc_pingpong", qp
        assert qp["state"] == "INIT" and qp["type"] == "RC", qp
        text = d.command("status").output
        assert re.search(rf"^uroce0\s+0x[0-9a-f]+\s+RC\s+INIT\s+{p.pid}\s", text, flags=re.M), text
        p.kill()


@case("doctor is content with a running daemon, as text and as JSON")
def _():
    with Daemon() as d:
        text = d.command("doctor").output
        assert not re.search(r"^(warn|fail)", text, flags=re.M), text
        checks = json.loads(d.command("doctor", "--json").output)
        assert all(c["result"] == "ok" for c in checks), checks
        assert {c["check"] for c in checks} >= {"daemon", "RDMA netlink", "provider", "Yama"}
        inside = d.run(d.uroce, "doctor").output
        assert not re.search(r"^fail", inside, flags=re.M), inside


@case("doctor without a daemon warns, and says what to do")
def _():
    with TempDir() as d:
        text = uroce("doctor", run_dir=d)
        assert re.search(r"^warn\s+daemon.*\n\s+-> `uroce run` starts one", text, flags=re.M), text


@case("doctor names a class tree that somebody removed")
def _():
    with Daemon() as d:
        shutil.rmtree(os.path.join(d.run_dir, "sys", "class", "infiniband_verbs"))
        text = d.command("doctor", expect=1).output
        assert re.search(r"^fail\s+class tree", text, flags=re.M), text


@case("where namespaces are refused, the nodes that a container must be given are named")
def _():
    need_nobody()
    if os.path.exists("/dev/infiniband/uverbs100"):
        raise Skip("/dev/infiniband has the nodes here")
    with Daemon(user=NOBODY) as d:
        # A filter that refuses unshare and mount, as a container's may.
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "no_namespaces.py")
        shutil.copy(script, d.top)
        script = os.path.join(d.top, "no_namespaces.py")
        text = d.run("/usr/bin/python3", script, d.uroce, "run", "--", "true", under_run=False,
                     expect=125).output
        assert "/dev/infiniband/uverbs100" in text and "/dev/infiniband/uverbs101" in text, text
        assert "namespace" in text, text
        doctor = d.run("/usr/bin/python3", script, d.uroce, "doctor", under_run=False,
                       expect=1).output
        assert re.search(r"^fail\s+namespaces", doctor, flags=re.M), doctor


run_cases()
