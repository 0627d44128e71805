# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to watch the scheduler, and all processes of a machine: `--sched`, `sample -a` and `attach -a`."""

import contextlib
import os
import resource
import shutil
import subprocess
import time
from statistics import median

from harness import OTHER_CPUS, ROUNDS, Kprof, Target, now, program, row, scaled, scratch, start

# ---- switches ----

# Work between two switches; a switch itself takes some two microseconds here.
RATES = {"as many as there can be": 0, "50,000 a second": 18_000}
KINDS = {
    "shorter than --min-wait": ("≤ 80 ns", ["--min-wait", "10ms"]),
    "recorded": ("≤ 400 ns", ["--min-wait", "0"]),
}


def switch_ns(target, chunks):
    return median(target.run(chunks))


def switches():
    """Added to a switch and its waking, chunks with and without a recording in turn."""
    rows = []
    for rate, spin_ns in RATES.items():
        chunks = scaled(10, 2) if spin_ns else scaled(40, 4)
        with Target("switch", [program("bench/switch_bench"), str(spin_ns)]) as target:
            plain_ns = switch_ns(target, chunks)
            for kind, (aim, options) in KINDS.items():
                added = []
                for _ in range(ROUNDS):
                    before = switch_ns(target, chunks)
                    kprof = Kprof("attach", "-p", str(target.pid), "--sched", *options, "-o", scratch("switch.kprof"))
                    kprof.recording()
                    during = switch_ns(target, chunks)
                    kprof.stop()
                    added.append(during - (before + switch_ns(target, chunks)) / 2)
                rows.append(row(f"switches, {rate}, waits {kind}: added to each", added, "ns", aim))
                rows[-1]["note"] = f"a switch takes {plain_ns / 1e3:.2f} µs"
    return rows


# ---- all processes ----

SECONDS = scaled(20, 3)


class Load(contextlib.ExitStack):
    """Two trainings, a compiler, and a Python program that only computes."""

    def __init__(self):
        super().__init__()
        for workload in ("cnn", "transformer"):
            target = self.enter_context(Target(workload))
            self.enter_context(target.free())
        source = scratch("compiled.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write("\n".join(f"int f{i}(int x) {{ return x * {i} + (x >> {i % 31}); }}" for i in range(3000)))
        loop = f"while :; do gcc -O1 -c {source} -o /dev/null; done"
        for command in (["sh", "-c", loop], ["python3", "-c", "while True: sum(range(1000))"]):
            process = start(command, set(os.sched_getaffinity(0)), start_new_session=True)
            self.callback(lambda p=process: (os.killpg(p.pid, 9), p.wait()))


def cost_of(command):
    """CPU seconds of the command and its children, its peak memory in bytes, and for how long it ran in ns."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), now()
    with open(scratch("machine.log"), "w", encoding="utf-8") as log:
        process = start(command, OTHER_CPUS, stdout=log, stderr=log)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, now() - begin


def all_processes():
    """`sample -a` beside perf, one after the other in each round."""
    perf = shutil.which("perf")
    tools = {
        f"kprof sample -a -F {hz}": [program("kprof"), "sample", "-a", "-q", "-F", str(hz), "-d", f"{SECONDS}s", "-o", scratch("all.kprof")]
        for hz in (19, 49)
    }
    for graph in ("dwarf", "fp") if perf else ():
        tools[f"perf record -a -F 19 --call-graph {graph}"] = [
            perf, "record", "-q", "-a", "-F", "19", "--call-graph", graph, "-o", scratch("perf.data"), "--", "sleep", str(SECONDS),
        ]  # fmt: skip
    shares, peaks = {tool: [] for tool in tools}, {tool: [] for tool in tools}
    with Load():
        time.sleep(scaled(5, 1))
        for _ in range(scaled(3, 1)):
            for tool, command in tools.items():
                cpu_s, peak_bytes, ran_ns = cost_of(command)
                shares[tool].append(cpu_s * 1e9 / ran_ns * 100)
                peaks[tool].append(peak_bytes / 1e6)
    rows = []
    for tool in tools:
        aim = "≤ 0.2" if tool.endswith("-F 19") and "kprof" in tool else None
        rows.append(row(f"{SECONDS} s of all processes, {tool}: its own CPU time", shares[tool], "% of a CPU", aim))
        rows.append(row("… its peak memory", peaks[tool], "MB"))
    return rows


def attach_all():
    """`attach -a` with one, four and sixteen targets: until it records, and its own CPU time."""
    rows = []
    for nr in scaled((1, 4, 16), (1, 2)):
        took, own = [], []
        with contextlib.ExitStack() as stack:
            for _ in range(nr):
                stack.enter_context(Target("ops"))
            for _ in range(scaled(3, 1)):
                kprof = Kprof("attach", "-a", "-d", "1s", "-o", scratch("joined.kprof")).wait()
                took.append(kprof.figure("attached") / 1e6)
                own.append(kprof.cpu_ns / 1e6)
        rows.append(row(f"attach -a, {nr} idle processes with PyTorch: until it records", took, "ms"))
        rows.append(row("… its own CPU time", own, "ms"))
    return rows
