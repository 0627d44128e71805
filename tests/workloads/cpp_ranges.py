# SPDX-License-Identifier: BSD-2-Clause
"""Operators inside ranges that C++ opens: --library is what cpp_ranges.cpp was built to."""

import ctypes

import protocol


def build(torch, args):
    x = torch.randn(8, 8)

    @ctypes.CFUNCTYPE(None)
    def inside():
        torch.tanh(x)

    ranges = ctypes.CDLL(args.library).kprof_test_ranges

    def step(_):
        torch.sin(x)
        ranges(inside)

    return step, lambda: (protocol.bits(x), {})


def options(parser):
    parser.add_argument("--library", required=True)


if __name__ == "__main__":
    protocol.main(build, options)
