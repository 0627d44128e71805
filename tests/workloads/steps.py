# SPDX-License-Identifier: BSD-2-Clause
"""Steps of a training, as --name says that they are annotated:

profiler    ProfilerStep#100, ProfilerStep#101 …, with a ProfilerStep# within one that must not count
named       train_step, each time the same
optimizer   nothing but what torch's optimizer sets

Step i calls torch.mul 1 + i % 4 times; the one in the middle takes longest by far. The JSON has of each step its number,
those calls, and its begin and end by the clock, read outside of it (outer_ns) and inside (inner_ns)."""

import contextlib
import json
import os
import time

import protocol


def annotated(torch, name, i):
    if name == "optimizer":
        return contextlib.nullcontext()
    return torch.profiler.record_function(f"ProfilerStep#{100 + i}" if name == "profiler" else "train_step")


def main():
    args = protocol.arguments(lambda parser: parser.add_argument("--name", default="profiler"))
    import torch

    torch.set_num_threads(1)
    x = torch.ones(16, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.1)

    def step(i, sleep_s):
        outer = time.monotonic_ns()
        with annotated(torch, args.name, i):
            inner = time.monotonic_ns()
            for _ in range(1 + i % 4):
                torch.mul(2, 3 * torch.ones(()))
            if args.name == "profiler" and i == 1:
                with torch.profiler.record_function("ProfilerStep#7"):
                    pass
            time.sleep(sleep_s)
            x.grad = torch.ones(16)
            optimizer.step()
            inner_end = time.monotonic_ns()
        return {"inner_ns": [inner, inner_end], "outer_ns": [outer, time.monotonic_ns()]}

    step(0, 0)
    protocol.ready()
    protocol.wait_line(True)
    for i in range(20):  # kprof learns where the calls return to; not called steps
        torch.mul(2, 3 * torch.ones(()))
        optimizer.step()
    time.sleep(0.05)
    steps = []
    for i in range(args.iters):
        seen = step(i, 1 if i == args.iters // 2 else 0.002)
        steps.append({"number": (100 + i) if args.name == "profiler" else i, "calls": 2 * (1 + i % 4), **seen})
    print(json.dumps({"pid": os.getpid(), "uid": os.geteuid(), "steps": steps}), flush=True)
    if args.linger:
        protocol.wait_line(False)


if __name__ == "__main__":
    main()
