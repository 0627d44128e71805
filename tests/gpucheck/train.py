# SPDX-License-Identifier: BSD-2-Clause
"""A PyTorch training loop on a GPU, which kprof and torch.profiler both look at (scripts/gpu-check).

    train.py [--iters N] [--now] [--linger] [--profile OUT.json] [--profile-after OUT.json]

Speaks the protocol of tests/workloads/protocol.py. The measured loop lies in an annotation, with nothing left to do on the
GPU at either end; runs with the same number of iterations launch the same kernels.
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
    parser.add_argument("--now", action="store_true", help="don't wait to be told")
    parser.add_argument("--linger", action="store_true")
    parser.add_argument("--profile", metavar="OUT.json", help="the loop under torch.profiler")
    parser.add_argument("--profile-after", metavar="OUT.json", help="when told again, three steps under it")
    return parser.parse_args()


def build():
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


def main():
    args = arguments()
    step = build()
    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()
    print(f"READY {os.getpid()}", flush=True)
    if not args.now and not sys.stdin.readline():
        sys.exit(9)
    if args.profile:
        with profiled(args.profile):
            took, loss = loop(step, args.iters)
    else:
        took, loss = loop(step, args.iters)
    result = {"pid": os.getpid(), "iters": args.iters, "loop_ns": took, "loss": loss, "torch": torch.__version__}
    print(json.dumps({**result, "device": torch.cuda.get_device_name()}), flush=True)
    if args.linger:
        sys.stdin.readline()
    if args.profile_after:
        with profiled(args.profile_after):
            loop(step, 3)


if __name__ == "__main__":
    main()
