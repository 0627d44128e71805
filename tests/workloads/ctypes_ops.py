# SPDX-License-Identifier: BSD-2-Clause
"""A plain Python program, without torch, that calls the test double's operators through ctypes."""

import ctypes
import json
import os
import sys
import time

import protocol


def take_name(name):
    with open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write(name)


def main():
    def options(parser):
        parser.add_argument("--lib", required=True)
        parser.add_argument("--name", help="takes this name after the first line of input")
        parser.add_argument("--last-name", help="and this one when its operators are over")
        parser.add_argument("--start-file", metavar="PATH", help="then waits until it is there")

    args = protocol.arguments(options)
    lib = ctypes.CDLL(args.lib)
    linear = lib["_ZN2at4_ops11fake_linear4callEm"]
    linear.argtypes, linear.restype = [ctypes.c_uint64], ctypes.c_uint64
    lib.fakeops_name.restype = ctypes.c_char_p
    protocol.ready()
    if not args.now:
        protocol.wait_line(True)
    if args.name:
        take_name(args.name)
    while args.start_file and not os.path.exists(args.start_file):
        time.sleep(0.01)
    checksum, expected = 0, 0
    for i in range(args.iters):
        checksum = (checksum * 31 + linear(i)) % (1 << 64)
        expected = (expected * 31 + (i + 1) * 3 + i + 1) % (1 << 64)
    if args.last_name:
        take_name(args.last_name)
    calls = (ctypes.c_uint64 * 7)()
    lib.fakeops_counts(calls)
    counts = {lib.fakeops_name(i).decode(): n for i, n in enumerate(calls)}
    result = {"pid": os.getpid(), "checksum": f"{checksum:016x}", "ok": checksum == expected}
    print(json.dumps({**result, "counts": counts}), flush=True)
    if args.linger:
        protocol.wait_line(False)
    return 0 if checksum == expected else 1


if __name__ == "__main__":
    sys.exit(main())
