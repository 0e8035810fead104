#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program in what a strict container is like: unshare() is refused with EPERM.

usage: no_namespaces.py PROGRAM [ARG...]      (x86-64 only; a few lines of BPF by hand)
"""
import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SYS_UNSHARE, EPERM = 272, 1
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000
LOAD_NR = (0x20, 0, 0, 0)  # ld [seccomp_data.nr]

program = b"".join(struct.pack("=HBBI", *op) for op in [
    LOAD_NR,
    (0x15, 0, 1, SYS_UNSHARE),
    (0x06, 0, 0, RET_ERRNO | EPERM),
    (0x06, 0, 0, RET_ALLOW),
])


class Fprog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


libc = ctypes.CDLL(None, use_errno=True)
filt = Fprog(len(program) // 8, program)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or \
        libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filt), 0, 0):
    sys.exit("no_namespaces.py: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
