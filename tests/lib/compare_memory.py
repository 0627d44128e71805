#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the allocations in a trace against those that somebody else counted.

    compare_memory.py books TRACE.json RESULT.json               the workload's own (tests/workloads/allocate.py)
    compare_memory.py torch TRACE.json TORCH.json REPORT.json RELEASE   torch.profiler's; REPORT: of the steps alone
    compare_memory.py peak TRACE.json REPORT.json                what was in use at most, by the events of the trace

torch.profiler's sums by operator are those of its tree of events, which has nanoseconds: key_averages() of older
releases rounds to microseconds, and then takes what lies beside a short operator for its own."""

import json
import sys
from collections import Counter

# Debian's 1.13 has no symbol of the function that runs a node (docs/versus-torch-profiler.md).
UNSEEN = {"1.13": "Backward"}


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def allocations(trace):
    """The rows [memory], by time; whatever they say of themselves must hold."""
    rows = [e for e in trace["traceEvents"] if e.get("name") == "[memory]"]
    rows.sort(key=lambda e: e["ts"])
    live = {}
    for e in rows:
        args, key = e["args"], (e["pid"], e["args"]["Addr"])
        check((e["ph"], e["s"], e["cat"]) == ("i", "t", "cpu_instant_event"), "its shape", e)
        check(list(args) == ["Device Type", "Device Id", "Addr", "Bytes", "Total Allocated", "Total Reserved"],
              "its args", e)
        check((args["Device Type"], args["Device Id"], args["Total Reserved"]) == (0, -1, 0), "the CPU", e)
        if args["Bytes"] > 0:
            check(key not in live, "an address is allocated twice", e)
            live[key] = args["Bytes"]
        else:
            check(live.pop(key, None) == -args["Bytes"], "a free of another size", e)
        total = sum(b for (pid, _), b in live.items() if pid == e["pid"])
        check(args["Total Allocated"] == total, f"Total Allocated is not {total}", e)
    return rows


def check(holds, what, event=None):
    if not holds:
        sys.exit(f"WRONG {what}: {event}" if event else f"WRONG {what}")


def counted(trace, rows, earlier=None):
    """The accounting agrees with the events."""
    meta = trace["kprof"]["meta"]["memory"]
    check(trace.get("profile_memory") == 1, "the head does not say profile_memory")
    check(meta["allocations"] == sum(e["args"]["Bytes"] > 0 for e in rows), f"allocations: {meta}")
    check(meta["frees"] == sum(e["args"]["Bytes"] < 0 for e in rows), f"frees: {meta}")
    check(meta["live_bytes"] == sum(e["args"]["Bytes"] for e in rows), f"live: {meta}")
    check(meta["peak_bytes"] == max(e["args"]["Total Allocated"] for e in rows), f"peak: {meta}")
    check(not meta["frees_not_seen"] + meta["allocations_not_kept"] + meta["not_understood"], f"lost: {meta}")
    check(earlier is None or meta["frees_of_earlier"] == earlier, f"{earlier} earlier ones: {meta}")
    values = [e for e in trace["traceEvents"] if e["ph"] == "C" and "memory allocated" in e["name"]]
    check(values and values[-1]["args"]["value"] == rows[-1]["args"]["Total Allocated"], "the counter's last value")


def books(trace, result):
    rows = allocations(trace)
    counted(trace, rows, result["earlier"])
    seen = [[e["tid"], e["args"]["Addr"], e["args"]["Bytes"]] for e in rows]
    for i, (a, b) in enumerate(zip(seen, result["memory"])):
        check(a == b, f"number {i} is {a}, not {b}")
    check(len(seen) == len(result["memory"]) > 100, f"{len(seen)} seen, {len(result['memory'])} made")
    check(len({row[0] for row in seen}) == 2, "two threads")
    print(f"{len(seen)} allocations and frees: the same, in the same order")


def of_steps(trace):
    steps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"].startswith("ProfilerStep#1")
             and int(e["name"].partition("#")[2]) >= 100]
    first, last = min(e["ts"] for e in steps), max(e["ts"] + e["dur"] for e in steps)
    return [e["args"]["Bytes"] for e in allocations(trace) if first <= e["ts"] <= last]


def by_torch(trace, torch, report, release):
    counted(trace, allocations(trace))
    seen = of_steps(trace)
    check(Counter(seen) == Counter(torch["memory"]), f"bytes: {seen} and {torch['memory']}")
    own = {row["name"]: (row["self_memory_bytes"], row["memory_bytes"]) for row in report["rows"]}
    for name in sorted(set(own) | set(torch["self"])):
        a, b = own.get(name, (0, 0))[0], torch["self"].get(name, 0)
        check(a == b, f"self memory of {name}: {a}, in torch.profiler {b}")
    compared = 0
    for name, (self_bytes, all_bytes) in torch["averages"].items() if not release.startswith("2.3") else []:
        if name.startswith("ProfilerStep") or UNSEEN.get(release[:4], "\n") in name and name not in own:
            continue  # all steps are one row there
        check(own.get(name, (0, 0)) == (self_bytes, all_bytes),
              f"{name}: {own.get(name)}, in key_averages() {self_bytes, all_bytes}")
        compared += 1
    print(f"{len(seen)} allocations and frees, {len(own)} rows: the same; {compared} rows of key_averages()")


def peak(trace, report):
    most, alive, live, at = -1, {}, {}, None
    for e in allocations(trace):
        addr, size = e["args"]["Addr"], e["args"]["Bytes"]
        if size > 0:
            live[addr] = size
        else:
            del live[addr]
        if sum(live.values()) > most:
            most, alive, at = sum(live.values()), dict(live), e["ts"]
    told = report["memory"][0]
    start = trace["kprof"]["clock"]["start_real_ns"] - trace["baseTimeNanoseconds"]
    check(told["peak_bytes"] == most and told["end_bytes"] == sum(live.values()), f"peak {told}, not {most}")
    check(abs(told["peak_at_ns"] - (at * 1000 - start)) < 1000, f"{told}: not at {at}")
    check(sum(row["peak_bytes"] for row in report["rows"]) == most, "the rows' sum is not the peak")
    check(sum(row["peak_blocks"] for row in report["rows"]) == len(alive), "blocks at the peak")
    print(f"{most} bytes in {len(alive)} blocks at the peak: the same")


def main():
    command, trace, *rest = sys.argv[1:]
    trace = load(trace)
    if command == "books":
        books(trace, load(rest[0]))
    elif command == "peak":
        peak(trace, load(rest[0]))
    else:
        by_torch(trace, load(rest[0]), load(rest[1]), rest[2])


main()
