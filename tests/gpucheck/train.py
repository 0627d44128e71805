# SPDX-License-Identifier: BSD-2-Clause
"""A PyTorch training loop, which kprof and torch.profiler both look at (scripts/gpu-check).

    train.py [--iters N] [--rounds ROUND,…] [--device cuda|cpu] [--compile] [--now] [--linger]

Each round is a loop of N steps, begun when told, with a line of JSON at its end:

    plain          by itself
    profile=OUT    under torch.profiler, which begins when told, too
    running=OUT    the same, but it runs before that
    calls=OUT      under torch.profiler, of the CPU only, in a marked window, after some steps that kprof learns from
    detailed=OUT   the same, with inputs and memory

Without --device on a GPU if PyTorch can use one. Speaks the protocol of tests/workloads/protocol.py; of the last two kinds of
round OUT and its .tree.json are as there. The measured loop lies in an annotation, with nothing left to do on the
GPU at either end; runs with the same number of iterations launch the same kernels. --compile: with CUDA graphs, where that
works here; else it says NOT COMPILED.
"""

import argparse
import json
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "workloads"))
import protocol  # noqa: E402

WINDOW = "gpucheck window"
WARM_UP = 8
MARKED = "calls", "detailed"
SETTLE_MOST_ROUNDS = 30  # a lent machine's time is short


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=50)
    parser.add_argument("--rounds", default="plain", metavar="ROUND,…")
    parser.add_argument("--device", choices=("cuda", "cpu"))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--now", action="store_true", help="don't wait to be told")
    parser.add_argument("--linger", action="store_true")
    args = parser.parse_args()
    args.device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    return args


def synchronize(args):
    if args.device == "cuda":
        torch.cuda.synchronize()


def build(args, compiled):
    """The model, and a step of its training."""
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    nn = torch.nn
    batch, features = (64, 512) if args.device == "cuda" else (4, 16)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * 16 * 16, features),
        nn.GELU(),
        nn.Linear(features, 10),
    ).to(args.device)
    trained = model
    if compiled:
        trained = torch.compile(model, mode="reduce-overhead")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
    if args.device == "cuda":
        images, labels = images.pin_memory(), labels.pin_memory()

    def step():
        x, y = (tensor.to(args.device, non_blocking=True) for tensor in (images, labels))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(trained(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return model, step


def profiled(kind, path):
    kinds = torch.profiler.ProfilerActivity
    if kind in MARKED:
        detailed = kind == "detailed"
        return torch.profiler.profile(activities=[kinds.CPU], record_shapes=detailed, profile_memory=detailed)
    return torch.profiler.profile(
        activities=[kinds.CPU, kinds.CUDA], on_trace_ready=lambda p: p.export_chrome_trace(path)
    )


def steps(args, step):
    synchronize(args)
    begin = time.monotonic_ns()
    for _ in range(args.iters):
        loss = step()
    synchronize(args)
    return time.monotonic_ns() - begin, loss


def loop(args, step):
    synchronize(args)
    with torch.profiler.record_function(WINDOW):
        return steps(args, step)


def marked_loop(args, step):
    """Without an annotation around it: torch.profiler's tree has the autograd thread's nodes inside of that."""
    protocol.settle(lambda _: step(), 0, protocol.SETTLE_ROUNDS, SETTLE_MOST_ROUNDS)
    synchronize(args)
    with protocol.marked(torch):
        return steps(args, step)


def warmed_up(args, compiled):
    model, step = build(args, compiled)
    for _ in range(WARM_UP):
        step()
    synchronize(args)
    return model, step


def model_and_step(args):
    if args.compile:
        try:
            return warmed_up(args, True)
        except Exception as e:  # whatever a compiler lacks on this machine
            print("NOT COMPILED", type(e).__name__, str(e).split("\n")[0], flush=True)
    return warmed_up(args, False)


def one_round(args, model, step, kind, path, is_first):
    profiler = profiled(kind, path) if path else None
    if kind == "running":
        profiler.start()
    if is_first:
        print(f"READY {os.getpid()}", flush=True)
    if not args.now and not sys.stdin.readline():
        sys.exit(9)
    if profiler and kind != "running":
        profiler.start()
    took, loss = (marked_loop if kind in MARKED else loop)(args, step)
    if profiler:
        profiler.stop()
    if kind in MARKED:
        protocol.export(profiler, path, False)
    result = {"pid": os.getpid(), "iters": args.iters, "loop_ns": took, "loss": loss, "torch": torch.__version__}
    result["modules"] = {name: type(module).__name__ for name, module in model.named_modules()}
    result["device"] = torch.cuda.get_device_name() if args.device == "cuda" else "the CPU"
    print(json.dumps(result), flush=True)


def main():
    args = arguments()
    if args.device == "cpu":
        torch.set_num_threads(1)
    model, step = model_and_step(args)
    for number, round in enumerate(args.rounds.split(",")):
        kind, _, path = round.partition("=")
        one_round(args, model, step, kind, path, number == 0)
    if args.linger:
        sys.stdin.readline()


if __name__ == "__main__":
    main()
