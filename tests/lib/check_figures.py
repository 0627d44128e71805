#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Numbers in /metrics that are of the daemon's last chunk, against what is known of that time without kprof.

    check_figures.py waits METRICS CHUNKS KPROF NAME LOG…      LOG: what a workloads/rests.py said; all have this name
    check_figures.py gpu METRICS CHUNKS KPROF NAME TRUTH PID   TRUTH: $KPROF_SIM_TRUTH

Which chunk was the last is not known: there must be one in which the numbers are these. gpu: the busy share, activities in a
second, and how many there were in all chunks until that one.
"""

import bisect
import glob
import json
import re
import subprocess
import sys
import time

from truth import Truth

# The logs are of every 80 ms or later, and what happened in between is assumed to have been even.
SLACK = {"waits": .08, "gpu": .02}
RATE = 1000  # activities, of which so many are worth as much as all of the time


def windows(folder, kprof):
    """Begin, in ns since 1970, and length of each chunk."""
    for path in sorted(glob.glob(f"{folder}/*.kprof")):
        trace = subprocess.run([kprof, "export", path, "-o", "-"], check=True, stdout=subprocess.PIPE).stdout
        clock = json.loads(trace)["kprof"]["clock"]
        yield clock["start_real_ns"], clock["end_mono_ns"] - clock["start_mono_ns"]


def figure(metrics, family, name):
    with open(metrics, encoding="utf-8") as file:
        found = re.findall(rf'^{family}{{[^}}]*process="{re.escape(name)}"}} (\S+)$', file.read(), re.MULTILINE)
    if len(found) != 1:
        sys.exit(f"{len(found)} series {family} of {name}")
    return float(found[0])


def at(log, ns, column):
    i = min(max(bisect.bisect_left(log, (ns,)), 1), len(log) - 1)
    (begin, *before), (end, *after) = log[i - 1], log[i]
    return before[column] + (after[column] - before[column]) * (ns - begin) / (end - begin)


def waits(metrics, logs, name):
    """The shares that are shown; and those in a window."""
    rows = [[tuple(map(int, line.split())) for line in open(log, encoding="ascii") if line.endswith("\n")] for log in logs]

    def true(begin, length):
        ran, ready = (sum(at(log, begin + length, c) - at(log, begin, c) for log in rows) / (length * len(rows)) for c in (0, 1))
        known = all(log[0][0] <= begin and begin + length <= log[-1][0] for log in rows)
        return (ready, 1 - ran - ready) if known else None
    return (figure(metrics, "kprof_process_runqueue_ratio", name), figure(metrics, "kprof_process_wait_ratio", name)), true


def gpu(metrics, rest, name):
    work = Truth.load(rest[0], int(rest[1])).work()
    offset = time.time_ns() - time.monotonic_ns()
    sums = [0]

    def true(begin, length):
        begin -= offset
        busy, last, nr = 0, begin, 0
        for w in work:
            end = min(w["end"], begin + length)
            nr += begin <= w["start"] < begin + length
            busy += max(0, end - max(w["start"], last))
            last = max(last, end)
        sums.append(sums[-1] + nr)
        return busy / length, nr * 1e9 / length / RATE, sums[-1] / RATE
    shown = (figure(metrics, f"kprof_gpu_{what}", name) for what in ("busy_ratio", "activities_per_second", "activities_total"))
    busy, rate, total = shown
    return (busy, rate / RATE, total / RATE), true


def main():
    what, metrics, folder, kprof, name, *rest = sys.argv[1:]
    shown, true = {"waits": waits, "gpu": gpu}[what](metrics, rest, name)
    tried = [t for t in (true(*w) for w in windows(folder, kprof)) if t]
    off = min((max(abs(a - b) for a, b in zip(shown, t)) for t in tried), default=1)
    print(f"{what}: shown {shown}, by {off:.4f} near the nearest of {len(tried)} chunks: {tried}")
    sys.exit(off > SLACK[what])


main()
