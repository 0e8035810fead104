# SPDX-License-Identifier: BSD-3-Clause
"""Tables: for the terminal, and for docs/PERFORMANCE.md."""
from benchlib.groups import GROUPS

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"

UNITS = {
    "gbit_per_s": "Gbit/s", "messages_per_s": "messages/s", "typical_us": "us typical",
    "p99_us": "us 99 %", "p999_us": "us 99.9 %", "ratio": "with / without",
}
# What a group's tables show, where the programs tell more.
SHOWN = {
    "write-1m": ["gbit_per_s"], "udp-1m": ["gbit_per_s"],
    "rate-64": ["messages_per_s"],
    "veth": ["gbit_per_s", "typical_us", "p99_us"],
    "memif": ["gbit_per_s", "typical_us", "p99_us"],
    "latency-64": ["typical_us", "p99_us", "p999_us"],
    "events-64": ["typical_us", "p99_us", "p999_us"],
    "idle-qps": ["messages_per_s", "messages_per_s_alone", "ratio", "make_us"],
    "idle-mrs": ["messages_per_s", "messages_per_s_alone", "ratio", "make_us"],
    "pairs": ["gbit_per_s", "messages_per_s"], "workers": ["gbit_per_s", "messages_per_s"],
    "cpu": ["cpu_ns_per_message", "cpu_ns_per_byte"],
}


def number(x):
    """Three figures; whole numbers with commas."""
    if x is None:
        return "-"
    if abs(x) >= 1000:
        return f"{x:,.0f}"
    if abs(x) >= 100:
        return f"{x:.0f}"
    if abs(x) >= 10:
        return f"{x:.1f}"
    return f"{x:.2f}" if abs(x) >= 0.1 or not x else f"{x:.3g}"


def unit(metric):
    return UNITS.get(metric, metric.replace("_", " "))


def human(size):
    for shift, suffix in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << shift:
            return f"{size >> shift} {suffix}"
    return f"{size} B"


def bar_rows(result):
    head = ["bar", "wanted", "measured", ""]
    rows = []
    for b in result["bars"]:
        verdict = {True: "met", False: "not met", None: "not measured"}[b["met"]]
        rows.append([b["what"], f"{b['sign']} {b['limit']:g}", number(b["figure"]), verdict])
    return head, rows


def group_rows(rows, metrics):
    """A line a member; of rows of one group."""
    lines, why = {}, {}
    for r in rows:
        if "metric" in r:
            lines.setdefault(r["member"], {})[r["metric"]] = r["median"]
        else:
            why[r["member"]] = r.get("absent") or "failed: " + r["failed"]
    present = [m for m in metrics if any(m in line for line in lines.values())]
    table = [[name, *(number(line.get(m)) for m in present)] for name, line in lines.items()]
    table += [[name, text] + [""] * (len(present) - 1) for name, text in why.items()]
    return ["", *(unit(m) for m in present)], table


def single_rows(rows):
    """One line a figure: for groups whose members tell of different things."""
    return ["", ""], [[f"{r['member']}: {r['metric'].replace('_', ' ')}", number(r["median"])]
                      for r in rows if "metric" in r]


def sweep_tables(rows):
    """Sizes down, operations across: one table a metric."""
    rows = [r for r in rows if "metric" in r]
    for ending, metrics in (("bandwidth", ("gbit_per_s", "messages_per_s")),
                            ("latency", ("typical_us", "p99_us", "p999_us"))):
        for metric in metrics:
            cell = {(r["member"], r["size"]): r["median"] for r in rows
                    if r["metric"] == metric and r["member"].endswith(ending)}
            names = list(dict.fromkeys(name for name, _ in cell))
            sizes = sorted({size for _, size in cell})
            if sizes:
                yield (unit(metric), ["", *(n[:-len(ending)].strip() for n in names)],
                       [[human(s), *(number(cell.get((n, s))) for n in names)] for s in sizes])


def tables(result):
    """(title, head, rows) of all that was measured."""
    yield "Bars", *bar_rows(result)
    for name, (what, _) in GROUPS.items():
        rows = [r for r in result["rows"] if r["group"] == name]
        if not rows:
            continue
        if name == "sweep":
            for metric, head, lines in sweep_tables(rows):
                yield f"{what}: {metric}", head, lines
        elif name in ("idle", "registration"):
            yield what, *single_rows(rows)
        else:
            metrics = SHOWN.get(name) or list(dict.fromkeys(
                r["metric"] for r in rows if "metric" in r))
            yield what, *group_rows(rows, metrics)


def machine(result):
    m = result["machine"]
    cores = f"{len(m['cores_used'])} of {m['cores']} cores"
    return (f"{m['date']}, commit {m['commit'] or 'unknown'}, {m['cpu']}, {cores}, Linux "
            f"{m['kernel']}; `--{result['mode']}`, {m['seconds']} s; other programs used "
            f"{m['others_share']:.0%} of the CPUs meanwhile.")


def aligned(head, rows):
    widths = [max(len(str(line[i])) for line in [head, *rows]) for i in range(len(head))]
    for line in [head, *rows]:
        yield "  ".join(str(c).ljust(w) if i == 0 else str(c).rjust(w)
                        for i, (c, w) in enumerate(zip(line, widths))).rstrip()


def plain(result):
    out = [machine(result)]
    for title, head, rows in tables(result):
        out += ["", title, *("  " + line for line in aligned(head, rows))]
    return "\n".join(out)


def capital(text):
    return text[:1].upper() + text[1:]


def markdown(result):
    out = [machine(result)]
    for title, head, rows in tables(result):
        if not rows:
            continue
        out += ["", f"### {capital(title)}", "", "| " + " | ".join(head) + " |",
                "|---|" + "---:|" * (len(head) - 1)]
        out += ["| " + " | ".join(map(str, line)) + " |" for line in rows]
    return "\n".join(out)


def replaced(text, block):
    """The document with what stands between the markers replaced."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"bench: the document has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{block}\n{END}{after}"
