# SPDX-License-Identifier: BSD-2-Clause
"""PyTorch and OpenCL in one thread: what an annotation encloses is also work for OpenCL's device.

--library PATH: libocldriver.so
"""

import ctypes

import protocol

SIDE_BYTES = 1 << 20  # more than struct side has


def build(torch, args):
    lib = ctypes.CDLL(args.library)
    lib.side__sum.restype = ctypes.c_uint64
    side = ctypes.create_string_buffer(SIDE_BYTES)
    a, b = torch.ones(8, 8), torch.ones(8, 8)
    lib.ocl_open()
    lib.side__open(side, ctypes.c_uint64(0))

    def step(i):
        with torch.profiler.record_function(f"opencl step {i}"):
            torch.mm(a, b)
            lib.side__step(side, ctypes.c_uint64(i))

    def finish():
        total = lib.side__sum(side)
        return protocol.bits(total), {"commands_each": 6}

    return step, finish


if __name__ == "__main__":
    protocol.main(build, lambda p: p.add_argument("--library", required=True))
