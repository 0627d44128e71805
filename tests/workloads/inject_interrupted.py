# SPDX-License-Identifier: BSD-2-Clause
"""A thread in a timed wait that it began by syscall(2), from which nothing can tell which call it was.

READY, then a futex is waited for that nobody wakes, once; says how that ended, and waits for the end of its input.
"""
import ctypes
import errno
import os
import sys

SYS_FUTEX, FUTEX_WAIT = 202, 0
SECONDS = 3


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


libc = ctypes.CDLL(None, use_errno=True)
word, timeout = ctypes.c_int(0), Timespec(SECONDS, 0)
print("READY", os.getpid(), flush=True)
libc.syscall(SYS_FUTEX, ctypes.byref(word), FUTEX_WAIT, 0, ctypes.byref(timeout), None, 0)
print("WAITED", errno.errorcode[ctypes.get_errno()], flush=True)
sys.stdin.read()
