#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the allocations in a trace against those that somebody else counted.

    compare_memory.py books TRACE.json RESULT.json               the workload's own (tests/workloads/allocate.py)
    compare_memory.py torch TRACE.json TORCH.json REPORT.json RELEASE   torch.profiler's; REPORT: of the steps alone
    compare_memory.py peak TRACE.json REPORT.json                what was in use at most, by the events of the trace
    compare_memory.py devices TRACE.json RESULT.json TORCH.json REPORT.json PEAKS.json
                        other devices' (tests/workloads/allocate_devices.py); REPORT: of step 100 alone, PEAKS: by memory

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


KEYS = ["Device Type", "Device Id", "Addr", "Bytes", "Total Allocated", "Total Reserved"]
CPU, CUDA, XPU = 0, 1, 12


def named(trace, name):
    return sorted((e for e in trace["traceEvents"] if e.get("name") == name), key=lambda e: e["ts"])


def allocations(trace):
    """The rows [memory] of the CPU, by time; whatever they say of themselves must hold."""
    rows = [e for e in named(trace, "[memory]") if e["args"]["Device Type"] == CPU]
    live = {}
    for e in rows:
        args, key = e["args"], (e["pid"], e["args"]["Addr"])
        check((e["ph"], e["s"], e["cat"]) == ("i", "t", "cpu_instant_event"), "its shape", e)
        check(list(args) == KEYS, "its args", e)
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


def window(trace, rows):
    own = named(trace, "window")[0]
    return [e for e in rows if own["ts"] <= e["ts"] <= own["ts"] + own["dur"]]


def devices(trace, result, torch, report, peaks):
    rows = [e for e in named(trace, "[memory]") if e["args"]["Device Type"] != CPU]
    check(all(list(e["args"]) == KEYS for e in rows), "args")
    seen = [[e["tid"], *(e["args"][k] for k in KEYS)] for e in window(trace, rows)]
    check(seen == result["reports"] and len(seen) > 300, f"{len(seen)} seen, {len(result['reports'])} said")
    main = [row[1:] for row in seen if row[0] == result["pid"]]
    check(main == torch["allocations"], f"{len(main)} seen, {len(torch['allocations'])} in torch.profiler")
    failed = named(trace, "[OutOfMemory]")
    said = [[e["tid"], *(e["args"][k] for k in KEYS if k != "Addr")] for e in failed]
    check(said[:1] == result["failed"], f"failed: {said}")
    check([s[1:4] for s in said[1:]] == [[CPU, -1, result["too_much"]]], f"failed: {said}")
    check(len(said) == torch["failed"], f"failed: {said}, torch.profiler {torch['failed']}")
    # of each device: its own numbers, the counters' last values, the report's
    meta = {(d["device_type"], d["device_id"]): d for d in trace["kprof"]["meta"]["memory"]["devices"]}
    told = {p["device"]: p for p in peaks["memory"]}
    for kind, number in {(e["args"]["Device Type"], e["args"]["Device Id"]) for e in rows}:
        own = [e["args"] for e in rows if (e["args"]["Device Type"], e["args"]["Device Id"]) == (kind, number)]
        name = f"{ {CUDA: 'cuda', XPU: 'xpu'}[kind]}:{number}"
        most, reserved = max(a["Total Allocated"] for a in own), max(a["Total Reserved"] for a in own)
        numbers = meta[kind, number]
        check(numbers["allocations"] == sum(a["Bytes"] > 0 for a in own), f"{name}: {numbers}")
        check(numbers["frees"] == sum(a["Bytes"] < 0 for a in own), f"{name}: {numbers}")
        check((numbers["peak_bytes"], numbers["peak_reserved_bytes"]) == (most, reserved), f"{name}: {numbers}")
        check(numbers["out_of_memory"] == sum(s[1:3] == [kind, number] for s in said), f"{name}: {numbers}")
        for what, key in (("allocated", "Total Allocated"), ("reserved", "Total Reserved")):
            values = [e for e in trace["traceEvents"] if e["ph"] == "C" and f"{name} memory {what}" == e["name"]]
            check(values and values[-1]["args"]["value"] == own[-1][key], f"{name}: the counter's last value", values[-1:])
        peak = told[name]
        check((peak["peak_bytes"], peak["reserved_bytes"]) == (most, reserved), f"{name}: {peak}")
        check(peak["end_bytes"] == own[-1]["Total Allocated"] and 0 <= (7 << 40) - peak["earlier_bytes"] <= 33 * 50, f"{name}: {peak}")
        table = [r for r in peaks["rows"] if r["device"] == name]
        check(sum(r["peak_bytes"] for r in table) == most - peak["earlier_bytes"], f"{name}: {peak}, rows {table}")
        check(sum(r["allocated_bytes"] for r in table) == numbers["allocated_bytes"], f"{name}: {numbers}, rows {table}")
    spans = {row["name"]: (row["self_memory_bytes"], row["self_device_memory_bytes"]) for row in report["rows"]}
    for name, own in torch["sums"].items():
        if name.startswith("ProfilerStep"):
            continue  # in 1.13 an annotation frees what it has allocated, at its very end
        both = (own.get(str(CPU), 0), own.get(str(CUDA), 0) + own.get(str(XPU), 0))
        check(spans.get(name) == both, f"{name}: {spans.get(name)}, in torch.profiler {both}")
    print(f"{len(seen)} allocations and frees on {len(meta)} devices, {len(said)} failures: the same")


def main():
    command, trace, *rest = sys.argv[1:]
    trace = load(trace)
    if command == "books":
        books(trace, load(rest[0]))
    elif command == "peak":
        peak(trace, load(rest[0]))
    elif command == "devices":
        devices(trace, *map(load, rest))
    else:
        by_torch(trace, load(rest[0]), load(rest[1]), rest[2])


main()
