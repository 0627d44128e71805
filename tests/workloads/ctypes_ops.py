# SPDX-License-Identifier: BSD-2-Clause
"""A plain Python program, without torch, that calls the test double's operators through ctypes."""

import ctypes
import json
import os
import sys

import protocol


def main():
    def options(parser):
        parser.add_argument("--lib", required=True)

    args = protocol.arguments(options)
    lib = ctypes.CDLL(args.lib)
    linear = lib["_ZN2at4_ops11fake_linear4callEm"]
    linear.argtypes, linear.restype = [ctypes.c_uint64], ctypes.c_uint64
    lib.fakeops_name.restype = ctypes.c_char_p
    protocol.ready()
    if not args.now:
        protocol.wait_line(True)
    checksum, expected = 0, 0
    for i in range(args.iters):
        checksum = (checksum * 31 + linear(i)) % (1 << 64)
        expected = (expected * 31 + (i + 1) * 3 + i + 1) % (1 << 64)
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
