#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the metrics of a trace against what the simulated device did: check_metrics.py TRACE TRUTH-PREFIX PID [--least N]

Each row's values are what ended on the device between the moments at which the simulated CUPTI began and ended the range; the
row brackets these moments closely, so that rows follow one another; and no kernel is in two rows.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truth import Truth  # noqa: E402

# The row is from the call that pushes the range to the return of the one that pops it.
SLACK_NS = 20_000_000


def lines(prefix, pid):
    with open(f"{prefix}.{pid}.jsonl") as f:
        return [json.loads(line) for line in f if line.endswith("}\n")]


def counted(work, begin, end):
    ended = [w for w in work if begin <= w["end"] < end]
    kernels = [w for w in ended if w["t"] == "kernel"]
    warps = sum(w["grid"][0] * w["grid"][1] * w["grid"][2] * -(-(w["block"][0] * w["block"][1] * w["block"][2]) // 32) for w in kernels)
    busy = sum(w["end"] - w["start"] for w in kernels)
    moved = sum(w["bytes"] for w in ended if w["t"] != "kernel")
    return {
        "gpu__time_duration.sum": end - begin,
        "sm__cycles_active.avg": busy,
        "sm__warps_launched.sum": warps,
        "sm__inst_executed.sum": 50 * warps,
        "dram__bytes.sum": moved,
        "dram__bytes.sum.per_second": moved * 1e9 / (end - begin),
        "sm__warps_active.avg.pct_of_peak_sustained_active": 100 if busy else None,
    }


def check(args):
    with open(args.trace) as f:
        trace = json.load(f)
    names = trace["kprof"]["meta"][f"metrics.{args.pid}"]["names"]
    rows = [e for e in trace["traceEvents"] if e.get("cat") == "cuda_profiler_range"]
    assert len(rows) >= args.least, f"{len(rows)} rows"
    truth = lines(args.truth, args.pid)
    contexts = {r["context"]: r["device"] for r in truth if r["t"] == "range"}
    work = [w for w in Truth.load(args.truth, args.pid).work()]
    total = 0
    for context, device in contexts.items():
        mine = sorted((e for e in rows if e["args"]["context"] == context), key=lambda e: e["ts"])
        told = sorted((r for r in truth if r["t"] == "range" and r["context"] == context), key=lambda r: r["begin"])
        assert len(mine) == len(told), (len(mine), len(told))
        done = [w for w in work if w["context"] == context]
        for i, (row, range_) in enumerate(zip(mine, told)):
            args_ = row["args"]
            assert args_["device"] == device and row["name"] == "__profile__" and args_["stream"] == -1, row
            length = range_["end"] - range_["begin"]
            assert length <= row["dur"] * 1000 + 1 <= length + SLACK_NS, (row, range_)
            expected = counted(done, range_["begin"], range_["end"])
            for name in names:
                value, right = args_.get(name), expected[name]
                assert (value is None) == (right is None), (name, value, right)
                assert right is None or abs(value - right) <= 1e-8 * abs(right), (name, value, right)
            if i:
                assert mine[i - 1]["ts"] + mine[i - 1]["dur"] <= row["ts"], (mine[i - 1], row)
            total += 1
    assert total == len(rows) == trace["kprof"]["meta"][f"metrics.{args.pid}"]["ranges"], (total, len(rows))
    bad = [r["what"] for r in truth if r["t"] == "misuse"]
    assert not bad, bad
    print(f"{total} ranges on {len(contexts)} devices: right")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace")
    parser.add_argument("truth")
    parser.add_argument("pid", type=int)
    parser.add_argument("--least", type=int, default=1)
    check(parser.parse_args())


if __name__ == "__main__":
    main()
