#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Calls the real CUDA runtime of the given path where there is no driver: every call fails, and says how.

The protocol is that of protocol.py, the result that of cudacalls.c.
"""

import ctypes
import json
import os
import sys

import protocol


def main():
    cudart = ctypes.CDLL(sys.argv[1])
    cudart.cudaGetErrorName.restype = ctypes.c_char_p
    pointer = ctypes.c_void_p()
    calls = []

    def call(name, args, *values):
        result = getattr(cudart, name)(*values)
        told = {"name": name, "args": args}
        if result:
            told["error"] = f"{cudart.cudaGetErrorName(result).decode()} ({result})"
        calls.append(told)

    def round_of_calls():
        call("cudaMalloc", {"bytes": 4096}, ctypes.byref(pointer), ctypes.c_size_t(4096))
        call(
            "cudaMemcpyAsync",
            {"bytes": 77, "kind": "DtoD", "stream handle": "0x0"},
            None,
            None,
            ctypes.c_size_t(77),
            3,
            None,
        )
        call("cudaStreamSynchronize", {"stream handle": "0x0"}, None)
        call("cudaDeviceSynchronize", {})

    round_of_calls()
    calls.clear()
    print(f"READY {os.getpid()}", flush=True)
    if not sys.stdin.readline():
        sys.exit(9)  # nobody is there any more
    protocol.settle(lambda _: round_of_calls(), 0, protocol.SETTLE_ROUNDS, protocol.SETTLE_MOST_ROUNDS)
    settled = len(calls)
    for _ in range(20):
        round_of_calls()
    print(
        json.dumps({"pid": os.getpid(), "rounds": 20, "settled": settled, "calls": calls}),
        flush=True,
    )
    if "--linger" in sys.argv:
        sys.stdin.readline()


if __name__ == "__main__":
    main()
