# SPDX-License-Identifier: BSD-3-Clause
"""The sweep as a picture, drawn by gnuplot."""
import os
import shutil
import subprocess

PANELS = (
    ("Bandwidth", "gbit_per_s", "Gbit/s", " bandwidth"),
    ("Message rate", "messages_per_s", "messages/s", " bandwidth"),
    ("Latency, one way, typical", "typical_us", "us", " latency"),
    ("Latency, one way, 99 %", "p99_us", "us", " latency"),
)


def script(rows, path):
    """Data and commands for gnuplot; None if there is nothing to draw."""
    blocks, panels = [], []
    for title, metric, axis, ending in PANELS:
        series = {}
        for r in rows:
            if r.get("metric") == metric and r["group"] == "sweep" and r["median"] > 0:
                series.setdefault(r["member"], []).append((r["size"], r["median"]))
        plots = []
        for name, points in series.items():
            block = f"$d{len(blocks)}"
            blocks.append("\n".join([f"{block} << EOD",
                                     *(f"{s} {v:.6g}" for s, v in sorted(points)), "EOD"]))
            plots.append(f'{block} using 1:2 with linespoints title "{name[:-len(ending)]}"')
        if plots:
            panels.append(f'set title "{title}"\nset ylabel "{axis}"\nplot ' + ", ".join(plots))
    if not panels:
        return None
    head = [f'set output "{path}"', "set terminal pngcairo size 1400,1000 noenhanced",
            "set logscale xy", 'set format x "%.0b%B"', "set grid", 'set xlabel "bytes"',
            "set key left top",
            "set multiplot layout 2,2"]
    return "\n".join(blocks + head + panels + ["unset multiplot"]) + "\n"


def draw(result, path):
    """None if it was drawn, else why not."""
    text = script(result["rows"], path)
    if text is None:
        return "no picture: the sweep was not measured"
    if not shutil.which("gnuplot"):
        return "no picture: gnuplot is not installed"
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    done = subprocess.run(["gnuplot"], input=text, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return None if done.returncode == 0 else f"gnuplot could not draw:\n{done.stdout}"
