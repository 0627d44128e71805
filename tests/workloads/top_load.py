# SPDX-License-Identifier: BSD-2-Clause
"""What kprof top is shown: a process that does one thing, and knows how much CPU time it has used.

    top_load.py burn|sleep|steps [--comm BYTES] [--megabytes N] [--text TEXT]

burn: the first thread spins on the line that is marked below; another sleeps. For each line on standard input it prints
its CPU time, in nanoseconds. sleep: nothing happens. steps: a training of PyTorch's that does next to nothing; counts its
steps. Ends with the end of its input."""

import argparse
import ctypes
import json
import os
import sys
import threading
import time


steps = 0


def spin_here():
    n = 0
    while True:
        n += 1  # the hot line: tests look for its number


def sleep_here():
    while True:
        time.sleep(1000)


def step_here(torch):
    global steps
    x = torch.zeros(4)
    while True:
        with torch.profiler.record_function(f"ProfilerStep#{steps}"):
            x.add_(1)
            time.sleep(0.05)
        steps += 1


def answer():
    for _ in sys.stdin:
        print(json.dumps({"cpu_ns": time.process_time_ns(), "steps": steps, "now_ns": time.monotonic_ns()}), flush=True)
    os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("burn", "sleep", "steps"))
    parser.add_argument("--comm")
    parser.add_argument("--megabytes", type=int, default=0)
    parser.add_argument("--text", help="to be found by")
    args = parser.parse_args()
    memory = bytearray(os.urandom(1 << 20) * args.megabytes)
    torch = __import__("torch") if args.what == "steps" else None
    if args.comm:
        ctypes.CDLL(None).prctl(15, os.fsencode(args.comm), 0, 0, 0)  # PR_SET_NAME
    for function in (answer, sleep_here):
        threading.Thread(target=function, name=function.__name__, daemon=True).start()
    print("READY", os.getpid(), flush=True)
    if torch:
        step_here(torch)
    (spin_here if args.what == "burn" else sleep_here)()
    del memory


if __name__ == "__main__":
    main()
