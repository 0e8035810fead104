# SPDX-License-Identifier: BSD-3-Clause
"""Frames as they pass an interface, judged by others than us: tshark, and an ICRC of our own.

The ICRC (IBA vol. 1, 7.8.1 and annex A17): CRC-32 as Ethernet's over 8 bytes of ones, the IP
header, UDP and BTH with what routers may change as ones, and the rest; little-endian on the wire.
"""
import os
import socket
import struct
import subprocess
import tempfile
import zlib

from harness import into, wait_for

ROCE_PORT = 4791
SNAP = 262144


class Capture:
    """with Capture(netns, interface) as c: ... then c.path is a pcap file."""

    def __init__(self, netns, interface):
        self.netns, self.interface = netns, interface
        handle, self.path = tempfile.mkstemp(suffix=".pcap", prefix="uroce-e2e-")
        os.close(handle)

    def __enter__(self):
        self.proc = subprocess.Popen(
            into(self.netns) + ["dumpcap", "-q", "-P", "-B", "64", "-s", str(SNAP), "-i",
                                self.interface, "-w", self.path],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("dumpcap runs", lambda: os.path.getsize(self.path) >= 24)
        return self

    def __exit__(self, *_):
        self.proc.terminate()
        self.proc.wait(10)

    def __del__(self):
        if os.path.exists(self.path):
            os.unlink(self.path)


def frames(path):
    with open(path, "rb") as f:
        data = f.read()
    assert struct.unpack_from("<I", data)[0] in (0xa1b2c3d4, 0xa1b23c4d), "no pcap file"
    off = 24
    while off + 16 <= len(data):
        _, _, kept, length = struct.unpack_from("<IIII", data, off)
        off += 16
        assert kept == length, "a frame was not captured whole"
        yield data[off:off + kept]
        off += kept


def ip_of(frame):
    """(version, IP packet without Ethernet's padding), or None."""
    kind, off = struct.unpack_from(">H", frame, 12)[0], 14
    if kind == 0x8100:
        kind, off = struct.unpack_from(">H", frame, 16)[0], 18
    if kind == 0x0800:
        return 4, frame[off:off + struct.unpack_from(">H", frame, off + 2)[0]]
    if kind == 0x86dd:
        return 6, frame[off:off + 40 + struct.unpack_from(">H", frame, off + 4)[0]]
    return None


def icrc(version, packet):
    """What the last four bytes of the IP packet must be."""
    masked = bytearray(packet[:-4])
    if version == 4:
        udp = 20
        masked[1] = 0xff              # TOS
        masked[8] = 0xff              # TTL
        masked[10:12] = b"\xff\xff"   # checksum
    else:
        udp = 40
        masked[0] |= 0x0f             # traffic class, flow label
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xff              # hop limit
    masked[udp + 6:udp + 8] = b"\xff\xff"  # UDP checksum
    masked[udp + 8 + 4] = 0xff             # resv8a of the BTH
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def udp_checksum(version, packet):
    """The sum over pseudo-header and UDP; 0xffff when the checksum is right."""
    header = 20 if version == 4 else 40
    udp = packet[header:]
    addresses = packet[12:20] if version == 4 else packet[8:40]
    data = addresses + struct.pack(">II", len(udp), socket.IPPROTO_UDP) + udp
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def check(version, packet):
    header = 20 if version == 4 else 40
    length, checksum = struct.unpack_from(">HH", packet, header + 4)
    assert length == len(packet) - header, f"UDP length {length} of {len(packet) - header}"
    assert packet[-4:] == icrc(version, packet), f"ICRC of {packet[:80].hex()}"
    assert checksum == 0 or udp_checksum(version, packet) == 0xffff, packet[:80].hex()


def checked_packets(path):
    """Judges every RoCE packet; counts by kind. "id": of IPv4 with an identification."""
    seen = {"IPv4": 0, "IPv6": 0, "id": 0, "icmp": 0}
    for frame in frames(path):
        found = ip_of(frame)
        if not found:
            continue
        version, packet = found
        protocol = packet[9] if version == 4 else packet[6]
        if protocol == socket.IPPROTO_ICMP and packet[20:22] == b"\x03\x03":
            seen["icmp"] += struct.unpack_from(">H", packet, 20 + 8 + 22)[0] == ROCE_PORT
        header = 20 if version == 4 else 40
        if protocol != socket.IPPROTO_UDP or \
                struct.unpack_from(">H", packet, header + 2)[0] != ROCE_PORT:
            continue
        check(version, packet)
        seen[f"IPv{version}"] += 1
        seen["id"] += version == 4 and packet[4:6] != b"\0\0"
    return seen


# Payload of tests means nothing. tshark guesses all the same, and calls what it guessed malformed.
NO_GUESSES = ["--disable-protocol", "rpcordma"] + [
    option for guesser in ("drbd_rdma", "eth_over_ib", "fc_infiniband", "iser_infiniband",
                           "lnet_ib", "mellanox_eoib", "nvme_rdma", "rpcrdma_infiniband",
                           "sdp_infiniband", "smb_direct_infiniband", "smcr_infiniband")
    for option in ("--disable-heuristic", guesser)]


def tshark_complaints(path, display="_ws.malformed || _ws.expert.severity == error"):
    """What tshark shows of a capture by that filter: what it calls malformed, or wrong."""
    done = subprocess.run(
        # RoCE leaves it 0 also over IPv6, as RFC 6935 allows: the ICRC does the work.
        ["tshark", "-r", path, *NO_GUESSES, "-o", "udp.ignore_ipv6_zero_checksum:TRUE",
         "-Y", display],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=120,
        env={**os.environ, "HOME": "/nonexistent"})
    assert done.returncode == 0, done.stderr
    return done.stdout
