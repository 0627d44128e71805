# SPDX-License-Identifier: BSD-2-Clause
"""Parts of scripts/gpu-check that look at what operators say beyond their times, and at the observer.

The workloads and the judges are those of the tests: torch.profiler records the same run, without its GPU part, since CUPTI
allows one user at a time.
"""

import json
import os

from pytorch import able, training
from report import device_time, links, output, same_operators, same_work
from runs import Trace

HERE = os.path.dirname(os.path.realpath(__file__))
TESTS = os.path.dirname(HERE)
WORKLOADS = ("transformer.py", "cnn.py")
STEPS = "3"
MARKS = ("kprof test: window begin", "kprof test: window end")  # tests/workloads/protocol.py
CPU = 0


def workload(args, name, out, *options):
    command = [args.python, "-W", "ignore", os.path.join(TESTS, "workloads", name)]
    return [*command, "--iters", STEPS, "--device", args.device, "--profile", out, *options]


def judged(report, args, what, judge, *files):
    """What a judge of the tests says: nothing differs?"""
    status, text = output(args.python, os.path.join(TESTS, "lib", judge), *files)
    report.check(status == 0, f"{what}, by tests/lib/{judge}")
    report.block("\n".join(line[:200] for line in text.strip().splitlines()[:12]) or "-")


def memory(path):
    """What [memory] rows of a trace say of devices other than the CPU, in the marked window."""
    with open(path) as f:
        events = json.load(f)["traceEvents"]
    begin, end = (next(e["ts"] for e in events if e.get("name") == mark and e.get("ph") == "X") for mark in MARKS)
    rows = [e for e in events if e.get("name") == "[memory]" and begin <= e["ts"] <= end]
    keys = ("Device Type", "Device Id", "Addr", "Bytes", "Total Allocated", "Total Reserved")
    rows.sort(key=lambda e: e["ts"])
    return [tuple(int(e["args"][k]) for k in keys) for e in rows if int(e["args"]["Device Type"]) != CPU]


def same_memory(report, what, ours, theirs):
    wrong = [f"{a} not {b}" for a, b in zip(ours, theirs) if a != b]
    report.check(
        ours == theirs and ours,
        f"{what}: {len(ours)} allocations and frees on devices, {len(theirs)} in torch.profiler, each with its sums;",
        *wrong[:3],
    )


def details(report, bench, args):
    report.section("What operators say beyond their times: shapes, sequence numbers, memory, modules")
    args.device = "cuda" if able(report, args) else None
    if not args.device:
        return
    options = ["--no-agent", "--shapes", "--flow", "--memory", "--modules", "--ring", "256M"]
    for name in WORKLOADS:
        what = f"details-{name.partition('.')[0]}"
        out = bench.path(f"{what}-torch", "json")
        target = bench.start(what, [*workload(args, name, out, "--shapes", "--memory"), "--linger"])
        _, _, words = bench.attach(what, target, options)
        target.end()
        report.block("\n".join(line for line in words.splitlines() if "hint" in line or "not" in line) or "(no warning)")
        ours = bench.path(what, "trace.json")
        judged(report, args, f"{name}: inputs", "compare_inputs.py", ours, out)
        judged(report, args, f"{name}: sequence numbers", "compare_sequences.py", ours, out)
        same_memory(report, name, memory(ours), memory(out))
        for table in ("memory", "module"):
            status, text = output(bench.kprof, "report", bench.path(what, "kprof"), "--by", table, "--limit", "6")
            report.check(status == 0, f"{name}: report --by {table}")
            report.block(text)


def observer(report, bench, args):
    report.section("PyTorch's own callbacks (--observer)")
    args.device = "cuda" if able(report, args) else None
    if not args.device:
        return
    for name in WORKLOADS:
        what = f"observer-{name.partition('.')[0]}"
        out = bench.path(f"{what}-torch", "json")
        target = bench.start(what, [*workload(args, name, out), "--linger"])
        bench.attach(what, target, ["--observer"])
        target.end()
        judged(report, args, f"{name}: operators", "compare_profiler.py", "--exact", bench.path(what, "trace.json"), out)
    out = bench.path("observer-torch", "json")
    bench.alone("observer-torch", training(args, "--rounds", f"profile={out}"))
    theirs = Trace(out)
    _, ours, _ = bench.by_attach("observer-train", training(args), ["--observer"])
    links(report, "observer", ours)
    same_work(report, "observer", ours, theirs.names(), theirs.copies())
    same_operators(report, "observer", ours, theirs)
    device_time(report, "observer", [ours.total_us()], [theirs.total_us()])
