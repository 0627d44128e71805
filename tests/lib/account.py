#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds a trace against what the target counted itself: nothing may be lost silently.

    account.py [--exact | --complete] [--must-drop] [--only] [--ignore-children] TRACE.json RESULT.json

RESULT is the target's line of JSON: "counts" per operator, those of its "children" (and, of cnn.py,
the samples "made" per process). Always holds: no call is seen that was not made; per source
fired = captured + dropped and begins = ends of each kind; and what is missing of the known calls is
dropped, missed by the kernel, or of a process with a declared gap.

--only      the target calls no other operators: then the sum must be exact
--exact     every count of every process is exact, whatever gaps there were
--complete  --exact, and no gap, no drop, nothing missed
--must-drop the ring was too small on purpose: something must have been dropped
--ignore-children  they are not recorded
"""

import argparse
import json
import os
import sys
from collections import Counter, defaultdict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from trace import Trace  # noqa: E402


def known_calls(result, children):
    """{pid: Counter of operator names}, as the target counted them."""
    known = defaultdict(Counter)
    known[result["pid"]].update(result.get("counts", {}))
    known[result["pid"]].update(result.get("before_exec") or {})
    for pid, made in result.get("made", {}).items():
        for name, per_sample in result["ops_per_sample"].items():
            known[int(pid)][name] += made * per_sample
    if children:
        found = result.get("children", [])
        if isinstance(found, dict):  # every child made so many calls of each operator
            found = [
                {"pid": int(pid), "counts": dict.fromkeys(result["counts"], calls)}
                for pid, calls in found.items()
            ]
        for child in found:
            known[child["pid"]].update(child["counts"])
    return known


def check_sources(kprof, problems):
    sources = kprof.get("sources")
    if not sources:
        return problems.append("the trace has no kprof.sources")
    for name, s in sources.items():
        if s["fired"] != s["captured"] + s["dropped"]:
            problems.append(f"source {name}: fired is not captured + dropped: {s}")
        if s["begins"] != s["ends_exact"] + s["ends_closed"] + s["ends_window"]:
            problems.append(f"source {name}: begins are not the sum of their ends: {s}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("result")
    parser.add_argument("--only", action="store_true")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--complete", action="store_true")
    parser.add_argument("--must-drop", action="store_true")
    parser.add_argument("--ignore-children", action="store_true")
    args = parser.parse_args()
    trace = Trace.load(args.trace)
    with open(args.result, encoding="utf-8") as f:
        result = json.loads(f.readlines()[-1])

    problems = []
    check_sources(trace.kprof, problems)
    known = known_calls(result, not args.ignore_children)
    names = {name for counts in known.values() for name in counts}
    seen = defaultdict(Counter)
    for span in trace.spans:
        if span.name in names:
            seen[span.pid][span.name] += 1

    sources = trace.kprof.get("sources", {})
    lost = sum(s["dropped"] + s["missed"] for s in sources.values())
    dropped = sum(s["dropped"] for s in sources.values())
    gaps = {gap["pid"] for gap in trace.kprof.get("gaps", [])}
    missing = 0
    for pid in set(known) | set(seen):
        for name in names:
            k, s = known[pid][name], seen[pid][name]
            if s > k:
                problems.append(f"{name} of {pid}: {s} seen, {k} made")
            elif s < k and (args.complete or args.exact):
                problems.append(f"{name} of {pid}: {s} seen, {k} made")
            elif s < k and pid not in gaps:
                missing += k - s
    if missing > lost:
        problems.append(f"{missing} calls missing, but only {lost} said to be dropped or missed")
    total, total_seen = (sum(sum(c.values()) for c in x.values()) for x in (known, seen))
    if args.only:
        fired = sources.get("operators", {}).get("fired", -1)
        captured = sources.get("operators", {}).get("captured", -1)
        if total_seen != captured:
            problems.append(f"{captured} operators said to be captured, {total_seen} in the trace")
        if not gaps and total != fired + sources.get("operators", {}).get("missed", 0):
            problems.append(f"{total} calls made, fired + missed are {fired}: {sources}")
    if args.complete and (lost or gaps):
        problems.append(f"{lost} lost, gaps of {sorted(gaps)}: it should have been complete")
    if args.must_drop and not dropped:
        problems.append("nothing was dropped: the test is too easy")
    if not total:
        problems.append("the target counted no call: nothing was tested")

    print(f"{total} calls made by {len(known)} processes: {total_seen} seen, {missing} missing, "
          f"{lost} said to be lost, gaps of {len(gaps)} processes")
    for line in problems:
        print("WRONG", line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
