#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the rows of MPI's calls in a trace with the books of tests/workloads/mpiops.c.

    check_mpi.py [--handles] TRACE.json BOOKS.json…

Each call of each rank must be there, in order, on the rank's process, with all that the program knows of it, and with
nothing else. --handles: communicators are numbers, so that kprof knows neither this process's rank nor how many there are.
"""

import json
import sys

KEYS = "Collective name", "In msg nelems", "Out msg nelems", "Out msg nelems at most", "dtype", "bytes", "Group size", "Rank"
KEYS += "Src Rank", "Dst Rank", "tag", "Root Rank", "Reduction", "Process Group Name", "Seq"


def without_group(want):
    """What is left where nothing is known of the communicator."""
    want = {k: v for k, v in want.items() if k not in ("Rank", "Group size")}
    if want["Collective name"] == "reduce_scatter":
        want.pop("bytes")
    for name, key in ("reduce_scatter", "In msg nelems"), ("send", "Src Rank"), ("recv", "Dst Rank"):
        if want["Collective name"] == name:
            want.pop(key)
    return want


def main():
    handles = "--handles" in sys.argv
    if handles:
        sys.argv.remove("--handles")
    with open(sys.argv[1]) as f:
        events = [e for e in json.load(f)["traceEvents"] if e.get("ph") == "X" and e["name"].startswith("MPI_")]
    problems, compared = [], 0
    for path in sys.argv[2:]:
        with open(path) as f:
            books = json.load(f)
        mine = sorted((e for e in events if e["pid"] == books["pid"]), key=lambda e: e["ts"])
        if [e["name"] for e in mine] != [name for name, _ in books["calls"]]:
            problems.append(f"{path}: {[e['name'] for e in mine][:30]}, {len(mine)} of {len(books['calls'])} calls")
        for e, (name, want) in zip(mine, books["calls"]):
            if handles and want:
                want = without_group(want)
            got = {k: e["args"][k] for k in KEYS if k in e["args"]}
            if got != want or e["cat"] != "collective_comm":
                problems.append(f"{path}: {name} {e['cat']}: {got} is not {want}")
            compared += 1
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    print(f"{compared} calls of MPI compared, {len(problems)} problems")
    return 1 if problems or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
