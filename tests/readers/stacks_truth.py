# SPDX-License-Identifier: BSD-2-Clause
"""What the text that tests/bench/gen_stacks made a capture of says, read without kprof."""

import collections
import os
import re

OFF_CPU, CUT = 2, 1 << 16


KEEP_CONTROLS = False  # formats that have a way to write them


def unescape(text):
    """\\xNN as bytes; what is no UTF-8, or would not be seen, is shown as \\xNN again."""
    data = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())
    shown = data.decode("utf-8", "backslashreplace")
    if KEEP_CONTROLS:
        return shown
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]",
                  lambda m: "".join(f"\\x{b:02x}" for b in m[0].encode()), shown)


Line = collections.namedtuple("Line", "function file line")
Frame = collections.namedtuple("Frame", "kind module build_id address op lines")  # lines innermost first
Sample = collections.namedtuple("Sample", "thread count weight_ns flags frames")  # frames outermost first
Thread = collections.namedtuple("Thread", "pid tid name")


class Truth:
    def __init__(self, path):
        self.threads, self.samples, self.spans = [], [], []
        for text in open(path, encoding="utf-8").read().split("\n"):
            field = text.split("\t")
            if field[0] == "thread":
                self.threads.append(Thread(int(field[1]), int(field[2]), unescape(field[3])))
            elif field[0] == "sample":
                self.samples.append(Sample(int(field[1]), int(field[2]), int(field[3]), int(field[4], 0),
                                           [frame(f) for f in field[5:]]))
            elif field[0] == "span":
                self.spans.append((unescape(field[2]), [frame(f) for f in field[3:]]))
        self.total_ns = sum(s.count * s.weight_ns for s in self.samples)
        self.count = sum(s.count for s in self.samples)

    def thread_name(self, index):
        thread = self.threads[index]
        return f"{thread.name} ({thread.tid})"

    def paths(self, name):
        """Nanoseconds by path from the thread inwards; name(frame, line) names a function."""
        sums = collections.Counter()
        for sample in self.samples:
            path = [self.thread_name(sample.thread)]
            if not sample.frames:
                path.append("[no stack]")
            elif (sample.flags >> 8 & 0xff) > 1 or sample.flags & CUT:
                path.append("[incomplete]")
            path += functions(sample.frames, name)
            if sample.flags & 15 == OFF_CPU:
                path.append("[off CPU]")
            sums[tuple(path)] += sample.count * sample.weight_ns
        return sums


def frame(text):
    part = [unescape(p) for p in text.split("|")]
    lines = [Line(part[i], part[i + 1], int(part[i + 2])) for i in range(5, len(part), 3)]
    return Frame(part[0], part[1], part[2], int(part[3], 0), part[4], lines)


def functions(frames, name):
    """Outermost first, with an operator in front of its entry."""
    for f in frames:
        if f.op:
            yield f.op
        for line in reversed(f.lines):
            yield name(f, line)


def shown(f, line):
    """As lists show it."""
    return f"{line.function} ({os.path.basename(line.file)})" if f.kind == "P" and line.file else line.function


def below(paths):
    """Each path's time and that of all that it leads to."""
    sums = collections.Counter()
    for path, ns in paths.items():
        for n in range(len(path) + 1):
            sums[path[:n]] += ns
    return sums
