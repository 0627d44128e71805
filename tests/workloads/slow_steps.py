# SPDX-License-Identifier: BSD-2-Clause
"""Thirty steps of a training, of which three are slow, each for another reason:

step 10   an operator that no other step calls: aten::cumsum over much
step 17   a sleep
step 24   Python that calls nothing of torch's

Each takes PLANTED times as long as a whole step does otherwise. The JSON has the reasons, and of each step its duration by
the program's own clock."""

import json
import os
import time

import protocol

STEPS = 30
PLANTED = 8


def main():
    args = protocol.arguments(None)
    import torch

    torch.set_num_threads(1)
    x = torch.ones(256, 256)

    def usual():
        for _ in range(20):
            torch.mm(x, x)

    def operator(until):
        while time.monotonic_ns() < until:
            torch.cumsum(big, 0)

    def sleep(until):
        time.sleep(max(0, until - time.monotonic_ns()) / 1e9)

    def python(until):
        while time.monotonic_ns() < until:
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
    took = []
    for i in range(STEPS):
        start = time.monotonic_ns()
        with torch.profiler.record_function(f"ProfilerStep#{i}"):
            usual()
            if i in planted:
                planted[i](time.monotonic_ns() + more)
        took.append(time.monotonic_ns() - start)
    print(json.dumps({"pid": os.getpid(), "planted_ns": more, "took_ns": took}), flush=True)
    if args.linger:
        protocol.wait_line(False)


if __name__ == "__main__":
    main()
