# SPDX-License-Identifier: BSD-2-Clause
"""Calls modules of many kinds, and keeps books of which calls each operator ran in.

    modules.py                         every kind; the books are annotations around operators
    modules.py --hooks                 the same, with forward hooks on every module
    modules.py --profile OUT.json      steps of a training; the last ones under torch.profiler(with_stack=True)

An annotation of the books is named "in [[number, class, path], …]": the calls that are open on the thread, outermost
first, each with the number of the call, and the path as named_modules() of the outermost module has it ("" for itself
and for a module that it does not know)."""

import itertools
import json
import os
import threading

import protocol

numbers = itertools.count(1)
open_calls = threading.local()
paths = {}  # id of a module → its path


def classes(torch):
    nn = torch.nn

    def note(x):
        """An operator, with what the books say of it."""
        with torch.profiler.record_function("in " + json.dumps(getattr(open_calls, "list", []))):
            return x + 1

    class Kept(nn.Module):
        def forward(self, *args):
            if not hasattr(open_calls, "list"):
                open_calls.list = []
            open_calls.list.append([next(numbers), type(self).__name__, paths.get(id(self), "")])
            try:
                return self.run(*args)
            finally:
                open_calls.list.pop()

    class Leaf(Kept):
        def run(self, x):
            return note(x)

    class Empty(Kept):
        def run(self, x):
            return x

    class Überlagerung(Kept):
        def run(self, x):
            return note(note(x))

    class Slotted(Kept):
        __slots__ = ("own",)

        def run(self, x):
            self.own = 1
            return note(x)

    class Odd(Kept):
        def __getattr__(self, name):
            if name == "nothing":
                raise RuntimeError(name)
            return super().__getattr__(name)

        def run(self, x):
            return note(x)

    class Recursive(Kept):
        def run(self, x, depth):
            x = note(x)
            return note(self(x, depth - 1)) if depth else x

    class Fails(Kept):
        def run(self, x):
            note(x)
            raise ValueError

    class Mixed(Kept):
        """Its children: a shared one, one in a plain list, one that fails, one that is None."""

        def __init__(self, shared):
            super().__init__()
            self.first, self.shared, self.fails = Leaf(), shared, Fails()
            self.nothing_here = None
            self.register_module("none", None)
            self.hidden = [Leaf()]
            self.layers = nn.ModuleList([Überlagerung(), Slotted(), Odd()])
            self.named = nn.ModuleDict({"a": Leaf(), "b": Empty()})
            for i in range(40):  # more attributes than a class's shared keys hold
                setattr(self, f"number{i}", i)

        def run(self, x):
            x = note(self.first(x))
            for layer in self.layers:
                x = layer(x)
            for _ in range(3):
                x = self.shared(x)
            x = self.shared(self.shared(x))
            x = self.named["b"](self.named["a"](x))
            x = self.hidden[0](x)
            try:
                self.fails(x)
            except ValueError:
                x = note(x)
            return self.shared(x)

    class Net(Kept):
        def __init__(self):
            super().__init__()
            shared = Leaf()
            self.stem = nn.Sequential(Leaf(), nn.Sequential(Leaf(), Überlagerung()), shared)
            self.mixed = nn.ModuleList([Mixed(shared), Mixed(shared)])
            self.recursive = Recursive()
            self.head = nn.Linear(8, 8)

        def run(self, x):
            x = self.stem(note(x))
            for layer in self.mixed:
                x = layer(x)
            return note(self.head(self.recursive(x, 3)))

    return note, Net, Leaf


class Hooks:
    """Forward hooks of every module, which do nothing but take another way through Module.__call__."""

    def __init__(self, torch):
        from torch.nn.modules import module
        module.register_module_forward_pre_hook(lambda *_: None)
        module.register_module_forward_hook(lambda *_: None)


def books(torch, args):
    note, net_class, leaf_class = classes(torch)
    torch.manual_seed(1)
    nets = [net_class() for _ in range(2)]
    lone = leaf_class()
    for net in nets:
        for path, module in net.named_modules():
            paths[id(module)] = path
    if args.hooks:
        Hooks(torch)
    x = torch.zeros(2, 8)

    def run(net, rounds):
        for _ in range(rounds):
            with torch.no_grad():
                note(net(note(x)))
                lone(lone(x))

    def both(rounds):
        other = threading.Thread(target=run, args=(nets[1], rounds))
        other.start()
        run(nets[0], rounds)
        other.join()

    both(1)
    protocol.ready()
    protocol.wait_line(True)
    protocol.settle(lambda _: both(1), 1, protocol.SETTLE_ROUNDS, protocol.SETTLE_MOST_ROUNDS)
    with torch.profiler.record_function(protocol.WINDOW_BEGIN):
        pass
    both(args.iters)
    with torch.profiler.record_function(protocol.WINDOW_END):
        pass
    return {"calls": next(numbers)}


def training(torch, args):
    nn = torch.nn
    torch.manual_seed(1)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)
            self.act, self.same = nn.ReLU(), nn.Identity()

        def forward(self, x):
            return self.same(x + self.down(self.act(self.up(self.norm(x)))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(*(Block() for _ in range(3)))
            self.head = nn.Linear(16, 4)

        def forward(self, x):
            return self.head(self.layers(x))

    net, loss_of = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(i):
        with torch.profiler.record_function(f"ProfilerStep#{i}"):
            loss = loss_of(net(torch.randn(8, 16)), torch.randint(0, 4, (8,)))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    step(0)
    protocol.ready()
    protocol.wait_line(True)
    protocol.settle(step, 1, protocol.SETTLE_ROUNDS, protocol.SETTLE_MOST_ROUNDS)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True,
                                with_modules=True) as prof:
        for i in range(args.iters):
            step(100 + i)
    prof.export_chrome_trace(args.profile)
    return {"steps": args.iters}


def main():
    args = protocol.arguments(lambda parser: parser.add_argument("--hooks", action="store_true"))
    import torch

    torch.set_num_threads(1)
    result = training(torch, args) if args.profile else books(torch, args)
    print(json.dumps({"pid": os.getpid(), **result}), flush=True)
    if args.linger:
        protocol.wait_line(False)


if __name__ == "__main__":
    main()
