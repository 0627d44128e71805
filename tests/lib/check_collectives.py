#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what kprof's trace says of collectives with what the program says that it communicated.

    check_collectives.py KPROF.json RESULT.json [--torch TORCH.json] [--report REPORT.json --late RANK]

RESULT.json is that of tests/workloads/collectives.py. Each call of each rank must be there, with all that the program
knows of it, and nothing else; and the work for each call, with the same, on another thread and not before it. --torch:
tensors and group must be those of torch.profiler's trace, too, in which rank 0's collectives are ranges of that name.
--report: what `kprof report --by collective --json` says must follow from the trace's times; and the rank that was made
late must be the last one wherever it called when the other one was at work already.
"""

import argparse
import json
import sys
from collections import defaultdict
from math import prod

KEYS = "Collective name", "In msg nelems", "Out msg nelems", "dtype", "Process Group Name", "Seq"
ALL_KEYS = *KEYS, "Group size", "Rank", "Src Rank", "Dst Rank", "Root Rank", "Reduction", "Process Group Ranks"
TYPES = {"float": "Float", "double": "Double", "long int": "Long"}
# Where the number of elements follows from the number of ranks: in, or out.
OF_RANKS = {"all_gather": "Out", "gather": "Out", "scatter": "In "}
PER_STEP = 12
SLACK_NS = 4  # a trace has rounded times
LEAST_CERTAIN = 3


def details(event):
    return {k: event["args"][k] for k in ALL_KEYS if k in event["args"]}


def ns(us):
    return round(us * 1000)


class Check:
    def __init__(self, trace, result):
        self.trace, self.result, self.problems, self.compared = trace, result, [], 0
        events = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
        self.calls, self.works = defaultdict(list), defaultdict(list)
        for e in sorted(events, key=lambda e: e["ts"]):
            if e["name"].startswith("gloo:"):
                self.calls[e["pid"]].append(e)
            elif e["cat"] == "collective_comm":
                self.works[e["pid"]].append(e)

    def problem(self, text):
        self.problems.append(text)

    def rank(self, rank):
        pid, told = self.result["pids"][rank], self.result["calls"][rank]
        # the last one is the barrier with which the program ends
        calls = self.calls[pid][:-1][-len(told):]
        if len(calls) != len(told) or len(told) < PER_STEP:
            return self.problem(f"rank {rank}: {len(calls)} calls of {len(told)}")
        works = {id(c): w for c, w in self.pairs(pid)}
        for call, row in zip(calls, told):
            want = {k: v for k, v in zip(KEYS, row) if v is not None}
            peer = row[7]
            if peer is not None:
                want.update({{"source": "Src Rank", "destination": "Dst Rank"}[k]: v for k, v in peer.items()})
                if row[4] is not None:
                    want["Src Rank" if row[0] == "send" else "Dst Rank"] = rank
            if row[4] is None:  # 1.13, in which kprof does not know of groups
                want = {k: v for k, v in want.items() if k[:3] != OF_RANKS.get(row[0])}
            else:
                want.update({"Group size": 2, "Rank": rank, **row[8]})
            if details(call) != want:
                self.problem(f"rank {rank}: {details(call)} is not {want}")
            self.compared += 1
            work = works.get(id(call))
            if peer is not None:
                if work:
                    self.problem(f"rank {rank}: work for {want}")
            elif not work:
                self.problem(f"rank {rank}: no work for {want}")
            elif work["tid"] == call["tid"] or work["ts"] < call["ts"]:
                self.problem(f"rank {rank}: the work for {want} is elsewhere")

    def pairs(self, pid):
        """Calls with their work: in a group they are done in order; without numbers, in all."""
        waiting = defaultdict(list)
        for work in self.works[pid]:
            waiting[json.dumps(details(work))].append(work)
        for call in self.calls[pid]:
            same = waiting[json.dumps(details(call))]
            while same and same[0]["ts"] < call["ts"]:
                same.pop(0)
            if same:
                yield call, same.pop(0)

    def torch(self, path):
        with open(path) as f:
            torch = json.load(f)
        info, compared = torch["distributedInfo"], 0
        ranges = sorted((e for e in torch["traceEvents"] if e["name"].startswith("gloo:")), key=lambda e: e["ts"])
        mine = defaultdict(list)
        for call in self.calls[self.result["pids"][0]]:
            mine[call["name"]].append(call["args"])
        seen = defaultdict(list)
        for e in ranges:
            seen[e["name"]].append(e["args"])
        groups = {g["pg_name"]: g["pg_size"] for g in info["pg_config"]}
        for g in self.trace["distributedInfo"]["pg_config"]:
            if g not in [{k: t[k] for k in g} for t in info["pg_config"]]:
                self.problem(f"torch: {g} is not in {info}")
        for k in "backend", "rank", "world_size":
            if self.trace["distributedInfo"][k] != info[k]:
                self.problem(f"torch: {k} is {info[k]}: {self.trace['distributedInfo']}")
        for name in seen:
            # what is in both: kprof has the calls before torch.profiler began, and those after it ended
            most = min(PER_STEP, len(seen[name]))
            for k, t in zip(mine[name][-most - 1 : -1] if name == "gloo:barrier" else mine[name][-most:], seen[name][-most:]):
                if k.get("Rank") != info["rank"] or groups.get(k.get("Process Group Name")) != k.get("Group size"):
                    self.problem(f"torch: rank, group: {k}, {info}")
                if t.get("Input Dims") and name != "gloo:scatter":
                    compared += 1
                    if (prod(t["Input Dims"][0]), TYPES[t["Input type"][0]]) != (k["In msg nelems"], k["dtype"]):
                        self.problem(f"torch: {name}: {t} is not {k}")
        if compared < 2 * PER_STEP:
            self.problem(f"torch: only {compared} compared")

    def report(self, path, late):
        with open(path) as f:
            report = json.load(f)
        parts, called, certain = defaultdict(dict), {}, 0
        for rank, pid in enumerate(self.result["pids"]):
            for e in self.works[pid]:
                a = e["args"]
                parts[a["Process Group Name"], a["Seq"], a["Collective name"]][rank] = e
            for e in self.calls[pid]:
                a = e["args"]
                called[a["Process Group Name"], a.get("Seq"), a["Collective name"], rank] = ns(e["ts"])
        for one in report["longest"]:
            key = one["group"], one["number"], one["name"]
            begins = {rank: ns(e["ts"]) for rank, e in parts[key].items()}
            ends = {rank: ns(e["ts"] + e["dur"]) for rank, e in parts[key].items()}
            last = max(begins.values())
            waits = [max(0, min(last, ends[r]) - begins[r]) for r in begins]
            if len(begins) != 2 or begins[one["last_rank"]] < last - SLACK_NS:
                self.problem(f"report: rank {one['last_rank']} was not the last: {one}, {begins}")
            if abs(sum(waits) - one["waited_ns"]) > SLACK_NS or abs(max(waits) - one["longest_ns"]) > SLACK_NS:
                self.problem(f"report: waits of {waits}: {one}")
            exact = all("end" not in e["args"] and "finished" not in e["args"] for e in parts[key].values())
            if exact != (one["took_ns"] is not None):
                self.problem(f"report: ends of {key}")
            elif exact and abs(max(ends.values()) - last - one["took_ns"]) > SLACK_NS:
                self.problem(f"report: {max(ends.values()) - last} ns together: {one}")
            if called.get((*key, late), 0) > begins.get(1 - late, 1 << 63):
                certain += 1
                if one["last_rank"] != late:
                    self.problem(f"report: rank {late} came last: {one}")
        if certain < LEAST_CERTAIN:
            self.problem(f"report: rank {late} was late in {certain}")
        for what in "waited_ns", "bytes":
            of_rows, of_all = (sum(x[what] or 0 for x in report[where]) for where in ("rows", "longest"))
            if of_rows != of_all:
                self.problem(f"report: {what}: {of_rows} in the rows, {of_all} of all")
        if sum(r["calls"] for r in report["rows"]) != len(report["longest"]) or sum(
            r["last"] for r in report["ranks"]
        ) != len(report["longest"]):
            self.problem("report: numbers of collectives")
        self.compared += len(report["longest"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("result")
    parser.add_argument("--torch")
    parser.add_argument("--report")
    parser.add_argument("--late", type=int)
    args = parser.parse_args()
    with open(args.trace) as f:
        trace = json.load(f)
    with open(args.result) as f:
        check = Check(trace, json.load(f))
    for rank in range(2):
        check.rank(rank)
    if args.torch:
        check.torch(args.torch)
    if args.report:
        check.report(args.report, args.late)
    for problem in check.problems[:20]:
        print(problem, file=sys.stderr)
    print(f"{check.compared} collectives compared, {len(check.problems)} differ")
    return 1 if check.problems or not check.compared else 0


if __name__ == "__main__":
    sys.exit(main())
