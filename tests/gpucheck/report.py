# SPDX-License-Identifier: BSD-2-Clause
"""The report of scripts/gpu-check, and the comparisons that its parts share."""

import datetime
import json
import os
import subprocess
import time
from collections import Counter

from runs import median, tell

# Equal runs of one program differ by this on a GPU whose clocks rise when it is cool and fall when it is not. It is to find
# work that is missing or counted twice, and units that are wrong; how exact single times are is not tested by it.
TIME_TOLERANCE = 0.05
# By this the driver copies within a device. Of a graph that was made before CUPTI was there, CUPTI tells such a copy as the
# kernel that it is.
COPYING_KERNEL = "memcpy128"
DEVICE_ACTIVITIES = "device activities"  # as gaps name them


class Report:
    def __init__(self, path, simulated, budget_s):
        self.lines, self.figures = [], {}
        self.failed = self.passed = 0
        self.path, self.simulated = path, simulated
        self.on_cpu = False  # some of it
        self.agent = "no agent has answered yet"
        self.until, self.finished = time.monotonic() + budget_s, False

    def over(self):
        return time.monotonic() >= self.until

    def section(self, title):
        tell(title)
        self.lines += ["", f"## {title}", ""]
        self.write()

    def say(self, *words):
        self.lines.append(f"- {' '.join(str(w) for w in words)}")
        self.write()

    def skip(self, why):
        self.say("skipped:", why)

    def check(self, good, *words):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        self.say("PASS:" if good else "**FAIL:**", *words)
        return bool(good)

    def block(self, text):
        self.lines += ["```", text.rstrip(), "```"]

    def write(self):
        kind = "**SIMULATED DEVICE: this says nothing about a real GPU.**" if self.simulated else "On a real GPU."
        if self.on_cpu:
            kind = "**In part on the CPU: PyTorch uses no GPU here.**"
        so_far = "" if self.finished else " **So far: it runs still, or was cut short.**"
        head = ["# kprof: GPU check", ""]
        head += [f"{datetime.date.today()}. {kind} {self.passed} passed, {self.failed} failed.{so_far}", "", self.agent]
        figures = ["", "## Figures", "", "```", json.dumps(self.figures, indent=1), "```", ""]
        with open(self.path + ".new", "w") as f:
            f.write("\n".join(head + self.lines + figures))
        os.replace(self.path + ".new", self.path)


def output(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as e:
        return 127, str(e)
    return done.returncode, done.stdout + done.stderr


def difference(ours, theirs):
    names = sorted(set(ours) | set(theirs))
    return [f"{n[:90]}: {ours[n]}, not {theirs[n]}" for n in names if ours[n] != theirs[n]]


def same_work(report, what, trace, kernels, copies):
    wrong = difference(trace.names(), kernels)
    report.check(not wrong and kernels, f"{what}: {sum(kernels.values())} kernels of {len(kernels)} names;", *wrong[:8])
    if copies is not None:
        wrong = difference(trace.copies(), copies)
        report.check(not wrong, f"{what}: {sum(copies.values())} copies and sets;", *wrong[:8])


def same_operators(report, what, trace, other):
    """Did the same operators launch the same kernels? A call whose end was not seen may be drawn too long."""
    wrong = difference(trace.by_operator(), other.by_operator())
    share = trace.meta.get("exact_end_share") or 0
    kernels = sum(other.by_operator().values())
    elsewhere = sum((trace.by_operator() - other.by_operator()).values())
    report.check(
        elsewhere <= kernels * (1 - share),
        f"{what}: {elsewhere} of {kernels} kernels at another operator; {share:.2%} of the ends are exact;",
        *wrong[:8],
    )


def agents(trace):
    return {k: v for k, v in trace.meta.get("meta", {}).items() if k.startswith("agent.")}


def nothing_dropped(report, what, trace):
    dropped = {n: s["dropped"] for n, s in trace.meta.get("sources", {}).items() if s["dropped"]}
    gaps = [g for g in trace.meta.get("gaps", ()) if DEVICE_ACTIVITIES in str(g)]
    report.check(not dropped, f"{what}: nothing dropped", dropped or "")
    for gap in gaps:  # declared, so nothing is wrong with it by itself
        report.say(f"{what}: {gap['dur'] / 1000:.1f} ms without device activities: {gap['reason']}")


def cost(trace):
    """The shares that kprof says its parts took of the process's CPU time; None: it does not."""
    ledger = trace.meta.get("overhead", {}).get("ledger", {})
    return {name: round(part["share"], 4) for name, part in ledger.get("parts", {}).items()} or None


def links(report, what, trace):
    counts = trace.meta.get("correlation", {})
    rows, linked = len(trace.rows), trace.linked()
    found = {k: v for k, v in trace.meta.get("meta", {}).items() if k.startswith(("agent.", "clock.device"))}
    for agent in agents(trace).values():
        report.agent = "Agent: " + ", ".join(f"{k} {v}" for k, v in agent.items() if "version" in k or k == "state")
    report.check(rows and linked == rows, f"{what}: of {rows} kernels, copies and sets {linked} have their call")
    # On a real device this may be above 0, since the two clocks are not read at the same moment: it is reported.
    report.say(f"{what}: {counts.get('before_launch')} began before their launch, at most", counts.get("before_launch_max_ns"), "ns")
    nothing_dropped(report, what, trace)
    report.figures[what] = {"correlation": counts, "agents": found, "cost": cost(trace)}


def device_time(report, what, ours, theirs):
    a, b = median(ours), median(theirs)
    report.figures[f"{what}: device time, us"] = {"kprof": ours, "other": theirs}
    off = abs(a / b - 1) if b else float("inf")
    report.check(off <= TIME_TOLERANCE, f"{what}: device time {a:.1f} us against {b:.1f}, {off:.2%} off")


def counts(result):
    """What a CUDA program says of itself: kernels by name, and copies and sets by the beginning of their names."""
    copies = {f"Memcpy{k}": n for k, n in result["copies"].items()}
    return Counter({k: n for k, n in result["kernels"].items() if n}), {**copies, "Memset": result["sets"]}


def as_counted(report, what, trace, result, had_graphs=True):
    """had_graphs: its graphs may have been there before CUPTI."""
    report.check(result["right"], f"{what}: the program's results are right")
    kernels, copies = counts(result)
    copied = trace.names()[COPYING_KERNEL] if had_graphs else 0
    if copied:
        report.say(f"{what}: {copied} copies of a graph that was there before CUPTI are kernels, {COPYING_KERNEL}")
        kernels[COPYING_KERNEL] += copied
        copies["MemcpyDtoD"] -= copied
    wrong = difference(trace.names(), kernels)
    report.check(not wrong, f"{what}: kernels {dict(kernels)};", *wrong[:4])
    seen = {name: sum(n for row, n in trace.copies().items() if row.startswith(name)) for name in copies}
    report.check(seen == copies, f"{what}: copies and sets {copies}", "" if seen == copies else f"seen {seen}")


def graphs_at_their_launch(report, what, trace, result):
    """Each launch of a graph has all of the graph's work, and nothing else has any."""
    nodes, rest = [], []
    for e in trace.rows:
        (nodes if e["args"].get("graph node id") else rest).append(e["args"].get("correlation"))
    launches = Counter(nodes)
    callers = Counter(trace.calls.get(c, "nothing") for c in launches)
    others = Counter(trace.calls.get(c, "nothing") for c in rest)
    each = set(launches.values())
    nodes_each = each <= {result["in_graph"] + 1}
    report.check(
        len(launches) == result["graphs"] and nodes_each and all("GraphLaunch" in c for c in callers),
        f"{what}: {result['graphs']} launches of a graph, each with its {result['in_graph']} kernels and a copy;",
        f"{len(launches)} launches by {dict(callers)} with {sorted(each)}",
    )
    none = not any("Graph" in name for name in others)
    report.check(none, f"{what}: nothing else is at a launch of a graph; {dict(others)}")
