#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the device calls in a trace against those that the target says it made.

    compare_calls.py [--runtime] [--slow] [--category NAME] TRACE.json RESULT.json

RESULT is the line of JSON of tests/workloads/cudacalls.c, or of one of tests/workloads/runtimes: "calls" in order, with "args" that each must
have and its "error". The calls in the trace must be these and no others, in this order, with no error where there
was none. Where only the last of many rounds is told, all rounds must be equal.

--runtime: of the calls in the trace only the runtime's are looked at, but no call of the driver's may come after the
settled ones.
--category: all calls are in this one, and in the trace only it is looked at.
--slow: the machine is too slow for its pauses: all calls count as the "settled" ones do.

The first "settled" of them may lack their error or result, and their exact end: where they return to was not known yet.
"""

import argparse
import json
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("result")
    parser.add_argument("--runtime", action="store_true")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--category")
    args = parser.parse_args()
    with open(args.trace, encoding="utf-8") as f:
        trace = json.load(f)
    with open(args.result, encoding="utf-8") as f:
        result = json.loads(f.readlines()[-1])

    settled, calls = result["settled"], result["calls"]
    rounds = result["rounds"] if result["rounds"] > 100 else 1
    expected = calls[:settled] + calls[settled:] * rounds
    if args.slow:
        settled = len(expected)
    categories = ("cuda_runtime",) if args.runtime else ("cuda_runtime", "cuda_driver")
    if args.category:
        categories = (args.category,)
    seen = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") in categories]
    seen.sort(key=lambda e: float(e["ts"]))
    problems = []
    if args.runtime and len(seen) > settled:
        since = float(seen[settled]["ts"])
        late = [e for e in trace["traceEvents"] if e.get("cat") == "cuda_driver" and float(e.get("ts", 0)) > since]
        if late:
            problems.append(f"{len(late)} calls of the driver's after the settled ones: {late[0]}")
    if len(seen) != len(expected):
        problems.append(f"{len(seen)} calls in the trace, {len(expected)} were made")
    for i, (event, call) in enumerate(zip(seen, expected)):
        where = f"call {i}, {call['name']}"
        found = event.get("args", {})
        if event["name"] != call["name"]:
            problems.append(f"{where}: the trace has {event['name']}")
            break
        if not args.category and event["cat"] != ("cuda_runtime" if event["name"].startswith("cuda") else "cuda_driver"):
            problems.append(f"{where}: category {event['cat']}")
        if event["pid"] != result["pid"]:
            problems.append(f"{where}: pid {event['pid']}")
        if isinstance(found.get("stream"), int):
            problems.append(f"{where}: an integer stream on a host call")
        if i >= settled and found.get("end") == "closed":
            problems.append(f"{where}: no exact end")
        for key, value in call["args"].items():
            if i < settled and key == "result":
                continue
            if found.get(key) != value:
                problems.append(f"{where}: {key} is {found.get(key)!r}, not {value!r}")
        error = call.get("error")
        if i < settled and "error" not in found:
            continue
        if found.get("error") != error:
            problems.append(f"{where}: error {found.get('error')!r}, not {error!r}")
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    print(f"{len(seen)} calls, {sum('error' in e.get('args', {}) for e in seen)} with an error")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
