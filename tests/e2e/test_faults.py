#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`uroce fault`, and unmodified programs while the link loses, repeats, reorders and damages."""
import json

from harness import Daemon, case, free_port, is_listening, run_cases, wait_for
from perftest import BW, LAT, run_pair


def fault(d, *words, expect=0):
    """Runs `uroce fault`; what it prints, as JSON when it succeeds."""
    text = d.command("fault", *words, expect=expect).output
    return json.loads(text) if expect == 0 else text


def shown(d, device="uroce1"):
    return fault(d, "show", device)[0]


def counters(d, device):
    status = json.loads(d.command("status", "--json").output)
    return next(x for x in status["devices"] if x["name"] == device)["counters"]


@case("fault set, show and clear: rules add up, and clear takes them all")
def _():
    with Daemon() as d:
        fault(d, "set", "uroce1", "drop=1%", "reorder=0.1%", "seed=7")
        assert shown(d)["rules"] == "drop=1% reorder=0.1% seed=7", shown(d)
        fault(d, "set", "uroce1", "drop=2%")
        assert shown(d)["rules"] == "drop=2% reorder=0.1% seed=7", shown(d)
        fault(d, "set", "uroce1", "--once", "opcode=read-response-middle", "nth=3", "action=drop")
        assert shown(d)["rules"].endswith("--once opcode=read-response-middle nth=3 action=drop")
        assert [x["device"] for x in fault(d, "show")] == ["uroce0", "uroce1"]
        assert shown(d, "uroce0")["rules"] == ""
        fault(d, "clear", "uroce1")
        assert shown(d)["rules"] == ""


WRONG = {
    ("set", "uroce1", "dorp=1%"): "dorp",
    ("set", "uroce1", "drop=200%"): "from 0% to 100%",
    ("set", "uroce1", "drop"): "name=value",
    ("set", "uroce1", "delay=20"): "a time like",
    ("set", "uroce1", "dir=up"): "tx, rx or both",
    ("set", "uroce1", "partition=maybe"): "on or off",
    ("set", "uroce1", "--once", "opcode=frobnicate"): "opcode takes",
    ("set", "uroce1", "--once", "rate=1gbit"): "rate",
    ("set", "uroce1"): "NAME=VALUE",
    ("set", "uroce9", "drop=1%"): "there is no device uroce9",
    ("set",): "which device",
}


@case("words that nobody knows are refused in a sentence, and change nothing")
def _():
    with Daemon() as d:
        fault(d, "set", "uroce1", "drop=1%")
        for words, says in WRONG.items():
            text = fault(d, *words, expect=1)
            assert says in text and text.count("\n") == 1, (words, text)
        assert shown(d)["rules"] == "drop=1%", shown(d)


def start_pair(d, program, *args):
    port = free_port()
    args = ["-x", "1", "-F", "-p", port, *args]
    server = d.start(program, "-d", "uroce0", *args)
    wait_for("the server listens", lambda: is_listening(port))
    return server, d.start(program, "-d", "uroce1", *args, "127.0.0.1")


@case("rules change while a program runs, and can name its queue pair")
def _():
    with Daemon() as d:
        server, client = start_pair(d, "ib_read_bw", "-s", "65536", "-D", "60")

        def reader():
            qps = json.loads(d.command("status", "--json").output)["qps"]
            return [q for q in qps if q["pid"] == client.pid and q["sq_pending"]]
        qpn = wait_for("the client reads", reader)[0]["qpn"]
        for rule in ("action=drop", "action=dup", "action=reorder", "action=corrupt"):
            before = shown(d)["counters"]["once"]
            fault(d, "set", "uroce1", "--once", "opcode=read-response-middle", f"qpn={qpn}",
                  "nth=3", rule)
            wait_for(f"{rule} had its turn", lambda n=before: shown(d)["counters"]["once"] == n + 1)
        assert shown(d)["rules"] == "", shown(d)
        fault(d, "set", "uroce1", "drop=5%", "dir=rx")
        wait_for("packets are lost", lambda: shown(d)["counters"]["dropped"] > 20)
        fault(d, "clear")
        dropped = shown(d)["counters"]["dropped"]
        arrived = counters(d, "uroce1")["rx_packets"]
        wait_for("packets pass", lambda: counters(d, "uroce1")["rx_packets"] > arrived + 1000)
        assert shown(d)["counters"]["dropped"] == dropped
        assert client.is_alive() and server.is_alive(), client.output()
        client.kill()
        server.kill()


@case("a rule for one direction leaves the other alone")
def _():
    with Daemon() as d:
        # The client on uroce1 writes, so that ACKs leave uroce0 and none arrives there.
        fault(d, "set", "uroce0", "--once", "opcode=ack", "dir=rx")
        fault(d, "set", "uroce0", "--once", "opcode=ack", "dir=tx")
        run_pair(d, "ib_write_bw", "-n", "100", "-s", "4096")
        seen = shown(d, "uroce0")
        assert seen["counters"]["once"] == 1, seen
        assert "dir=rx" in seen["rules"] and "dir=tx" not in seen["rules"], seen


@case("a partition ends what runs, and its end lets new programs through")
def _():
    with Daemon() as d:
        server, client = start_pair(d, "ib_write_bw", "-s", "4096", "-D", "60", "-u", "10")
        wait_for("it runs", lambda: counters(d, "uroce1")["tx_packets"] > 1000)
        fault(d, "set", "uroce1", "partition=on")
        code = client.wait(30)
        assert code not in (0, None), client.describe(code)
        assert shown(d)["counters"]["partitioned"], shown(d)
        server.kill()
        fault(d, "clear")
        run_pair(d, "ib_write_bw", "-n", "100", "-s", "4096")


SIZES = {"ib_atomic_bw": [], "ib_atomic_lat": []}


def all_of_perftest(rule, is_seen):
    """Every program to its end, with its variants, on one daemon; something must have happened."""
    with Daemon() as d:
        fault(d, "set", "uroce1", rule, "seed=4711")
        for program, variants in {**BW, **LAT}.items():
            size = SIZES.get(program, ["-s", "16384"])
            for variant in variants:
                run_pair(d, program, "-n", "200", *size, *variant, deadline=60)
        seen = shown(d)["counters"]
        assert seen[is_seen], seen


for _rule, _is_seen in (("drop", "dropped"), ("reorder", "reordered"), ("dup", "duplicated")):
    for _chance in ("0.1%", "1%", "5%"):
        case(f"perftest completes with {_rule}={_chance}")(
            lambda r=f"{_rule}={_chance}", s=_is_seen: all_of_perftest(r, s))


@case("perftest completes with corrupt=0.1%: the ICRC catches each")
def _():
    all_of_perftest("corrupt=0.1%", "corrupted")


def data_under(*rules):
    with Daemon() as d:
        fault(d, "set", "uroce1", *rules, "seed=99")
        result = d.run(d.own_program("verbs_data"), deadline=240, expect=None)
        assert result.code == 0, result.output
        seen = shown(d)["counters"]
        assert seen["dropped"] + seen["duplicated"] + seen["reordered"] + seen["corrupted"], seen


for _rules in (["drop=1%"], ["drop=5%"], ["reorder=5%"], ["dup=5%"],
               ["drop=1%", "reorder=1%", "dup=1%", "corrupt=0.1%"]):
    case(f"verbs_data: every byte is right with {' '.join(_rules)}")(
        lambda r=_rules: data_under(*r))


run_cases()
