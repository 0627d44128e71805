#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every sample in a phase of a program that knows its stacks (shadow.h) against what the program says.

    check_native.py [--shadow-only] [--no-names] [--open-root] [--thread-root] [--made] [--starting] [--copies]
                    [--hz N] CAPTURE RESULT.json

The sample must be whole, and from the function that runs the phase outwards equal the program's list, frame by
frame: the same module, the same address in it. --shadow-only: the program has nothing that its own unwinder could
read; the list that it kept itself is all there is. --no-names: it has no symbols. --open-root: its libc describes none of
its own functions (musl): what the program knows must be there, the walk need not come to the end of what lies behind it.
--thread-root: but for those of threads. --made: code that it makes is among its functions. Where it makes other code in the same place, again and again, a walk may
end there; what it says must be true.
--starting: the program has just begun; its code is not known at first, and samples say so. From the first whole one on
all are.
--copies: the program was met just before; until the kernel knows its code, a copy of a part of its stack is walked. In the
second half all samples are whole.
"""

import argparse
import json
import os
import re
import sys

from samples import BAD_STACK, NO_MAPPING, NOT_YET, TOO_DEEP, WHOLE, Problems, check_number, dropped, load, physical, show

MAX_FRAMES = 512
BASE = "phase_run"
JIT = "[jit]"
GO_SWITCHES = ("runtime.mcall", "runtime.morestack", "runtime.systemstack", "runtime.gogo", "gogo")
MOVED = 2  # samples of a program


def plain(name):
    """Without scopes, template arguments and what compilers append to parts of functions."""
    name = re.sub(r"<.*>", "", name).split("::")[-1].split("(")[0]
    return re.sub(r"\.(part|constprop|isra|cold|lto_priv)\b.*", "", name)


def place(module, address, program):
    if module in ("program", "/proc/self/exe"):
        module = program
    elif module == "?":
        return JIT, address
    elif module.startswith("linux-vdso"):
        module = "[vdso]"
    return os.path.basename(os.path.realpath(module)), address


class Phase:
    def __init__(self, phase, program, args):
        self.__dict__.update(phase)
        frames = self.shadow if args.shadow_only else self.unwound[1:]
        self.expected = [place(f["module"], f["address"], program) for f in frames]
        self.names = [f["function"] for f in self.shadow if f["function"] or not args.made]
        if self.name == "trap":
            self.names.insert(2, "trap_here")
        self.deep = len(self.expected) > MAX_FRAMES
        self.open = args.open_root
        # libgcc's unwinder goes on where nobody called: glibc describes __start_context as any other function.
        if self.name == "context":
            self.expected = self.expected[: len(self.shadow)]
        self.rooted = self.name == "context" or (self.name == "thread" and args.thread_root)
        self.ordered = args.shadow_only or args.made or self.open
        if args.made:
            self.expected = [place(f["module"], f["address"], program) for f in self.shadow]
        self.args, self.program, self.samples = args, program, 0
        self.kernel = self.vdso = self.thrown = self.switched = self.jit = self.cut = self.moved = 0
        self.handled = self.name in ("signal", "alarm", "trap")

    def check(self, sample, problems):
        self.samples += 1
        self.kernel += sample["state"] == "kernel"
        if self.args.open_root and self.name == "syscall":
            return None  # musl's system calls that can be cancelled: assembly, not described and without a name
        real = physical(sample)
        where = [place(f["module"], f["address"], self.program) for f, _ in real]
        self.vdso += any(f["module"] == "[vdso]" for f, _ in real)
        if sample["end"] in self.args.early and sample["time_ns"] < self.args.known_ns:
            return None  # a program that has just begun: its code is not known yet, and the sample says so
        self.jit += any(w[0] == JIT for w in where)
        if self.name == "again" and sample["end"] != WHOLE and where[-1][0] == JIT:
            self.cut += 1
            return None
        if sample["end"] != (TOO_DEEP if self.deep else WHOLE) and (self.deep or self.rooted or not self.open):
            return self.excused(sample) or problems.add(f"{self.name}: not whole", show(sample))
        if sample["cut"] != self.deep or (self.deep and len(real) != MAX_FRAMES):
            return problems.add(f"{self.name}: cut", f"{len(real)} frames {show(sample)}")
        at = self.base(where)
        if at is None:
            return self.excused(sample) or problems.add(
                f"{self.name}: another stack", f"{show(sample)}\n  not {self.expected}"
            )
        if not self.args.no_names:
            self.check_names(real[at:], sample, problems)

    def base(self, where):
        """Index of the frame that runs the phase, when all behind it are as they must be."""
        if self.deep:
            for at in range(len(where)):
                if where[at + 1 :] == self.expected[: len(where) - at - 1]:
                    return at
        elif self.ordered:
            return self.in_order(where)
        elif where[-len(self.expected) :] == self.expected:
            return len(where) - len(self.expected) - 1
        return None

    def in_order(self, where):
        """The list need not be all: a signal's frame, or what a naked function called, is not in it."""
        want = [w for w in self.expected if w[0] in (os.path.basename(self.program), JIT)]
        if self.open and self.handled:  # the signal's frame is libc's, and cannot be passed
            want = want[:1]
        at, have = None, 0
        for i, w in enumerate(where):
            if have < len(want) and w == want[have]:
                at, have = (i if at is None else at), have + 1
        return at - 1 if at and have == len(want) else None

    def excused(self, sample):
        """Some few samples lie where no description is true, and no walk can be."""
        functions = [f["function"] for f in sample["frames"] if f["kind"] != "kernel"]
        if sample["end"] == BAD_STACK:
            # The kernel moves pages from place to place where memory is short of big ones: for so long they cannot be read.
            self.moved += 1
            return self.moved <= MOVED
        if any("_Unwind_R" in f for f in functions[:8]):
            # Where libgcc leaves for the handler it has written over its own frame.
            self.thrown += 1
            return self.thrown <= 3 + 0.05 * self.samples
        switch = next((i for i, f in enumerate(functions) if f.removesuffix(".abi0") in GO_SWITCHES), None)
        if switch is not None and not any(f.startswith("main.") for f in functions[:switch]):
            # Go takes the CPU from a goroutine every 10 ms: its scheduler runs on a stack of its own, whose root this is.
            self.switched += 1
            return self.switched <= 5 + 0.05 * self.samples
        return False

    def check_names(self, real, sample, problems):
        have = iter([plain(name) for _, names in real for name in names[-1:]])
        want = self.names[: len(real)] if self.deep else self.names
        if self.open and self.handled:
            want = want[:2]
        for name in want:
            if not any(name == h for h in have):
                return problems.add(f"{self.name}: {name} has another name", show(sample))
        if plain(real[0][1][-1]) != BASE:
            problems.add(f"{self.name}: {BASE} has another name", show(sample))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("capture")
    parser.add_argument("result")
    parser.add_argument("--shadow-only", action="store_true")
    parser.add_argument("--no-names", action="store_true")
    parser.add_argument("--open-root", action="store_true")
    parser.add_argument("--thread-root", action="store_true")
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--hz", type=float, default=999)
    parser.add_argument("--starting", action="store_true")
    parser.add_argument("--copies", action="store_true")
    args = parser.parse_args()
    with open(args.result, encoding="utf-8") as f:
        result = json.load(f)
    problems, by_thread = Problems(), load(args.capture, result["pid"])
    begin_ns, end_ns = (f(p[key] for p in result["phases"]) for f, key in ((min, "begin_ns"), (max, "end_ns")))
    args.known_ns, args.early = begin_ns, (NO_MAPPING, NOT_YET)
    if args.copies:
        args.known_ns, args.early = (begin_ns + end_ns) / 2, (NO_MAPPING, NOT_YET, BAD_STACK)
    if args.starting:
        mine = [s for found in by_thread.values() for s in found]
        args.known_ns = min((s["time_ns"] for s in mine if s["end"] == WHOLE and s["time_ns"] >= begin_ns), default=end_ns)
        if args.known_ns > (begin_ns + end_ns) / 2:
            problems.add("its code was not known in the first half")
    phases = [Phase(p, result["program"], args) for p in result["phases"]]
    for phase in phases:
        for sample in by_thread[result["pid"], phase.tid]:
            if phase.begin_ns <= sample["time_ns"] <= phase.end_ns:
                phase.check(sample, problems)

    total, lost = sum(p.samples for p in phases), dropped(args.capture)
    due = check_number(total, result["phases"], args.hz, lost, problems)
    print(f"{total} samples, {due:.0f} due: " + ", ".join(f"{p.name} {p.samples}" for p in phases))
    moved = sum(p.moved for p in phases)
    if moved > MOVED:
        problems.add("not whole", f"{moved} stacks could not be read to their ends")
    for phase in phases:
        if phase.name == "vdso" and not phase.vdso:
            problems.add("vdso", "no sample in the vDSO")
        if phase.name == "syscall" and not phase.kernel:
            problems.add("syscall", "no sample in the kernel")
    if args.made:
        again = sum(p.samples for p in phases if p.name == "again")
        cut = sum(p.cut for p in phases)
        print(f"{sum(p.jit for p in phases)} through JIT code; {cut} of {again} ended in code made again")
        if not all(p.jit for p in phases) or not cut:
            problems.add("made", "not all was met")
    problems.exit()


main()
