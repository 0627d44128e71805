# SPDX-License-Identifier: BSD-2-Clause
"""Operators that touch memory for the first time: counted_ops.py [--profile FILE]. See protocol.py.

Prints what the kernel counts meanwhile. With --profile, torch.profiler counts page faults, too, and writes its trace.
"""

import contextlib
import ctypes
import json
import os
import resource
import sys
import time

# From here on: what is freed goes back to the kernel, so that each tensor is new memory.
if os.environ.get("MALLOC_MMAP_THRESHOLD_") != "65536":
    os.environ["MALLOC_MMAP_THRESHOLD_"] = "65536"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

import torch

ROUNDS = 100
PAUSE = 0.02  # seconds between them, so that all of them take longer than kprof needs to learn where they return to
PAGES = 256
PR_SET_THP_DISABLE = 41


def faults():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def fill():
    """Returns how many page faults the thread had around the operator, as the kernel counts them."""
    t = torch.empty(PAGES * 4096, dtype=torch.uint8)
    before = faults()
    t.fill_(1)
    return faults() - before


def profiler():
    from torch._C._profiler import _ExperimentalConfig

    config = _ExperimentalConfig(performance_events=["pagefaults"])
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], experimental_config=config)


def main():
    path = sys.argv[sys.argv.index("--profile") + 1] if "--profile" in sys.argv else None
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    torch.set_num_threads(1)
    for _ in range(3):
        fill()
    print(f"READY {os.getpid()}", flush=True)
    if not sys.stdin.readline():
        sys.exit(9)
    most = []
    with profiler() if path else contextlib.nullcontext() as p:
        for _ in range(ROUNDS):
            time.sleep(PAUSE)
            with torch.autograd.profiler.record_function("counted"):
                most.append(fill())
    if path:
        p.export_chrome_trace(path)
    print(json.dumps({"most": most}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
