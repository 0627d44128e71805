#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds a trace of ocldriver against what the program timed by itself.

    check_opencl.py TRACE.json RESULT.json [--unordered]

Every command of the program is one row of the device, made by the call that the program says it was made by, with the
times that the program was told, converted from the device's clock: as exactly as both have read the two clocks.
"""

import argparse
import collections
import json
import sys

KINDS = {"kernel": "kernel", "copy": "gpu_memcpy", "set": "gpu_memset"}
# What is left of the drift that a second's pairs show, and the rounding of three times.
RATE_ERROR, ROUNDING_NS = 3e-6, 2

failures = []


def check(good, *words):
    if not good:
        failures.append(" ".join(str(w) for w in words))


class Trace:
    def __init__(self, path):
        with open(path) as f:
            data = json.load(f)
        self.meta = data["kprof"]
        clock = self.meta["clock"]
        self.to_mono = data["baseTimeNanoseconds"] - clock["start_real_ns"] + clock["start_mono_ns"]
        self.slack = clock.get("real_step_ns", 0) + 1
        spans = [e for e in data["traceEvents"] if e["ph"] == "X" and "cat" in e]
        self.device = [e for e in spans if e["cat"] in KINDS.values()]
        self.calls = [e for e in spans if e["cat"] == "opencl_runtime"]
        self.flows = [e for e in data["traceEvents"] if e.get("cat") == "ac2g"]

    def start(self, event):
        return round(event["ts"] * 1000) + self.to_mono

    def end(self, event):
        return round((event["ts"] + event["dur"]) * 1000) + self.to_mono


class Clock:
    """The device's on ours, by the program's own pairs."""

    def __init__(self, pairs):
        self.a, self.b = pairs
        self.rate = (self.b["mono"] - self.a["mono"]) / (self.b["device"] - self.a["device"])
        self.open_ns = max(p["width"] for p in pairs)
        # What the widths leave open of the rate, the more the shorter the program ran.
        self.rate_open = self.open_ns / (self.b["mono"] - self.a["mono"])

    def mono(self, device):
        return self.a["mono"] + round((device - self.a["device"]) * self.rate)


def call_of(event, calls, trace):
    inside = [
        c
        for c in calls.get((event["tid"], event["call"]), [])
        if event["before"] <= trace.start(c) + trace.slack and trace.start(c) - trace.slack <= event["after"]
    ]
    check(len(inside) == 1, event["call"], "at", event["before"], "is in the trace", len(inside), "times")
    return inside[0] if inside else None


def compare(event, row, clock, trace):
    args, what = row["args"], f"{event['call']} ({event['name']})"
    check(row["cat"] == KINDS[event["kind"]], what, "is a", row["cat"])
    if event["kind"] == "kernel":
        check(row["name"] == event["name"], what, "is called", row["name"])
        check(list(args["grid"]) == event["grid"], what, "grid", args["grid"], "not", event["grid"])
        block = list(args.get("block", [0, 0, 0]))  # absent: the driver chose it
        check(block == event["block"], what, "block", block, "not", event["block"])
    else:
        check(args["bytes"] == event["bytes"], what, "bytes", args["bytes"], "not", event["bytes"])
        if event["kind"] == "copy" and event["name"]:
            check(f" {event['name']} " in row["name"], what, "is called", row["name"])
    if event["error"]:
        return  # the program was not told its times
    took = (event["end"] - event["start"]) * clock.rate
    off = abs(trace.end(row) - trace.start(row) - took)
    check(off <= ROUNDING_NS + took * (RATE_ERROR + clock.rate_open), what, "took", took, "ns, is", off, "ns off")
    off = abs(trace.start(row) - clock.mono(event["start"]))
    # Both have the moment from two readings, each of which leaves its width open.
    check(off <= 4 * clock.open_ns + 200 + trace.slack, what, "starts", off, "ns off, with", clock.open_ns, "ns open")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("result")
    parser.add_argument("--unordered", action="store_true", help="commands of a queue may overlap")
    options = parser.parse_args()
    trace = Trace(options.trace)
    with open(options.result) as f:
        result = json.load(f)
    clock = Clock(result["clocks"])

    calls = collections.defaultdict(list)
    for call in trace.calls:
        calls[(call["tid"], call["name"])].append(call)
    rows = collections.defaultdict(list)
    for row in trace.device:
        rows[row["args"]["correlation"]].append(row)

    streams = collections.defaultdict(set)
    for event in result["events"]:
        call = call_of(event, calls, trace)
        if not call:
            continue
        made = rows.get(call["args"].get("correlation"), [])
        check(len(made) == 1, event["call"], "made", len(made), "activities")
        for row in made:
            compare(event, row, clock, trace)
            check(trace.start(row) >= trace.start(call), event["call"], "was made after its work had begun")
            streams[event["queue"], event["context"]].add((row["args"]["stream"], row["args"]["context"]))
    want = len(result["events"]) + result["launches_without_event"]
    check(len(trace.device) == want, len(trace.device), "activities, not", want)
    check(all(len(s) == 1 for s in streams.values()), "a queue is several streams:", dict(streams))
    check(len({s for v in streams.values() for s in v}) == len(streams), "streams are shared:", dict(streams))

    if not options.unordered:
        last = {}
        for row in sorted(trace.device, key=trace.start):
            key = row["args"]["stream"]
            check(trace.start(row) >= last.get(key, 0), "commands of an ordered queue overlap")
            last[key] = trace.end(row)
    for phase in "sf":
        nr = len({f["id"] for f in trace.flows if f["ph"] == phase})
        check(nr == want, nr, "arrows", phase, "for", want, "activities")
    told = trace.meta["correlation"]
    check(told["before_launch"] == 0, told["before_launch"], "activities began before their launch")
    check(told["linked"] == want, told["linked"], "activities are linked, not", want)
    for name, source in trace.meta["sources"].items():
        check(not source["dropped"], name, "has dropped", source["dropped"])
    for line in failures[:20]:
        print(f"check_opencl: {line}", file=sys.stderr)
    if failures:
        sys.exit(f"check_opencl: {len(failures)} failures")
    print(f"{want} activities, {len(trace.calls)} calls, clock {(clock.rate - 1) * 1e6:+.3f} ppm")


if __name__ == "__main__":
    main()
