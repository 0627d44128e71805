# SPDX-License-Identifier: BSD-2-Clause
"""Operators inside and outside of annotations, counted by name.

What is called inside of an annotation `wanted` is aten::sinh (and, in an annotation inside of that, aten::cosh); what is called
outside is aten::atan, before, between, and after it, also in other annotations. Some of them nest in themselves, some are left by an
exception, and threads other than the first are inside at other moments. With --around, one `wanted` begins before the recording and
ends in it, at the sixth step (three precede the recording). With --child, another process loads PyTorch inside of one. With --load,
a library is loaded inside of one that does nothing else until there is a file of that name with .probed. With --unread,
the name of two is in memory of a file that nobody has read. With --cudart,
memory of a device is set inside (once for each sinh) and outside. The result says whether a thread had callbacks of its own outside
(at::hasThreadLocalCallbacks()), and inside.
"""

import ctypes
import mmap
import os
import subprocess
import sys
import threading
import time

import protocol

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "kprof"))

import kprof_mark  # noqa: E402


def build(torch, args):
    record = torch.profiler.record_function
    with open("/proc/self/maps", encoding="utf-8") as f:
        library = ctypes.CDLL(next(line.split()[5] for line in f if "/libtorch_cpu.so" in line))
    has_callbacks = library._ZN2at23hasThreadLocalCallbacksEv
    has_callbacks.restype = ctypes.c_bool
    has = {"aten::atan": set(), "aten::sinh": set()}
    x = torch.full((4,), 0.5)
    cudart, memory = args.cudart and ctypes.CDLL(args.cudart), ctypes.c_void_p()
    if cudart:
        cudart.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096))
    ranges = {"record": record, "mark": kprof_mark.range, "itt": getattr(torch.profiler.itt, "range", None)}
    lock = threading.Lock()
    counts = dict.fromkeys(("aten::sinh", "aten::cosh", "aten::atan", "wanted"), 0)

    def call(name):
        getattr(torch, name)(x)
        if cudart and name != "cosh":
            cudart.cudaMemsetAsync(memory, 0, ctypes.c_size_t(4096), None)
        with lock:
            counts["aten::" + name] += 1
            has.get("aten::" + name, set()).add(has_callbacks())

    def annotation():
        with lock:
            counts["wanted"] += 1
        return ranges[args.kind]("wanted")

    def recursion(depth):
        with annotation():
            call("sinh")
            if depth:
                recursion(depth - 1)
            with record("inner"):
                call("cosh")
            call("sinh")

    def thrown():
        try:
            with annotation(), record("inner"):
                call("sinh")
                raise ValueError
        except ValueError:
            pass

    def part(_=None):
        call("atan")
        with record("other"):
            call("atan")
            recursion(0)
            call("atan")
        recursion(3)
        call("atan")
        thrown()
        call("atan")
        with record("wanted not"):
            call("atan")

    def step(number):
        if args.around and number == 5:
            around.__exit__(None, None, None)
        if args.child and number == 5:
            with annotation():
                call("sinh")
                subprocess.run([sys.executable, "-c", "import time, torch; time.sleep(1)"], check=True)
                call("sinh")
        if args.load and number == 5:
            with annotation():
                ctypes.CDLL(args.load)
                while not os.path.exists(args.load + ".probed"):
                    time.sleep(0.01)
        if args.unread and number == 5:
            unread()
        part()
        threads = [threading.Thread(target=part) for _ in range(args.threads)]
        for t in threads:
            t.start()
        call("atan")
        for t in threads:
            t.join()

    def unread():
        libc = ctypes.CDLL(None)
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        libc.mmap.restype = ctypes.c_void_p
        with open("/proc/self/maps", encoding="utf-8") as f:
            bindings = ctypes.CDLL(next(line.split()[5] for line in f if "/libtorch_python.so" in line))
        for _ in range(2):
            with open(args.unread, "rb") as f:
                name = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, f.fileno(), 0)
            bindings._ZN5torch8profiler14itt_range_pushEPKc(ctypes.c_void_p(name))
            bindings._ZN5torch8profiler13itt_range_popEv()

    def clear():
        for name in counts:
            counts[name] = 0
        for kinds in has.values():
            kinds.clear()

    if args.around:
        around = record("wanted")
        around.__enter__()
    return step, lambda: (protocol.bits(torch.sinh(x)), 
                           {"counts": dict(counts), "callbacks": {name: sorted(kinds) for name, kinds in has.items()}}), clear


def options(parser):
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kind", choices=("record", "mark", "itt"), default="record")
    parser.add_argument("--around", action="store_true")
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--load", metavar="LIBRARY")
    parser.add_argument("--unread", metavar="FILE", help="has the name")
    parser.add_argument("--cudart", help="sets memory of a device by this library")


if __name__ == "__main__":
    protocol.main(build, options)
