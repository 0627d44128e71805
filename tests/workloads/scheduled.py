# SPDX-License-Identifier: BSD-2-Clause
"""Steps of a training, as --name says that they are annotated:

profiler    by torch.profiler with a schedule, which says of each step how often each operator was called in it: the JSON
            has that, by the step's number
named       train_step, each time the same
optimizer   nothing but what torch's optimizer sets

Step i calls the model 1 + i % 5 times. Each step begins and ends with a pause, since releases differ in how exactly they
tell times."""

import contextlib
import json
import os
import tempfile
import time
from collections import Counter

import protocol

PAUSE_S = 0.002


def counts(prof):
    """Of each step by its number: its operators by name. Events of steps have lost their numbers; the trace has them."""
    events, out = prof.events(), {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path, encoding="utf-8") as f:
            trace = json.load(f)
    # without Kineto, 1.13 writes a list
    names = {e["name"] for e in (trace["traceEvents"] if isinstance(trace, dict) else trace) if e.get("ph") == "X"}
    numbers = sorted(int(name.split("#")[1]) for name in names if name.startswith("ProfilerStep#"))
    steps = sorted((e.time_range.start, e.time_range.end) for e in events if e.name.startswith("ProfilerStep"))
    assert len(numbers) == len(steps), (numbers, steps)
    for number, (begin, end) in zip(numbers, steps):
        ops = (e.name for e in events if e.name.startswith("aten::") and begin <= e.time_range.start < end)
        out[number] = Counter(ops)
    return out


def main():
    args = protocol.arguments(lambda parser: parser.add_argument("--name", default="profiler"))
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(i):
        time.sleep(PAUSE_S)
        for _ in range(1 + i % 5):
            model(torch.ones(4, 8)).backward(torch.ones(4, 1))
        optimizer.step()
        time.sleep(PAUSE_S)

    def annotated():
        return torch.profiler.record_function("train_step") if args.name == "named" else contextlib.nullcontext()

    step(0)
    protocol.ready()
    if not args.now:
        protocol.wait_line(True)
    if args.name != "profiler":
        for i in range(args.iters):
            if protocol.stopped(args):
                break
            with annotated():
                step(i)
        print(json.dumps({"pid": os.getpid()}), flush=True)
        if args.linger:
            protocol.wait_line(False)
        return
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=1 << 20)) as prof:
        for i in range(args.iters):
            step(i)
            prof.step()
    print(json.dumps({"pid": os.getpid(), "steps": counts(prof)}), flush=True)
    if args.linger:
        protocol.wait_line(False)


if __name__ == "__main__":
    main()
