#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the inputs of operators in kprof's trace with those in torch.profiler's trace of the same run.

    compare_inputs.py KPROF.json TORCH.json [--without 'GLOB GLOB…']

Both recorded the window that the workload marks (tests/workloads/protocol.py). The calls of one name are the same
calls in both, in the same order; where times are rounded (2.3), in some order. Of each call, all that both show of an
argument must be equal: sizes, type, strides, value. Of an operator that TorchScript calls, torch shows all that lies on
the interpreter's stack, the arguments last; then kprof must show as many as an overload of the operator has. What kprof says that it does not know (the type "unknown", or a
"Scalar" without a value) is counted, and may only be what docs/shapes.md lists: numbers in vector registers. Calls of
which kprof has no inputs at all must be among those that --without names.

torch's Chrome trace has the texts; its own tree has the strides that releases before 2.4 don't write, and all there is
of 1.13, which was built without Kineto.

Exit status 0: the same; 1: differences; 2: cannot be compared.
"""

import json
import os
import re
import sys
from collections import Counter, defaultdict
from fnmatch import fnmatchcase

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare_profiler import window  # noqa: E402
from trace import Trace  # noqa: E402

KEYS = "Input Dims", "Input type", "Input Strides", "Concrete Inputs"
LONGEST_LIST = 30  # of what torch's Chrome trace shows, and kprof; its tree has longer ones
LEAST_COMPARED = 50


def of_text(args):
    """The inputs of an event of a Chrome trace: a list of (sizes, type, strides, value), None for what is not told."""
    if "Input Dims" not in args:
        return None
    columns = [args.get(key) for key in KEYS]
    return [tuple(None if c is None else c[i] for c in columns) for i in range(len(columns[0]))]


def of_tree(inputs):
    """The same, of an event of torch's own tree."""
    if not inputs:
        return None
    if "types" in inputs:  # 1.13
        # It writes no elements of lists, and lists of numbers as if it knew nothing of them.
        return [(None, t, None, None) if t == "TensorList" else (s, t or None, k, None if v is None else number(v))
                for s, t, k, v in zip(inputs["sizes"], inputs["types"], inputs["strides"], inputs["values"])]
    return [(None, None, strides_of(t), None) for t in inputs["tensors"]]


def strides_of(tensor):
    if not tensor:
        return None
    if isinstance(tensor[0], list) and tensor[0] and isinstance(tensor[0][0], list):
        return [t[1] if t else [] for t in tensor] if len(tensor) <= LONGEST_LIST else None
    return tensor[1] if len(tensor) == 2 and all(isinstance(x, int) for x in tensor[0] + tensor[1]) else None


def number(text):
    """A value as kprof writes it, from Python's form of it."""
    try:
        value = float(text)
    except ValueError:
        return text
    return text if "." not in text and "e" not in text else f"{int(value)}." if value == int(value) else f"{value:.17g}"


class Comparison:
    def __init__(self, arguments):
        self.arguments, self.beneath = arguments, 0  # how many each operator has; calls of which torch shows more
        self.problems, self.equal, self.unknown, self.without = [], Counter(), Counter(), Counter()

    def argument(self, kprof, torch, count):
        """Is there nothing in which the two differ?"""
        seen = Counter()
        if kprof[1] == "unknown":
            seen["unknown", "argument"] += 1
        else:
            for what, k, t in zip(KEYS, kprof, torch):
                if t is None or k is None:
                    continue
                if what == "Concrete Inputs" and k == "" and kprof[1] == "Scalar" and t != "":
                    seen["unknown", "number"] += 1
                elif k != t:
                    return False
                else:
                    seen["equal", what] += 1
        if count:
            for (kind, what), n in seen.items():
                (self.equal if kind == "equal" else self.unknown)[what] += n
        return True

    def call(self, name, kprof, torch, count=True):
        if not torch or kprof is None:
            return True
        if len(torch) > len(kprof) and len(kprof) in self.arguments.get(name, []):
            torch = torch[len(torch) - len(kprof):]
            self.beneath += count
        return len(kprof) == len(torch) and all(self.argument(k, t, False) for k, t in zip(kprof, torch)) and all(
            self.argument(k, t, count) for k, t in zip(kprof, torch))

    def calls(self, name, kprof, torch):
        left_k, left_t = [], []
        self.without[name] += sum(bool(t) and k is None for k, t in zip(kprof, torch))
        for k, t in zip(kprof, torch):
            if not self.call(name, k, t):
                left_k.append(k)
                left_t.append(t)
        for t in left_t:
            same = next((k for k in left_k if self.call(name, k, t)), None)
            if same is None:
                self.problems.append(f"{name}: torch {t}\n        kprof has {left_k[0]}")
            else:
                left_k.remove(same)


def by_name(spans, begin, end, inputs):
    names = defaultdict(list)
    for span in sorted(spans, key=lambda s: (s.start, -s.end, s.order)):
        if begin <= span.start < end:
            names[span.name].append(inputs(span))
    return names


def main():
    if len(sys.argv) not in (3, 5):
        sys.exit(__doc__)
    globs = sys.argv[4].split() if len(sys.argv) == 5 else []
    kprof = Trace.load(sys.argv[1])
    try:
        torch = Trace.load(sys.argv[2])
    except ValueError:  # releases before 2.4 don't escape the names of annotations
        torch = None
    tree_path = re.sub(r"\.json$", ".tree.json", sys.argv[2])
    tree = Trace.load_tree(tree_path)
    with open(tree_path, encoding="utf-8") as f:
        arguments = json.load(f)["arguments"]
    pid = next((s.pid for s in tree.spans if isinstance(s.pid, int)), None)
    k_window, tree_window = window(kprof, sys.argv[1], pid), window(tree, sys.argv[2])
    ours = by_name((s for s in kprof.spans if s.pid == pid), *k_window[:2], lambda s: of_text(s.args))
    comparison, skipped = Comparison(arguments), set()
    theirs = [by_name(tree.spans, *tree_window[:2], lambda s: of_tree(s.args.get("inputs")))]
    if torch and not torch.legacy:
        torch_window = window(torch, sys.argv[2])
        theirs.append(by_name(torch.spans, *torch_window[:2], lambda s: of_text(s.args)))
    for calls in theirs:
        for name in sorted(calls):
            if len(calls[name]) != len(ours.get(name, [])):
                skipped.add(name)
            else:
                comparison.calls(name, ours[name], calls[name])
    print("calls of which torch shows more than the arguments:", comparison.beneath)
    print("equal:", dict(comparison.equal), "not known to kprof:", dict(comparison.unknown))
    if skipped:
        print("not compared, as the two count them differently:", *sorted(skipped))
    problems = comparison.problems
    if comparison.unknown["argument"]:
        problems.append(f"{comparison.unknown['argument']} arguments are unknown to kprof")
    without = [name for name, n in comparison.without.items() if n]
    print("without inputs:", *(f"{name} ({comparison.without[name]})" for name in without))
    problems += [f"{name} has no inputs" for name in without if not any(fnmatchcase(name, g) for g in globs)]
    if sum(comparison.equal.values()) < LEAST_COMPARED:
        problems.append("too little was compared")
    for line in problems[:20]:
        print("DIFFERS", line)
    if len(problems) > 20:
        print(f"… and {len(problems) - 20} more")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
