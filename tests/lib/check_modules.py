#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the calls of modules in a trace against what somebody else says of them.

    check_modules.py books TRACE.json REPORT.json    the workload's books (tests/workloads/modules.py); REPORT: --by module
    check_modules.py plain TRACE.json RESULT.json    the same of tests/workloads/plain_modules.py
    check_modules.py torch TRACE.json TORCH.json     torch.profiler's own rows of modules, in the same steps"""

import json
import re
import sys
from collections import Counter, defaultdict

# Not in the books: they have no code of the workload's. Identity: no operator runs in it, so that no call is seen.
UNBOOKED = {"Sequential", "Linear"}
UNSEEN = {"Identity"}


def check(holds, what, event=None):
    if not holds:
        sys.exit(f"WRONG {what}" + (f": {event}" if event is not None else ""))


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def ns(us):
    return round(us * 1000)


class Slice:
    def __init__(self, event):
        self.event, self.name, self.cat, self.args = event, event["name"], event["cat"], event.get("args", {})
        self.begin, self.end = ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])
        self.inside, self.around = [], None

    def modules(self):
        """The calls of modules around it, outermost first."""
        found, at = [], self.around
        while at:
            if at.cat == "python_function":
                found.insert(0, at)
            at = at.around
        return found


def is_other_function(event):
    """With stacks, a trace has all functions of Python: compare_functions.py judges these."""
    return event.get("cat") == "python_function" and not event["name"].startswith("nn.Module: ")


def rows_of(trace):
    """The slices of each thread, with what is inside of what."""
    rows = defaultdict(list)
    for e in trace["traceEvents"]:
        if e.get("ph") == "X" and e.get("cat") != "Trace" and not is_other_function(e):
            rows[e["tid"]].append(Slice(e))
    for slices in rows.values():
        slices.sort(key=lambda s: (s.begin, -s.end, s.args.get("Python id", s.args.get("External id", 0))))
        stack = []
        for s in slices:
            while stack and stack[-1].end <= s.begin:
                stack.pop()
            if stack:
                s.around = stack[-1]
                stack[-1].inside.append(s)
            stack.append(s)
    return rows


def class_of(s):
    return s.name.removeprefix("nn.Module: ").rpartition("_")[0]


def one_row(s):
    """A call's own row."""
    args, outer = s.args, s.modules()
    check(s.name.startswith("nn.Module: "), "its name", s.event)
    check(str(args["Python module id"]) == s.name.rpartition("_")[2], "its number", s.event)
    check(args.get("Python parent id") == (outer[-1].args["Python id"] if outer else None), "its parent", s.event)
    check("External id" not in args, "it has an operator's id", s.event)
    check(s.inside, "nothing is inside of it", s.event)
    if s.inside and args.get("end") != "closed":
        check(s.end - s.inside[-1].end <= 64, "it lasts longer than what is inside", s.event)


def hierarchy(s):
    return re.findall(r"\(([^()]*)\)::forward", s.args.get("Module Hierarchy", ""))


def books(trace, report):
    check(trace.get("with_modules") == 1, "the head does not say with_modules")
    meta = trace["kprof"]["meta"]["modules"]
    check(meta["stacks_unknown"] == meta["trees_left_out"] == 0, f"{meta}")
    rows = rows_of(trace)
    begin = min(s.end for slices in rows.values() for s in slices if s.name.endswith("window begin"))
    numbers, calls, checked, hidden = {}, {}, 0, 0
    for slices in rows.values():
        for s in slices:
            around = s.modules()
            if s.cat == "python_function":
                one_row(s)
            elif s.cat == "cpu_op" or s.name.startswith("in ["):
                check(hierarchy(s) == [class_of(m) for m in around], "Module Hierarchy", s.event)
            if not s.name.startswith("in [") or s.begin < begin or s.args.get("end") == "closed":
                continue
            # of operators that other annotations begin in, the same is true
            expected = json.loads(s.name[3:])
            seen = [m for m in around if class_of(m) not in UNBOOKED]
            check([[class_of(m), m.args.get("Module path", "")] for m in seen] == [e[1:] for e in expected],
                  f"the books have {expected}", [m.event for m in seen])
            for m, (number, _, path) in zip(seen, expected):
                check(numbers.setdefault(m.args["Python id"], number) == number, f"two calls in one: {number}", m.event)
                if m.args.get("end") != "closed":  # such a one may go on in another row
                    check(calls.setdefault(number, m.args["Python id"]) == m.args["Python id"], f"a call twice: {number}", m.event)
                hidden += not path
            checked += 1
            check(any(i.name.startswith("aten::add") for i in s.inside), "no operator inside", s.event)
    check(checked > 100 and hidden > 10, f"only {checked} annotations of the books")
    totals = defaultdict(lambda: [0, 0])
    for s in (s for slices in rows.values() for s in slices if s.cat == "python_function"):
        total = totals[s.name.removeprefix("nn.Module: ")]
        total[0] += 1
        if s.args.get("end") != "closed" and all(m.name != s.name or m.args.get("end") == "closed" for m in s.modules()):
            total[1] += s.end - s.begin
    theirs = {r["category"]: [r["calls"], r["total_ns"]] for r in report["rows"]}
    check(totals == theirs, f"the report: {[(k, totals.get(k), theirs.get(k)) for k in totals.keys() | theirs.keys() if totals.get(k) != theirs.get(k)]}")
    print(f"{checked} operators, {len(calls)} calls as in the books; {meta}")


def plain(trace, result):
    slices = [s for s in rows_of(trace).get(result["pid"], []) if s.cat == "python_function" or s.name == "aten::fake_linear"]
    operators = [s for s in slices if s.name == "aten::fake_linear"]
    check(len(operators) == len(result["rows"]), f"{len(operators)} operators, not {len(result['rows'])}")
    numbers, calls, ended = defaultdict(set), defaultdict(set), set()
    for s, expected in zip(operators, result["rows"]):
        seen = s.modules()
        check([[class_of(m), m.args.get("Module path", "")] for m in seen] == [e[1:] for e in expected],
              f"the books have {expected}", [m.event for m in seen])
        for m, (number, _, _) in zip(seen, expected):
            numbers[m.args["Python id"]].add(number)
            calls[number].add(m.args["Python id"])
            if m.args.get("end") != "closed":
                ended.add(m.args["Python id"])
    for s in slices:
        if s.cat == "python_function":
            one_row(s)
    merged = {k: v for k, v in numbers.items() if len(v) > 1}
    # what was open around a call was over, as was found too late
    check(all(len(v & ended) <= 1 for v in calls.values()), f"a call is in two rows: {calls}")
    # from Python 3.13 on, calls right after each other may look the same
    check(not merged or result["minor"] >= 13, f"two calls in one row: {merged}")
    check(all(max(v) - min(v) == len(v) - 1 for v in merged.values()), f"calls apart in one row: {merged}")
    print(f"Python 3.{result['minor']}: {len(operators)} operators in {len(calls)} calls, {len(numbers)} rows")


def steps(rows):
    """The calls of modules in the steps of the profiled part, by name."""
    found = Counter()
    for slices in rows.values():
        spans = [(s.begin, s.end) for s in slices if re.fullmatch(r"ProfilerStep#1\d\d", s.name)]
        for s in slices:
            if s.name.startswith("nn.Module: ") and class_of(s) not in UNSEEN and \
                    any(a <= s.begin and s.end <= b for a, b in spans):
                found[s.name] += 1
    return found


def torch(trace, theirs):
    ours, theirs = steps(rows_of(trace)), steps(rows_of(theirs))
    check(theirs, "torch.profiler has no calls of modules")
    check(ours == theirs, f"kprof: {sorted((ours - theirs).items())}, torch.profiler: {sorted((theirs - ours).items())}")
    print(f"{sum(ours.values())} calls of {len(ours)} modules as torch.profiler has them")


if __name__ == "__main__":
    {"books": books, "plain": plain, "torch": torch}[sys.argv[1]](*map(load, sys.argv[2:]))
