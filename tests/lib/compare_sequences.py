#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares sequence numbers in kprof's trace with those that torch.profiler has seen in the same run, and the arrows
that follow from them.

    compare_sequences.py KPROF.json TORCH.json [--without 'GLOB GLOB…'] [--only-here 'GLOB GLOB…']

Both recorded the window that the workload marks (tests/workloads/protocol.py). The calls of one name are the same
calls in both, in the same order; where times are rounded (2.3), in some order. What kprof shows of a call must be what
torch.profiler has: the number, and of a node the number of the thread that made it. A call of which kprof shows
nothing must be among those that --without names; one of which only kprof shows something, among --only-here.

An arrow leads from one event to another in both, each known by its name and its number; if torch's trace has none
(releases without Kineto), kprof's are compared with what follows from torch's numbers by Kineto's rule.

Exit status 0: the same; 1: differences; 2: cannot be compared.
"""

import argparse
import json
import os
import re
import sys
from collections import Counter, defaultdict
from fnmatch import fnmatchcase

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare_profiler import window  # noqa: E402
from trace import Trace, nanoseconds  # noqa: E402

NUMBER, FORWARD = "Sequence number", "Fwd thread id"
EVALUATE = "autograd::engine::evaluate_function: "
LEAST_COMPARED, LEAST_ARROWS = 20, 5


def said(args):
    """Number and forward's thread; None: nothing."""
    return (args[NUMBER], args[FORWARD]) if NUMBER in args else None


class Event:
    def __init__(self, name, start, says, thread=0):
        self.name, self.start, self.says, self.thread = name, start, says, thread


def of_torch(path, begin, end):
    """torch's own list of events, in order of their starts."""
    with open(path, encoding="utf-8") as f:
        rows = json.load(f)["sequences"]
    events = [Event(name, start, (number, forward) if number >= 0 else None, thread)
              for name, start, number, forward, thread in rows if begin <= start < end]
    # what encloses a node has what that says, but only in torch's trace
    by_thread, order = {}, sorted(events, key=lambda e: e.start)
    for event in order:
        before = by_thread.get(event.thread)
        if before and before.name == EVALUATE + event.name and before.says is None:
            before.says = event.says
        by_thread[event.thread] = event
    return order


def by_name(events):
    names = defaultdict(list)
    for event in events:
        names[event.name].append(event.says)
    return names


def compare(ours, theirs, without, only_here):
    problems, equal, missing, more = [], 0, Counter(), Counter()
    for name, calls in sorted(theirs.items()):
        own = ours.get(name, [])
        if len(own) != len(calls):
            if any(calls) and name not in ("detach", "detach_"):
                print(f"not compared: {name}: {len(own)} calls, torch has {len(calls)}")
            continue
        left_own, left = [], []
        for k, t in zip(own, calls):
            if k == t:
                equal += k is not None
            else:
                left_own.append(k)
                left.append(t)
        for t in left:  # in another order?
            k = t if t in left_own else None if None in left_own else left_own[0]
            left_own.remove(k)
            if k == t:
                equal += k is not None
            elif k is None:
                missing[name] += 1
            elif t is None:
                more[name] += 1
            else:
                problems.append(f"{name}: torch has {t}, kprof {k}")
    print(f"{equal} equal; without a number: {dict(missing)}; only in kprof: {dict(more)}")
    problems += [f"{name}: {n} calls have no number" for name, n in missing.items()
                 if not any(fnmatchcase(name, g) for g in without)]
    problems += [f"{name}: {n} calls have one only here" for name, n in more.items()
                 if not any(fnmatchcase(name, g) for g in only_here)]
    if equal < LEAST_COMPARED:
        problems.append("too little was compared")
    return problems


def arrows(path, begin, end, pid=None):
    """What the arrows of a Chrome trace connect: pairs of (name, number). None: its names are not escaped."""
    try:
        with open(path, encoding="utf-8") as f:
            trace = json.load(f, parse_float=str)
    except ValueError:
        return None
    if isinstance(trace, list):
        return None
    base = trace.get("baseTimeNanoseconds") or 0
    at, ends, problems = defaultdict(list), defaultdict(dict), []
    for e in trace["traceEvents"]:
        if e.get("ph") == "X" and NUMBER in e.get("args", {}):
            at[e["pid"], e["tid"], e["ts"]].append(e)
        elif e.get("cat") == "fwdbwd" and (pid is None or e["pid"] == pid):
            if e["ph"] in ends[e["id"]]:
                problems.append(f"{e['ph']} of {e['id']} twice")
            ends[e["id"]][e["ph"]] = e
    pairs, rounded = Counter(), Counter()
    for number, pair in ends.items():
        if set(pair) != {"s", "f"}:
            problems.append(f"arrow {number} has only {set(pair)}")
            continue
        times = [nanoseconds(pair[ph]["ts"]) + base for ph in "sf"]
        if not begin <= times[0] < end or not begin <= times[1] < end:
            continue
        start, stop = (at[pair[ph]["pid"], pair[ph]["tid"], pair[ph]["ts"]] for ph in "sf")
        start = [e for e in start if not e["args"][FORWARD]]
        stop = [e for e in stop if e["args"][FORWARD]]
        found = [(a, b) for a in start for b in stop if a["args"][NUMBER] == b["args"][NUMBER]]
        if not found:
            problems.append(f"arrow {number} connects nothing: {pair}")
            continue
        # of several that start together, the shortest
        a = min((a for a, _ in found), key=lambda e: nanoseconds(e["dur"]))
        b = min((b for _, b in found), key=lambda e: nanoseconds(e["dur"]))
        key = (a["args"][NUMBER], b["args"][FORWARD], b["name"].removeprefix(EVALUATE))
        pairs[(a["name"], *key)] += 1
        rounded[key] += 1
    if problems:
        sys.exit(f"{path}: " + "; ".join(problems[:5]))
    return pairs, rounded


def compare_arrows(ours, theirs, may_lack, exact):
    """Of both: arrows(). may_lack: globs of forwards' or nodes' names; their arrows may be missing here. Where torch's
    times are rounded, the forward may be what encloses it: it is not compared."""
    ours, (theirs, rounded) = ours[not exact], theirs
    if not exact:
        forwards = {tuple(key): (name, *key) for name, *key in theirs}
        ours, theirs = (Counter({forwards.get(key, ("?", *key)): n for key, n in side.items()}) for side in (ours, rounded))
    lacking, extra = theirs - ours, ours - theirs
    print(f"{sum((ours & theirs).values())} arrows are the same, {sum(lacking.values())} only in torch's")
    problems = [f"arrow only in torch's trace: {a}" for a in lacking
                if not any(fnmatchcase(str(x), g) for x in a for g in may_lack)]
    problems += [f"arrow only in kprof's trace: {a}" for a in extra]
    if sum((ours & theirs).values()) < LEAST_ARROWS:
        problems.append("too few arrows are the same")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kprof")
    parser.add_argument("torch")
    parser.add_argument("--without", default="")
    parser.add_argument("--only-here", default="")
    parser.add_argument("--lack", default="")
    args = parser.parse_args()
    tree_path = re.sub(r"\.json$", ".tree.json", args.torch)
    kprof, tree = Trace.load(args.kprof), Trace.load_tree(tree_path)
    pid = next((s.pid for s in tree.spans if isinstance(s.pid, int)), None)
    begin, end, _ = window(kprof, args.kprof, pid)
    theirs = of_torch(tree_path, *window(tree, tree_path)[:2])
    spans = sorted((s for s in kprof.spans if s.pid == pid and begin <= s.start < end),
                   key=lambda s: (s.start, -s.end, s.order))
    problems = compare(by_name(Event(s.name, s.start, said(s.args)) for s in spans), by_name(theirs),
                       args.without.split(), args.only_here.split())
    drawn = arrows(args.kprof, begin, end, pid)
    try:
        torch = Trace.load(args.torch)
        found = None if torch.legacy else arrows(args.torch, *window(torch, args.torch)[:2])
    except ValueError:  # releases before 2.4 don't escape the names of annotations
        found = None
    if found:
        exact = any(s.start % 1000 for s in torch.spans)
        problems += compare_arrows(drawn, found, args.lack.split(), exact)
    for line in problems[:25]:
        print("DIFFERS", line)
    if len(problems) > 25:
        print(f"… and {len(problems) - 25} more")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
