#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench runs, with a few messages for each row: every row is there, every ratio a number.
Nothing here judges speed."""
import json
import os
import subprocess
import tempfile

from harness import BUILD, case, run_cases

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "bench")
DOCUMENT = "# title\n\n<!-- bench:begin -->\nold\n<!-- bench:end -->\n\nend\n"
# What a machine may lack: root, an interface that takes XDP, a link that was not built.
MAY_BE_ABSENT = ("veth",)


def bench(*args, deadline=600):
    done = subprocess.run([BENCH, "--no-build", *args], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, timeout=deadline, check=False,
                          env={**os.environ, "UROCE_BUILD": BUILD})
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def groups():
    return [line.split()[0] for line in bench("--list").splitlines()]


@case("every group: rows, ratios, a picture, a document")
def _():
    names = groups()
    assert {"write-1m", "rate-64", "latency-64", "sweep", "veth"} <= set(names), names
    with tempfile.TemporaryDirectory() as d:
        doc = os.path.join(d, "doc.md")
        with open(doc, "w", encoding="utf-8") as f:
            f.write(DOCUMENT)
        shown = bench("--smoke", "--json", f"{d}/b.json", "--picture", f"{d}/b.png",
                      "--write-doc", doc)
        with open(f"{d}/b.json", encoding="utf-8") as f:
            result = json.load(f)
        assert os.path.getsize(f"{d}/b.png") > 1000, "no picture"
        with open(doc, encoding="utf-8") as f:
            written = f.read()
    check_rows(result, names)
    check_bars(result)
    assert "not met" in shown or " met" in shown
    assert written.startswith("# title\n") and written.endswith("\nend\n"), written
    assert "### Bars" in written and "\nold\n" not in written, written


def check_rows(result, names):
    rows = result["rows"]
    for name in names:
        assert [r for r in rows if r["group"] == name], f"no row of {name}"
    for r in rows:
        if "absent" in r:
            assert r["group"] in MAY_BE_ABSENT, r
            continue
        assert isinstance(r.get("median"), float) and r["values"], r


def check_bars(result):
    """Bars of 10,000 objects are for real runs; all others have a figure."""
    for b in result["bars"]:
        if "10,000" in b["what"] or b["group"] in MAY_BE_ABSENT:
            continue
        assert isinstance(b["figure"], (int, float)) and isinstance(b["met"], bool), b


@case("an unknown group is refused by name")
def _():
    done = subprocess.run([BENCH, "--no-build", "--only", "nonsense"], stdout=subprocess.PIPE,
                          text=True, stderr=subprocess.STDOUT, timeout=60, check=False)
    assert done.returncode == 2 and "nonsense" in done.stdout, done.stdout


run_cases()
