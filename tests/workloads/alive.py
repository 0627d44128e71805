# SPDX-License-Identifier: BSD-2-Clause
"""Allocates and frees memory as it is told, and keeps books of what is alive.

    alive.py

After READY, each line on standard input is a command, and each is answered by a line of JSON:

    mix N [OP]   in two threads, N times each: allocate by one of some operators (or OP), free some of it, also the other thread's
    devices N    tell PyTorch of allocations and frees of two GPUs and an XPU, as their allocators do
    churn N      allocate and free N times; nothing of it stays
    deep N       allocate and keep N blocks, each from another stack
    below N      allocate and keep a block, N calls of a function deep
    drop         free all that is kept of the CPU's

The JSON has "cpu": of each block that is alive [address, bytes, operator, function that asked for it]; "devices": of each
[device, address, bytes]; "freed": how often it freed so far, and "allocated". The memory is that of after the first command."""

import json
import os
import queue
import random
import sys
import threading

import protocol
from allocate_devices import CUDA, XPU, Reporter


class Books:
    def __init__(self, torch):
        self.torch, self.lock, self.freed, self.allocated = torch, threading.Lock(), 0, 0
        self.alive = {}  # number → (tensor, operator, function)
        self.a, self.b = torch.ones(16, 16), torch.ones(16, 16)
        self.number = 0

    def by_empty(self, n):
        return self.torch.empty(n, dtype=self.torch.uint8)

    def by_add(self, n):
        return self.torch.add(self.a, self.b)

    def by_mul(self, n):
        return self.torch.mul(self.a, self.b)

    def by_mm(self, n):
        return self.torch.mm(self.a, self.b)

    def by_cat(self, n):
        return self.torch.cat([self.a, self.b, self.a])

    def new(self, op, n):
        make = getattr(self, "by_" + op)
        with self.lock:
            tensor = make(n)
            self.number += 1
            self.allocated += 1
            self.alive[self.number] = tensor, "aten::" + op, make.__name__
            return self.number

    def free(self, number):
        with self.lock:
            del self.alive[number]
            self.freed += 1

    def rows(self):
        return [[t.data_ptr(), t.numel() * t.element_size(), op, name] for t, op, name in self.alive.values()]


def work(books, mine, theirs, seed, times, op):
    rng = random.Random(seed)
    kept = []
    for _ in range(times):
        kept.append(books.new(op or rng.choice(["empty", "add", "mul", "mm", "cat"]), rng.randint(1, 100000)))
        if rng.random() < 0.5:
            books.free(kept.pop(rng.randrange(len(kept))))
        elif rng.random() < 0.3:
            theirs.put(kept.pop())
        while rng.random() < 0.2 and not mine.empty():
            books.free(mine.get())


def mix(books, times, op=None):
    queues = queue.Queue(), queue.Queue()
    other = threading.Thread(target=work, args=(books, queues[1], queues[0], 2, int(times), op))
    other.start()
    work(books, *queues, 1, int(times), op)
    other.join()


def devices(reporter, alive, times):
    rng = random.Random(3)
    for i in range(int(times)):
        kind, number = rng.choice([(CUDA, 0), (CUDA, 1), (XPU, 0)])
        # side by side, as in a segment of the allocator's, but for some
        at = reporter.next.get((kind, number), (1 << 45) + (kind << 40) + (number << 38)) + (4096 if i % 7 == 0 else 0)
        nbytes = 512 * rng.randint(1, 5000)
        reporter.next[kind, number] = at + nbytes
        reporter.use(kind, number, at, nbytes)
        alive[kind, number, at] = nbytes
        if rng.random() < 0.6:
            gone = rng.choice(list(alive))
            reporter.use(*gone, -alive.pop(gone))


def deep(books, n):
    """Each block by another path through the code: by calls on other lines of code that is made here."""
    for i in range(int(n)):
        scope = {}
        exec(compile("\n" * i + "def ask(books): return books.new('empty', 1 + %d)" % (i % 1000), "made.py", "exec"), scope)
        scope["ask"](books)


def below(books, n):
    if int(n):
        below(books, int(n) - 1)
    else:
        books.new("empty", 100)


def churn(books, n):
    torch = books.torch
    for _ in range(int(n) // 10):
        for _ in range(10):
            torch.empty(64, dtype=torch.uint8)


def main():
    import torch

    torch.set_num_threads(1)
    books, reporter, alive = Books(torch), Reporter(), {}
    reporter.next = {}
    protocol.ready()
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "mix":
            mix(books, *arguments)
        elif command == "devices":
            devices(reporter, alive, *arguments)
        elif command == "churn":
            churn(books, *arguments)
        elif command == "deep":
            deep(books, *arguments)
        elif command == "below":
            below(books, *arguments)
        elif command == "drop":
            with books.lock:
                books.freed += len(books.alive)
                books.alive.clear()
        told = [[f"{'cuda' if kind == CUDA else 'xpu'}:{number}", addr, n] for (kind, number, addr), n in alive.items()]
        print(json.dumps({"pid": os.getpid(), "cpu": books.rows(), "devices": told, "freed": books.freed,
                          "allocated": books.allocated}), flush=True)


if __name__ == "__main__":
    main()
