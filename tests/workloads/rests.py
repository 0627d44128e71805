# SPDX-License-Identifier: BSD-2-Clause
"""Computes for 20 ms, rests for 60, over and over, on the first CPU that it may use: rests.py NAME, which becomes its name.
Each time it prints the time of the clock, and what the scheduler says of it: ns in which it ran, and in which it was ready to."""

import os
import sys
import time

with open("/proc/self/comm", "w", encoding="ascii") as comm:
    comm.write(sys.argv[1])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
while True:
    end = time.thread_time_ns() + 20_000_000
    while time.thread_time_ns() < end:
        pass
    with open("/proc/self/schedstat", encoding="ascii") as schedstat:
        ran, ready, _ = schedstat.read().split()
    print(time.time_ns(), ran, ready, flush=True)
    time.sleep(.06)
