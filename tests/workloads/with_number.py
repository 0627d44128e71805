# SPDX-License-Identifier: BSD-2-Clause
"""Runs a command as the process of a number that is free: with_number.py NUMBER COMMAND…. Waits for it; the exit status is its.

clone3(2) lets who may do so choose the number. 77 where it does not."""

import ctypes
import errno
import os
import signal
import struct
import sys
import time

CLONE3 = 435
number = (ctypes.c_int * 1)(int(sys.argv[1]))
# flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size
wanted = struct.pack("=10Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(number), 1)
libc = ctypes.CDLL(None, use_errno=True)
end = time.monotonic() + 60
while (child := libc.syscall(CLONE3, wanted, len(wanted))) < 0:
    # Who had the number has ended, and is about to be forgotten.
    if ctypes.get_errno() != errno.EEXIST or time.monotonic() > end:
        print("clone3:", os.strerror(ctypes.get_errno()), file=sys.stderr)
        sys.exit(77 if ctypes.get_errno() != errno.EEXIST else 1)
    time.sleep(0.01)
if not child:
    os.execv(sys.argv[2], sys.argv[2:])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
