# SPDX-License-Identifier: BSD-3-Clause
"""perftest's programs in pairs, with the options that issue texts and people use."""
from harness import free_port

# -a walks all sizes to 8 MiB; a handful of iterations keeps each pair at a second or two. Latency
# programs send every message there and back.
def few(program):
    return ["-n", "10" if "lat" in program else "20"]


BW = {
    "ib_send_bw": [[]],
    "ib_write_bw": [[]],
    "ib_read_bw": [[]],
    "ib_atomic_bw": [["-A", "FETCH_AND_ADD"], ["-A", "CMP_AND_SWAP"]],
}
LAT = {
    "ib_send_lat": [[]],
    "ib_write_lat": [[]],
    "ib_read_lat": [[]],
    "ib_atomic_lat": [["-A", "FETCH_AND_ADD"], ["-A", "CMP_AND_SWAP"]],
}


def run_pair(daemon, program, *options, devices=("uroce0", "uroce1"), deadline=180):
    """Both sides must end with 0, and the client must have printed its table."""
    port = free_port()
    args = ["-x", "1", "-F", "-p", port, *options]
    _, out = daemon.pair([program, "-d", devices[0], *args],
                         [program, "-d", devices[1], *args, "127.0.0.1"], port,
                         deadline=deadline)
    rows = [line for line in out.splitlines() if line.strip()[:1].isdigit() and
            len(line.split()) >= 4]
    assert rows, f"{program} printed no result:\n{out}"
    return rows


def sizes(program):
    """-a for all sizes; atomics have one size, eight bytes."""
    return [] if "atomic" in program else ["-a"]
