#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The validator must find what is wrong: a good trace, broken in every way that matters."""

import gzip
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import validate_trace  # noqa: E402

PID, TID = 4242, 4243


class Us(float):
    """Microseconds that json writes with three decimals, as kprof does where doubles are right about them."""

    def __repr__(self):
        return f"{float(self):.3f}"


class Us4(float):
    """Microseconds with four decimals."""

    def __repr__(self):
        return f"{float(self):.4f}"


def dumps(trace):
    """JSON with Us values exact: json's encoder would drop trailing zeros."""
    marks = []

    def mark(value):
        if isinstance(value, (Us, Us4)):
            marks.append(repr(value))
            return f"@{len(marks) - 1}@"
        if isinstance(value, dict):
            return {key: mark(item) for key, item in value.items()}
        if isinstance(value, list):
            return [mark(item) for item in value]
        return value

    text = json.dumps(mark(trace))
    for i, exact in enumerate(marks):
        text = text.replace(f'"@{i}@"', exact)
    return text


def span(number, name, start, dur, cat="cpu_op", **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": PID, "tid": TID, "ts": Us(start),
            "dur": Us(dur), "args": {"External id": number, "Ev Idx": number - 1, **args}}


def metadata(name, arg, value, tid=0):
    return {"ph": "M", "name": name, "ts": Us(100), "pid": PID, "tid": tid, "args": {arg: value}}


def good_trace():
    source = {"fired": 8, "captured": 7, "dropped": 1, "missed": 0, "begins": 4, "ends_exact": 3,
              "ends_closed": 1, "ends_window": 0, "orphan_ends": 0}
    return {
        "schemaVersion": 1,
        "deviceProperties": [],
        "distributedInfo": {"backend": "", "rank": 0, "world_size": 1},
        "host_name": "host",
        "trace_id": "0" * 32,
        "with_stack": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 20_000 * validate_trace.NS_PER_DAY,
        "traceName": "trace.json",
        "kprof": {"version": "0.1.0", "complete": True, "sources": {"operators": source},
                  "exact_end_share": Us(0.75), "gaps": [], "clock": {}},
        "traceEvents": [
            metadata("process_name", "name", "python3"),
            metadata("thread_name", "name", "thread 4243 (python3)", TID),
            span(2, "aten::mm", 210, 30.5),
            span(3, "aten::add", 240.5, 9.5, end="closed"),
            span(1, "aten::linear", 200, 50.001),
            span(4, "aten::mm", 300, 0),
            {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",
             "tid": "PyTorch Profiler", "ts": Us(100), "dur": Us(900), "args": {"Op count": 4}},
            {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "",
             "ts": Us(1000)},
        ],
    }


GOOD_REPORT = {"rows": [
    {"name": "aten::linear", "category": "cpu_op", "calls": 1, "total_ns": 50001, "self_ns": 10001},
    {"name": "aten::mm", "category": "cpu_op", "calls": 2, "total_ns": 30500, "self_ns": 30500},
    # Closed by the next event: counted, but without a time.
    {"name": "aten::add", "category": "cpu_op", "calls": 1, "total_ns": 0, "self_ns": 0},
]}


def event(trace, name):
    return next(e for e in trace["traceEvents"] if e["name"] == name)


def set_in(name, key, value):
    return lambda t: event(t, name).__setitem__(key, value)


def set_arg(name, key, value):
    return lambda t: event(t, name)["args"].__setitem__(key, value)


def drop_from(name, key):
    return lambda t: event(t, name).pop(key)


def remove(name):
    return lambda t: t["traceEvents"].remove(event(t, name))


def append(*events):
    return lambda t: t["traceEvents"].extend(events)


def trace_name_last(t):
    t["traceName"] = t.pop("traceName")


def flow(phase, number, at, **more):
    return {"ph": phase, "cat": "ac2g", "name": "ac2g", "id": number, "pid": PID, "tid": TID,
            "ts": Us(at), **more}


def call(correlation, start):
    return {**span(1, "cudaLaunchKernel", start, 1, "cuda_runtime", correlation=correlation)}


def kernel(**args):
    return {**span(1, "kernel", 400, 1, "kernel"),
            "args": {"device": 0, "stream": 7, "correlation": 1, **args}}


# What is done to a good trace: the rule that must complain.
MUTATIONS = {
    "traceEvents not last": (trace_name_last, "order"),
    "no schemaVersion": (lambda t: t.pop("schemaVersion"), "top-key"),
    "no host_name": (lambda t: t.pop("host_name"), "top-key"),
    "deviceProperties an object": (lambda t: t.update(deviceProperties={}), "top-type"),
    "with_stack a bool": (lambda t: t.update(with_stack=True), "top-type"),
    "a switch that is off": (lambda t: t.update(with_flops=0), "top-type"),
    "base not a day": (lambda t: t.update(baseTimeNanoseconds=1), "base"),
    "no rank": (lambda t: t["distributedInfo"].pop("rank"), "rank"),
    "another rank before": (lambda t: (t.update(user={"rank": 5}),
                                       t.update({k: t.pop(k) for k in list(t) if k != "user"})),
                            "rank"),
    "no kprof.sources": (lambda t: t["kprof"].pop("sources"), "kprof"),
    "share above 1": (lambda t: t["kprof"].update(exact_end_share=2), "kprof"),
    "events lost silently": (lambda t: t["kprof"]["sources"]["operators"].update(fired=9),
                             "accounting"),
    "ends lost silently": (lambda t: t["kprof"]["sources"]["operators"].update(ends_exact=2),
                           "accounting"),
    "a counter missing": (lambda t: t["kprof"]["sources"]["operators"].pop("missed"), "kprof"),
    "unknown phase": (set_in("aten::add", "ph", "Q"), "event"),
    "no name": (drop_from("aten::add", "name"), "event"),
    "no cat": (drop_from("aten::add", "cat"), "event"),
    "no dur": (drop_from("aten::add", "dur"), "event"),
    "negative dur": (set_in("aten::add", "dur", Us(-1)), "event"),
    "quoted ts": (set_in("aten::add", "ts", "240.500"), "event"),
    "args a list": (set_in("aten::add", "args", []), "event"),
    "whole microseconds": (set_in("aten::add", "ts", 241), "decimals"),
    "a fourth decimal for nothing": (set_in("aten::add", "dur", Us4(9.5002)), "decimals"),
    "a nanosecond less in doubles": (set_in("aten::add", "dur", Us(8.008)), "decimals"),
    "a fourth decimal that does not help": (set_in("aten::add", "dur", Us4(8.008)), "decimals"),
    "negative tid": (set_in("aten::add", "tid", -1), "tid"),
    "stream on the host": (set_arg("aten::add", "stream", 7), "host-stream"),
    "no process_name": (remove("process_name"), "row"),
    "no thread_name": (remove("thread_name"), "row"),
    "span on an unknown thread": (set_in("aten::add", "tid", 9), "row"),
    "no window": (remove("PyTorch Profiler (0)"), "window"),
    "no end of the window": (remove("Record Window End"), "window"),
    "end of the window elsewhere": (set_in("Record Window End", "ts", Us(999)), "window"),
    "wrong number of spans": (remove("aten::add"), "window"),
    "span before the window": (set_in("aten::linear", "ts", Us(50)), "window"),
    "span after the window": (set_in("aten::linear", "dur", Us(900)), "window"),
    "child leaves its parent": (set_in("aten::add", "dur", Us(9.502)), "nesting"),
    "siblings overlap": (set_in("aten::add", "ts", Us(240.4)), "nesting"),
    "External id twice": (set_arg("aten::add", "External id", 1), "external-id"),
    "no External id": (lambda t: event(t, "aten::add")["args"].pop("External id"), "external-id"),
    "unknown mark": (set_arg("aten::add", "end", "open"), "mark"),
    "finished but said": (set_arg("aten::add", "finished", True), "mark"),
    "correlation twice": (append(call(7, 400), call(7, 410)), "correlation"),
    "flow without end": (append(flow("s", 1, 205)), "flow"),
    "flow without start": (append(flow("f", 1, 205, bp="e")), "flow"),
    "flow starts twice": (append(flow("s", 1, 205), flow("s", 1, 206), flow("f", 1, 207, bp="e")),
                          "flow"),
    "flow from nowhere": (append(flow("s", 1, 290), flow("f", 1, 205, bp="e")), "flow"),
    "flow end without bp": (append(flow("s", 1, 205), flow("f", 1, 206)), "flow"),
    "kernel on stream 0": (append(kernel(stream=0)), "device"),
    "kernel without device": (append(kernel(device=None)), "device"),
}

def device_row(cat, name, start, dur, tid=7, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": Us(start),
            "dur": Us(dur), "args": {"device": 0, "context": 1, "stream": 7, **args}}


def device_trace():
    """The same, and a call in aten::linear that launched a graph of two kernels; a copy of nobody's."""
    trace = good_trace()
    events = trace["traceEvents"]
    events[2:2] = [
        {**metadata("process_name", "name", "python3"), "pid": 0},
        *({**metadata("thread_name", "name", "stream 7 ", tid), "pid": 0} for tid in (7, 1007, 64007, 2**30 + 128)),
        {**call(5, 202), "dur": Us(3)},
        flow("s", 5, 202),
        device_row("kernel", "k1", 400, 10, correlation=5, channel=8, channel_type=1, occupancy={
            "activeBlocksPerMultiprocessor": 4, "limitingFactors": "WARPS|SMEM", "blockLimitRegs": 5,
            "blockLimitSharedMem": 4, "blockLimitWarps": 4, "blockLimitBlocks": 32}, **{"graph id": 1}),
        {**flow("f", 5, 400, bp="e"), "pid": 0, "tid": 7},
        device_row("kernel", "k2", 405, 10, 1007, correlation=5, **{"graph id": 1}),
        {**flow("f", 5, 405, bp="e"), "pid": 0, "tid": 1007},
        device_row("gpu_memcpy", "Memcpy DtoH", 500, 10, correlation=2**52),
        device_row("cuda_sync", "Stream Sync", 400, 20, 64007, correlation=6,
                   cuda_sync_kind="Stream Sync"),
        device_row("cuda_event", "cudaEvent", 430, 0, 64007, correlation=7, event_id=3),
        device_row("cuda_profiler_range", "__profile__", 400, 40, 2**30 + 128, stream=-1, **{"sm__inst_executed.sum": 1000}),
        {"ph": "C", "name": "Queue depth", "pid": 0, "tid": 0, "ts": Us(400), "args": {"value": 2}},
    ]
    event(trace, "PyTorch Profiler (0)")["args"]["Op count"] = 11
    trace["kprof"]["correlation"] = {
        "activities": 5, "linked": 4, "without_call": 1, "without_op": 0, "before_launch": 0,
        "before_launch_max_ns": 0, "no_lane": 0, "calls": 2, "calls_matched": 2, "calls_drawn": 0,
        "calls_crossing": 0, "lost_attributes": 0}
    return trace


def set_count(key, value):
    return lambda t: t["kprof"]["correlation"].__setitem__(key, value)


def drop_flow(phase, at):
    return lambda t: t["traceEvents"].remove(
        next(e for e in t["traceEvents"] if e["ph"] == phase and e["ts"] == at))


# The same for a trace with a device.
DEVICE_MUTATIONS = {
    "kernel before its launch": (set_in("k1", "ts", Us(201.999)), "launch"),
    "no arrow to a kernel": (drop_flow("f", 405), "launch"),
    "no arrow at all": (lambda t: [drop_flow(*which)(t) for which in
                                   (("s", 202), ("f", 400), ("f", 405))], "launch"),
    "an arrow to a wait": (append({**flow("f", 5, 401, bp="e"), "pid": 0, "tid": 64007}), "launch"),
    "an arrow to other work": (append({**flow("f", 5, 500, bp="e"), "pid": 0, "tid": 7}), "launch"),
    "kernels overlap": (set_in("k2", "tid", 7), "overlap"),
    "a wait among the work": (set_in("Stream Sync", "tid", 7), "overlap"),
    "which event": (lambda t: event(t, "cudaEvent")["args"].pop("event_id"), "device"),
    "a channel of no type": (lambda t: event(t, "k1")["args"].pop("channel_type"), "device"),
    "more blocks than fit": (lambda t: event(t, "k1")["args"]["occupancy"].__setitem__(
        "activeBlocksPerMultiprocessor", 5), "device"),
    "another factor": (lambda t: event(t, "k1")["args"]["occupancy"].__setitem__(
        "limitingFactors", "REGS"), "device"),
    "a value that is none": (lambda t: event(t, "__profile__")["args"].__setitem__("sm__inst_executed.sum", None), "device"),
    "a wait for what": (lambda t: event(t, "Stream Sync")["args"].pop("cuda_sync_kind"), "device"),
    "work in row 0": (set_in("k2", "tid", 0), "tid"),
    "a stream without a name": (set_in("k2", "tid", 2007), "row"),
    "a counter of nothing": (set_in("Queue depth", "args", {"value": "2"}), "event"),
    "no correlation": (lambda t: t["kprof"].pop("correlation"), "kprof"),
    "a count missing": (lambda t: t["kprof"]["correlation"].pop("no_lane"), "kprof"),
    "an activity lost": (remove("Memcpy DtoH"), "accounting"),
    "linked and lost": (set_count("linked", 5), "accounting"),
    "a call drawn": (set_count("calls_drawn", 1), "accounting"),
    "a call not only seen by probes": (set_arg("cudaLaunchKernel", "seen by", "agent"),
                                       "accounting"),
}

# What is done to the text: the rule that must complain.
TEXT_MUTATIONS = {
    "minified": (lambda b: b.replace(b'"rank": 0', b'"rank":0'), "rank"),
    "cut off": (lambda b: b[:-10], "json"),
    "bad UTF-8": (lambda b: b.replace(b"aten::add", b"aten::\xff"), "utf-8"),
    "overlong UTF-8": (lambda b: b.replace(b"aten::add", b"aten::\xc0\xaf"), "utf-8"),
    "control character": (lambda b: b.replace(b"aten::add", b"aten::\x01"), "json"),
    "quote in a name": (lambda b: b.replace(b"aten::add", b'aten::"'), "json"),
    "a key twice": (lambda b: b.replace(b'"cat": "cpu_op"', b'"cat": "x", "cat": "y"'), "json"),
    "NaN": (lambda b: b.replace(b"240.500", b"NaN"), "json"),
    "no object": (lambda b: b"[" + b + b"]", "json"),
}


def rules_of(data, report=None, suffix=".json", kineto=False):
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(data)
        file.flush()
        violations, _ = validate_trace.validate(file.name, kineto, report)
    return {rule for rule, _ in violations}


class ValidatorTest(unittest.TestCase):
    def test_good(self):
        data = dumps(good_trace()).encode()
        self.assertEqual(rules_of(data, GOOD_REPORT), set())
        self.assertEqual(rules_of(data, kineto=True), set())
        self.assertEqual(rules_of(gzip.compress(data), suffix=".json.gz"), set())

    def test_mutations(self):
        for what, (mutate, rule) in MUTATIONS.items():
            with self.subTest(what):
                trace = good_trace()
                mutate(trace)
                self.assertIn(rule, rules_of(dumps(trace).encode()))

    def test_device(self):
        data = dumps(device_trace()).encode()
        self.assertEqual(rules_of(data), set())
        report = json.loads(json.dumps(GOOD_REPORT))
        report["rows"][0]["self_ns"] -= 3000
        report["rows"].append({"name": "cudaLaunchKernel", "category": "cuda_runtime", "calls": 1,
                               "total_ns": 3000, "self_ns": 3000})
        self.assertEqual(rules_of(data, report), set())  # devices are in other tables

    def test_call_begun_before_the_recording(self):
        trace = device_trace()
        call = next(e for e in trace["traceEvents"] if e["ph"] == "X" and e["args"].get("correlation") == 5)
        set_in("k1", "ts", Us(201.999))(trace)
        next(e for e in trace["traceEvents"] if e["ph"] == "f" and e["ts"] == 400)["ts"] = Us(201.999)
        self.assertEqual(rules_of(dumps(trace).encode()), {"launch"})
        call["args"]["started"] = False
        self.assertEqual(rules_of(dumps(trace).encode()), set())

    def test_device_mutations(self):
        for what, (mutate, rule) in DEVICE_MUTATIONS.items():
            with self.subTest(what):
                trace = device_trace()
                mutate(trace)
                self.assertIn(rule, rules_of(dumps(trace).encode()))

    def test_text_mutations(self):
        data = dumps(good_trace()).encode()
        for what, (mutate, rule) in TEXT_MUTATIONS.items():
            with self.subTest(what):
                self.assertNotEqual(mutate(data), data)
                self.assertIn(rule, rules_of(mutate(data)))

    def test_gzip_cut(self):
        data = gzip.compress(dumps(good_trace()).encode())
        self.assertEqual(rules_of(data[:-5], suffix=".json.gz"), {"gzip"})

    def test_report(self):
        data = dumps(good_trace()).encode()
        for key in ("calls", "total_ns", "self_ns"):
            report = json.loads(json.dumps(GOOD_REPORT))
            report["rows"][1][key] += 1
            self.assertEqual(rules_of(data, report), {"report"}, key)
        fewer = {"rows": GOOD_REPORT["rows"][1:]}
        self.assertEqual(rules_of(data, fewer), {"report"})
        more = {"rows": GOOD_REPORT["rows"] + [{**GOOD_REPORT["rows"][0], "name": "other"}]}
        self.assertEqual(rules_of(data, more), {"report"})

    def test_recursion_counts_once(self):
        trace = good_trace()
        event(trace, "aten::linear")["name"] = "aten::mm"
        rows = [{"name": "aten::mm", "category": "cpu_op", "calls": 3, "total_ns": 50001,
                 "self_ns": 40501}, GOOD_REPORT["rows"][2]]
        self.assertEqual(rules_of(dumps(trace).encode(), {"rows": rows}), set())


if __name__ == "__main__":
    unittest.main()
