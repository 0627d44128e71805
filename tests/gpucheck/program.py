# SPDX-License-Identifier: BSD-2-Clause
"""Parts of scripts/gpu-check that record the CUDA program."""

import os
import signal
import time

from agent_alone import for_programs
from report import agents, as_counted, graphs_at_their_launch, links, nothing_dropped
from runs import median

IDLE_S = 1.0
LONG_MS = 2000


def program(args, *options):
    return [os.path.join(args.build, "gpucheck", "cudaprog"), *options]


def rounds(args):
    return ("--n", "10" if args.simulated else "50")


def cuda_program(report, bench, args):
    report.section("A CUDA program with graphs and copies")
    bench = for_programs(bench, args)
    for what, how in (("attach", bench.by_attach), ("run", bench.by_run)):
        result, trace, _ = how(f"cuda-{what}", program(args, *rounds(args)))
        links(report, f"program, {what}", trace)
        as_counted(report, what, trace, result, had_graphs=what == "attach")
        graphs_at_their_launch(report, what, trace, result)
        spins(report, what, trace, result)


def spins(report, what, trace, result):
    """The kernel stops when the device's clock says so, which may go in steps: %globaltimer's are 32 ns on some, 1 us or more
    on others. It can be short by one of them, and measures the largest."""
    took = [e["dur"] * 1000 for e in trace.rows if e["name"] == "gpucheck_spin"]
    least = (result["spin_ns"] - result["timer_step_ns"]) * 0.98
    report.check(
        took and min(took) >= least,
        f"{what}: a kernel that spins for {result['spin_ns']} ns takes {median(took):.0f}, {min(took, default=0):.0f} at least;",
        f"the device's clock goes in steps of {result['timer_step_ns']} ns",
    )


def attaches(report, bench, args):
    report.section("Attached twice to graphs that were there before; to an idle process; left in the middle of a kernel")
    bench = for_programs(bench, args)
    twice(report, bench, args)
    idle(report, bench, args)
    left(report, bench, args)


def twice(report, bench, args):
    target = bench.start("twice", program(args, *rounds(args), "--times", "3"))
    for nr in (1, 2):
        result, trace, _ = bench.attach(f"twice-{nr}", target, nr=nr)
        links(report, f"attach {nr}", trace)
        as_counted(report, f"attach {nr}", trace, result)
        graphs_at_their_launch(report, f"attach {nr}", trace, result)
    target.go()
    report.check(target.result(3)["right"], "unobserved after that, the program's results are right")
    target.end()


def idle(report, bench, args):
    target = bench.start("idle", program(args, *rounds(args)))
    kprof = bench.recorder("idle", target)
    time.sleep(IDLE_S)
    kprof.end(stop=signal.SIGINT)
    trace = bench.export("idle")
    states = [a.get("state") for a in agents(trace).values()]
    report.check(not trace.rows and states == ["recorded"], f"idle: {len(trace.rows)} kernels and copies; agent: {states}")
    nothing_dropped(report, "idle", trace)
    target.go()
    report.check(target.result()["right"], "idle: at work after that, the program's results are right")
    target.end()


def left(report, bench, args):
    target = bench.start("left", program(args, "--spin", str(LONG_MS)))
    kprof = bench.recorder("left", target)
    target.go()
    target.result()
    begin = time.monotonic()
    kprof.end(stop=signal.SIGINT)
    took_s = time.monotonic() - begin
    trace = bench.export("left")
    lost = sum(s["dropped"] for s in trace.meta.get("sources", {}).values())
    whole = [e["dur"] / 1000 for e in trace.rows if e["dur"] >= LONG_MS * 900]
    report.check(
        len(whole) + lost >= 1,
        f"left: a kernel of {LONG_MS} ms was running; kprof left in {took_s:.1f} s; its times are there: {len(whole)}; lost: {lost}",
    )
    report.figures["left in the middle of a kernel, s"] = took_s
    target.end()
    report.say("left: the program waited for its kernel, and ended well")


def threads(report, bench, args):
    report.section("100 threads that use CUDA")
    result, trace, _ = for_programs(bench, args).by_attach("threads", program(args, "--threads", "100"))
    as_counted(report, "100 threads", trace, result)
    links(report, "100 threads", trace)
    report.say("buffers at once:", [a.get("max_buffers") for a in agents(trace).values()])


def launches(report, bench, args):
    """What kprof adds to the cheapest of launches: traps alone, the agent with them, the agent without those in the driver."""
    nr = 2000 if args.simulated else 100000
    report.section(f"{nr} launches of an empty kernel")
    bench = for_programs(bench, args)
    command = program(args, "--launches", str(nr))
    times = {"alone": bench.alone("launch-alone", command)["loop_ns"]}
    result, trace, _ = bench.by_attach("launch-calls", command, ["--no-agent"])
    times["kprof --no-agent"] = result["loop_ns"]
    report.check(trace.driver["cuLaunchKernel"] == nr, f"no agent: {trace.driver['cuLaunchKernel']} launches seen")
    result, trace, _ = bench.by_attach("launch-kprof", command)
    times["kprof"] = result["loop_ns"]
    report.check(sum(trace.names().values()) == nr, f"agent: {sum(trace.names().values())} kernels seen")
    nothing_dropped(report, "agent", trace)
    result, trace, _ = bench.by_attach("launch-kernels", command, ["--types", "kernel"])
    times["kprof --types kernel, no probes in the driver"] = result["loop_ns"]
    report.check(sum(trace.names().values()) == nr, f"agent without probes: {sum(trace.names().values())} kernels seen")
    for name, ns in times.items():
        report.say(f"{name}: {ns / nr:.0f} ns a launch")
    report.figures["ns a launch"] = {name: ns / nr for name, ns in times.items()}


def deaths(report, bench, args):
    report.section("kprof killed, the program killed")
    bench = for_programs(bench, args)
    kprof_killed(report, bench, args)
    program_killed(report, bench, args)


def kprof_killed(report, bench, args):
    target = bench.start("survivor", program(args, *rounds(args), "--times", "2", "--linger"))
    kprof = bench.recorder("killed", target)
    target.go()
    kprof.kill()
    report.check(target.result()["right"], "kprof killed: the program goes on, and its results are right")
    result, trace, _ = bench.attach("survivor", target, nr=2)
    as_counted(report, "kprof killed: the next attach", trace, result)
    links(report, "kprof killed: the next attach", trace)
    target.end()


def program_killed(report, bench, args):
    target = bench.start("victim", program(args, "--n", "1000000"))
    kprof = bench.recorder("victim", target)
    target.go()
    time.sleep(IDLE_S)
    target.kill()
    kprof.end()
    trace = bench.export("victim")
    kernels, linked = sum(trace.names().values()), trace.linked()
    report.check(kernels > 0, f"program killed: kprof ends by itself; {kernels} kernels until then")
    report.say(f"program killed: of {len(trace.rows)} kernels, copies and sets {linked} have their call")


def synchronizations(report, bench, args):
    report.section("Synchronizations")
    result, trace, _ = for_programs(bench, args).by_attach("sync", program(args, *rounds(args)), ["--cuda-sync"])
    # Each round waits for a stream, and for the context.
    waits = 2 * result["graphs"]
    report.check(len(trace.syncs) >= waits, f"--cuda-sync: {waits} waits, {len(trace.syncs)} rows")
    as_counted(report, "--cuda-sync", trace, result)
    wrong = [e["name"] for e in trace.syncs if e["dur"] < 0]
    report.check(not wrong, "no wait ends before it begins;", *wrong[:4])
