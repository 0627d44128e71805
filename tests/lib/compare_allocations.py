#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the rows [memory] of kprof's trace with torch.profiler's of the same run.

    compare_allocations.py KPROF.json TORCH.json

Both recorded the window that the workload marks (tests/workloads/protocol.py), torch.profiler with profile_memory; its
rows are those of its tree, TORCH.tree.json. In the window there must be, of the CPU's memory, allocations and frees of
the same bytes at the same addresses in the same order; what is allocated in all each counts from its own start. Of a device's memory all that a
row says must be the same.

Exit status 0: the same; 1: differences; 2: cannot be compared.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare_profiler import window  # noqa: E402
from trace import Trace, nanoseconds  # noqa: E402

KEYS = "Device Type", "Device Id", "Addr", "Bytes", "Total Allocated", "Total Reserved"
CPU = 0
DEVICE_TYPES = {"cpu": CPU, "cuda": 1, "hip": 6, "xpu": 12, "privateuse1": 20}  # c10::DeviceType
LEAST_COMPARED = 50


def of_kprof(path, begin, end, pid):
    with open(path, encoding="utf-8") as f:
        trace = json.load(f, parse_float=str)
    base, rows = trace.get("baseTimeNanoseconds") or 0, []
    for e in trace["traceEvents"]:
        if e.get("name") == "[memory]" and e["pid"] == pid:
            start = nanoseconds(e["ts"]) + base
            if begin <= start < end:
                rows.append((start, tuple(e["args"][key] for key in KEYS)))
    return [row for _, row in sorted(rows, key=lambda r: r[0])]


def of_torch(path, begin, end):
    with open(path, encoding="utf-8") as f:
        events = json.load(f)["memory"]
    rows = []
    for e in sorted(events, key=lambda e: e["start_ns"]):
        if begin <= e["start_ns"] < end:
            index = -1 if e["index"] is None else e["index"]
            rows.append((DEVICE_TYPES[e["device"]], index, e["addr"], e["bytes"], e["allocated"], e["reserved"]))
    return rows


def of_device(rows, is_cpu):
    """Those of the CPU: as far as both must say the same."""
    return [row[:4] if is_cpu else row for row in rows if (row[0] == CPU) == is_cpu]


def differences(what, ours, theirs):
    if ours == theirs:
        return []
    lines = [f"{what}: kprof has {len(ours)} rows, torch.profiler {len(theirs)}"]
    for i, (k, t) in enumerate(zip(ours, theirs)):
        if k != t:
            lines.append(f"{what}: number {i}: kprof {dict(zip(KEYS, k))}, torch.profiler {dict(zip(KEYS, t))}")
            break
    return lines


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    tree_path = re.sub(r"\.json$", ".tree.json", sys.argv[2])
    kprof, tree = Trace.load(sys.argv[1]), Trace.load_tree(tree_path)
    pid = next((s.pid for s in tree.spans if isinstance(s.pid, int)), None)
    ours = of_kprof(sys.argv[1], *window(kprof, sys.argv[1], pid)[:2], pid)
    theirs = of_torch(tree_path, *window(tree, tree_path)[:2])
    problems = []
    for what, is_cpu in (("the CPU", True), ("devices", False)):
        own, other = of_device(ours, is_cpu), of_device(theirs, is_cpu)
        print(f"{what}: {len(own)} rows by kprof, {len(other)} by torch.profiler")
        problems += differences(what, own, other)
    if len(theirs) < LEAST_COMPARED:
        problems.append("too little was compared")
    for line in problems:
        print("DIFFERS", line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
