# SPDX-License-Identifier: BSD-2-Clause
"""Operators inside and outside of Python functions, and of calls of modules, counted by name.

What is called inside of what --kind says is aten::sinh, what is called outside is aten::atan, before, between and after: of functions
`wanted`, of methods `Decoder.forward`, or of calls of modules of class `Decoder`. They are called at depth, call themselves, are left by
an exception, by threads at other moments, as generators and as coroutines whose turns others have in between. aten::cosh is what is
called in functions of that name that are made anew each time, as others are in between: their code may lie where another one lay just
now. With --fork, a child process does a part of it, and its counts are added. With --cudart, memory of a device is set inside (once
for each sinh) and outside.
"""

import asyncio
import ctypes
import json
import os
import threading

import protocol


def wanted(inner):
    return inner()


class Decoder:
    def forward(self, inner):
        return inner()


# Of the same names, but generators and coroutines. Names of before Python 3.11 are bare.
OTHERS = """
def wanted(turn, nr):
    for _ in range(nr):
        turn()
        yield

class Decoder:
    def forward(self, turn, nr):
        for _ in range(nr):
            turn()
            yield
"""
COROUTINES = """
async def wanted(turn):
    await turn()

class Decoder:
    async def forward(self, turn):
        await turn()
"""


def named(source):
    names = {}
    exec(source, names)
    return names["wanted"], names["Decoder"]().forward


def deeper(depth, inner):
    return deeper(depth - 1, inner) if depth else inner()


def build(torch, args):
    x = torch.full((4,), 0.5)
    lock = threading.Lock()
    counts = dict.fromkeys(("aten::sinh", "aten::cosh", "aten::atan"), 0)
    cudart, memory = args.cudart and ctypes.CDLL(args.cudart), ctypes.c_void_p()
    if cudart:
        cudart.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096))

    class Module(torch.nn.Module):
        def forward(self, inner):
            return inner()

    modules = {"Decoder": type("Decoder", (Module,), {})(), "Other": type("Decoder_", (Module,), {})()}
    method = Decoder().forward
    inside = {"function": wanted, "method": method, "module": modules["Decoder"]}[args.kind]
    which = ("function", "method").index(args.kind) if args.kind != "module" else None
    generator, coroutine = (which is not None and named(source)[which] for source in (OTHERS, COROUTINES))

    def call(name):
        getattr(torch, name)(x)
        if cudart:
            cudart.cudaMemsetAsync(memory, 0, ctypes.c_size_t(4096), None)
        with lock:
            counts["aten::" + name] += 1

    def sinh():
        call("sinh")

    def recursion(depth):
        call("sinh")
        if depth:
            inside(lambda: recursion(depth - 1))
        call("sinh")

    def thrown():
        def throw():
            call("sinh")
            raise ValueError

        try:
            inside(throw)
        except ValueError:
            call("atan")

    def turns():
        for _ in generator(sinh, 3):
            call("atan")

    async def tasks():
        async def turn():
            call("sinh")
            await asyncio.sleep(0)
            call("sinh")

        async def other():
            for _ in range(3):
                call("atan")
                await asyncio.sleep(0)

        await asyncio.gather(coroutine(turn), other(), coroutine(turn))

    def anew():
        for name, operator in ("other_", "atan"), ("wanted", "cosh"):
            names = {}
            exec(f"def {name}(inner):\n    inner()\n", names)
            names[name](lambda operator=operator: call(operator))

    def part():
        call("atan")
        modules["Other"](lambda: call("atan"))
        inside(sinh)
        call("atan")
        deeper(40, lambda: inside(lambda: deeper(40, sinh)))
        deeper(40, lambda: call("atan"))
        inside(lambda: recursion(3))
        thrown()
        if generator:
            turns()
            asyncio.run(tasks())
        if args.kind == "function" and not args.lasting:
            anew()
        call("atan")

    def forked():
        read, write = os.pipe()
        child = os.fork()
        if not child:
            for name in counts:
                counts[name] = 0
            inside(sinh)
            part()
            os.write(write, json.dumps(counts).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            for name, number in json.load(f).items():
                counts[name] += number
        os.waitpid(child, 0)

    def step(number):
        part()
        threads = [threading.Thread(target=part) for _ in range(args.threads)]
        for t in threads:
            t.start()
        call("atan")
        for t in threads:
            t.join()
        if args.fork and number % 10 == 5:
            forked()

    def clear():
        for name in counts:
            counts[name] = 0

    return step, lambda: (protocol.bits(torch.sinh(x)), {"counts": dict(counts)}), clear


def options(parser):
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kind", choices=("function", "method", "module"), default="function")
    parser.add_argument("--fork", action="store_true")
    parser.add_argument("--lasting", action="store_true", help="only functions that last: none is made anew")
    parser.add_argument("--cudart", help="sets memory of a device by this library")


if __name__ == "__main__":
    protocol.main(build, options)
