#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""kprof sample against other samplers on one running process, in turn, at the same rate.

    compare.py [--seconds N] [--rounds N] [--hz N] [--py-spy PATH] KPROF PID DIRECTORY

perf record --call-graph dwarf: shares of the innermost functions in user space. py-spy, with and without --native: shares
of the innermost Python functions. Of two estimates of one share, each from n samples of its own, the difference is within
four standard deviations, sqrt(p q (1/n + 1/m)). They differ by more than that from themselves: the others sample without
jitter, in step with a loop of some ten milliseconds; py-spy stops its target to look at it, and looks at the time that
passes, a write to a slow disk included (py-spy and py-spy --native have been seen to give one function 0.24 and 0.42 of a
minute). So kprof's share is to lie within four standard deviations of the range of the other's rounds, by as much as
kprof's own rounds differ. Whole stacks: 98 % at least, those through JIT code (oneDNN's kernels) among them: the
lower end of the share's 97.7 % interval (Wilson's) must be above that, for which kprof goes on alone until the interval is clear
of it. Where shares differ by more than they may, all go on for some rounds more: what they see of a program that does not do the
same all the time comes closer then, what one of them does not see does not. Samples: all that fired were captured or are counted
as dropped.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter

from samples import ENDS, SIGMA, WHOLE, Problems, load, physical

EVAL = "_PyEval_EvalFrameDefault"
WHOLE_SHARE = 0.98
MORE_ROUNDS = 10
MORE_OF_ALL = 3
TRIES = 3  # of py-spy, which may fail to stop or to read its target
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICK


def plain(name):
    """What two demanglers agree on: the name without scopes, arguments and versions."""
    if "+0x" in name:
        return "[unknown]"
    name = re.sub(r"@.*", "", name)
    while "<" in name and re.search(r"<[^<>]*>", name):
        name = re.sub(r"<[^<>]*>", "", name)
    name = re.sub(r"\(.*", "", name.replace("(anonymous namespace)", ""))
    return re.sub(r"\.(part|constprop|isra|cold)\b.*", "", name.split("::")[-1].strip())


class Kprof:
    def __init__(self):
        self.native, self.python, self.ends, self.n = [], [], Counter(), 0
        self.made = Counter()

    def round(self, args, i):
        path = f"{args.directory}/kprof{i}.kprof"
        before = cpu_seconds(args.pid)
        subprocess.run(
            [args.kprof, "sample", "-q", "-p", str(args.pid), "-F", str(args.hz), "-d", f"{args.seconds}s", "-o", path],
            check=True,
        )
        innermost, python = Counter(), Counter()
        for samples in load(path, args.pid).values():
            for s in samples:
                self.n += 1
                real = [f for f, _ in physical(s)]
                native = [f for f in real if f["kind"] == "native"]
                self.ends[ENDS[s["end"]]] += 1
                if any(f["module"] == "[jit]" for f in native):
                    self.made[ENDS[s["end"]]] += 1
                if real and s["state"] == "user":
                    python_first = real[0]["kind"] == "python"
                    innermost[EVAL if python_first else plain(real[0]["function"])] += 1
                names = [f["function"].split(".")[-1] for f in s["frames"] if f["kind"] == "python"]
                if names:
                    python[names[0]] += 1
        self.native.append(innermost)
        self.python.append(python)
        return cpu_seconds(args.pid) - before

    def whole(self):
        """The share of whole stacks, and its interval. Where another CPU is busy PyTorch's table is not ready when the
        recording begins, and the samples say so: they are left out."""
        n = max(self.n - self.ends["not-yet"], 1)
        return wilson(self.ends[ENDS[WHOLE]], n)


def wilson(k, n, z=2.0):
    p = k / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return p, (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def perf_round(args, i, whole):
    found = Counter()
    path = f"{args.directory}/perf{i}.data"
    subprocess.run(
        ["perf", "record", "-q", "-F", str(args.hz), "-e", "cpu-clock", "--call-graph", "dwarf", "-p", str(args.pid), "-o", path,
         "--", "sleep", str(args.seconds)],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    text = subprocess.run(
        ["perf", "script", "-i", path, "-F", "pid,tid,ip,sym,dso", "--no-inline"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True, errors="replace",
    ).stdout  # fmt: skip
    os.unlink(path)
    for block in text.split("\n\n"):
        lines = [line.split(None, 1) for line in block.splitlines()[1:] if line.strip()]
        lines = [rest for address, rest in lines if int(address, 16) >> 63 == 0]
        first = block.splitlines()[1:2]
        if lines and first and int(first[0].split()[0], 16) >> 63 == 0:
            found[plain(lines[0].rpartition(" (")[0])] += 1
        if lines:
            whole[any(root in lines[-1] for root in ("_start", "clone3", "__clone"))] += 1
    return found


def py_spy_round(args, i, *more):
    found = Counter()
    path = f"{args.directory}/spy{i}.raw"
    for left in reversed(range(TRIES)):
        done = subprocess.run(
            [args.py_spy, "record", "-p", str(args.pid), "-r", str(args.hz), "-d", str(args.seconds), "-f", "raw", "-o", path, *more],
            check=not left, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if not done.returncode and os.path.getsize(path):
            break
    with open(path, encoding="utf-8") as f:
        for line in f:
            stack, _, n = line.rpartition(" ")
            names = [re.sub(r" \(.*", "", x) for x in stack.split(";") if ".py:" in x or "<frozen" in x]
            if names:
                found[names[-1].split(".")[-1]] += int(n)
    return found


def share(counts, name):
    return counts[name] / (sum(counts.values()) or 1)


def compare(what, ours, theirs):
    """The twelve most frequent names: of the rounds of ours and theirs, a list of Counters each. What is wrong, or None."""
    mine, others = sum(ours, Counter()), sum(theirs, Counter())
    n, m = sum(mine.values()), min(sum(r.values()) for r in theirs)
    if not n or not m:
        return f"{n} and {m} samples"
    outside = []
    for name in [k for k, _ in (mine + others).most_common(12)]:
        a, low, high = share(mine, name), min(share(r, name) for r in theirs), max(share(r, name) for r in theirs)
        p = share(mine + others, name)
        own = [share(r, name) for r in ours]
        room = SIGMA * math.sqrt(p * (1 - p) * (1 / n + 1 / m)) + max(own) - min(own) + 0.01
        line = f"{name[:50]:50} {a:6.3f}, theirs {low:.3f} to {high:.3f}, ± {room:.3f}"
        print(f"  {what}: {line}")
        if a > high + room or a < low - room:
            outside.append((max(a - high, low - a) / room, line))
    # They look at different moments of a program that does not do the same all the time: one of the twelve may be off.
    outside.sort(reverse=True)
    if len(outside) > 1 or any(by > 2 for by, _ in outside):
        return f"of {n} and {m} samples: " + "; ".join(text for _, text in outside)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kprof")
    parser.add_argument("pid", type=int)
    parser.add_argument("directory")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hz", type=int, default=199)
    parser.add_argument("--py-spy")
    args = parser.parse_args()
    problems, ours, cpu = Problems(10), Kprof(), 0.0
    perf, perf_whole, spy = [], Counter(), []
    differ, rounds = True, 0
    while rounds < args.rounds or (differ and rounds < args.rounds + MORE_OF_ALL):
        cpu += ours.round(args, rounds)
        perf.append(perf_round(args, rounds, perf_whole))
        if args.py_spy:
            spy.append(py_spy_round(args, rounds))
            spy.append(py_spy_round(args, rounds, "--native"))
        rounds += 1
        if rounds >= args.rounds:
            differ = {"perf": compare("perf", ours.native, perf)}
            if args.py_spy:
                differ["py-spy"] = compare("py-spy", ours.python, spy)
            differ = {what: text for what, text in differ.items() if text}
    while rounds < args.rounds + MORE_ROUNDS and ours.whole()[1] < WHOLE_SHARE < ours.whole()[2]:
        cpu += ours.round(args, rounds)
        rounds += 1
    whole, low, high = ours.whole()
    print(f"kprof: {ours.n} samples, {cpu * args.hz:.0f} periods of CPU time (start-up included); ends {dict(ours.ends)}")
    print(f"through JIT code: {dict(ours.made)}")
    print(f"whole: kprof {ours.ends[ENDS[WHOLE]] / max(ours.n, 1):.4f}, {whole:.4f} ({low:.4f} to {high:.4f}) without the first ones, perf {share(perf_whole, True):.4f}")
    if low < WHOLE_SHARE:
        problems.add("whole", f"{whole:.4f} ({low:.4f} to {high:.4f}) of the stacks reach the thread's first function")
    for what, text in differ.items():
        problems.add(what, text)
    for i in range(rounds):
        report = subprocess.run(
            [args.kprof, "report", f"{args.directory}/kprof{i}.kprof", "--json"], stdout=subprocess.PIPE, check=True
        )
        for source in json.loads(report.stdout)["sources"]:
            if source["fired"] != source["captured"] + source["dropped"]:
                problems.add("sources", str(source))
    sys.stdout.flush()
    problems.exit()


main()
