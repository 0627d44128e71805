# SPDX-License-Identifier: BSD-2-Clause
"""Allocates memory of known sizes, and says what it did.

    allocate.py                        tensors, in two threads, some freed by the other one
    allocate.py --profile OUT.json     steps of a training under torch.profiler(profile_memory=True)

Without --profile the JSON has "memory": of each allocation and free in order [thread, address, bytes], those of a free
negative, and "earlier": how many tensors of before the go it freed. With it, OUT.json has torch.profiler's allocations
and frees ("memory": bytes), and its sums by operator ("self", from its tree; "averages": key_averages(), self and all).
The steps are annotated ProfilerStep#100 and following; of each, --keep bytes are never freed."""

import json
import os
import queue
import threading

import protocol


class Books:
    """What was allocated and freed, in order: everybody holds the lock while doing so."""

    def __init__(self, torch):
        self.torch, self.rows, self.lock = torch, [], threading.Lock()

    def new(self, nbytes):
        with self.lock:
            tensor = self.torch.empty(nbytes, dtype=self.torch.uint8)
            if nbytes:
                self.rows.append([threading.get_native_id(), tensor.data_ptr(), nbytes])
        return [tensor]

    def free(self, held):
        with self.lock:
            tensor = held.pop()
            row = [threading.get_native_id(), tensor.data_ptr(), -tensor.numel()]
            del tensor
            if row[2]:
                self.rows.append(row)


def exchange(books, mine, theirs, start):
    """Allocates, frees some itself and gives the others to the other thread, whose tensors it frees."""
    for i in range(200):
        own = books.new(start + i)
        if i % 3 == 0:
            books.free(own)
        else:
            theirs.put(own)
        if i % 20 == 0:
            books.free(books.new(0))
        while i % 7 == 0 and not mine.empty():
            books.free(mine.get())


def allocate(torch):
    earlier = [torch.ones(5) for _ in range(3)]
    protocol.ready()
    protocol.wait_line(True)
    books, queues = Books(torch), [queue.Queue(), queue.Queue()]
    other = threading.Thread(target=exchange, args=(books, queues[1], queues[0], 100000))
    other.start()
    exchange(books, queues[0], queues[1], 1)
    other.join()
    for q in queues:  # the rest, but for ten
        while q.qsize() > 5:
            books.free(q.get())
    nr_earlier = len(earlier)
    with books.lock:
        earlier.clear()
    return {"memory": books.rows, "earlier": nr_earlier}, queues


def training(torch, ranges, keep_bytes):
    kept = []
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.ReLU(), torch.nn.Linear(48, 5))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(i):
        with ranges.get(i) or torch.profiler.record_function(f"ProfilerStep#{i}"):
            x, y = torch.randn(16, 32), torch.randint(0, 5, (16,))
            loss = torch.nn.functional.cross_entropy(net(x), y) + torch.cat([x, x * 2]).sum() * 0
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            del x, y, loss
            torch.zeros(0)
            if keep_bytes:
                kept.append(torch.empty(keep_bytes, dtype=torch.uint8))

    return step


def self_by_operator(prof):
    """The bytes in no operator but this one, from torch.profiler's tree of events, which has nanoseconds."""
    sums, rows = {}, []

    def walk(event, parent):
        if event.tag.name == "Allocation":
            fields = event.extra_fields
            rows.append(fields.alloc_size)
            sums[parent] = sums.get(parent, 0) + fields.alloc_size
        for child in event.children:
            walk(child, event.name)

    for root in prof.profiler.kineto_results.experimental_event_tree():
        walk(root, "[memory]")
    return sums, rows


def averages(prof):
    rows = {}
    for row in prof.key_averages():
        own = getattr(row, "self_cpu_memory_usage", 0)
        rows[row.key] = [own, getattr(row, "cpu_memory_usage", 0)]
    return rows


def profiled(torch, args):
    # In older releases an annotation allocates when it is made: that is none of the steps'.
    names = {100 + i: f"ProfilerStep#{100 + i}" for i in range(args.iters)}
    step = training(torch, {i: torch.profiler.record_function(name) for i, name in names.items()},
                    args.keep)
    step(0)
    protocol.ready()
    protocol.wait_line(True)
    protocol.settle(step, 1, protocol.SETTLE_ROUNDS, protocol.SETTLE_MOST_ROUNDS)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as prof:
        for i in range(args.iters):
            step(100 + i)
    sums, rows = self_by_operator(prof)
    with open(args.profile, "w") as f:
        json.dump({"memory": rows, "self": sums, "averages": averages(prof)}, f)
    return {"steps": args.iters}, None


def main():
    args = protocol.arguments(lambda parser: parser.add_argument("--keep", type=int, metavar="BYTES", default=0))
    import torch

    torch.set_num_threads(1)
    result, keep = profiled(torch, args) if args.profile else allocate(torch)
    print(json.dumps({"pid": os.getpid(), **result}), flush=True)
    if args.linger:
        protocol.wait_line(False)
    del keep


if __name__ == "__main__":
    main()
