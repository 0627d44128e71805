#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check Chrome traces: the one judge of every trace that a test makes.

    validate_trace.py [--kineto] [--report REPORT.json] TRACE.json[.gz] ...

Checks what Perfetto, chrome://tracing, TensorBoard's PyTorch plugin and HTA need, and what kprof
promises beyond (times to the nanosecond, rows that nest, known rows, accounting). --report
compares calls and times per name with what `kprof report --json` says. --kineto leaves out what
only kprof promises, for traces that libkineto wrote.

--expect nesting=8,order=1 turns the verdict round: exactly
these must be found, so many of each.

Prints a line per violation (`TRACE: rule: what`), a summary, and exits 1 when there was any.
"""

import argparse
import decimal
import gc
import gzip
import json
import os
import re
import sys
from collections import Counter, defaultdict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from validate_details import MEMORY_ROW, Details, to_ns  # noqa: E402

NS_PER_DAY = 86400 * 10**9
SHOWN_PER_RULE = 10

HOST_CATS = {
    "cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "xpu_runtime",
    "xpu_driver", "mtia_runtime", "privateuse1_runtime", "privateuse1_driver", "glow_runtime",
    "opencl_runtime", "wait",
}
DEVICE_CATS = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_approximate"}
# Activities that are no work: waits of streams, what the tools cost.
OTHER_ACTIVITY_CATS = {"cuda_sync", "cuda_event", "overhead"}
RANGE_CAT = "cuda_profiler_range"  # what was measured, which no call made
# In the order in which the limiting factors are named.
OCCUPANCY_LIMITS = {"blockLimitWarps": "WARPS", "blockLimitRegs": "REGS", "blockLimitSharedMem": "SMEM",
                    "blockLimitBlocks": "BLOCKS", "blockLimitBarriers": "BARRIERS"}
CALL_CATS = {
    "cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver", "mtia_runtime", "privateuse1_runtime",
    "privateuse1_driver", "opencl_runtime",
}
SPAN_CATS = {"cpu_op", "user_annotation"}  # what operators and annotations become
PHASES = {"X", "M", "i", "s", "f", "C", "P"}
# Rows that stand for no thread: the window and its marks.
NO_THREAD_PIDS = {"Spans", "Traces", ""}

TOP_KEYS = {  # key: type, needed of Kineto's own traces too
    "schemaVersion": (int, True),
    "deviceProperties": (list, True),
    "distributedInfo": (dict, False),
    "host_name": (str, False),
    "trace_id": (str, False),
    "displayTimeUnit": (str, False),
    "baseTimeNanoseconds": (int, False),
    "traceName": (str, True),
    "kprof": (dict, False),
    "traceEvents": (list, True),
}
SWITCHES = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")  # not there when off
SOURCE_KEYS = ["fired", "captured", "dropped", "missed", "begins", "ends_exact", "ends_closed",
               "ends_window", "orphan_ends"]
CORRELATION_KEYS = ["activities", "linked", "without_call", "without_op", "before_launch",
                    "before_launch_max_ns", "no_lane", "calls", "calls_matched", "calls_drawn",
                    "calls_crossing", "lost_attributes"]
KPROF_KEYS = {"complete": bool, "sources": dict, "gaps": list, "clock": dict}


class Unreadable(Exception):
    """The file is no trace at all; .rule says in which way."""

    def __init__(self, rule, what):
        super().__init__(what)
        self.rule = rule


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value):
    return is_int(value) or isinstance(value, decimal.Decimal)


def is_exact(us):
    """Three decimals; a fourth if a reader that computes with doubles and cuts, as Perfetto, lost a nanosecond else."""
    three = us.quantize(decimal.Decimal("0.001"), decimal.ROUND_DOWN)
    need = 3 if abs(us) >= 10**12 or int(float(three) * 1000) == to_ns(us) else 4
    return us.as_tuple().exponent == -need and (need == 3 or int(float(us) * 1000) == to_ns(us))


def reject_constant(text):
    raise Unreadable("json", f"{text} is no JSON number")


def unique_keys(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        twice = [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]
        raise Unreadable("json", f"key {twice[0]!r} twice in one object")
    return result


def load(path):
    """(text, trace) of a file; numbers with a point are exact Decimals."""
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise Unreadable("gzip", str(error)) from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable("utf-8", str(error)) from error
    try:
        trace = json.loads(text, parse_float=decimal.Decimal, parse_constant=reject_constant,
                           object_pairs_hook=unique_keys)
    except ValueError as error:
        raise Unreadable("json", str(error)) from error
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise Unreadable("json", "no object with an array traceEvents")
    return text, trace


class Slice:
    """A complete event, its times in nanoseconds from the trace's base."""

    __slots__ = ("name", "cat", "row", "start", "end", "args", "self_ns", "counts",
                 "order", "is_span", "in_report")

    def __init__(self, event):
        self.name = event["name"]
        self.cat = event["cat"]
        self.row = (event.get("pid"), event.get("tid"))
        self.start = to_ns(event["ts"])
        self.end = self.start + to_ns(event["dur"])
        self.args = event.get("args") or {}
        self.self_ns = self.end - self.start
        number = self.args.get("External id", self.args.get("Python id"))
        self.order = number if is_int(number) else 0
        self.counts = True  # towards its name's total: not inside one of the same name whose time counts
        # What reports by operator are made of: of the host, and not only seen by an agent.
        self.is_span = self.cat not in DEVICE_CATS | OTHER_ACTIVITY_CATS | {RANGE_CAT} | \
            {"gpu_user_annotation", "Trace"} and self.args.get("seen by") != "agent"
        self.in_report = self.is_span and self.cat != "python_function"

    def __str__(self):
        return f"{self.name!r} ({self.cat}) {self.start / 1000:.3f}+{(self.end - self.start) / 1000:.3f}"


class Checker(Details):
    def __init__(self, text, trace, kineto=False):
        self.text = text
        self.trace = trace
        self.events = trace["traceEvents"]
        self.kineto = kineto
        self.violations = []
        self.slices = []
        self.window = None

    def bad(self, rule, what):
        self.violations.append((rule, what))

    def run(self, report=None):
        self.top_level()
        self.rank_line()
        if not self.kineto:
            self.kprof_info()
        self.shapes()
        self.rows_known()
        self.find_window()
        self.nesting()
        self.flows()
        self.identifiers()
        if not self.kineto:
            self.edges()
            self.launches()
            self.device_rows()
            self.correlation_counts()
        if report is not None:
            self.against_report(report)
        return self.violations

    # ---- the file -----------------------------------------------------------------------------

    def top_level(self):
        for key, (kind, always) in TOP_KEYS.items():
            if key not in self.trace:
                if always or not self.kineto:
                    self.bad("top-key", f"no {key}")
            elif not isinstance(self.trace[key], kind) or isinstance(self.trace[key], bool):
                self.bad("top-type", f"{key} is a {type(self.trace[key]).__name__}")
        for key in SWITCHES:
            if not is_int(self.trace.get(key, 1)) or self.trace.get(key, 1) != 1:
                self.bad("top-type", f"{key} is {self.trace[key]!r}; what is off is not there")
        if self.trace.get("schemaVersion") != 1:
            self.bad("top-type", "schemaVersion is not 1")
        if list(self.trace)[-1] != "traceEvents":
            self.bad("order", f"{list(self.trace)[-1]} comes after traceEvents")
        base = self.trace.get("baseTimeNanoseconds")
        if not self.kineto and is_int(base) and base % NS_PER_DAY:
            self.bad("base", f"{base} is not the start of a UTC day")

    def rank_line(self):
        """HTA takes the first such line of the file for the rank, whatever it belongs to."""
        found = re.search(r'"rank":\s+(\d+)', self.text)
        info = self.trace.get("distributedInfo")
        if not found:
            self.bad("rank", 'no `"rank": N` with a blank: HTA cannot tell the rank')
        elif not isinstance(info, dict) or info.get("rank") != int(found.group(1)):
            self.bad("rank", "the first rank in the file is not distributedInfo's")
        if not self.kineto and isinstance(info, dict):
            for key, kind in (("backend", str), ("rank", int), ("world_size", int)):
                if not isinstance(info.get(key), kind):
                    self.bad("rank", f"distributedInfo has no {key}")

    def kprof_info(self):
        info = self.trace.get("kprof")
        if not isinstance(info, dict):
            return
        for key, kind in KPROF_KEYS.items():
            if not isinstance(info.get(key), kind):
                self.bad("kprof", f"{key} is missing or no {kind.__name__}")
        share = info.get("exact_end_share", "missing")
        if share is not None and (not is_number(share) or not 0 <= share <= 1):
            self.bad("kprof", f"exact_end_share is {share}")
        sources = info.get("sources")
        for name, source in (sources if isinstance(sources, dict) else {}).items():
            self.accounting(name, source)

    def accounting(self, name, source):
        if not isinstance(source, dict) or not all(is_int(source.get(k)) for k in SOURCE_KEYS):
            self.bad("kprof", f"source {name} lacks counters")
            return
        if source["fired"] != source["captured"] + source["dropped"]:
            self.bad("accounting", f"{name}: fired {source['fired']} is not captured "
                     f"{source['captured']} + dropped {source['dropped']}")
        ends = source["ends_exact"] + source["ends_closed"] + source["ends_window"]
        if source["begins"] != ends:
            self.bad("accounting", f"{name}: {source['begins']} begins, {ends} ends")

    # ---- single events -------------------------------------------------------------------------

    def shapes(self):
        for i, event in enumerate(self.events):
            what = self.shape(event)
            if what:
                self.bad("event", f"event {i}: {what}: {json.dumps(event, default=str)[:200]}")
            elif event["ph"] == "X":
                self.slices.append(Slice(event))

    def shape(self, event):
        """What is wrong with an event so that it cannot be looked at further; None: nothing."""
        if not isinstance(event, dict) or event.get("ph") not in PHASES:
            return "unknown phase"
        if not isinstance(event.get("name"), str):
            return "no name"
        if "ts" in event or event["ph"] != "M":
            if not is_number(event.get("ts")):
                return "ts is no number"
        if not isinstance(event.get("args", {}), dict):
            return "args is no object"
        tid = event.get("tid")
        if is_int(tid) and tid < 0:
            self.bad("tid", f"negative tid {tid}")
        if tid == 0 and not self.kineto and (event["ph"] == "X" or event["name"] == "thread_name"):
            self.bad("tid", f"{event['name']!r} in row 0: Perfetto puts it into the main thread's")
        if event["ph"] == "X":
            return self.complete_shape(event)
        if event["ph"] == "C" and not any(is_number(v) for v in event.get("args", {}).values()):
            return "a counter without a number"
        return None

    def complete_shape(self, event):
        if not isinstance(event.get("cat"), str) or not event["cat"]:
            return "X without cat"
        if not is_number(event.get("dur")):
            return "X without dur"
        if event["dur"] < 0:
            return "negative dur"
        if not self.kineto:
            for key in ("ts", "dur"):
                value = event[key]
                if is_int(value) or not is_exact(value):
                    self.bad("decimals", f"{key} {value} has not three decimals, or four where doubles need them")
        args = event.get("args") or {}
        self.inputs_shape(event["name"], args)
        if event["cat"] in HOST_CATS and is_int(args.get("stream")):
            self.bad("host-stream", f"{event['name']!r} on the host has an integer stream")
        if event["cat"] in DEVICE_CATS:
            self.device_shape(event, args)
        if event["cat"] == "cuda_sync" and not (isinstance(args.get("cuda_sync_kind"), str)
                                                and is_int(args.get("correlation"))):
            self.bad("device", f"{event['name']!r} does not say what it is")
        if event["cat"] == "cuda_event" and not (is_int(args.get("event_id"))
                                                 and is_int(args.get("correlation"))):
            self.bad("device", f"{event['name']!r} does not say which event it is")
        if event["cat"] == RANGE_CAT and not (args.get("stream") == -1 and all(is_number(v) for v in args.values())):
            self.bad("device", f"{event['name']!r} of {args} measures something else than a device")
        return None

    def device_shape(self, event, args):
        for key in ("device", "stream", "correlation"):
            if not is_int(args.get(key)):
                self.bad("device", f"{event['name']!r} has no {key}")
        if is_int(args.get("stream")) and args["stream"] < 1:
            self.bad("device", f"{event['name']!r} on stream {args['stream']}: HTA loses it")
        if "channel" in args and not (is_int(args["channel"]) and is_int(args.get("channel_type"))):
            self.bad("device", f"{event['name']!r} on channel {args['channel']} of no type")
        self.occupancy_shape(event["name"], args.get("occupancy"))

    def occupancy_shape(self, name, occupancy):
        """The blocks that fit are the least of the limits, and the factors name just those limits."""
        if occupancy is None:
            return
        limits = {factor: occupancy.get(key) for key, factor in OCCUPANCY_LIMITS.items()}
        least = min(v for v in limits.values() if v is not None)
        scarce = "|".join(f for f, v in limits.items() if v == least)
        if (occupancy["activeBlocksPerMultiprocessor"], occupancy["limitingFactors"]) != (least, scarce):
            self.bad("device", f"{name!r} has occupancy {occupancy}")

    # ---- rows and the window ---------------------------------------------------------------------

    def rows_known(self):
        processes, threads = set(), set()
        for event in self.events:
            if isinstance(event, dict) and event.get("ph") == "M":
                if event.get("name") == "process_name":
                    processes.add(event.get("pid"))
                elif event.get("name") == "thread_name":
                    threads.add((event.get("pid"), event.get("tid")))
        unknown = Counter(s.row for s in self.slices
                          if s.row[0] not in NO_THREAD_PIDS and s.row not in threads)
        for row, n in unknown.items():
            self.bad("row", f"{n} events on row {row}, which thread_name does not name")
        for pid in sorted({s.row[0] for s in self.slices} - NO_THREAD_PIDS - processes, key=str):
            self.bad("row", f"pid {pid} has no process_name")

    def find_window(self):
        traces = [s for s in self.slices if s.cat == "Trace"]
        ends = [e for e in self.events
                if isinstance(e, dict) and e.get("name") == "Record Window End"]
        if len(traces) != 1 or len(ends) != 1:
            self.bad("window", f"{len(traces)} Trace spans, {len(ends)} ends of the window")
            return
        self.window = traces[0]
        spans = [s for s in self.slices if s.cat != "Trace"]
        if self.kineto:  # its window ends before the device's last event, by design
            return
        if to_ns(ends[0]["ts"]) != self.window.end:
            self.bad("window", "Record Window End is not where the Trace span ends")
        if self.window.args.get("Op count") != len(spans):
            self.bad("window", f"Op count {self.window.args.get('Op count')}, "
                     f"{len(spans)} spans")
        for s in spans:
            if s.start < self.window.start or s.end > self.window.end:
                self.bad("window", f"{s} outside the window {self.window}")
        if self.window.end >= 10**15:
            self.bad("base", "times too far from the base for a double's nanoseconds")

    def nesting(self):
        """Slices on one row must nest. Fills in self times on the way."""
        rows = defaultdict(list)
        for s in self.slices:
            rows[s.row].append(s)
        for slices in rows.values():
            # Of slices that are alike the one that began first is outside: ids are in that order.
            slices.sort(key=lambda s: (s.start, -s.end, s.order))
            stack = []
            for s in slices:
                while stack and stack[-1].end <= s.start:
                    stack.pop()
                if stack and s.end > stack[-1].end:
                    self.bad("nesting", f"{s} on {s.row} leaves {stack[-1]}")
                    continue
                around = [above for above in stack if above.in_report]
                if around and s.in_report:
                    around[-1].self_ns -= s.end - s.start
                s.counts = all(above.name != s.name or above.cat != s.cat or
                               above.args.get("end") == "closed" for above in stack)
                stack.append(s)

    # ---- what events say of each other -------------------------------------------------------------

    def flows(self):
        starts, ends = defaultdict(list), defaultdict(list)
        by_row = defaultdict(list)
        for s in self.slices:
            by_row[s.row].append(s)
        for event in self.events:
            if not isinstance(event, dict) or event.get("ph") not in ("s", "f"):
                continue
            if not is_int(event.get("id")) or not is_number(event.get("ts")):
                self.bad("flow", f"flow without id or ts: {event}")
                continue
            flow = (event.get("cat"), event["id"])
            (starts if event["ph"] == "s" else ends)[flow].append(event)
            at = to_ns(event["ts"])
            if event["ph"] == "f" and event.get("bp") != "e":
                self.bad("flow", f"{flow} ends without bp e")
            elif not any(s.start <= at <= s.end
                         for s in by_row[event.get("pid"), event.get("tid")]):
                self.bad("flow", f"{flow}: no slice where its {event['ph']} is")
        for flow, events in starts.items():
            if len(events) > 1:
                self.bad("flow", f"{flow} starts {len(events)} times")
            if flow not in ends:
                self.bad("flow", f"{flow} never ends")
        for flow in ends.keys() - starts.keys():
            self.bad("flow", f"{flow} never starts")

    def identifiers(self):
        def twice(rule, what, values):
            for value, n in Counter(values).items():
                if n > 1:
                    self.bad(rule, f"{what} {value} {n} times")

        calls = [s.args["correlation"] for s in self.slices
                 if s.cat in CALL_CATS and is_int(s.args.get("correlation"))]
        # The kernels of a CUDA graph share the correlation of its launch.
        device = [s.args["correlation"] for s in self.slices
                  if s.cat in DEVICE_CATS and is_int(s.args.get("correlation"))
                  and not s.args.get("graph id")]
        twice("correlation", "calls of correlation", calls)
        twice("correlation", "device events of correlation", device)
        if not self.kineto:
            spans = [s for s in self.slices if s.cat in SPAN_CATS]
            for s in spans:
                if not is_int(s.args.get("External id")) or s.args["External id"] < 1:
                    self.bad("external-id", f"{s} has none")
            twice("external-id", "External id", (s.args.get("External id") for s in spans))

    # ---- the device ----------------------------------------------------------------------------

    def launches(self):
        """Work is not begun before it is launched, and has an arrow from its launch, and only it."""
        calls = {s.args["correlation"]: s for s in self.slices
                 if s.cat in CALL_CATS and is_int(s.args.get("correlation"))}
        work = defaultdict(list)
        for s in self.slices:
            if s.cat in DEVICE_CATS:
                work[s.row, s.start].append(s)
        ends = Counter()
        for event in self.events:
            if not isinstance(event, dict) or event.get("cat") != "ac2g":
                continue
            if not is_int(event.get("id")) or not is_number(event.get("ts")):
                continue
            at = (event.get("pid"), event.get("tid")), to_ns(event["ts"])
            if event["ph"] == "f":
                ends[event["id"], at] += 1
                if not any(s.args.get("correlation") == event["id"] for s in work[at]):
                    self.bad("launch", f"arrow {event['id']} ends at no work that it launched")
        for (row, start), slices in list(work.items()):
            for s in slices:
                call = calls.get(s.args.get("correlation"))
                # A call that began before the recording is drawn from the recording's begin on.
                if call and start < call.start and call.args.get("started") is not False:
                    self.bad("launch", f"{s} begins {call.start - start} ns before {call}")
                if call and not ends[s.args["correlation"], (row, start)]:
                    self.bad("launch", f"no arrow to {s}")

    def device_rows(self):
        """Work does not overlap on a row, not even nested: annotations alone hold others."""
        rows = defaultdict(list)
        for s in self.slices:
            if s.cat in DEVICE_CATS | OTHER_ACTIVITY_CATS:
                rows[s.row].append(s)
        for row, slices in rows.items():
            slices.sort(key=lambda s: (s.start, s.end))
            for a, b in zip(slices, slices[1:]):
                if b.start < a.end:
                    self.bad("overlap", f"{b} on {row} overlaps {a}")

    def correlation_counts(self):
        info = self.trace.get("kprof")
        counts = info.get("correlation") if isinstance(info, dict) else None
        activities = sum(s.cat in DEVICE_CATS | OTHER_ACTIVITY_CATS for s in self.slices)
        if counts is None:
            if activities:
                self.bad("kprof", f"{activities} activities, and nothing on their correlation")
            return
        if not isinstance(counts, dict) or not all(is_int(counts.get(k)) for k in CORRELATION_KEYS):
            self.bad("kprof", "correlation lacks counters")
            return
        if counts["activities"] != counts["linked"] + counts["without_call"]:
            self.bad("accounting", "activities are not those linked and those without a call")
        if not activities <= counts["activities"] <= activities + counts["no_lane"]:
            self.bad("accounting", f"{counts['activities']} activities, {activities} drawn")
        drawn = sum(s.args.get("seen by") == "agent" for s in self.slices)
        if drawn != counts["calls_drawn"]:
            self.bad("accounting", f"{counts['calls_drawn']} calls drawn by themselves, in fact {drawn}")

    def edges(self):
        for s in self.slices:
            if s.args.get("end", "closed") != "closed":
                self.bad("mark", f"{s} has end {s.args['end']!r}")
            for key in ("finished", "started"):
                if s.args.get(key, False) is not False:
                    self.bad("mark", f"{s} has {key} {s.args[key]!r}")

    # ---- against kprof report ----------------------------------------------------------------------

    def against_report(self, report):
        ours = defaultdict(lambda: [0, 0, 0])
        for s in self.slices:
            if not s.in_report:
                continue
            sums = ours[s.name, s.cat]
            sums[0] += 1
            if s.args.get("end") == "closed":
                continue  # the report has no times of those
            sums[1] += s.end - s.start if s.counts else 0
            sums[2] += s.self_ns
        theirs, memory = {}, self.memory_by_name()
        outside = memory.get(MEMORY_ROW)
        if outside:
            ours[MEMORY_ROW] = [outside[2], 0, 0]  # in no span: a row of their own
        for row in report["rows"]:
            if "self_memory_bytes" in row:
                own = memory.get((row["name"], row["category"]), [0, 0])[:2]
                told = [row["self_memory_bytes"], row["self_device_memory_bytes"]]
                if own != told:
                    self.bad("report", f"{row['name']}: self memory: trace {own}, report {told}")
            theirs[row["name"], row["category"]] = [row["calls"], row["total_ns"], row["self_ns"]]
        for key in sorted(ours.keys() | theirs.keys()):
            a, b = ours.get(key), theirs.get(key)
            if a is None or b is None:
                self.bad("report", f"{key} only in the {'report' if a is None else 'trace'}")
            elif a != b:
                self.bad("report", f"{key}: calls, total, self: trace {a}, report {b}")


def validate(path, kineto=False, report=None):
    """[(rule, what)] of one file."""
    try:
        text, trace = load(path)
    except Unreadable as error:
        return [(error.rule, str(error))], None
    checker = Checker(text, trace, kineto)
    return checker.run(report), checker


def print_result(path, violations, checker):
    shown = Counter()
    for rule, what in violations:
        shown[rule] += 1
        if shown[rule] <= SHOWN_PER_RULE:
            print(f"{path}: {rule}: {what}")
    for rule, n in shown.items():
        if n > SHOWN_PER_RULE:
            print(f"{path}: {rule}: … and {n - SHOWN_PER_RULE} more")
    spans = sum(s.cat != "Trace" for s in checker.slices) if checker else 0
    verdict = "ok" if not violations else \
        "bad: " + ", ".join(f"{n} {rule}" for rule, n in sorted(shown.items()))
    print(f"{path}: {len(checker.events) if checker else 0} events, {spans} spans: {verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kineto", action="store_true", help="a trace that libkineto wrote")
    parser.add_argument("--report", metavar="JSON", help="output of kprof report --json")
    parser.add_argument("--expect", metavar="RULE=N,…", default="",
                        help="faults that the trace is known to have")
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    args = parser.parse_args()
    gc.disable()  # nothing of what is made here goes before the end, and there may be a million objects
    report = None
    if args.report:
        with open(args.report, encoding="utf-8") as file:
            report = json.load(file)
    expected = {}
    for item in filter(None, args.expect.split(",")):
        rule, _, count = item.partition("=")
        expected[rule] = int(count)
    failed = False
    for path in args.traces:
        violations, checker = validate(path, args.kineto, report)
        print_result(path, violations, checker)
        failed |= dict(Counter(rule for rule, _ in violations)) != expected
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
