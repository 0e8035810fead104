#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory that programs share anyhow is mapped into the daemon while it is registered."""
import os

from harness import NOBODY, Daemon, case, free_port, is_listening, need_nobody, run_cases, wait_for

SIZE = 4 << 20


def maps(d):
    """Of the daemon: a process of another user hides them from everybody but root."""
    with open(f"/proc/{d.proc.pid}/maps", encoding="ascii", errors="replace") as f:
        return f.read()


def shm_file(user):
    path = f"/dev/shm/uroce-e2e-{os.getpid()}-{user}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.ftruncate(fd, SIZE)
    if user is not None:
        os.chown(path, user, user)
    os.close(fd)
    return path


def write_between(user):
    """ib_write_bw into a file of /dev/shm, for a while; the daemon must have the file mapped."""
    with Daemon(user=user) as d:
        path, port = shm_file(user), free_port()
        args = ["-x", "1", "-F", "-s", "65536", "-D", "3", "-p", port]
        programs = []
        try:
            programs.append(d.start("ib_write_bw", "-d", "uroce0", *args, f"--mmap={path}"))
            wait_for("the server listens",
                     lambda: is_listening(port, programs[0].pid) or not programs[0].is_alive(), 20)
            assert path not in maps(d)
            programs.append(d.start("ib_write_bw", "-d", "uroce1", *args, "localhost"))
            wait_for(f"{path} is mapped into the daemon",
                     lambda: path in maps(d) or not programs[1].is_alive(), 20)
            mapped = path in maps(d)
            for p in programs:
                code = p.wait(30)
                assert code == 0, p.describe(code)
            assert mapped, "the daemon did not map it"
            wait_for("the daemon lets go of it", lambda: path not in maps(d), 10)
        finally:
            for p in programs:
                if p.is_alive():
                    p.kill()
            os.unlink(path)


@case("a file of /dev/shm is mapped into the daemon while it is registered")
def _():
    write_between(None)


@case("as nobody too")
def _():
    need_nobody()
    write_between(NOBODY)


run_cases()
