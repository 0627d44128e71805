# SPDX-License-Identifier: BSD-2-Clause
"""Calls Python functions of many kinds around operators, and keeps books of them.

    python_calls.py                        the books are the result: by sys.setprofile(), of all threads
    python_calls.py --profile OUT.json     the same calls under torch.profiler(with_stack=True)

The books are [thread, file, first line, name, begin, end], by time.monotonic_ns(): a generator has an entry for each time
that it was resumed."""

import json
import os
import sys
import threading
import time

import protocol

books = []  # all threads append to it


class Keeper:
    """What sys.setprofile() calls, of one thread."""

    def __init__(self):
        self.open, self.tid = [], threading.get_native_id()

    def __call__(self, frame, event, _):
        if event == "call":
            self.open.append((frame.f_code, time.monotonic_ns()))
        elif event == "return" and self.open:
            code, begin = self.open.pop()
            books.append([self.tid, code.co_filename, code.co_firstlineno, code.co_name, begin, time.monotonic_ns()])


def calls(torch):
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(16, 48)

        def forward(self, x):
            q, k, v = self.qkv(x).view(4, 3, 16).unbind(1)
            return torch.softmax(q @ k.T, 1) @ v

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.norm = Attention(), nn.LayerNorm(16)
            self.up = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))

        def forward(self, x):
            return x + self.up(self.norm(self.attention(x)))

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return x * 2

        @staticmethod
        def backward(_, grad):
            return grad * 2

    def once(x):
        return x + 1

    def apart(x):
        time.sleep(0.001)
        return x + 1

    def recursive(x, deep):
        x = x * 1
        if deep:
            x = recursive(x, deep - 1)
            x = recursive(x, deep - 1)
        return x + 1

    def either(x, which):
        if which:
            return x - 1
        return x + 1

    def fails(x):
        x = x + 1
        raise ValueError(x)

    def tries(x):
        for _ in range(3):
            try:
                fails(x)
            except ValueError as error:
                x = error.args[0] * 1
        return once(x)

    def resumed(x):
        for _ in range(3):
            x = x + 1
            x = x - 1
            yield x

    def straight(x):
        return x + 1

    def all_of_them(x):
        x = once(once(x))
        for _ in range(4):
            x = once(x)
            time.sleep(0.001)
        x = apart(x)
        x = straight(x)
        time.sleep(0.001)
        x = straight(x)
        for i in range(4):
            x = either(x, i % 2)
        for part in resumed(x):
            time.sleep(0.001)
            x = once(part)
        x = sum(map(once, [x, x, x]))
        x = [apart(part) for part in (x, x)][0]
        x = (lambda y: y * 1)(x)
        x = x[0:2, 1:3, None]
        nr = 0
        while nr < 3:
            x = once(x)
            nr += 1
        return tries(recursive(x, 3))

    torch.manual_seed(1)
    net = nn.Sequential(*(Block() for _ in range(3)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        y = Twice.apply(net(x)).sum()
        y.backward()
        optimizer.step()
        optimizer.zero_grad()
        return all_of_them(x)

    def run(rounds):
        x = torch.ones(4, 16)
        for _ in range(rounds):
            step(x)

    return run


def both(run, rounds):
    """In the main thread, and then in another one."""
    run(rounds)
    other = threading.Thread(target=run, args=(rounds,))
    other.start()
    other.join()


def kept(run, rounds):
    threading.setprofile(lambda *event: sys.setprofile(Keeper()))
    sys.setprofile(Keeper())
    both(run, rounds)
    sys.setprofile(None)
    threading.setprofile(None)
    return {"books": books, "main": threading.get_native_id()}


def profiled(torch, run, args):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as prof:
        with torch.profiler.record_function(protocol.WINDOW_BEGIN):
            pass
        run(args.iters)
        with torch.profiler.record_function(protocol.WINDOW_END):
            pass
    prof.export_chrome_trace(args.profile)
    return {}


def main():
    args = protocol.arguments()
    import torch

    torch.set_num_threads(1)
    run = calls(torch)
    both(run, 1)
    protocol.ready()
    protocol.wait_line(True)
    protocol.settle(lambda _: both(run, 1), 1, protocol.SETTLE_ROUNDS, protocol.SETTLE_MOST_ROUNDS)
    result = profiled(torch, run, args) if args.profile else kept(run, args.iters)
    print(json.dumps({"pid": os.getpid(), **result}), flush=True)
    if args.linger:
        protocol.wait_line(False)


if __name__ == "__main__":
    main()
