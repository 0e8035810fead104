# SPDX-License-Identifier: BSD-3-Clause
"""cases.py SUITE EXPECTED [--pin] [NAME-PART...]: the cases of rdma-core's suite, as TAP.

Each runs in a forked child with a time limit, so that one which hangs or crashes costs itself only.
"""
import importlib.util
import os
import select
import signal
import sys
import tempfile
import time
import traceback
import unittest
import warnings

LIMIT = 90.0
HUGE_PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
IF_HUGE = " (huge pages)"  # behind a name: to be expected where the machine has some
DEVICE = ["--dev", "uroce0", "--port", "1", "--gid", "1"]
# For one vendor's hardware; each would skip itself.
FOREIGN = ("tests.test_mlx5", "tests.test_efa", "tests.test_cuda")


def load(suite):
    """The suite's test cases, in order. Its modules want its own command line and module name."""
    sys.argv = ["run_tests.py", *DEVICE]
    sys.path.insert(0, suite)
    warnings.simplefilter("ignore")
    spec = importlib.util.spec_from_file_location("tests", os.path.join(suite, "__init__.py"),
                                                  submodule_search_locations=[suite])
    tests = importlib.util.module_from_spec(spec)
    sys.modules["tests"] = tests
    spec.loader.exec_module(tests)
    from args_parser import parser  # pylint: disable=import-error,import-outside-toplevel
    parser.parse_args()

    def flat(some):
        for one in some:
            if isinstance(one, unittest.TestSuite):
                yield from flat(one)
            elif not one.id().startswith(FOREIGN):
                yield one
    return list(flat(unittest.defaultTestLoader.loadTestsFromModule(tests)))


def verdict(result):
    if result.skipped:
        return "skip " + result.skipped[0][1]
    bad = result.errors or result.failures
    if bad:
        return "fail " + bad[0][1]
    return "pass"


def in_child(test, write_end, output):
    os.setsid()
    for fd in (1, 2):
        os.dup2(output.fileno(), fd)
    result = unittest.TestResult()
    try:
        test.run(result)
        said = verdict(result)
    except BaseException:  # pylint: disable=broad-except
        said = "fail " + traceback.format_exc()
    os.write(write_end, said.encode()[-4000:] if said[0] == "f" else said.encode()[:4000])
    os._exit(0)


def hear(read_end, deadline):
    """What the child said before it ended or its time did; None: nothing in time."""
    said = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([read_end], [], [], left)[0]:
            return None
        part = os.read(read_end, 4096)
        if not part:
            return said.decode("utf-8", "replace")
        said += part


def run(test):
    """("pass" | "skip" | "fail", why)"""
    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as output:
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            in_child(test, write_end, output)
        os.close(write_end)
        said = hear(read_end, time.monotonic() + LIMIT)
        os.close(read_end)
        try:
            os.killpg(pid, signal.SIGKILL)  # and whomever it left behind
        except ProcessLookupError:
            pass
        status = os.waitpid(pid, 0)[1]
        if said:
            kind, _, why = said.partition(" ")
            if kind in ("pass", "skip"):
                return kind, why
            said = said.partition("Traceback")[2] or said
        elif said is None:
            said = f"not done within {LIMIT:.0f} s"
        else:
            said = f"died with status {status:#x}"
        output.seek(0)
        return "fail", said + "\n" + output.read().decode("utf-8", "replace")[-2000:]


def report(number, name, is_expected, kind, why):
    """One TAP line; true when it is as it should be."""
    lines = why.strip().splitlines()
    if kind == "skip" and not is_expected:
        print(f"ok {number} - {name} # SKIP {' '.join(lines)}", flush=True)
        return True
    if kind == "pass":
        print(f"ok {number} - {name}" + ("" if is_expected else " (not in the list)"), flush=True)
        return True
    for line in lines[-40:]:
        print("#   " + line)
    print(f"not ok {number} - {name}" + (": skipped, but it must pass" if kind == "skip" else ""),
          flush=True)
    return False


def has_huge_pages():
    try:
        with open(HUGE_PAGES, encoding="ascii") as f:
            return int(f.read()) > 0
    except OSError:
        return False


def read_expected(path):
    with open(path, encoding="ascii") as f:
        names = [line.strip() for line in f if line.strip() and line[0] != "#"]
    if not has_huge_pages():
        names = [name for name in names if not name.endswith(IF_HUGE)]
    return [name.replace(IF_HUGE, "") for name in names]


def write_expected(path, names):
    with open(path, encoding="ascii") as f:
        head = [line for line in f if line[0] == "#"]
    with open(path, "w", encoding="ascii") as f:
        f.writelines(head)
        f.writelines(name + (IF_HUGE if "_huge_" in name else "") + "\n" for name in sorted(names))


def main():
    suite, path, *parts = sys.argv[1:]
    must_pin = "--pin" in parts
    parts = [p for p in parts if p != "--pin"]
    expected = set(read_expected(path))
    tests = [t for t in load(suite) if not parts or any(p in t.id() for p in parts)]
    names = {t.id() for t in tests}
    gone = sorted(e for e in expected - names if not parts or any(p in e for p in parts))
    print(f"1..{len(tests) + len(gone)}", flush=True)
    passed, is_good = set(), True
    for number, test in enumerate(tests, 1):
        kind, why = run(test)
        if kind == "pass":
            passed.add(test.id())
        is_good &= report(number, test.id(), test.id() in expected, kind, why)
    for number, name in enumerate(gone, len(tests) + 1):
        is_good = False
        print(f"not ok {number} - {name}: the suite has no such case")
    if must_pin:
        write_expected(path, passed | (expected if parts else set()))
    sys.stdout.flush()
    os._exit(0 if is_good else 1)  # pyverbs' objects are noisy at an orderly exit


main()
