# SPDX-License-Identifier: BSD-2-Clause
"""NVTX ranges and marks, through torch.cuda.nvtx or the package nvtx: nvtx_ranges.py torch|nvtx. See protocol.py."""

import json
import os
import sys

ROUNDS = 20


def with_torch():
    import torch  # noqa: F401
    from torch.cuda import nvtx

    try:
        nvtx.mark("is it there?")
    except RuntimeError:  # a build without CUDA
        return None

    def work():
        for _ in range(ROUNDS):
            nvtx.range_push("outer")
            nvtx.range_push("inner")
            nvtx.mark("a mark")
            torch.ones(2)
            nvtx.range_pop()
            nvtx.range_pop()
        nvtx.range_end(nvtx.range_start("anywhere"))

    return work


def with_package():
    try:
        import nvtx
    except ImportError:
        return None

    # Later ones ask whether a tool is there, and do nothing without: nobody can see that.
    if hasattr(nvtx, "get_domain") and type(nvtx.get_domain("a domain")).__name__ == "DummyDomain":
        return None

    def work():
        for _ in range(ROUNDS):
            with nvtx.annotate("outer"):
                nvtx.push_range("inner")
                nvtx.mark("a mark")
                nvtx.pop_range()
        nvtx.end_range(nvtx.start_range("anywhere"))

    return work


def main():
    work = {"torch": with_torch, "nvtx": with_package}[sys.argv[1]]()
    print(f"READY {os.getpid()}", flush=True)
    if not sys.stdin.readline():
        sys.exit(9)
    if work:
        work()
    print(json.dumps({"there": work is not None, "rounds": ROUNDS}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
