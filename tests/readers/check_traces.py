#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every trace that the suites made goes through Perfetto's trace processor: none has an import error.

    check_traces.py DIRECTORY

tests/run puts there, suite by suite, what a suite left in its temporary directory, with the suite's output as `log`, and
at last a file `over`. Here each of them is looked through and removed. A trace is read as it is; a capture is exported
in both formats, one of them compressed, and those are read. Where a test made the one of the two itself, the other is
made here. Of the captures in one folder (BOTH, EACH) the first two are read in both formats; each of the next eight, and of
those after it, which are parts of a recording of hundreds, every eleventh, in one, by turns. The output is a line for each
trace that Perfetto has a complaint about, and one for the others; and how long it took for suites that left many.
"""

import fnmatch
import os
import re
import subprocess
import sys
import time

from check_perfetto import STATS
from perfetto_sql import PerfettoError, TraceProcessor

KPROF = os.path.join(os.environ.get("BUILD", "build"), "kprof")
# Traces that are damaged so that something notices it: suite, file, why. These must have an error.
DAMAGED = [
    ("readers.bats", "cut.pt.trace.json", "ends in the middle"),
    ("operators.bats", "here.trace.json", "has been changed so that the comparison must notice"),
]
# The suffixes of exports, and how a test names what it made of the same capture.
FORMATS = {".pftrace": (".pftrace", ".pftrace.gz"), ".json.gz": (".trace.json", ".trace.json.gz")}
BOTH = 2  # captures of a folder that are read in both formats
EACH = 10  # captures of a folder of which each is read; of those after it every eleventh, in either format by turns
POLL_S = 0.2
LONG_S = 4  # of these suites it is said
USAGE = 2  # kprof's exit status for a command that it does not understand


def is_ours(path):
    """Whether a JSON file is a trace of kprof: its head precedes the events, and names kprof."""
    if not path.endswith(".json"):
        return True
    with open(path, "rb") as file:
        head = file.read(1 << 16)
    return b'"schemaVersion"' in head and b'\n  "kprof": {' in head


def export_of(path, suffix):
    """The path of a capture's export, if there is something to export."""
    export = path + suffix
    # What cannot be read is another test's matter.
    done = subprocess.run([KPROF, "export", path, "-o", export], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if b"says what is allocated" in done.stderr:  # of kprof memory: there is nothing on a timeline
        return
    assert done.returncode != USAGE, f"kprof export {path} -o {export} is no command of it"
    if done.returncode == 0:
        yield export
        os.unlink(export)


def traces_of(directory):
    """The paths of traces and of captures' exports, one after the other: an export is gone when the next is asked for."""
    for folder, folders, names in os.walk(directory):
        if "Makefile" in names:  # a copy of the repository: its captures were made by hand, for other ends
            folders.clear()
            continue
        paths, captures = [os.path.join(folder, name) for name in sorted(names)], 0
        for name, path in zip(sorted(names), paths):
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            if name.endswith((".json", ".json.gz", ".pftrace", ".pftrace.gz")):
                if is_ours(path):
                    yield path
            elif name.endswith(".kprof"):
                captures += 1
                if captures > EACH and captures % 11:
                    continue
                formats = [suffix for suffix, made in FORMATS.items() if not any(path[:-6] + end in paths for end in made)]
                for suffix in formats if captures <= BOTH or not formats else [formats[captures % len(formats)]]:
                    yield from export_of(path, suffix)


class Suite:
    def __init__(self, directory):
        self.directory = directory
        with open(os.path.join(directory, "log"), encoding="utf-8", errors="replace") as file:
            log = file.read()
        self.file = re.search(r"== (.*)", log)[1]
        self.tests = dict(re.findall(r"^(?:not )?ok (\d+) (.*)", log, re.M))

    def told(self, path):
        """Which trace this is, for people."""
        inside = os.path.relpath(path, self.directory)
        test = re.match(r"test/(\d+)/(.*)", inside)
        return f"{self.tests.get(test[1], test[1])}: {test[2]}" if test else inside

    def damage(self, path):
        return next((why for suite, name, why in DAMAGED if suite == os.path.basename(self.file)
                     and fnmatch.fnmatchcase(os.path.basename(path), name)), None)


class Reader:
    """A trace processor, started when there is something to read and again when a trace has ended it."""

    def __init__(self):
        self.processor = None

    def errors(self, path):
        try:
            if not self.processor:
                self.processor = TraceProcessor()
            self.processor.load(path)
            errors = {row['name']: row['value'] for row in self.processor.query(STATS)}
            return ", ".join(f"{name} {value}" for name, value in errors.items())
        except (PerfettoError, OSError) as error:
            self.close()
            return f"{type(error).__name__}: {error}".replace("\n", " ")[:500]

    def close(self):
        if self.processor:
            self.processor.__exit__()
        self.processor = None


class Counter:
    def __init__(self):
        self.read = self.told = 0

    def tell(self, verdict, text):
        self.told += 1
        print(verdict, self.told, text, flush=True)

    def judge(self, suite, path, errors):
        self.read += 1
        damage = suite.damage(path)
        if damage and not errors:
            self.tell("not ok", f"{suite.file}: {suite.told(path)}: no error, although it {damage}")
        elif errors and not damage:
            self.tell("not ok", f"{suite.file}: {suite.told(path)}: {errors}")


def main():
    root, reader, counter, finished = sys.argv[1], Reader(), Counter(), False
    while not finished and os.path.isdir(root):
        finished = os.path.exists(os.path.join(root, "over"))  # first: what was put there before is seen below
        for name in sorted(os.listdir(root)):
            directory = os.path.join(root, name)
            if not os.path.isdir(directory):
                continue
            suite, since, before = Suite(directory), time.monotonic(), counter.read
            for path in traces_of(directory):
                counter.judge(suite, path, reader.errors(path))
            if time.monotonic() - since > LONG_S:
                print(f"# {suite.file}: {counter.read - before} traces in {time.monotonic() - since:.0f} s", flush=True)
            # A test may have left something mounted.
            subprocess.run(["rm", "-rf", "--one-file-system", directory])
        time.sleep(0 if finished else POLL_S)
    reader.close()
    counter.tell("ok", f"{counter.read} traces read by Perfetto's trace processor")


if __name__ == "__main__":
    main()
