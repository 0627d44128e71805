#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the operations that kprof report counts with those that PyTorch counts.

    compare_flops.py KPROF CAPTURE.kprof TRACE.json TORCH.tree.json       with_flops of torch.profiler, in the same run
    compare_flops.py KPROF CAPTURE.kprof TRACE.json RESULT.json           of workloads/operations.py: torch.utils.flop_counter

KPROF: the program. All of the window that the workload marks (tests/workloads/protocol.py).

Exit status 0: each operator's are the same; 1: they differ; 77: this release of torch counts none."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare_profiler import window  # noqa: E402
from trace import Trace  # noqa: E402


# The operators that torch.profiler counts.
WITH_FLOPS = {"aten::" + name for name in ("add", "mul", "mm", "addmm", "bmm", "baddbmm", "conv2d")}


def of_counter(result, ours):
    """What the counter has of all steps, and what kprof has of the same; conv2d is one of its convolutions."""
    theirs = {name: n * result["iters"] for name, n in result["flops"].items()}
    ours["aten::convolution"] = ours.get("aten::convolution", 0) + ours.pop("aten::conv2d", 0)
    ours.pop("aten::add", None)
    known = {name: n for name, n in ours.items() if name in theirs or "attention_for_cpu" not in name}
    return theirs, known


def main():
    kprof, capture, trace_path, torch_path = sys.argv[1:]
    with open(torch_path, encoding="utf-8") as f:
        result = json.load(f)
    torch = result["flops"]
    if not torch:
        return 77
    trace = Trace.load(trace_path)
    start = trace.kprof["clock"]["start_real_ns"]
    begin, end = (f"{(t - start) // 1000}us" for t in window(trace, trace_path)[:2])
    report = subprocess.run([kprof, "report", capture, "--from", begin, "--to", end, "--limit", "0", "--json"],
                            check=True, capture_output=True)
    ours = {row["name"]: row["flops"] for row in json.loads(report.stdout)["rows"] if row.get("flops")}
    if "iters" in result:
        torch, ours = of_counter(result, ours)
    else:
        ours = {name: n for name, n in ours.items() if name in WITH_FLOPS}
    for name in sorted(ours.keys() | torch.keys()):
        if ours.get(name) != torch.get(name):
            print(f"DIFFERS {name}: kprof {ours.get(name)}, PyTorch {torch.get(name)}")
    print(len(ours), "operators,", sum(ours.values()), "operations")
    return int(ours != torch)


if __name__ == "__main__":
    sys.exit(main())
