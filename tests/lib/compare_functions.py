#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the Python functions in a trace against what somebody else says of them.

    compare_functions.py torch TRACE.json TORCH.json      torch.profiler(with_stack=True) of the same steps
    compare_functions.py books TRACE.json RESULT.json N   the calls in the books of tests/workloads/python_calls.py

torch: each operator has the same functions around it, by name, file and first line; and the operators of one row are
inside of one call. books: each row is a part of one call, by the clock; there are N at least."""

import json
import re
import sys
from collections import Counter, defaultdict

MODULE_CALL = re.compile(r"torch/nn/modules/module\.py\(\d+\): (_wrapped_call_impl|_call_impl)$")
WINDOW_BEGIN, WINDOW_END = "kprof test: window begin", "kprof test: window end"
# torch.profiler has a function end with the annotation that was begun in it, whatever follows.
BEGINS_ANNOTATION = re.compile(r"torch/(autograd/profiler\.py\(\d+\): __enter__|_ops\.py\(\d+\): __call__)$")

GENERATOR = "resumed"  # torch.profiler gives it the line where it goes on
# The documented exception: called again at once, and further on in its code than before.
MAY_BE_SEVERAL = {"either"}


def check(holds, what, event=None):
    if not holds:
        sys.exit(f"WRONG {what}" + (f": {event}" if event is not None else ""))


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


class Slice:
    def __init__(self, event):
        self.name, self.cat, self.args, self.tid = event["name"], event["cat"], event.get("args", {}), event["tid"]
        self.begin = round(event["ts"] * 1000)
        self.end = self.begin + round(event["dur"] * 1000)
        self.around = []

    def __str__(self):
        return f"{self.cat} {self.name} {self.begin}+{self.end - self.begin} {self.args}"


def rows_of(trace, pid=None):
    """By thread, the slices in order, each with those around it."""
    rows = defaultdict(list)
    for e in trace["traceEvents"]:
        if e.get("ph") == "X" and e.get("cat") in ("cpu_op", "user_annotation", "python_function"):
            rows[e["tid"]].append(Slice(e))
    for slices in rows.values():
        slices.sort(key=lambda s: (s.begin, -s.end))
        stack = []
        for s in slices:
            while stack and stack[-1].end <= s.begin:
                stack.pop()
            if stack:
                s.around = stack[-1].around + [stack[-1]]
            stack.append(s)
    return rows


def in_window(slices):
    """The operators between the program's marks."""
    begin = [s.end for s in slices if s.name == WINDOW_BEGIN]
    end = [s.begin for s in slices if s.name == WINDOW_END]
    return [s for s in slices if s.cat == "cpu_op" and s.name.startswith("aten::")
            and begin and end and begin[0] <= s.begin < end[0]]


def plain(name):
    """Both sides' names without what differs by design: the file's folder, and what stands for Module.__call__."""
    if name.startswith("nn.Module: ") or MODULE_CALL.search(name):
        return "Module.__call__"
    path, line, function = re.match(r"(.*)\((\d+)\): (.*)$", name).groups()
    if function == GENERATOR:
        line = 0
    return f"{path.rpartition('/')[2]}({line}): {function}"


def function_of(row):
    return row.name.rpartition(" ")[2]


def functions_around(op):
    """From run() on, which is called when torch.profiler is active: of the others it has other lines."""
    found = [s for s in op.around if s.cat == "python_function" and not s.name.startswith("<built-in")
             and not BEGINS_ANNOTATION.search(s.name)]
    while found and not found[0].name.endswith(": run"):
        found.pop(0)
    return found


def torch(trace, other):
    ours, theirs = rows_of(trace), rows_of(other)
    judged = 0
    for tid, slices in ours.items():
        ops, others = in_window(slices), in_window(theirs.get(tid, []))
        if not ops:
            continue
        check([o.name for o in ops] == [o.name for o in others], "the operators of a thread",
              (len(ops), len(others)))
        calls, differ = defaultdict(set), Counter()
        for mine, its in zip(ops, others):
            chain, want = functions_around(mine), functions_around(its)
            names, wanted = [plain(f.name) for f in chain], [plain(f.name) for f in want]
            if names != wanted:
                differ[f"{mine.name}\n  is    {names}\n  wants {wanted}"] += 1
                continue
            for f, w in zip(chain, want):
                calls[f].add(w)
            judged += 1
        for text, nr in differ.most_common(5):
            print(nr, text)
        print(f"{sum(differ.values())} of {len(ops)} operators have other functions around them")
        wrong = Counter(plain(f.name) for f, w in calls.items() if len(w) > 1 and function_of(f) not in MAY_BE_SEVERAL)
        print(f"{len(calls)} rows of {len(set().union(*calls.values()))} calls; {sum(wrong.values())} of several: {wrong}")
        check(not differ, "functions around operators")
        check(not wrong, "rows of several calls")
    check(judged > 100, "too few operators", judged)


def books(trace, result, least):
    clock = trace["kprof"]["clock"]
    to_mono = trace["baseTimeNanoseconds"] - clock["start_real_ns"] + clock["start_mono_ns"]
    known, first = defaultdict(list), {}
    for tid, file, line, name, begin, end in result["books"]:
        known[tid, f"{file.rpartition('/')[2]}({line}): {name}"].append((begin, end))
        first[tid] = min(begin, first.get(tid, begin))
    judged, wrong, covered = 0, Counter(), set()
    for tid, slices in rows_of(trace).items():
        for s in slices:
            if s.cat != "python_function" or s.begin + to_mono < first.get(tid, s.end + to_mono):
                continue
            name = re.sub("^.*/", "", s.name)
            if (tid, name) not in known:  # those that were called before the books were opened
                continue
            inside = [(b, e) for b, e in known[tid, name] if b <= s.begin + to_mono and s.end + to_mono <= e]
            judged += 1
            covered.update((tid, name, *i) for i in inside)
            if not inside and function_of(s) not in MAY_BE_SEVERAL:
                wrong[name] += 1
    print(f"{judged} rows, of {len(covered)} calls; {sum(wrong.values())} of none or of several: {wrong}")
    check(judged >= int(least), "too few rows", judged)
    check(not wrong, "rows of no call, or of several")


if __name__ == "__main__":
    {"torch": torch, "books": books}[sys.argv[1]](load(sys.argv[2]), load(sys.argv[3]), *sys.argv[4:])
