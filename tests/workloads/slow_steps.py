# SPDX-License-Identifier: BSD-2-Clause
"""Thirty steps of a training, of which three are slow, each for another reason:

step 10   an operator that no other step calls: aten::cumsum over much
step 17   a sleep
step 24   Python that calls nothing of torch's

Each takes PLANTED times as long as a whole step does otherwise. The JSON has the duration of each step by the program's own
clock."""

import json
import os
import statistics
import time

import protocol

STEPS = 30
PLANTED = 8


def disturbed(took, usually, more, planted):
    """Whether the machine was so busy that the planted steps do not stand out, or not by what was planted."""
    median = statistics.median(took)
    spread = statistics.median(abs(ns - median) for ns in took)
    limit = median + max(0.1 * median, 5 * 1.4826 * spread)
    return any(took[i] < 1.1 * limit or usually[i] > 0.5 * more for i in planted)


def main():
    args = protocol.arguments(None)
    import torch

    torch.set_num_threads(1)
    x = torch.ones(256, 256)

    def usual():
        for _ in range(20):
            torch.mm(x, x)

    def operator(ns):
        end = time.thread_time_ns() + ns
        while time.thread_time_ns() < end:
            torch.cumsum(big, 0)

    def sleep(ns):
        time.sleep(ns / 1e9)

    def python(ns):
        end = time.thread_time_ns() + ns
        while time.thread_time_ns() < end:
            pass

    big = torch.ones(1 << 17)  # the first call that is seen has no exact end: it is one of many
    planted = {10: operator, 17: sleep, 24: python}
    start = time.monotonic_ns()
    usual()
    start = time.monotonic_ns()
    usual()
    more = max(20_000_000, PLANTED * (time.monotonic_ns() - start))
    operator(0)
    protocol.ready()
    protocol.wait_line(True)
    took, usually = [], []
    for i in range(STEPS):
        start = time.monotonic_ns()
        with torch.profiler.record_function(f"ProfilerStep#{i}"):
            usual()
            usually.append(time.monotonic_ns() - start)
            if i in planted:
                planted[i](more)
        took.append(time.monotonic_ns() - start)
    result = {"planted_ns": more, "took_ns": took, "disturbed": disturbed(took, usually, more, planted)}
    print(json.dumps({"pid": os.getpid(), **result}), flush=True)
    if args.linger:
        protocol.wait_line(False)


if __name__ == "__main__":
    main()
