# SPDX-License-Identifier: BSD-2-Clause
"""A PyTorch training loop on a GPU, which kprof and torch.profiler both look at (scripts/gpu-check).

    train.py [--iters N] [--rounds ROUND,…] [--compile] [--now] [--linger]

Each round is a loop of N steps, begun when told, with a line of JSON at its end:

    plain          by itself
    profile=OUT    under torch.profiler, which begins when told, too
    running=OUT    the same, but it runs before that

Speaks the protocol of tests/workloads/protocol.py. The measured loop lies in an annotation, with nothing left to do on the
GPU at either end; runs with the same number of iterations launch the same kernels. --compile: with CUDA graphs, where that
works here; else it says NOT COMPILED.
"""

import argparse
import json
import os
import sys
import time

import torch

WINDOW = "gpucheck window"
WARM_UP = 8


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=50)
    parser.add_argument("--rounds", default="plain", metavar="ROUND,…")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--now", action="store_true", help="don't wait to be told")
    parser.add_argument("--linger", action="store_true")
    return parser.parse_args()


def build(compiled):
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * 16 * 16, 512),
        nn.GELU(),
        nn.Linear(512, 10),
    ).cuda()
    if compiled:
        model = torch.compile(model, mode="reduce-overhead")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    images = torch.randn(64, 3, 32, 32).pin_memory()
    labels = torch.randint(0, 10, (64,)).pin_memory()

    def step():
        x, y = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def profiled(path):
    kinds = torch.profiler.ProfilerActivity
    return torch.profiler.profile(
        activities=[kinds.CPU, kinds.CUDA], on_trace_ready=lambda p: p.export_chrome_trace(path)
    )


def loop(step, iters):
    torch.cuda.synchronize()
    with torch.profiler.record_function(WINDOW):
        begin = time.monotonic_ns()
        for _ in range(iters):
            loss = step()
        torch.cuda.synchronize()
        return time.monotonic_ns() - begin, loss


def warmed_up(compiled):
    step = build(compiled)
    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()
    return step


def step_of(args):
    if args.compile:
        try:
            return warmed_up(True)
        except Exception as e:  # whatever a compiler lacks on this machine
            print("NOT COMPILED", type(e).__name__, str(e).split("\n")[0], flush=True)
    return warmed_up(False)


def one_round(args, step, kind, path, is_first):
    profiler = profiled(path) if path else None
    if kind == "running":
        profiler.start()
    if is_first:
        print(f"READY {os.getpid()}", flush=True)
    if not args.now and not sys.stdin.readline():
        sys.exit(9)
    if kind == "profile":
        profiler.start()
    took, loss = loop(step, args.iters)
    if profiler:
        profiler.stop()
    result = {"pid": os.getpid(), "iters": args.iters, "loop_ns": took, "loss": loss, "torch": torch.__version__}
    print(json.dumps({**result, "device": torch.cuda.get_device_name()}), flush=True)


def main():
    args = arguments()
    step = step_of(args)
    for number, round in enumerate(args.rounds.split(",")):
        kind, _, path = round.partition("=")
        one_round(args, step, kind, path, number == 0)
    if args.linger:
        sys.stdin.readline()


if __name__ == "__main__":
    main()
