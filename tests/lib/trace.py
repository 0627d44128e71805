# SPDX-License-Identifier: BSD-2-Clause
"""Chrome traces (kprof's and torch.profiler's) as trees of spans, in whole nanoseconds.

    Trace.load(path).spans     every "X" event of a thread, with parent and children by nesting
    Trace.load_tree(path)      a workload's .tree.json (tests/workloads/protocol.py)
"""

import gc
import gzip
import json
from collections import Counter

gc.disable()  # a program that reads traces keeps all of what it reads to its end

# Rows of a trace that are no calls of a thread.
NOT_CALLS = {"Trace", "overhead", "wait", "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "cuda_event", "cuda_profiler_range"}


def nanoseconds(us):
    """Microseconds as text, exactly: a double has no nanoseconds left after the year 1972."""
    if isinstance(us, int):
        return us * 1000
    whole, _, fraction = str(us).partition(".")
    if "e" in fraction or "E" in fraction:
        return round(float(us) * 1000)
    ns = int((fraction + "000")[:3])
    return int(whole) * 1000 + (-ns if whole.startswith("-") else ns)


def kineto_category(scope):
    """What Kineto makes of a range by its at::RecordScope (torch/csrc/profiler/collection.cpp, scopeToType)."""
    return "user_annotation" if scope == "USER_SCOPE" else "cpu_op"


class Span:
    __slots__ = ("name", "cat", "pid", "tid", "start", "end", "args", "parent", "children", "order")

    def __init__(self, name, cat, pid, tid, start, end, args=None, order=0):
        self.name, self.cat, self.pid, self.tid = name, cat, pid, tid
        self.start, self.end, self.args, self.order = start, end, args or {}, order
        self.parent, self.children = None, []

    @property
    def dur(self):
        return self.end - self.start

    @property
    def exact(self):
        """The end was seen, not concluded."""
        return "end" not in self.args and self.args.get("finished", True)

    def __repr__(self):
        return f"{self.name!r} {self.pid}/{self.tid} {self.start}+{self.dur}"


def nest(spans, overlaps):
    """Sets parent and children of one thread's spans; pairs that cross go to overlaps."""
    stack = []
    # Of two with the same times the one written later encloses: kprof writes at a span's end.
    for span in sorted(spans, key=lambda s: (s.start, -s.end, -s.order)):
        while stack and (stack[-1].end <= span.start and stack[-1].end < span.end or
                         stack[-1].end < span.start):
            stack.pop()
        if stack:
            if span.end > stack[-1].end:
                overlaps.append((stack[-1], span))
            span.parent = stack[-1]
            stack[-1].children.append(span)
        stack.append(span)


class Trace:
    def __init__(self):
        self.spans, self.overlaps, self.kprof = [], [], {}
        self.legacy = False  # written by PyTorch without Kineto

    @classmethod
    def load(cls, path):
        opener = gzip.open if str(path).endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as f:
            data = json.load(f, parse_float=str)
        trace = cls()
        if isinstance(data, list):
            data, trace.legacy = {"traceEvents": data}, True
        trace.kprof = data.get("kprof", {})
        base = data.get("baseTimeNanoseconds")
        for order, event in enumerate(data["traceEvents"]):
            cat = event.get("cat", "")
            if event.get("ph") != "X" or cat in NOT_CALLS:
                continue
            start = nanoseconds(event["ts"]) + (base or 0)
            end = start + nanoseconds(event["dur"])
            trace.spans.append(
                Span(event["name"], cat, event["pid"], event["tid"], start, end,
                     event.get("args"), order)
            )
        for spans in trace.by_thread().values():
            nest(spans, trace.overlaps)
        return trace

    @classmethod
    def load_tree(cls, path):
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
        trace = cls()
        for order, e in enumerate(data["events"]):
            start = e["start_ns"]
            span = Span(e["name"], kineto_category(e["scope"]), data["pid"], e["thread"], start, start + e["dur_ns"],
                        {"inputs": e.get("inputs")}, order)
            if e["parent"] >= 0:
                span.parent = trace.spans[e["parent"]]
                span.parent.children.append(span)
            trace.spans.append(span)
        return trace

    def by_thread(self):
        threads = {}
        for span in self.spans:
            threads.setdefault((span.pid, span.tid), []).append(span)
        return threads

    def counts(self, pid=None):
        return Counter(s.name for s in self.spans if pid is None or s.pid == pid)

    def between(self, begin, end, pid=None):
        """The time between two marks: the end of the one and the start of the other."""
        spans = [s for s in self.spans if pid is None or s.pid == pid]
        first = [s for s in spans if s.name == begin]
        last = [s for s in spans if s.name == end]
        if not first or not last:
            return None
        return max(s.end for s in first), min(s.start for s in last)
