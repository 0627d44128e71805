# SPDX-License-Identifier: BSD-2-Clause
"""Parts of scripts/gpu-check that hold what kprof says of each operator against torch.profiler in the same run: inputs,
sequence numbers, memory and modules; operators by PyTorch's own callbacks; whole steps. On the CPU where PyTorch has no GPU.

torch.profiler records without its GPU part, since CUPTI allows one user at a time. On a GPU the tests' own workloads follow.
"""

import collections
import json
import os
import signal
import subprocess
import sys

from pytorch import cuda_by_torch, devices_of_torch, training
from report import device_time, links, nothing_dropped, output, same_operators, same_work
from runs import PATIENCE_S, Failed, protocol

TESTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
WORKLOADS, WORKLOAD_STEPS = ("transformer.py", "cnn.py"), "3"
MOST_ITERS = 30  # the judges look at each call, and so does torch.profiler when it stops
STEPS, LAST_STEP_S = 3, 10
COUNTER = "page-faults"
DETAILS = ["--no-agent", "--ring", "256M", "--shapes", "--flow", "--memory", "--modules", "--counters", COUNTER]


def device_of(report, args):
    """cuda; cpu; None: there is no PyTorch, which is said."""
    devices = devices_of_torch(args)
    if not isinstance(devices, int):
        report.skip(f"{args.python} has no PyTorch: {devices}")
        return None
    if not devices or args.device == "cpu":
        report.on_cpu = True
        report.say("**on the CPU**: this says nothing about a GPU")
        return "cpu"
    return "cuda"


def steps_of(args):
    return min(args.iters, MOST_ITERS)


def rounds(args, device, *kinds):
    return training(args, "--device", device, "--iters", str(steps_of(args)), "--linger", "--rounds", ",".join(kinds))


def workload(report, bench, args, what, file, options, of_torch):
    """A name, and kprof's trace and torch.profiler's of a workload of the tests, on the GPU."""
    name = f"{what}-{file.partition('.')[0]}"
    theirs = bench.path(f"{name}-torch", "json")
    command = [args.python, "-W", "ignore", os.path.join(TESTS, "workloads", file), "--device", "cuda", "--linger"]
    target = bench.start(name, [*command, "--iters", WORKLOAD_STEPS, "--profile", theirs, *of_torch])
    _, trace, words = bench.attach(name, target, options)
    target.end()
    not_said(report, name, words)
    nothing_dropped(report, name, trace)
    return name, bench.path(name, "trace.json"), theirs


def judged(report, what, judge, *arguments):
    """A judge of tests/lib, whose exit status says whether it held."""
    command = [sys.executable, os.path.join(TESTS, "lib", judge), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        report.check(False, f"{what}: {judge} does not end")
        return
    report.check(done.returncode == 0, f"{what}, by {judge}")
    report.block("\n".join((done.stdout + done.stderr).splitlines()[-12:]) or "-")


def table_of(bench, name, *options):
    """What report has of a capture."""
    command = [bench.kprof, "report", bench.path(name, "kprof"), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode:
        raise Failed(f"report {' '.join(options)}: {done.stderr}")
    return json.loads(done.stdout)


def marked_window(path):
    """The rows of a thread that begin and end in the window that the workload marks, and the marks' own process."""
    with open(path) as f:
        rows = [e for e in json.load(f)["traceEvents"] if e.get("ph") == "X" and e.get("cat") != "Trace"]
    begin = [e["ts"] + e["dur"] for e in rows if e["name"] == protocol.WINDOW_BEGIN]
    end = [e["ts"] for e in rows if e["name"] == protocol.WINDOW_END]
    if not begin or not end:
        raise Failed("the window's marks are missing in kprof's trace")
    return [e for e in rows if max(begin) <= e["ts"] and e["ts"] + e["dur"] <= min(end)]


def modules(report, bench, name, rows, result):
    """Each module of the model is called once in each step."""
    seen = collections.Counter()
    for e in rows:
        if e["name"].startswith("nn.Module: "):
            kind, _, number = e["name"].removeprefix("nn.Module: ").rpartition("_")
            seen[kind, e["args"].get("Module path", ""), number] += 1
    calls, names = collections.Counter(), set()
    for (kind, path, number), nr in seen.items():
        calls[kind, path] += nr
        names.add((kind, number))
    expected = {(kind, path): result["iters"] for path, kind in result["modules"].items()}
    wrong = [f"{kind} {path}: {calls[kind, path]}, not {expected.get((kind, path), 0)}"
             for kind, path in sorted({*calls, *expected}) if calls[kind, path] != expected.get((kind, path), 0)]
    report.check(not wrong, f"{name}: {len(expected)} modules, each called {result['iters']} times;", *wrong[:8])
    report.check(len(names) == len(seen) == len(expected), f"{name}: each module has one name of its own: {len(names)}")
    told = {row["category"]: row["calls"] for row in table_of(bench, name, "--by", "module")["rows"]}
    lacking = [f"{kind}_{number}" for kind, number in names if told.get(f"{kind}_{number}", 0) < result["iters"]]
    report.check(told and not lacking, f"{name}: report --by module has them;", *lacking[:4])


def counters(report, name, rows):
    """Each call whose end was seen has its number."""
    whole = [e for e in rows if e["cat"] == "cpu_op" and "end" not in e["args"]]
    counted = sum(isinstance(e["args"].get(COUNTER), int) for e in whole)
    report.check(whole and counted == len(whole), f"{name}: of {len(whole)} operators {counted} have their {COUNTER}")


def not_said(report, what, words):
    """Whatever kprof says that it could not learn from this build."""
    telling = [line for line in words.splitlines() if any(w in line for w in ("could not", "no shapes", "no sequence", "warning"))]
    report.block("\n".join(telling[:12]) or f"{what}: kprof has no warnings")


def same_details(report, name, ours, theirs):
    judged(report, f"{name}: inputs", "compare_inputs.py", ours, theirs)
    judged(report, f"{name}: sequence numbers and arrows", "compare_sequences.py", ours, theirs)
    judged(report, f"{name}: allocations and frees", "compare_allocations.py", ours, theirs)


def details(report, bench, args):
    report.section("Inputs, sequence numbers, memory, modules and counters, and torch.profiler, in one run")
    device = device_of(report, args)
    if not device:
        return
    name, theirs = "details", bench.path("details-torch", "json")
    target = bench.start(name, rounds(args, device, f"detailed={theirs}", "plain", "plain"))
    result, trace, words = bench.attach(name, target, DETAILS)
    report.say(f"PyTorch {result['torch']} on {result['device']}, {result['iters']} steps")
    not_said(report, name, words)
    ours = bench.path(name, "trace.json")
    same_details(report, name, ours, theirs)
    rows = marked_window(ours)
    modules(report, bench, name, rows, result)
    counters(report, name, rows)
    nothing_dropped(report, name, trace)
    told = report.figures[name] = {key: trace.meta["meta"].get(key) or {} for key in ("inputs", "flow", "memory", "modules")}
    report.check(told["flow"].get("nodes"), f"{name}: autograd nodes have their numbers")  # of those only here no judge knows
    for table in ("memory", "module"):
        status, text = output(bench.kprof, "report", bench.path(name, "kprof"), "--by", table, "--limit", "6")
        report.check(status == 0, f"{name}: report --by {table}")
        report.block(text)
    whole_steps(report, bench, target)
    target.end()
    for each in WORKLOADS if device == "cuda" and not report.over() else ():
        same_details(report, *workload(report, bench, args, name, each, DETAILS, ["--shapes", "--memory"]))


def whole_steps(report, bench, target):
    """In two plain rounds kprof ends by itself, after so many steps of the optimizer; in each the model is called once."""
    kprof = bench.recorder("steps", target, ["--no-agent", "--steps", str(STEPS)])
    for nr in (2, 3):
        target.go()
        result = target.result(nr)
    # The steps are over. If it has not seen them, it would wait for others.
    try:
        kprof.process.wait(LAST_STEP_S)
        kprof.end()
    except subprocess.TimeoutExpired:
        kprof.end(stop=signal.SIGINT)
        report.check(False, f"--steps {STEPS}: kprof did not end by itself in {2 * result['iters']} steps")
    rows = table_of(bench, "steps", "--by", "step")["rows"]
    inexact = sum(row["inexact"] for row in rows)
    calls = [sum(op["calls"] for op in table_of(bench, "steps", "--step", str(i))["rows"] if op["name"] == "aten::conv2d")
             for i in range(len(rows))]
    convolutions = sum(kind == "Conv2d" for kind in result["modules"].values())
    report.check(
        len(rows) == STEPS and not inexact and calls == [convolutions] * STEPS,
        f"--steps {STEPS}: {len(rows)} steps, {inexact} of them not whole, with {calls} calls of aten::conv2d",
    )


def same_calls(report, name, ours, theirs):
    """What probes see of a device's calls is only here."""
    judged(report, f"{name}: calls, and who called whom", "compare_profiler.py", "--exact", "--without-device-calls", ours, theirs)


def observed(report, name, trace):
    """All by callbacks, and each end seen."""
    sources = trace.meta.get("sources", {})
    seen = sources.get("observer", {"begins": 0, "ends_closed": 0})
    report.check("operators" not in sources and seen["begins"], f"{name}: {seen['begins']} calls observed, no probes on operators")
    report.check(not seen["ends_closed"], f"{name}: {seen['ends_closed']} of them ended by others")


def as_on_a_gpu(report, bench, args, target):
    """The first round: with what the device does, against an equal run by torch.profiler."""
    other = cuda_by_torch(bench, args)
    _, trace, _ = bench.attach("observer-cuda", target, ["--observer"])
    name = "observer, with the device"
    observed(report, name, trace)
    links(report, name, trace)
    same_work(report, name, trace, other.names(), other.copies())
    same_operators(report, name, trace, other)
    device_time(report, name, [trace.total_us()], [other.total_us()])


def observer(report, bench, args):
    report.section("Operators by PyTorch's own callbacks (--observer)")
    device = device_of(report, args)
    if not device:
        return
    theirs = bench.path("observer-torch", "json")
    command, nr = rounds(args, device, f"calls={theirs}"), 1
    if device == "cuda":  # with as many steps as the run by torch.profiler; this one uses it last, since it may keep CUPTI
        command, nr = training(args, "--device", device, "--linger", "--rounds", f"plain,calls={theirs}"), 2
    target = bench.start("observer", command)
    if device == "cuda":
        as_on_a_gpu(report, bench, args, target)
    result, trace, words = bench.attach("observer", target, ["--observer"], nr=nr)
    target.end()
    report.say(f"PyTorch {result['torch']} on {result['device']}, {result['iters']} steps")
    not_said(report, "observer", words)
    same_calls(report, "observer", bench.path("observer", "trace.json"), theirs)
    observed(report, "observer", trace)
    nothing_dropped(report, "observer", trace)
    for each in WORKLOADS if device == "cuda" and not report.over() else ():
        same_calls(report, *workload(report, bench, args, "observer", each, ["--observer"], []))
