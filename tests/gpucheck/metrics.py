# SPDX-License-Identifier: BSD-2-Clause
"""A part of scripts/gpu-check: hardware metrics (--metrics), beside all that is recorded otherwise."""

import signal
import time

from agent_alone import for_programs
from program import program
from pytorch import able, training
from report import counts, difference, nothing_dropped
from runs import median, plain

NAMES = ("sm__cycles_active.avg", "sm__inst_executed.sum", "gpu__time_duration.sum", "sm__warps_launched.sum")
OPTIONS = ["--metrics", ",".join(NAMES)]
TIME = "gpu__time_duration.sum"
UNKNOWN = "sm__no_such_thing.sum"
SEVERAL_PASSES = ["sm__throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes.sum", "l1tex__t_bytes_pipe_lsu_mem_global_op_st.sum"]
ROUNDS = ("--n", "10")
ROUND_S = 11  # a hundred ranges, and a little more
# Between two ranges a device does work that is in neither, for about a millisecond of a hundred.
SEEN_LEAST = 0.8


def state(trace):
    return next((v for k, v in trace.meta.get("meta", {}).items() if k.startswith("metrics.")), {})


def ranges(report, what, trace, least):
    """Are there so many, with values that can be? Returns the sums of all."""
    rows = trace.ranges
    info = state(trace)
    report.check(
        len(rows) >= least and info.get("state") == "measured" and not info.get("reason"),
        f"{what}: {len(rows)} ranges ({least} at least); {info}",
    )
    bad = [r for r in rows if any(not isinstance(r["args"].get(name), (int, float)) for name in NAMES)]
    report.check(not bad, f"{what}: each has all {len(NAMES)} values;", [r["args"] for r in bad[:2]] or "")
    bad = [r for r in rows if not 0.5 * r["dur"] * 1000 <= r["args"].get(TIME, 0) <= 1.05 * r["dur"] * 1000]
    report.check(not bad, f"{what}: {TIME} is 0.5 to 1.05 times each row's length;", [(r["dur"], r["args"]) for r in bad[:2]] or "")
    report.check(
        all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(rows, rows[1:])), f"{what}: ranges follow one another"
    )
    report.figures[f"metrics, {what}"] = [{"us": r["dur"], **r["args"]} for r in rows[:12]]
    return {name: sum(r["args"].get(name) or 0 for r in rows) for name in NAMES}


def recorded(report, what, trace, expected):
    """Beside metrics all kernels are there, each with its call. CUPTI may run some of its own when it starts."""
    names = trace.names()
    wrong = difference({n: names[n] for n in expected}, expected)
    report.check(not wrong and expected, f"{what}: all {sum(expected.values())} kernels are recorded;", *wrong[:4])
    kernels = [e for e in trace.rows if e["cat"] == "kernel"]
    lost = [e for e in kernels if plain(e["name"]) in expected and e["args"].get("correlation") not in trace.calls]
    report.check(not lost, f"{what}: each with its call; {len(lost)} without")
    others = [(e["name"], e["ts"], e["dur"]) for e in kernels if plain(e["name"]) not in expected]
    report.say(f"{what}: {len(others)} kernels that the program did not launch;", others[:4] or "")
    nothing_dropped(report, what, trace)


def metrics(report, bench, args):
    report.section("Hardware metrics (--metrics)")
    programs = for_programs(bench, args)
    known_launches(report, programs, args)
    rounds_by_run(report, programs, args)
    if not args.simulated:
        training_loop(report, bench, args)
        busy(report, programs, args)
    two_rounds(report, programs, args)
    refused(report, programs, args)
    destroyed(report, programs, args)


def known_launches(report, bench, args):
    """Each launch is one warp of an empty kernel."""
    nr = 20000 if args.simulated else 300000
    command = program(args, "--launches", str(nr))
    times = {"kprof": bench.by_attach("metrics-without", command)[0]["loop_ns"]}
    result, trace, words = bench.by_attach("metrics-launches", command, OPTIONS)
    times["kprof --metrics"] = result["loop_ns"]
    report.figures[f"{nr} launches, ns each"] = {k: round(ns / nr, 1) for k, ns in times.items()}
    recorded(report, "launches", trace, {"gpucheck_empty": nr})
    sums = ranges(report, "launches", trace, 1)
    warps, instructions = sums["sm__warps_launched.sum"], sums["sm__inst_executed.sum"]
    report.check(nr * SEEN_LEAST <= warps <= nr * 1.01, f"launches: {warps:.0f} warps measured, of {nr}")
    report.check(warps and instructions >= warps, f"launches: {instructions / max(warps, 1):.2f} instructions a warp")
    report.check(
        state(trace).get("ranges_lost") == 0, f"launches: to start took {state(trace).get('longest_start_ns', 0) / 1e6:.0f} ms"
    )
    report.block("\n".join(line for line in words.splitlines() if "metrics" in line) or "(no word of metrics)")


def rounds_by_run(report, bench, args):
    """To the program's own end, at which the last ranges are read."""
    nr = 2000 if args.simulated else 600
    result, trace, _ = bench.by_run("metrics-run", program(args, "--n", str(nr)), OPTIONS)
    recorded(report, "run", trace, counts(result)[0])
    sums = ranges(report, "run", trace, 2)
    report.check(all(sums.values()), f"run: {sums}")


def two_rounds(report, bench, args):
    """After a hundred ranges their values are read, and it begins again."""
    target = bench.start("metrics-rounds", program(args, *ROUNDS, "--times", "2"))
    kprof = bench.recorder("metrics-rounds", target, OPTIONS)
    target.go()
    target.result()
    time.sleep(ROUND_S)
    target.go()
    target.result(2)
    time.sleep(0.3)
    kprof.end(stop=signal.SIGINT)
    target.end()
    trace = bench.export("metrics-rounds")
    ranges(report, "two rounds", trace, 101)
    last = [r["args"].get("sm__warps_launched.sum") for r in trace.ranges[101:]]
    report.check(any(last), f"two rounds: warps in the second: {last}")
    pauses = [b["ts"] - a["ts"] - a["dur"] for a, b in zip(trace.ranges, trace.ranges[1:])]
    report.figures["between ranges, us"] = {"median": median(pauses), "longest": max(pauses, default=0)}


def refused(report, bench, args):
    for what, names, reason in (("unknown", [NAMES[0], UNKNOWN], "unknown"), ("passes", SEVERAL_PASSES, "passes")):
        if args.simulated and what == "passes":
            names = names[:1]
        result, trace, words = bench.by_attach(f"metrics-{what}", program(args, *ROUNDS), ["--metrics", ",".join(names)])
        info = state(trace)
        report.check(info.get("reason") == reason, f"{what}: {info}")
        recorded(report, what, trace, counts(result)[0])
        report.block("\n".join(line for line in words.splitlines() if "metrics" in line or "hint" in line) or "(no word of it)")


def destroyed(report, bench, args):
    """A program that destroys its context while it is measured goes on, and ends well."""
    target = bench.start("metrics-reset", program(args, "--n", "200", "--reset"))
    kprof = bench.recorder("metrics-reset", target, OPTIONS)
    target.go()
    result = target.result()
    target.end()
    kprof.end()
    info = state(bench.export("metrics-reset"))
    report.check(result["right"] and info.get("reason") == "context", f"context destroyed: the program ended well; {info}")


def busy(report, bench, args):
    first, second = (bench.start(f"metrics-{n}", program(args, "--n", "50", "--linger")) for n in ("first", "second"))
    kprof = bench.recorder("metrics-first", first, OPTIONS)
    _, trace, words = bench.attach("metrics-second", second, OPTIONS)
    second.end()
    first.go()
    first.result()
    time.sleep(0.3)
    kprof.end(stop=signal.SIGINT)
    first.end()
    info = state(trace)
    report.check(info.get("reason") == "busy" and trace.rows, f"two processes: the second is told {info}")
    report.block("\n".join(line for line in words.splitlines() if "metrics" in line or "hint" in line) or "(no word of it)")
    ranges(report, "two processes: the first", bench.export("metrics-first"), 1)


def training_loop(report, bench, args):
    if not able(report, args):
        return
    steps = args.iters * 12
    command = training(args, "--iters", str(steps))
    result, without, _ = bench.by_attach("metrics-train-without", command)
    measured, trace, _ = bench.by_attach("metrics-train", command, OPTIONS)
    recorded(report, "training", trace, without.names())
    sums = ranges(report, "training", trace, 3)
    report.check(all(sums.values()), f"training: {sums}")
    took = {"kprof": result["loop_ns"], "kprof --metrics": measured["loop_ns"]}
    report.figures[f"{steps} training steps, ms"] = {k: ns / 1e6 for k, ns in took.items()}
