#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the operations that kprof report counts with those of torch.profiler(with_flops=True) in the same run.

    compare_flops.py KPROF CAPTURE.kprof TRACE.json TORCH.tree.json

KPROF: the program. Both of the window that the workload marks (tests/workloads/protocol.py).

Exit status 0: each operator's are the same; 1: they differ; 77: this release of torch counts none."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare_profiler import window  # noqa: E402
from trace import Trace  # noqa: E402


def main():
    kprof, capture, trace_path, tree_path = sys.argv[1:]
    with open(tree_path, encoding="utf-8") as f:
        torch = json.load(f)["flops"]
    if not torch:
        return 77
    trace = Trace.load(trace_path)
    start = trace.kprof["clock"]["start_real_ns"]
    begin, end = (f"{(t - start) // 1000}us" for t in window(trace, trace_path)[:2])
    report = subprocess.run([kprof, "report", capture, "--from", begin, "--to", end, "--limit", "0", "--json"],
                            check=True, capture_output=True)
    ours = {row["name"]: row["flops"] for row in json.loads(report.stdout)["rows"] if row.get("flops")}
    for name in sorted(ours.keys() | torch.keys()):
        if ours.get(name) != torch.get(name):
            print(f"DIFFERS {name}: kprof {ours.get(name)}, torch.profiler {torch.get(name)}")
    print(len(ours), "operators,", sum(ours.values()), "operations")
    return int(ours != torch)


if __name__ == "__main__":
    sys.exit(main())
