#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds a trace's device rows against what the simulated device truly did, record by record.

    compare_device.py TRACE.json PREFIX PID [--window] [--delivered] [--events]

Every kernel, copy and set of which the simulated CUPTI made a record is one row of the trace, with its times to the
nanosecond, its place, its size, what CUPTI of that release says of it, and its call's correlation id; and every row is one
of them. What CUPTI dropped is what the trace says was dropped.

  --window     the process ran before and after: only what reaches into the recording is in the trace
  --delivered  the process was killed: what CUPTI had not handed over by then is in nobody's hands
  --events     the events that were recorded, instead of work
"""

import argparse
import collections
import json
import subprocess
import sys

from truth import WORK, Truth

CATEGORIES = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "set", "cuda_event": "event"}
# From this release of CUPTI on a kernel's record has its stream's priority, which is mostly 0.
HAS_PRIORITY = 130100
PEER = ("fromDevice", "inDevice", "toDevice", "fromContext", "inContext", "toContext")
MEMORIES = {"pageable": "Pageable", "pinned": "Pinned", "device": "Device", "managed": "Managed", "array": "Array"}


def demangled(names):
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, text.split("\n")))


class Rows:
    def __init__(self, path, types):
        with open(path) as f:
            data = json.load(f)
        self.has_priority = data["cupti_version"] >= HAS_PRIORITY
        self.kprof = data["kprof"]
        clock = self.kprof["clock"]
        self.start, self.end = clock["start_mono_ns"], clock["end_mono_ns"]
        # How far the real-time clock, in which the trace is, went astray of the monotonic one meanwhile.
        self.slack = abs(clock.get("real_step_ns", 0)) + 1
        to_mono = data["baseTimeNanoseconds"] - clock["start_real_ns"] + clock["start_mono_ns"]
        self.rows = []
        for e in data["traceEvents"]:
            if e["ph"] != "X" or CATEGORIES.get(e.get("cat")) not in types:
                continue
            start = round(e["ts"] * 1000) + to_mono
            self.rows.append((self.key(e), start, start + round(e["dur"] * 1000)))

    @staticmethod
    def key(e):
        args = e["args"]
        # Ids that have begun anew get an upper half, to tell them apart.
        place = args["device"], args["context"], args["stream"], args["correlation"] & 0xFFFFFFFF
        what = CATEGORIES[e["cat"]]
        if what == "event":
            return (what, e["name"], *place, args["event_id"])
        graph = args.get("graph id", 0), args.get("graph node id", 0)
        channel = args["channel"], args["channel_type"]
        peer = tuple(args.get(key) for key in PEER)
        if what == "kernel":
            sizes = *args["grid"], *args["block"], args["shared memory"], args["registers per thread"]
        else:
            sizes = (args["bytes"],)
        return (what, e["name"], *place, *graph, *channel, args.get("priority"), *peer, *sizes)


def expected_key(w, names, has_priority):
    place = w["device"], w["context"], w["stream"], w["corr"]
    if w["t"] == "event":
        return ("event", "cudaEvent", *place, w["event"])
    graph = w["graph"], w["node"]
    channel = w["channel"], w["channel_type"]
    priority = w["priority"] if has_priority and w["t"] == "kernel" else None
    peer = (None,) * len(PEER)
    if w.get("kind") == "PtoP":
        peer = w["from_device"], w["device"], w["to_device"], w["from_context"], w["context"], w["to_context"]
    if w["t"] == "kernel":
        name = names[w["name"]]
        sizes = *w["grid"], *w["block"], w["static_shared"] + w["dynamic_shared"], w["registers"]
    elif w["t"] == "copy":
        name = f"Memcpy {w['kind']} ({MEMORIES[w['from']]} -> {MEMORIES[w['to']]})"
        sizes = (w["bytes"],)
    else:
        name = f"Memset ({MEMORIES[w.get('to', 'device')]})"
        sizes = (w["bytes"],)
    return (w["t"], name, *place, *graph, *channel, priority, *peer, *sizes)


def by_key(triples):
    found = collections.defaultdict(list)
    for key, start, end in sorted(triples, key=lambda t: t[1:]):
        found[key].append((start, end))
    return found


def match(rows, expected, slack):
    """Pairs off what is alike, in order of time; yields what is left over on either side."""
    for key in sorted(set(rows) | set(expected), key=repr):
        mine, truth = rows.get(key, []), list(expected.get(key, []))
        for start, end in mine:
            near = [t for t in truth if abs(t[0] - start) <= slack and abs(t[1] - end) <= slack]
            if near:
                truth.remove(near[0])
            else:
                yield "never happened", key, start, end
        for start, end in truth:
            yield "is missing", key, start, end


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("prefix")
    parser.add_argument("pid", type=int)
    parser.add_argument("--window", action="store_true")
    parser.add_argument("--delivered", action="store_true")
    parser.add_argument("--events", action="store_true")
    options = parser.parse_args()

    types = ("event",) if options.events else WORK
    rows = Rows(options.trace, types)
    truth = Truth.load(options.prefix, options.pid)
    work = truth.work("recorded", types)
    dropped = len(truth.work("dropped", types))
    if options.window:
        work = [w for w in work if w["end"] >= rows.start and w["start"] <= rows.end]
    names = demangled(sorted({w["name"] for w in work if w["t"] == "kernel"}))
    expected = by_key((expected_key(w, names, rows.has_priority), w["start"], w["end"]) for w in work)
    # At the end of a killed process the client was perhaps at a buffer: of that one any part may be there.
    least = sum(d["work"] for d in truth.of("delivered")) if options.delivered else len(work)

    problems, missing = truth.problems(), []
    for what, key, start, end in match(by_key(rows.rows), expected, rows.slack):
        (missing if what == "is missing" else problems).append(f"{what}: {key} {start}-{end}")
    if len(work) - len(missing) < least:
        problems += [f"{len(work) - len(missing)} are there, {least} were handed over", *missing]
    source = rows.kprof["sources"]["device_activities"]
    if source["fired"] != source["captured"] + source["dropped"] or source["dropped"] != dropped:
        problems.append(f"{dropped} were dropped, the trace says {source}")
    if not rows.rows and (least or not options.delivered):
        problems.append("there are no device rows")
    print(f"{len(rows.rows)} device rows, {len(work)} expected, {dropped} dropped")
    for problem in problems[:20]:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
