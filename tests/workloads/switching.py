# SPDX-License-Identifier: BSD-2-Clause
"""Two processes on each CPU that hand a byte to each other, as often as they can: switches between threads, and nothing else.

They end with this process.
"""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1


def pair(cpu):
    os.sched_setaffinity(0, {cpu})
    here, there = os.pipe(), os.pipe()
    parent = os.getpid()
    reads, writes = (here[0], there[1]) if os.fork() else (there[0], here[1])
    if os.getpid() != parent:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.write(writes, b"x")
    while os.read(reads, 1):
        os.write(writes, b"x")


for cpu in os.sched_getaffinity(0):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        pair(cpu)
print("READY", os.getpid(), flush=True)
signal.pause()
