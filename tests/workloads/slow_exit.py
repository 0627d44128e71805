# SPDX-License-Identifier: BSD-2-Clause
"""A process that sleeps some times, and whose end then takes until the second line of input: it is the first
of a PID namespace, and waits in the kernel's exit for its child, which is traced. All have the name kp_slow_exit."""

import ctypes
import json
import os
import sys
import time

CLONE_NEWPID, PR_SET_NAME, PTRACE_SEIZE, WALL = 0x20000000, 15, 0x4206, 0x40000000
PF_EXITING = 4
libc = ctypes.CDLL(None, use_errno=True)


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return next(iter(map(int, f.read().split())), 0)


def waits_in_exit(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        state, *fields = f.read().rpartition(")")[2].split()
    return state == "S" and int(fields[5]) & PF_EXITING


libc.prctl(PR_SET_NAME, b"kp_slow_exit")  # before there is a child, which may be met at once
print("READY", os.getpid(), flush=True)
sys.stdin.readline()
if libc.unshare(CLONE_NEWPID):
    raise OSError(ctypes.get_errno(), "unshare")
traced, is_traced = os.pipe()
first = os.fork()
if not first:
    if not os.fork():
        time.sleep(1000)
    os.read(traced, 1)  # or it may have ended by then
    for _ in range(20):
        time.sleep(0.01)
    os._exit(0)
while not (child := child_of(first)):
    time.sleep(0.001)
if libc.ptrace(PTRACE_SEIZE, child, None, None):
    raise OSError(ctypes.get_errno(), "ptrace")
os.write(is_traced, b"x")
while not waits_in_exit(first):
    time.sleep(0.001)
print(json.dumps({"pid": first}), flush=True)
sys.stdin.readline()
os.waitpid(child, WALL)
os.waitpid(first, 0)
