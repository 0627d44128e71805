#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What truly happened on the simulated device: reads the truth files of tests/sim.

    from truth import Truth
    truth = Truth.load("prefix", pid)       # $KPROF_SIM_TRUTH=prefix
    truth.calls("runtime")                  # calls as they were made, oldest first
    truth.work()                            # kernels, copies and sets as they ran
    truth.work(fate="recorded")             # those of which CUPTI made a record

Run as a program it holds the records that a client of CUPTI saw (cudadriver cupti --records) against
the truth, record by record:

    truth.py PREFIX PID RECORDS [--dropped N] [--clock-slack NS]
"""

import argparse
import collections
import json
import os
import sys

COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
SYNC_KINDS = {1: "event", 2: "stream_wait_event", 3: "stream", 4: "context"}
WORK = ("kernel", "copy", "set")


def read_lines(path):
    """Of a process that was killed the file ends with NUL bytes, perhaps after half a line."""
    with open(path, "rb") as f:
        text = f.read()
    end = text.find(b"\0")
    if end >= 0:
        text = text[:end]
    text = text[: text.rfind(b"\n") + 1]
    return [json.loads(line) for line in text.splitlines() if line.strip()]


class Truth:
    def __init__(self, lines):
        self.lines = lines

    @classmethod
    def load(cls, prefix, pid):
        lines = []
        for suffix in ("jsonl", "exec.jsonl"):
            path = f"{prefix}.{pid}.{suffix}"
            if os.path.exists(path):
                lines += read_lines(path)
        if not lines:
            raise FileNotFoundError(f"{prefix}.{pid}.jsonl")
        return cls(lines)

    def of(self, *types):
        return [line for line in self.lines if line["t"] in types]

    def calls(self, domain=None, top=False):
        """top: not those that another call made."""
        found = [c for c in self.of("api") if domain in (None, c["domain"]) and not (top and c["parent"])]
        return sorted(found, key=lambda c: c["start"])

    def work(self, fate=None, types=WORK):
        found = [w for w in self.of(*types) if fate in (None, w["cupti"])]
        return sorted(found, key=lambda w: (w["start"], w["end"]))

    def misuse(self):
        return self.of("misuse")

    def gaps(self, device):
        """Times in which the device did nothing, between its first and its last work."""
        busy, gaps = None, []
        for w in self.work():
            if w["device"] != device:
                continue
            if busy is not None and w["start"] > busy:
                gaps.append((busy, w["start"]))
            busy = max(busy or 0, w["end"])
        return gaps

    def problems(self):
        """What cannot be, whoever looked on."""
        found = [f"misuse: {m['what']}" for m in self.misuse()]
        calls = {}
        for call in self.calls(top=True):
            if call["end"] < call["start"]:
                found.append(f"ends before it begins: {call}")
            calls[call["corr"]] = call
        for w in self.work(types=WORK + ("event", "graph")):
            call = calls.get(w["corr"])
            if w["end"] < w["start"]:
                found.append(f"ends before it begins: {w}")
            if call and w["start"] < call["start"]:
                found.append(f"begins before the call that launched it: {w}")
        return found + self.overlaps()

    def overlaps(self):
        """Work of one stream runs one after the other, branches of a graph aside."""
        last, found = {}, []
        for w in self.work():
            key = w["context"], w["stream"]
            before = last.get(key)
            if before and w["start"] < before["end"] and not (w["node"] and before["node"]):
                found.append(f"at once in a stream: {before} {w}")
            if not before or w["end"] > before["end"]:
                last[key] = w
        return found


# ---- a client's records against it ----


def keys_of(line):
    """What must be equal, times aside. None: nothing to be compared."""
    t = line["t"]
    place = line.get("context"), line.get("stream"), line.get("corr")
    if t == "kernel":
        return (t, line["name"], *place, line["device"], *line["grid"], *line["block"], line["static_shared"],
                line["dynamic_shared"], line["registers"], line["graph"], line["node"])
    if t == "copy":
        kind = line.get("kind") or COPY_KINDS[line["copy_kind"]]
        return t, kind, *place, line["device"], line["bytes"], line["graph"], line["node"]
    if t == "set":
        return t, *place, line["device"], line["bytes"], line["value"], line["graph"], line["node"]
    if t == "sync":
        return t, line.get("kind") or SYNC_KINDS[line["sync_kind"]], *place, line["event"]
    if t == "event":
        return t, *place, line["event"]
    if t == "api":
        return t, line["domain"], line["cbid"], line["tid"], line["corr"], line["result"]
    return None


def expected(truth):
    for line in truth.lines:
        if keys_of(line) and line["cupti"] in (True, "recorded"):
            yield line


def compare(truth, records, slack):
    found = []
    left = collections.defaultdict(list)
    for record in records:
        if keys_of(record):
            left[keys_of(record)].append(record)
    count = 0
    for line in expected(truth):
        count += 1
        same = left[keys_of(line)]
        near = [r for r in same if r["t"] == "event" or
                (abs(r["start"] - line["start"]) <= slack and abs(r["end"] - line["end"]) <= slack)]
        if near:
            same.remove(near[0])
        else:
            found.append(f"no record of {line}" + (f", but {same[0]}" if same else ""))
    for rest in left.values():
        found += [f"a record of nothing: {r}" for r in rest]
    return count, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("prefix")
    parser.add_argument("pid")
    parser.add_argument("records")
    parser.add_argument("--dropped", type=int, default=0)
    parser.add_argument("--clock-slack", type=int, default=0)
    args = parser.parse_args()
    truth = Truth.load(args.prefix, args.pid)
    with open(args.records, encoding="utf-8") as f:
        records = [json.loads(line) for line in f]
    count, found = compare(truth, records, args.clock_slack)
    found += truth.problems()
    dropped = len(truth.work(fate="dropped", types=WORK + ("event", "graph")))
    if dropped != args.dropped:
        found.append(f"{dropped} dropped, but CUPTI says {args.dropped}")
    if not count:
        found.append("nothing was recorded")
    for problem in found[:20]:
        print(problem)
    print(f"{count} records compared, {dropped} dropped, {len(found)} problems")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
