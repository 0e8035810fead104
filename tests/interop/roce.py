# SPDX-License-Identifier: BSD-3-Clause
"""RoCEv2 frames and their ICRC, from the text of IBA annex A17: shares no code with uroce."""
import socket
import struct
import threading
import time
import zlib

PORT = 4791


class Frame:
    """An Ethernet frame that carries RoCEv2; is_roce says whether it does."""

    def __init__(self, data):
        self.data, self.is_roce = data, False
        kind = struct.unpack_from("!H", data, 12)[0] if len(data) >= 14 else 0
        self.ip = 14
        if kind == 0x8100:
            kind, self.ip = struct.unpack_from("!H", data, 16)[0], 18
        if kind == 0x0800 and len(data) >= self.ip + 28 and data[self.ip + 9] == 17:
            self.version, self.udp = 4, self.ip + 4 * (data[self.ip] & 15)
            self.end = self.ip + struct.unpack_from("!H", data, self.ip + 2)[0]
            self.ident = struct.unpack_from("!H", data, self.ip + 4)[0]
        elif kind == 0x86dd and len(data) >= self.ip + 48 and data[self.ip + 6] == 17:
            self.version, self.udp = 6, self.ip + 40
            self.end = self.udp + struct.unpack_from("!H", data, self.ip + 4)[0]
            self.ident = 0
        else:
            return
        self.is_roce = (struct.unpack_from("!H", data, self.udp + 2)[0] == PORT and
                        self.end >= self.udp + 8 + 12 + 4)

    @property
    def opcode(self):
        return self.data[self.udp + 8]

    def is_icrc_right(self):
        if self.end > len(self.data):
            return False
        d = bytearray(self.data[self.ip:self.end - 4])
        udp = self.udp - self.ip
        if self.version == 4:
            ones = [1, 8, 10, 11]  # TOS, TTL, checksum
        else:
            d[0] |= 0x0f  # traffic class and flow label, hop limit
            ones = [1, 2, 3, 7]
        for at in ones + [udp + 6, udp + 7, udp + 8 + 4]:  # UDP checksum, BTH resv8a
            d[at] = 0xff
        crc = zlib.crc32(b"\xff" * 8 + bytes(d))
        return struct.pack("<I", crc) == self.data[self.end - 4:self.end]


class Capture:
    """Every frame of an interface while it is open; into a pcap file too, if asked for.

    Must be made in the interface's network namespace. `lost` counts what the kernel had no room
    for: a verdict over all frames holds only if it is 0.
    """

    def __init__(self, interface, pcap=None):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        for option in (33, socket.SO_RCVBUF):  # 33: SO_RCVBUFFORCE
            try:
                self.sock.setsockopt(socket.SOL_SOCKET, option, 256 << 20)
                break
            except PermissionError:
                pass
        self.sock.bind((interface, 3))
        self.sock.settimeout(0.2)
        self.frames = self.bad = self.lost = 0
        self.opcodes, self.first_bad = {}, None
        self.file = open(pcap, "wb") if pcap else None
        if self.file:
            self.file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        self.must_stop = False
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.must_stop = True  # after the queue is empty
        self.thread.join()
        stats = self.sock.getsockopt(263, 6, 8)  # SOL_PACKET, PACKET_STATISTICS
        self.lost = struct.unpack("II", stats)[1]
        self.sock.close()
        if self.file:
            self.file.close()

    def _run(self):
        while True:
            try:
                data = self.sock.recv(65535)
            except TimeoutError:
                if self.must_stop:
                    return
                continue
            frame = Frame(data)
            if frame.is_roce:
                self._note(frame)

    def _note(self, frame):
        self.frames += 1
        self.opcodes[frame.opcode] = self.opcodes.get(frame.opcode, 0) + 1
        if not frame.is_icrc_right():
            self.bad += 1
            self.first_bad = self.first_bad or frame.data.hex()
        if self.file:
            n, now = len(frame.data), time.time_ns() // 1000
            self.file.write(struct.pack("<IIII", now // 1000000, now % 1000000, n, n) + frame.data)

    def assert_right(self):
        assert self.lost == 0, f"{self.lost} frames were not captured"
        assert self.frames, "nothing was captured"
        assert self.bad == 0, f"{self.bad} of {self.frames} ICRCs are wrong: {self.first_bad}"
