# SPDX-License-Identifier: BSD-2-Clause
"""Modules on any Python, without PyTorch: a class Module where torch.nn has it, as far as calls go, and the test
double's operators through ctypes. Prints of each operator, in order, the calls that it ran in: number, class, path."""

import ctypes
import itertools
import json
import os
import sys
import types

import protocol

CODE = '''
class Module:
    def __init__(self, **children):
        self.training = True
        self._modules = {}
        self._modules.update(children)

    def __call__(self, *args, **kwargs):
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        return self.forward(*args, **kwargs)
'''


def make_torch():
    """The modules up to torch.nn.modules.module."""
    name = "torch"
    for part in ("torch", "nn", "modules", "module"):
        name = part if part == "torch" else name + "." + part
        sys.modules[name] = types.ModuleType(name)
    module = sys.modules[name]
    exec(compile(CODE, "torch/nn/modules/module.py", "exec"), module.__dict__)
    return module.Module


def make_net(module_class, call_operator):
    numbers, open_calls, paths, rows = itertools.count(1), [], {}, []

    class Kept(module_class):
        def forward(self, *args):
            open_calls.append([next(numbers), type(self).__name__, paths.get(id(self), "")])
            try:
                return self.run(*args)
            finally:
                open_calls.pop()

        def note(self):
            call_operator()
            rows.append([list(c) for c in open_calls])

    class Leaf(Kept):
        def run(self):
            self.note()

    class Überlagerung(Kept):
        __slots__ = ("own",)

        def run(self, times=2):
            self.own = times
            for _ in range(times):
                self._modules["leaf"]()
            self._modules["leaf"]()
            self.note()

    class Recursive(Kept):
        def run(self, depth):
            self.note()
            if depth:
                self(depth - 1)

    class Net(Kept):
        def run(self):
            self.note()
            for name in ("first", "shared", "again", "deep"):
                self._modules[name](*([3] if name == "deep" else []))
            self.hidden[0]()
            self.note()

    shared = Leaf()
    net = Net(first=Überlagerung(leaf=Leaf()), shared=shared, again=Überlagerung(leaf=shared), deep=Recursive(), none=None)
    net.hidden = [Leaf()]
    for i in range(40):  # more attributes than a class's shared keys hold
        setattr(net, "number%d" % i, i)
    first, again = net._modules["first"], net._modules["again"]
    paths.update({id(first): "first", id(first._modules["leaf"]): "first.leaf", id(shared): "shared",
                  id(again): "again", id(net._modules["deep"]): "deep"})
    return net, rows, call_operator


def main():
    args = protocol.arguments(lambda parser: parser.add_argument("--lib", required=True))
    linear = ctypes.CDLL(args.lib)["_ZN2at4_ops11fake_linear4callEm"]
    linear.argtypes, linear.restype = [ctypes.c_uint64], ctypes.c_uint64
    net, rows, operator = make_net(make_torch(), lambda: linear(1))
    protocol.ready()
    protocol.wait_line(True)
    for _ in range(args.iters):
        net()
        operator()
        rows.append([])
    print(json.dumps({"pid": os.getpid(), "minor": sys.version_info[1], "rows": rows}), flush=True)
    if args.linger:
        protocol.wait_line(False)


if __name__ == "__main__":
    main()
