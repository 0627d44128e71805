# SPDX-License-Identifier: BSD-2-Clause
"""Samples as stackdump prints them, and what chance allows."""

import json
import math
import os
import subprocess
import sys
from collections import Counter, defaultdict

WHOLE, NO_MAPPING, NOT_YET, BAD_STACK, TOO_DEEP = 1, 2, 3, 8, 10
ENDS = (
    "going whole no-mapping not-yet no-table no-rule odd-rule lost-register bad-stack no-progress too-deep"
).split()
SIGMA = 4


class Problems:
    """What is wrong, the first of each kind in full."""

    def __init__(self, show=3):
        self.kinds, self.show = Counter(), show

    def add(self, kind, text=""):
        self.kinds[kind] += 1
        if self.kinds[kind] <= self.show:
            print(f"{kind}: {text}", file=sys.stderr)

    def exit(self):
        for kind, n in self.kinds.items():
            if n > self.show:
                print(f"{kind}: {n} times", file=sys.stderr)
        sys.exit(1 if self.kinds else 0)


def load(capture, pid):
    """This process's, by (pid, tid), in order of time."""
    build = os.environ.get("BUILD", "build")
    dump = subprocess.run(
        [f"{build}/stacks/stackdump", capture, str(pid)], stdout=subprocess.PIPE, check=True
    )
    found = defaultdict(list)
    for line in dump.stdout.splitlines():
        sample = json.loads(line)
        found[sample["pid"], sample["tid"]].append(sample)
    for samples in found.values():
        samples.sort(key=lambda s: s["time_ns"])
    return found


def dropped(capture):
    """Samples that were due, and that no memory was left for."""
    build = os.environ.get("BUILD", "build")
    report = subprocess.run([f"{build}/kprof", "report", capture, "--json"], stdout=subprocess.PIPE, check=True)
    return sum(s["dropped"] + s["missed"] for s in json.loads(report.stdout)["sources"])


def check_number(total, phases, hz, lost, problems):
    """Of all samples, as many as CPU time allows. A hypervisor may take the CPU away without a word: the thread's clock goes on,
    and there is one tick when it comes back."""
    spent, gone = sum(p["cpu_ns"] for p in phases), sum(p.get("lost_ns", 0) for p in phases)
    due, room = (spent - gone) * hz / 1e9, len(phases) + sum(p.get("holes", 0) for p in phases)
    room += SIGMA * math.sqrt(due)
    if gone:
        print(f"the machine took {gone / 1e6:.1f} ms of {spent / 1e6:.1f} away")
    if total > due + room or total + min(lost, due / 10) < due - room or gone > spent / 4:
        problems.add("samples", f"{total}, and {lost} dropped, in {due:.0f} ± {room:.0f} periods of CPU time")
    return due


def physical(sample):
    """User space's frames that have one each on the stack: [(frame, [functions, inlined ones first])]."""
    found, inlined = [], []
    for frame in sample["frames"]:
        if frame["kind"] == "kernel":
            continue
        inlined.append(frame["function"])
        if not frame["inlined"]:
            found.append((frame, inlined))
            inlined = []
    return found


def show(sample):
    return (
        f"end {ENDS[sample['end']]}, {sample['state']}:\n    "
        + "\n    ".join(
            f"{f['kind'][:2]} {os.path.basename(f['module'])}+{f['address']:#x} {f['function']}"
            f" {f['file']}:{f['line']}{' (inlined)' if f['inlined'] else ''}"
            for f in sample["frames"][:60]
        )
    )


def interval(share, n):
    """How far a share of n samples may lie from the true one: SIGMA standard deviations, and one sample of grid."""
    return SIGMA * math.sqrt(share * (1 - share) / n) + 1 / n
