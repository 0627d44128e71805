# SPDX-License-Identifier: BSD-2-Clause
"""Parts of scripts/gpu-check that record PyTorch, and hold kprof against torch.profiler."""

import os
import signal

from report import cost, device_time, difference, links, output, same_operators, same_work
from runs import Trace, median

HERE = os.path.dirname(os.path.realpath(__file__))
ANOTHER_TOOL = "another tool"
COST_ITERS = 6  # times as many steps: what kprof learns in the first hundred milliseconds is not to count much


def training(args, *options):
    return [args.python, os.path.join(HERE, "train.py"), "--iters", str(args.iters), *options]


def devices_of_torch(args):
    """How many GPUs PyTorch can use; a text: why there is no PyTorch."""
    if args.torch is None:
        status, text = output(args.python, "-c", "import torch; print('devices', torch.cuda.device_count())")
        words = text.strip().splitlines() or ["it says nothing"]
        args.torch = int(words[-1].split()[1]) if status == 0 and words[-1].startswith("devices ") else words[-1]
    return args.torch


def able(report, args):
    """Is there a PyTorch that can use the GPU? Else the part is skipped."""
    devices = devices_of_torch(args)
    if isinstance(devices, int) and devices > 0:
        return True
    report.skip(f"{args.python} has no PyTorch that can use a GPU: {devices}")
    return False


def cuda_by_torch(bench, args, i=0):
    """torch.profiler's trace of the ith run by itself, which is made once."""
    out = bench.path(f"torch{i}", "json")
    if out not in args.traces:
        bench.alone(f"torch{i}", training(args, "--rounds", f"profile={out}"))
        args.traces[out] = Trace(out)
    return args.traces[out]


def pytorch(report, bench, args):
    report.section("A PyTorch training loop")
    if not able(report, args):
        return
    theirs, ours = [], []
    for i in range(args.repeats):
        if i and report.over():
            break
        theirs.append(cuda_by_torch(bench, args, i))
        result, trace, _ = bench.by_attach(f"train-attach{i}", training(args))
        ours.append(trace)
    report.say(f"PyTorch {result['torch']} on {result['device']}, {args.iters} steps, {len(ours)} runs of each")
    links(report, "attach", ours[0])
    same_work(report, "attach", ours[0], theirs[0].names(), theirs[0].copies())
    same_operators(report, "attach", ours[0], theirs[0])
    device_time(report, "attach", [t.total_us() for t in ours], [t.total_us() for t in theirs])
    _, trace, _ = bench.by_run("train-run", training(args))
    links(report, "run", trace)
    same_work(report, "run", trace, theirs[0].names(), theirs[0].copies())
    same_operators(report, "run", trace, theirs[0])


class Rounds:
    """The rounds of a training loop that have been, and how long those took in which nothing recorded."""

    def __init__(self, target):
        self.target, self.nr, self.alone_ns = target, 0, []

    def skip(self):
        """The number of the next, which somebody else begins."""
        self.nr += 1
        return self.nr

    def next(self):
        self.target.go()
        return self.target.result(self.skip())["loop_ns"]

    def alone(self):
        self.alone_ns.append(self.next())
        return self.alone_ns[-1]


def overhead(report, bench, args):
    """In one process, each way just after a run alone; torch.profiler last, since it keeps CUPTI."""
    report.section("What it costs")
    if not able(report, args):
        return
    steps = args.iters * COST_ITERS
    out = bench.path("cost-torch", "json")
    # Without the agent first: it is loaded once and for all.
    ours = (("kprof --no-agent", ["--no-agent"]), ("kprof", []), ("kprof --observer", ["--observer"]))
    pairs = ["plain", "plain"] * (len(ours) * args.repeats) + ["plain", f"profile={out}"] * args.repeats
    command = [args.python, os.path.join(HERE, "train.py"), "--iters", str(steps), "--rounds", ",".join(["plain", *pairs])]
    target = bench.start("cost", command)
    rounds = Rounds(target)
    rounds.next()  # the first is slower
    for name, options in (*ours, ("torch.profiler", None)):
        ratios, shares = [], []
        for _ in range(args.repeats):
            if ratios and report.over():
                break
            alone = rounds.alone()
            if options is None:
                ratios.append(rounds.next() / alone)
                continue
            result, trace, _ = bench.attach("cost", target, options, nr=rounds.skip())
            ratios.append(result["loop_ns"] / alone)
            shares.append(cost(trace))
        each = ", ".join(f"{v:.2f}" for v in ratios)
        report.say(f"{name}: {median(ratios):.3f} of the time alone, just before it ({each})")
        report.figures[f"time with {name} / alone"] = ratios
        report.figures[f"shares of the CPU time, by {name}"] = shares
        if len(ratios) < args.repeats:
            report.say(f"left out, for want of time: {args.repeats - len(ratios)} runs of that, and what comes after")
            target.kill()
            return
    target.end()
    report.say(f"alone: {median(rounds.alone_ns) / steps / 1000:.1f} us a step of {steps}")
    observed, probed = (median(report.figures[f"time with {name} / alone"]) - 1 for name in ("kprof --observer", "kprof"))
    report.say(f"kprof --observer adds {observed:.1%} of that, where kprof adds {probed:.1%}")


# ---- both profilers in one process ----


def recorded_or_said(report, what, trace, words):
    """Did kprof record the device's work, or else say that another tool has CUPTI?"""
    kernels, said = sum(trace.names().values()), ANOTHER_TOOL in words
    report.check(kernels or said, f"{what}: kprof has {kernels} kernels, and says of another tool: {said}")
    telling = [line for line in words.splitlines() if any(w in line for w in ("agent", ANOTHER_TOOL, "hint"))]
    report.block("\n".join(telling) or "-")
    return kernels


def is_whole(report, what, trace, names):
    wrong = difference(trace.names(), names)
    report.check(
        names and not wrong, f"{what}: torch.profiler has the {sum(names.values())} kernels of a run by itself;", *wrong[:4]
    )


def coexistence(report, bench, args):
    report.section("torch.profiler and kprof in one process")
    if not able(report, args):
        return
    names = before_and_after(report, bench, args)
    kprof_first(report, bench, args, names)
    already_running(report, bench, args, names)
    meanwhile(report, bench, args, names)


def before_and_after(report, bench, args):
    """torch.profiler, then kprof, then torch.profiler. Returns what torch.profiler sees by itself."""
    first, last = bench.path("both-first", "json"), bench.path("both-last", "json")
    target = bench.start("both", training(args, "--rounds", f"profile={first},plain,profile={last}"))
    target.go()
    target.result()
    names = Trace(first).names()
    report.check(names, f"torch.profiler, before kprof: {sum(names.values())} kernels")
    _, trace, words = bench.attach("both", target, nr=2)
    recorded_or_said(report, "after torch.profiler", trace, words)
    target.go()
    target.result(3)
    is_whole(report, "torch.profiler, kprof, torch.profiler", Trace(last), names)
    target.end()
    return names


def kprof_first(report, bench, args, names):
    """CUPTI is released: the process's own profiler works, though it was not there first."""
    out = bench.path("after", "json")
    target = bench.start("after", training(args, "--rounds", f"plain,profile={out}"))
    _, trace, words = bench.attach("after", target)
    report.check(sum(trace.names().values()) > 0, "kprof first: it has kernels")
    report.block("\n".join(line for line in words.splitlines() if "held" in line or "inject" in line) or "(not injected)")
    target.go()
    target.result(2)
    is_whole(report, "kprof, torch.profiler", Trace(out), names)
    target.end()


def already_running(report, bench, args, names):
    out = bench.path("busy", "json")
    target = bench.start("busy", training(args, "--rounds", f"running={out},plain"))
    _, trace, words = bench.attach("busy", target)
    recorded_or_said(report, "while torch.profiler runs", trace, words)
    is_whole(report, "kprof attached while it ran", Trace(out), names)
    target.go()
    target.result(2)
    target.end()
    report.say("the process goes on after that, and ends well")


def meanwhile(report, bench, args, names):
    """torch.profiler begins and ends in the middle of a recording of kprof's."""
    out = bench.path("meanwhile", "json")
    target = bench.start("meanwhile", training(args, "--rounds", f"plain,profile={out},plain"))
    kprof = bench.recorder("meanwhile", target)
    for nr in (1, 2, 3):
        target.go()
        target.result(nr)
    kprof.end(stop=signal.SIGINT)
    target.end()
    kernels = recorded_or_said(report, "torch.profiler in the middle", bench.export("meanwhile"), kprof.words())
    seen = sum(Trace(out).names().values())
    report.say(f"torch.profiler in the middle: it has {seen} kernels (before 2.15: none is to be expected), kprof {kernels}")
    every = sum(names.values())
    report.check(seen in (0, every), f"torch.profiler in the middle: {seen} kernels, all or none of {every}")


# ---- what PyTorch makes of graphs and of several GPUs ----


def compiled(report, bench, args):
    report.section('torch.compile(mode="reduce-overhead"), which makes CUDA graphs')
    if not able(report, args):
        return
    out = bench.path("compiled-torch", "json")
    rounds = training(args, "--compile", "--rounds", f"plain,profile={out}")
    target = bench.start("compiled", rounds)
    if "NOT COMPILED" in target.text(target.out):
        report.skip(target.wait_for(target.out, "^NOT COMPILED .*$"))
        target.kill()
        return
    _, trace, _ = bench.attach("compiled", target)
    links(report, "compiled", trace)
    in_graphs = sum(1 for e in trace.rows if e["args"].get("graph node id"))
    report.say(f"compiled: of {len(trace.rows)} kernels, copies and sets {in_graphs} are of a graph")
    target.go()
    target.result(2)
    target.end()
    same_work(report, "compiled", trace, Trace(out).names(), None)


def nccl(report, bench, args):
    report.section("Two GPUs with NCCL")
    if not able(report, args):
        return
    if args.torch < 2:
        report.skip(f"this machine has {args.torch} GPU")
        return
    command = [args.python, os.path.join(HERE, "allreduce.py")]
    result, trace, _ = bench.by_run("nccl", command)
    links(report, "NCCL", trace)
    for device in range(result["ranks"]):
        seen = sum("nccl" in e["name"].lower() for e in trace.rows if e["args"].get("device") == device)
        report.check(seen >= result["times"], f"NCCL: device {device}: {seen} kernels of {result['times']} collectives")
