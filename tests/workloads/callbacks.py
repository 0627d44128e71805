# SPDX-License-Identifier: BSD-2-Clause
"""Operators inside annotations of two kinds, in a process and its children; says whether PyTorch has callbacks then.

With --cudart, the innermost annotation also has a call of CUDA's runtime. With --callbacks, the result says of this process, and
of the last child some time after its first operator, whether any callback for operators is registered:
at::hasGlobalCallbacks(). A thread of the child removes them.
"""

import ctypes
import json
import os
import sys
import time

import protocol

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "kprof"))

import kprof_mark  # noqa: E402


def library():
    """libtorch_cpu.so, as this process has loaded it."""
    with open("/proc/self/maps", encoding="utf-8") as f:
        return ctypes.CDLL(next(line.split()[5] for line in f if "/libtorch_cpu.so" in line))


def build(torch, args):
    record = torch.profiler.record_function
    has_callbacks = library()._ZN2at18hasGlobalCallbacksEv
    has_callbacks.restype = ctypes.c_bool
    x = torch.full((4,), 0.5)
    children = []
    cudart, memory = args.cudart and ctypes.CDLL(args.cudart), ctypes.c_void_p()
    if cudart:
        cudart.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096))

    def child():
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            torch.cosh(x)
            end = time.monotonic() + (10 if args.callbacks else 0)
            while has_callbacks() and time.monotonic() < end:
                time.sleep(0.001)
            os.write(write, json.dumps(has_callbacks()).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            children.append(json.load(f))
        os.waitpid(pid, 0)

    def step(_):
        with record("outer"), kprof_mark.range("middle"), record("inner"):
            torch.sinh(x)
            if cudart:
                cudart.cudaMemsetAsync(memory, 0, ctypes.c_size_t(4096), None)
        if args.children:
            child()

    def finish():
        seen = {"here": has_callbacks(), "child": children[-1:]} if args.callbacks else {}
        return protocol.bits(torch.sinh(x)), seen

    return step, finish, children.clear


def options(parser):
    parser.add_argument("--children", action="store_true")
    parser.add_argument("--callbacks", action="store_true")
    parser.add_argument("--cudart", help="sets memory of a device by this library")


if __name__ == "__main__":
    protocol.main(build, options)
