#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what a trace says of NCCL's calls and kernels with what the program says that it called.

    check_nccl.py TRACE.json RESULT.json

RESULT.json is that of tests/workloads/ncclops.cpp. Each call must be there, with what the program knows of it; each has
launched one kernel of that name, which has Kineto's keys of its call and no others; other kernels have none of these keys.
"""

import json
import sys
from collections import Counter

# What Kineto copies from the operator to the kernel; "Rank" and "Seq" are the call's only.
KEYS = "Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "Process Group Name", "Process Group Ranks"
KEYS += "Src Rank", "Dst Rank", "Seq", "Rank", "Root Rank", "Reduction"


def keys(event):
    return {k: event["args"][k] for k in KEYS if k in event["args"]}


def main():
    with open(sys.argv[1]) as f:
        events = [e for e in json.load(f)["traceEvents"] if e.get("ph") == "X"]
    with open(sys.argv[2]) as f:
        result = json.load(f)
    problems, compared = [], 0
    calls = sorted((e for e in events if e["cat"] == "user_annotation" and e["name"].startswith("nccl:")), key=lambda e: e["ts"])
    kernels = [e for e in events if e["cat"] == "kernel"]
    told = result["calls"] * result["rounds"]
    if [c["name"] for c in calls] != [name for name, *_ in told]:
        problems.append(f"{Counter(c['name'] for c in calls)} is not {Counter(name for name, *_ in told)}")
    numbers = {}
    for call, (name, kernel, want, *more) in zip(calls, told):
        launched = [k for k in kernels if k["args"].get("External id") == call["args"]["External id"]]
        if [k["name"].split("(")[0] for k in launched] != ["ncclDevKernel_" + kernel]:
            problems.append(f"{name} launched {[k['name'] for k in launched]}")
            continue
        if keys(launched[0]) != want:
            problems.append(f"kernel of {name}: {keys(launched[0])} is not {want}")
        of_call = {**want, **more[0]}
        got = keys(call)
        if "Src Rank" not in want:
            group = want["Process Group Name"]
            of_call["Seq"] = numbers[group] = numbers.get(group, got.get("Seq", 0) - 1) + 1
        if got != of_call:
            problems.append(f"{name}: {got} is not {of_call}")
        compared += 1
    others = [k for k in kernels if not k["name"].startswith("nccl")]
    reductions = sum(name == "nccl:all_reduce" for name, *_ in told)
    for name, most in ("copy_kernel()", reductions), ("sgd_kernel()", result["rounds"]):
        if sum(k["name"] == name for k in others) != most:
            problems.append(f"{name}: {len(others)} kernels")
    problems += [f"{k['name']} has {keys(k)}" for k in others if keys(k)]
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    print(f"{compared} calls with their kernels compared, {len(problems)} problems")
    return 1 if problems or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
