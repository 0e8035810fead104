#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""run_pyverbs.py [NAME-PART...]: rdma-core's own test-suite against a device of ours.

The suite is that of the package python3-pyverbs, run unchanged below `uroce run` on a daemon of its
own. expected_passes lists the cases that must pass, so that a skip cannot hide what broke. A case
that is not listed may be skipped, and docs/CONFORMANCE.md says why; it may not fail.

--pin writes the list anew from what passes now.
"""
import contextlib
import glob
import gzip
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from harness import Daemon  # noqa: E402  pylint: disable=wrong-import-position

HUGE_PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
N_HUGE_PAGES = 8
SUITE = "usr/share/doc/rdma-core/tests"
PYTHON = "/usr/bin/python3"  # the distribution's: another does not see its packages


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


@contextlib.contextmanager
def huge_pages():
    """Some 2 MiB pages for the cases that want them, if the machine has none and lets us."""
    def count(new=None):
        with open(HUGE_PAGES, "r" if new is None else "w", encoding="ascii") as f:
            return int(f.read()) if new is None else f.write(str(new))
    before = 0
    try:
        before = count()
        if not before:
            count(N_HUGE_PAGES)
    except OSError:
        pass  # not root, or not in this container
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if not before:
                count(0)


def find_suite(top):
    """A copy of the suite below top, unpacked. Slim images leave out /usr/share/doc."""
    source = os.path.join("/", SUITE)
    if not os.path.exists(os.path.join(source, "run_tests.py")):
        if subprocess.run(["apt-get", "download", "-q", "python3-pyverbs"], cwd=top, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            skip_all("neither /" + SUITE + " nor the package that has it")
        deb = glob.glob(os.path.join(top, "python3-pyverbs*.deb"))[0]
        subprocess.run(["dpkg-deb", "-x", deb, os.path.join(top, "deb")], check=True)
        source = os.path.join(top, "deb", SUITE)
    copy = os.path.join(top, "suite")
    shutil.copytree(source, copy)
    for path in glob.glob(os.path.join(copy, "*.gz")):
        with gzip.open(path) as packed, open(path[:-3], "wb") as plain:
            shutil.copyfileobj(packed, plain)
        os.unlink(path)
    return copy


def main():
    if subprocess.run([PYTHON, "-c", "import pyverbs.device"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        skip_all("python3-pyverbs is not installed")
    top = tempfile.mkdtemp(prefix="uroce-pyverbs-")
    try:
        suite = find_suite(top)
        with huge_pages(), Daemon() as d:
            argv = [d.uroce, "run", "--", PYTHON, os.path.join(HERE, "cases.py"), suite,
                    os.path.join(HERE, "expected_passes"), *sys.argv[1:]]
            code = subprocess.run(argv, env={**os.environ, **d.env()}, check=False).returncode
    finally:
        shutil.rmtree(top, ignore_errors=True)
    sys.exit(code)


main()
