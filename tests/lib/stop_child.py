# SPDX-License-Identifier: BSD-2-Clause
"""Stops the next child of a process that has this name, however short it lives, and prints its number.

    stop_child.py PID NAME
"""
import os
import signal
import sys
import time

pid, name = int(sys.argv[1]), sys.argv[2]


def status(child):
    with open(f"/proc/{child}/status") as f:
        return dict(line.split(":", 1) for line in f)


end = time.monotonic() + 60
while time.monotonic() < end:
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        children = f.read().split()
    for child in children:
        try:
            if status(child)["Name"].strip() != name:
                continue
            os.kill(int(child), signal.SIGSTOP)
            while (state := status(child)["State"].strip()[0]) not in "TtZX":
                pass
        except OSError:
            continue
        if state in "Tt":
            print(child)
            sys.exit(0)
sys.exit(1)
