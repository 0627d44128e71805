# SPDX-License-Identifier: BSD-2-Clause
"""Steps whose time goes to one thing, that --cause plants. The JSON has how long it took, by the program's own clock.

loader      another thread makes the data, in Python; the main thread waits at its queue
process     another process makes the data, and sends it through a pipe
disk        another thread reads the data from --file, past the page's cache
sleep       the main thread sleeps
gil         another thread computes in Python all the time
tiny        thousands of operators on a tensor of one element
cpus        eight processes want the CPU that this one may use
straggler   two processes reduce a tensor together, one of which has more to do
healthy     large operators, and nothing else

Steps are annotated ProfilerStep#N.
"""

import ctypes
import json
import mmap
import multiprocessing
import os
import queue
import sys
import threading
import time

import protocol


def hurry():
    """Gets a CPU when others want one, too, and so does what it starts."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        os.setpriority(os.PRIO_PROCESS, 0, -20)


def spin(seconds):
    """Computes for so long in Python."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


def make_batch(args):
    spin(args.ms / 1000)
    return 1


def read_batch(args, file, page):
    """Reads past the cache, for so long."""
    end = time.monotonic() + args.ms / 1000
    at = 0
    while time.monotonic() < end:
        if os.preadv(file, [page], at) < len(page):
            at = 0
        at += len(page)
    return 1


def loader(args, batches, make):
    while True:
        batches.put(make())


def start_loader(args):
    make = lambda: make_batch(args)
    if args.cause == "disk":
        page = mmap.mmap(-1, 1 << 20)
        file = os.open(args.file, os.O_RDONLY | os.O_DIRECT)
        make = lambda: read_batch(args, file, page)
    batches = queue.Queue(1)
    threading.Thread(target=loader, args=(args, batches, make), name="loader", daemon=True).start()
    return batches.get


def end_with_parent():
    """This process ends when the one that started it does, however that ends."""
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL


def feed(args, writer):
    end_with_parent()
    while True:
        make_batch(args)
        writer.send(bytes(1 << 17))  # more than the pipe holds, or it would be far ahead


def start_process(args):
    reader, writer = multiprocessing.Pipe(False)
    multiprocessing.Process(target=feed, args=(args, writer), daemon=True).start()
    return reader.recv


def hog():
    while True:
        sum(range(500))


def burn():
    end_with_parent()
    while True:
        pass


class Steps:
    """What the main thread does in each step."""

    def __init__(self, torch, args, rank):
        self.torch, self.args, self.rank = torch, args, rank
        self.planted = 0
        self.x = torch.ones(1)
        self.matrix = torch.ones(384, 384)
        self.next_batch = None
        if args.cause in ("loader", "disk"):
            self.next_batch = start_loader(args)
        if args.cause == "process":
            self.next_batch = start_process(args)
        if args.cause == "gil":
            for _ in range(2):
                threading.Thread(target=hog, name="hog", daemon=True).start()
        if args.cause == "cpus":
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
            for _ in range(8):
                multiprocessing.Process(target=burn, daemon=True).start()
        if args.cause == "straggler":
            import torch.distributed as dist

            dist.init_process_group("gloo", init_method=f"file://{args.file}", rank=rank, world_size=2)
            self.dist = dist

    def compute(self, times=1):
        for _ in range(times):
            self.torch.mm(self.matrix, self.matrix)

    def waits(self, function):
        since = time.monotonic()
        function()
        self.planted += time.monotonic() - since

    def __call__(self):
        cause = self.args.cause
        if self.next_batch:
            self.waits(self.next_batch)
        if cause == "sleep":
            self.waits(lambda: time.sleep(self.args.ms / 1000))
        if cause == "tiny":
            self.waits(lambda: [self.x.add(1) for _ in range(2000)])
            return
        if cause == "straggler":
            if self.rank == 1:
                self.compute(self.args.more)
            self.waits(lambda: self.dist.all_reduce(self.x))
        self.compute(8 if cause == "healthy" else 1)


def run(args, rank):
    if rank:
        end_with_parent()
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(1)
    step = Steps(torch, args, rank)
    for _ in range(3):
        step()
    if rank == 0:
        protocol.ready()
        protocol.wait_line(True)
    step.planted, i, began = 0, 0, time.monotonic()
    end = time.monotonic() + (args.seconds or float("inf"))
    # The ranks must agree on when to end.
    while i < args.iters if args.cause == "straggler" else time.monotonic() < end:
        with torch.profiler.record_function(f"ProfilerStep#{i}"):
            step()
        i += 1
    if rank == 0:
        took = time.monotonic() - began
        print(json.dumps({"pid": os.getpid(), "steps": i, "seconds": took, "planted": step.planted}), flush=True)
        protocol.wait_line(False)


def main():
    def extra(parser):
        parser.add_argument("--cause", required=True)
        parser.add_argument("--file", help="to read, or for the two processes to find each other")
        parser.add_argument("--ms", type=float, default=60, help="how long a batch or sleep takes")
        parser.add_argument("--hurry", action="store_true", help="before other processes")
        parser.add_argument("--more", type=int, default=20, help="how many matrices the straggler multiplies more")

    args = protocol.arguments(extra)
    if args.hurry:
        hurry()
    if args.cause == "straggler":
        multiprocessing.set_start_method("fork")
        other = multiprocessing.Process(target=run, args=(args, 1), daemon=True)
        other.start()
    run(args, 0)
    sys.stdout.flush()
    os._exit(0)


main()
