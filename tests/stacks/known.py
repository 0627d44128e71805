# SPDX-License-Identifier: BSD-2-Clause
"""Python that knows its stacks: runs phases, each for so much CPU time of its thread, and says what sys._getframe(), or
another thread's sys._current_frames(), has seen there. For CPython 3.8 to 3.14, of which it needs nothing but itself.

    known.py [--cpu-ms N] [--threads N]

READY, a line is waited for, then one line of JSON: tests/workloads/protocol.py.
"""

import argparse
import asyncio
import functools
import json
import os
import sys
import threading
import time

PHASES = []
CPU_NS = 100_000_000


def place(frame):
    code = frame.f_code
    return [getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno]


def stack_of(frame):
    """Innermost first, as samples have it."""
    found = []
    while frame is not None:
        found.append(place(frame))
        frame = frame.f_back
    return found


def spin(name, share=1.0):
    """All that happens between begin_ns and end_ns is in this function, and in C that it calls."""
    frame = sys._getframe()
    code = frame.f_code
    phase = {"name": name, "tid": threading.get_native_id(), "stack": stack_of(frame),
             "thread": threading.current_thread().name}
    now, cpu, end_ns = time.monotonic_ns, time.thread_time_ns, int(CPU_NS * share)
    numbers = range(300)
    lost = holes = 0
    begin_cpu = last = cpu()
    phase["lines"] = [code.co_firstlineno, code.co_firstlineno + 30]
    phase["begin_ns"] = now()
    while last - begin_cpu < end_ns:
        for i in numbers:
            i * i
        before, last = last, cpu()
        if last - before > 2_000_000:  # somebody has taken the CPU, and did not say so
            lost, holes = lost + last - before, holes + 1
    phase["end_ns"] = now()
    phase["cpu_ns"] = cpu() - begin_cpu
    phase["lost_ns"], phase["holes"] = lost, holes
    PHASES.append(phase)


def recurse(n, name):
    if n:
        return recurse(n - 1, name)
    return spin(name)


def plain():
    spin("plain")


def recursion():
    recurse(60, "recursion")


def deep():
    recurse(400, "deep")


class Shape:
    def method(self):
        spin("method")

    @classmethod
    def of_class(cls):
        spin("classmethod")

    @property
    def area(self):
        return spin("property")

    def __call__(self):
        spin("called")

    def __len__(self):
        spin("dunder")
        return 3


def methods():
    shape = Shape()
    shape.method()
    Shape.of_class()
    shape.area
    shape()
    len(shape)


def closures():
    def inner():
        spin("closure")

    inner()
    (lambda: spin("lambda"))()
    functools.partial(spin, "partial")()
    [spin("comprehension") for _ in range(1)]


def through_c():
    """C frames of the interpreter between Python's."""
    sorted([2, 1], key=lambda value: spin("sorted", 0.5) or value)
    list(map(lambda _: spin("map"), [1]))
    max([1], key=lambda value: recurse(3, "max") or value)


def generate(depth):
    if depth:
        yield from generate(depth - 1)
    else:
        spin("generator")
        yield 1


def generators():
    for _ in generate(5):
        pass
    sum(1 or spin("never") for _ in generate(1))


def excepting():
    try:
        raise ValueError
    except ValueError:
        spin("except")
    finally:
        spin("finally")


def code_of_strings():
    exec(compile("def made():\n\n\n    spin('exec')\nmade()\n", "<made>", "exec"), {"spin": spin})


async def leaf():
    spin("coroutine")


async def middle():
    await asyncio.sleep(0)
    await leaf()


async def gathered():
    await asyncio.gather(middle(), middle())


def coroutines():
    asyncio.run(gathered())


def start(function, *args, name=None):
    """Lives on when it is done: what it is called can be read until the recording is over."""
    finished = threading.Event()

    def body():
        function(*args)
        finished.set()
        threading.Event().wait()

    thread = threading.Thread(target=body, name=name, daemon=True)
    thread.start()
    return thread, finished


def in_thread():
    start(recurse, 5, "thread", name="known-thread")[1].wait()


def watched():
    """What sys._current_frames() of another thread says, while it spins."""
    global CPU_NS
    before, CPU_NS = CPU_NS, max(CPU_NS, 100_000_000)
    seen = []
    while not seen or seen[0][0] != "spin":  # again, where this thread was not let look
        PHASES[:] = [p for p in PHASES if p["name"] != "current_frames"]
        thread, finished = start(recurse, 7, "current_frames")
        while not finished.is_set() and (not seen or seen[0][0] != "spin"):
            frame = sys._current_frames().get(thread.ident)
            seen = stack_of(frame) if frame else []
        finished.wait()
    CPU_NS = before
    phase = next(p for p in PHASES if p["name"] == "current_frames")
    phase["stack"] = [phase["stack"][0]] + seen[1:]


def shares():
    for share in (1, 2, 4, 0.5):
        spin("share %g" % share, share)


def contend(nr):
    """Threads that all want to run, all the time: only one can."""
    begin_ns = time.monotonic_ns()
    for _, finished in [start(spin, "contended") for _ in range(nr)]:
        finished.wait()
    return [begin_ns, time.monotonic_ns()]


def main():
    global CPU_NS
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu-ms", type=int, default=100)
    parser.add_argument("--threads", type=int, default=4)
    args = parser.parse_args()
    CPU_NS = args.cpu_ms * 1_000_000
    print("READY", os.getpid(), flush=True)
    if not sys.stdin.readline():
        sys.exit(9)
    plain()
    recursion()
    deep()
    methods()
    closures()
    through_c()
    generators()
    excepting()
    code_of_strings()
    coroutines()
    in_thread()
    watched()
    shares()
    contended = contend(args.threads)
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    result = {"pid": os.getpid(), "version": sys.version_info[:3], "gil": gil, "phases": PHASES}
    print(json.dumps({**result, "contended": contended}), flush=True)
    sys.stdin.readline()


main()
