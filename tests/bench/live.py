# SPDX-License-Identifier: BSD-2-Clause
"""Benchmarks that attach to a running process. Each returns rows of the table (harness.row)."""

import contextlib
import json
import os
import subprocess
import time
from statistics import median

from harness import (
    CPUS,
    ROUNDS,
    Failed,
    Target,
    attach,
    capture_info,
    dirty_text_bytes,
    per_iteration,
    program,
    record,
    row,
    scaled,
    scratch,
    start,
)
from offline import count_events

# Learning the return sites is over by then: a cost "in all", not "while recording".
SETTLE_NS = 200_000_000
UNIT = {"ms": 1e6, "MB": 1e6}
PLAIN_CHUNKS = scaled(25, 4)


def torch_round(target, chunks, shapes):
    """Two runs under torch.profiler, plain ones around them: nanoseconds per event."""
    path, plain, profiles, events = scratch("torch.json"), target.run(PLAIN_CHUNKS), [], 0
    for _ in range(2):
        profiles.append(target.profile(chunks // 2, path, shapes))
        events += count_events(path)
        plain += target.run(PLAIN_CHUNKS)
    plain = median(plain)
    stamps = [per_iteration(p["stamps"], target.chunk) for p in profiles]
    running, iterations = stamps[0] + stamps[1], chunks // 2 * 2 * target.chunk
    added = sum(running) * target.chunk - iterations * plain
    added += sum(p["start"] + p["stop"] + p["export"] for p in profiles)
    return {
        "running": (median(running) - plain) / (events / iterations),
        "in_all": added / events,
        "events_per_iter": events / iterations,
    }


def kprof_round(target, seconds, *more):
    """The same for one kprof attach, and the plain time per iteration just before and after it."""
    with target.free() as free:
        time.sleep(scaled(0.3, 0.1))
        kprof, info = record(target.pid, seconds, scratch("overhead.kprof"), *more)
        info_ns = time.monotonic_ns()
        time.sleep(scaled(0.3, 0.1))
    plain_chunks = free.chunks(0, kprof.start_ns) + free.chunks(info_ns, info_ns * 2)
    running = free.chunks(info["first_ns"] + SETTLE_NS, info["end_ns"])
    if not plain_chunks or not running:
        raise Failed("the recording was too short for a chunk of the target")
    plain = median(plain_chunks) / target.chunk
    per_iter = info["events"] / free.iterations(info["first_ns"], info["last_ns"])
    span = [kprof.start_ns, kprof.end_ns]
    lost = span[1] - span[0] - free.iterations(*span) * plain
    return {
        "running": (median(running) / target.chunk - plain) / per_iter,
        "in_all": lost / info["events"],
        "events_per_iter": per_iter,
        "lost": info["lost"],
        "plain": plain,
        "bytes_per_event": os.path.getsize(scratch("overhead.kprof")) / info["events"],
    }


def overhead(workload, shapes=False, observer=False):
    ours, torchs, chunks = [], [], 0
    more = ["--shapes"] * shapes + ["--observer"] * observer
    with Target(workload) as target:
        target.profile(1, scratch("torch.json"))  # the first one sets Kineto up
        for turn in range(ROUNDS + 1):
            kprof = kprof_round(target, scaled(1.0, 0.6), *more)
            if turn:  # the first one shows how many chunks it takes
                ours.append(kprof)
                torchs.append(torch_round(target, chunks, shapes))
            chunks = int(scaled(200_000, 5_000) / kprof["events_per_iter"] / target.chunk) + 2
    name = ", ".join([workload] + ["--observer"] * observer + ["with shapes"] * shapes)
    rows = [
        ratio_row(name, "while recording", "running", ours, torchs, "≤ 0.5" if observer else "≤ 2.5"),
        ratio_row(name, "in all, to the written file", "in_all", ours, torchs, "≤ 0.1" if observer else "≤ 0.25"),
    ]
    if shapes:
        rows.append(row(f"{name}: capture file", [r["bytes_per_event"] for r in ours], "B/event", "≤ 24"))
    rows[0]["more"] = {
        "plain_us_per_iteration": median(r["plain"] for r in ours) / 1e3,
        "kprof_events_per_iteration": median(r["events_per_iter"] for r in ours),
        "torch_events_per_iteration": median(r["events_per_iter"] for r in torchs),
        "kprof_lost": sum(r["lost"] for r in ours),
    }
    return rows


def ratio_row(workload, what, key, ours, torchs, aim):
    ratios = [a[key] / b[key] for a, b in zip(ours, torchs)]
    us = [median(r[key] for r in side) / 1e3 for side in (ours, torchs)]
    result = row(f"{workload}: added per event {what}, kprof ÷ torch.profiler", ratios, "×", aim)
    result["note"] = f"{us[0]:.2f} ÷ {us[1]:.2f} µs"
    return result


def overhead_ops():
    return overhead("ops")


def overhead_cnn():
    return overhead("cnn")


def overhead_transformer():
    return overhead("transformer")


def overhead_shapes():
    return overhead("ops", shapes=True) + overhead("transformer", shapes=True)


def overhead_observer():
    return overhead("ops", observer=True) + overhead("transformer", observer=True)


def overhead_observer_shapes():
    return overhead("ops", True, True) + overhead("transformer", True, True)


# ---- what stays, and what others pay -------------------------------------------------------------


def compare(a, b, pairs):
    """Time per iteration of one process ÷ that of another, chunk by chunk in turn."""
    return median(a.run(1)[0] / b.run(1)[0] for _ in range(pairs))


def detached():
    """Two processes that do the same; one of them has been recorded."""
    pairs, ratios = scaled(40, 4), []
    with Target("ops") as recorded, Target("ops") as never:
        before = compare(recorded, never, pairs * 2)
        for _ in range(ROUNDS):
            with recorded.free():
                record(recorded.pid, scaled(0.5, 0.3), scratch("detached.kprof"))
            ratios.append(compare(recorded, never, pairs) / before)
    return [row("ops: detached ÷ never attached", ratios, "×", "1.00")]


@contextlib.contextmanager
def recorded_by(pid, *more):
    kprof = attach(pid, None, scratch("others.kprof"), *more).recording()
    try:
        yield
    finally:
        kprof.stop()


def others():
    """A process that maps the same library while another one is recorded."""
    kinds = {"the default": [], "--children exact": ["--children", "exact"]}
    ratios = {kind: [] for kind in kinds}
    added = {kind: [] for kind in kinds}
    with Target("ops") as recorded, Target("ops") as bystander:
        for _ in range(ROUNDS):
            for kind, options in kinds.items():
                before = bystander.run(PLAIN_CHUNKS)
                with recorded_by(recorded.pid, *options):
                    during = median(bystander.run(PLAIN_CHUNKS))
                plain = median(before + bystander.run(PLAIN_CHUNKS))
                ratios[kind].append(during / plain)
                added[kind].append((during - plain) / 1e3)
    rows = []
    for kind, values in ratios.items():
        aim = "1.00" if kind == "the default" else None
        what = f"ops in an unrelated process, {kind}: during ÷ before"
        rows.append(row(what, values, "×", aim))
        rows[-1]["note"] = f"{median(added[kind]):+.2f} µs per operator"
    return rows


def within():
    """An operator that is called outside of what is recorded within."""
    wheres = {
        "everything": [],
        "outside of --within NAME": ["--within", "an annotation that it has not"],
        "outside of --within function:NAME": ["--within", "function:one_that_it_has_not"],
    }
    kinds = {"probes": [], "--observer": ["--observer"]}
    values = {}
    with Target("ops") as target:
        for _ in range(ROUNDS):
            for kind, options in kinds.items():
                for where, within_options in wheres.items():
                    if options and "function" in where:  # which it does not know
                        continue
                    before = target.run(PLAIN_CHUNKS)
                    with recorded_by(target.pid, *options, *within_options):
                        time.sleep(SETTLE_NS / 1e9)
                        during = median(target.run(PLAIN_CHUNKS))
                    plain = median(before + target.run(PLAIN_CHUNKS))
                    values.setdefault((kind, where), []).append((during / plain, (during - plain) / 1e3))
    rows = []
    for (kind, where), pairs in values.items():
        what = f"ops, {kind}, {where}: during ÷ before"
        rows.append(row(what, [ratio for ratio, _ in pairs], "×", "1.00" if where != "everything" and kind != "probes" else None))
        rows[-1]["note"] = f"{median(us for _, us in pairs):+.2f} µs per operator"
    return rows


# ---- attach and detach ---------------------------------------------------------------------------


def attach_round():
    """A process that nobody attached to before: what is copied on write is copied once."""
    path = scratch("attach.kprof")
    with Target("ops") as target, target.free():
        time.sleep(0.1)
        clean = dirty_text_bytes(target.pid)
        kprof = attach(target.pid, None, path)
        time.sleep(0.5)  # whoever looks at it meanwhile slows it down
        kprof.recording()
        during = dirty_text_bytes(target.pid)
        stop_ns = time.monotonic_ns()
        kprof.stop()
        after = dirty_text_bytes(target.pid)
    return {
        "first": capture_info(path)["first_ns"] - kprof.start_ns,
        "start": kprof.figure("attached"),
        "detach": kprof.figure("detached"),
        "exit": kprof.end_ns - stop_ns,
        "during": during - clean,
        "after": after - clean,
    }


def attach_latency():
    rounds = [attach_round() for _ in range(ROUNDS)]

    def line(what, key, unit, aim=None):
        return row(what, [r[key] / UNIT[unit] for r in rounds], unit, aim)

    return [
        line("attach, all operators: command start → first event", "first", "ms", "< 300"),
        line("… of which placing the probes", "start", "ms"),
        line("detach: removing the probes", "detach", "ms", "< 150"),
        line("… Ctrl-C → the command has ended", "exit", "ms"),
        line("target's code copied on write, while recording", "during", "MB", "< 8"),
        line("… after detach", "after", "MB"),
    ]


# ---- what kprof itself needs ---------------------------------------------------------------------


def capture_cost(workload):
    """The slope between a short and a long recording: starting and stopping is not per event."""
    rounds, seconds = [], scaled((0.5, 2.5), (0.4, 0.8))
    path = scratch("capture.kprof")
    with Target(workload) as target, target.free():
        for _ in range(ROUNDS):
            (short, a), (long, b) = (record(target.pid, s, path) for s in seconds)
            events = b["events"] - a["events"]
            rounds.append(
                {
                    "bytes": b["bytes"] / b["events"],
                    "cpu": (long.cpu_ns - short.cpu_ns) / events / 1e3,
                    "peak": long.peak_bytes / 1e6,
                    "own": long.own_bytes / 1e6,
                    "rate": b["events"] / (b["last_ns"] - b["first_ns"]) * 1e3,
                    "lost": b["lost"],
                }
            )

    def line(what, key, unit, aim=None):
        return row(f"{workload}: {what}", [r[key] for r in rounds], unit, aim)

    rows = [
        line("capture file", "bytes", "B/event", "≤ 16"),
        line("kprof's own CPU time", "cpu", "µs/event"),
        line("kprof's peak memory", "peak", "MB"),
        line("events", "rate", "M/s"),
    ]
    rows[-2]["note"] = f"{median(r['own'] for r in rounds):.0f} MB its own, the rest mapped files"
    rows[-1]["note"] = f"{sum(r['lost'] for r in rounds)} lost"
    return rows


def capture():
    return capture_cost("ops") + capture_cost("transformer")


LOADS = [(4, 0), (2, 0), (1, 0), (1, 2), (1, 10), (1, 50)]  # threads, ms of rest a hundred times


class Driver:
    """tests/workloads/opdriver: threads that do nothing but call operators of a few nanoseconds."""

    def __init__(self, threads, calls, pace_ms):
        command = [program("workloads/gcc/opdriver"), "threads", "--linger"]
        command += ["--threads", str(threads), "--n", str(calls), "--pace", str(pace_ms)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = start(command, CPUS, **pipes)
        if not self.process.stdout.readline().startswith("READY"):
            raise Failed("opdriver did not start")

    def work(self):
        """Seconds it took, and the calls that it counted."""
        began = time.monotonic()
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        result = json.loads(self.process.stdout.readline())
        return time.monotonic() - began, sum(result["counts"].values())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def load_round(threads, pace_ms, calls):
    """What happened to so many calls, with kprof on whatever CPU time is left for it."""
    path = scratch("rate.kprof")
    driver = Driver(threads, calls // threads, pace_ms)
    kprof = attach(driver.process.pid, None, path, cpus=CPUS).recording()
    seconds, made = driver.work()
    kprof.stop()
    driver.end()
    info = capture_info(path)
    return {
        "seconds": seconds,
        "rate": made / seconds / 1e6,
        "lost": info["lost"],
        "share": 1 - info["events"] / made,
    }


def rate():
    """From the heaviest load downwards, to the first at which nothing is lost."""
    rows = []
    for threads, pace_ms in LOADS:
        calls = 10_000
        trial = load_round(threads, pace_ms, calls)
        calls = int(calls * scaled(4, 0.3) / trial["seconds"])
        rounds = [load_round(threads, pace_ms, calls) for _ in range(scaled(3, 1))]
        lost = any(r["lost"] for r in rounds)
        what = f"{threads} thread{'s' if threads > 1 else ''} that only call operators"
        what += f", {pace_ms} ms of rest a hundred times" if pace_ms else ""
        rows.append(row(f"{what}: events", [r["rate"] for r in rounds], "M/s"))
        rows[-1]["note"] = f"{median(r['share'] for r in rounds):.1%} lost" if lost else "no drop"
        if not lost:
            break
    return rows
