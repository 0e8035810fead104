# SPDX-License-Identifier: BSD-3-Clause
"""A control socket that answers as a test wants it: a daemon of another version, a silent one.

It has no devices and moves no data; it exists for what the `uroce` command must say to users.
"""
import os
import socket
import struct
import threading

MAGIC = 0x55524F43
ADMIN_HELLO, ADMIN_STATUS, ADMIN_STOP, ADMIN_FAULT = 256, 257, 258, 259
EPROTO = 71


class FakeDaemon:
    """Listens in run_dir. version: what it says it speaks. is_silent: accepts, never answers."""

    def __init__(self, run_dir, version=1, is_silent=False, texts=None):
        self.version, self.is_silent, self.texts = version, is_silent, texts or {}
        self.path = os.path.join(run_dir, "control.sock")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.bind(self.path)
        self.sock.listen(8)
        self.asked = []
        self.conns = []
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        for conn in self.conns:
            conn.close()
        if os.path.exists(self.path):
            os.unlink(self.path)

    def _serve(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            self.conns.append(conn)
            if not self.is_silent:
                threading.Thread(target=self._talk, args=(conn,), daemon=True).start()

    def _talk(self, conn):
        while True:
            try:
                msg = conn.recv(4096)
            except OSError:
                return
            if len(msg) < 8:
                return
            op, length = struct.unpack_from("=II", msg)
            self.asked.append((op, msg[8 : 8 + length]))
            self._answer(conn, op, msg[8 : 8 + length])

    def _answer(self, conn, op, body):
        if op == ADMIN_HELLO:
            theirs = struct.unpack_from("=II", body)[1]
            err = 0 if theirs == self.version else EPROTO
            rep = struct.pack("=IIIIIIQ32s", MAGIC, self.version, 1, 0, os.getpid(), 0, 7,
                              b"9.9-fake")
            conn.send(struct.pack("=IIII", op, err, len(rep), 0) + rep)
        elif op in self.texts:
            fd = os.memfd_create("text")
            os.write(fd, self.texts[op].encode())
            socket.send_fds(conn, [struct.pack("=IIII", op, 0, 0, 1)], [fd])
            os.close(fd)
        else:
            conn.send(struct.pack("=IIII", op, 95, 0, 0))
