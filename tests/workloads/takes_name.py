# SPDX-License-Identifier: BSD-2-Clause
"""takes_name.py NAME: uses a CPU for 300 ms, takes the name NAME, as servers do that show what they are for, says when that was
(CLOCK_MONOTONIC), and uses the CPU until the second line of input."""

import json
import os
import select
import sys
import time


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


print("READY", os.getpid(), flush=True)
sys.stdin.readline()
burn(0.3)
taken_ns = time.monotonic_ns()
with open("/proc/self/comm", "w", encoding="ascii") as comm:
    comm.write(sys.argv[1])
print(json.dumps({"pid": os.getpid(), "taken_ns": taken_ns}), flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    burn(0.01)
