# SPDX-License-Identifier: BSD-2-Clause
"""Ranges and marks of torch.profiler.itt, with operators inside, on two threads: itt_ranges.py. See protocol.py."""

import json
import os
import sys
import threading

import torch
from torch.profiler import itt

ROUNDS = 20


def work(name):
    for _ in range(ROUNDS):
        itt.range_push(name)
        itt.range_push("inner")
        itt.mark("a mark")
        torch.ones(2)
        itt.range_pop()
        itt.range_pop()


def main():
    there = itt.is_available()
    print(f"READY {os.getpid()}", flush=True)
    if not sys.stdin.readline():
        sys.exit(9)
    if there:
        other = threading.Thread(target=work, args=("other",))
        other.start()
        work("outer")
        other.join()
    print(json.dumps({"there": there, "rounds": ROUNDS}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
