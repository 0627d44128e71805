#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Calls NVIDIA's own libcuda of the given path where there is no device: every call fails, and says how.

The protocol is that of protocol.py, the result that of cudacalls.c.
"""

import ctypes
import json
import os
import sys

import protocol

ROUNDS = 5  # cuInit takes tens of milliseconds to find no device


def main():
    cuda = ctypes.CDLL(sys.argv[1])
    pointer = ctypes.c_uint64()
    calls = []

    def call(name, args, *values):
        result = getattr(cuda, name)(*values)
        text = ctypes.c_char_p()
        cuda.cuGetErrorName(result, ctypes.byref(text))
        calls.append({"name": name.removesuffix("_v2"), "args": args, "error": f"{text.value.decode()} ({result})"})

    def round_of_calls():
        call("cuInit", {}, 0)
        call("cuMemAlloc_v2", {"bytes": 4096}, ctypes.byref(pointer), ctypes.c_size_t(4096))
        call("cuStreamSynchronize", {"stream handle": "0x0"}, None)

    if "--now" not in sys.argv:
        print(f"READY {os.getpid()}", flush=True)
        if not sys.stdin.readline():
            sys.exit(9)  # nobody is there any more
        protocol.settle(lambda _: round_of_calls(), 0, protocol.SETTLE_ROUNDS, protocol.SETTLE_MOST_ROUNDS)
    settled = len(calls)
    for _ in range(ROUNDS):
        round_of_calls()
    print(
        json.dumps({"pid": os.getpid(), "rounds": ROUNDS, "settled": settled, "calls": calls}),
        flush=True,
    )
    if "--linger" in sys.argv:
        sys.stdin.readline()


if __name__ == "__main__":
    main()
