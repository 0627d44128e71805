# SPDX-License-Identifier: BSD-2-Clause
"""Programs that are run under kprof, and what their traces say the device did."""

import collections
import gzip
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "workloads"))
import protocol  # noqa: E402, F401

PATIENCE_S = 180
LAST_S = 5  # for what was told to end when the time is up
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
WINDOW = "gpucheck window"


class Failed(Exception):
    pass


class OutOfTime(Exception):
    """The budget is spent: nothing was found to be wrong."""


class Process:
    """One that says READY, waits for a line, prints its line of JSON, and perhaps waits for another."""

    until = float("inf")  # time.monotonic() when the budget is spent
    running = []

    def __init__(self, command, folder, name, env=None):
        self.name = name
        self.out, self.err = (os.path.join(folder, f"{name}.{kind}") for kind in ("out", "err"))
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=dict(os.environ, **(env or {})),
                # A shell may have it ignored.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        self.pid = self.process.pid
        Process.running.append(self)

    @classmethod
    def clean(cls):
        """Ends what a part that failed has left."""
        for process in cls.running:
            process.process.kill()
            process.process.wait()
        cls.running = []

    def text(self, path):
        with open(path, errors="replace") as f:
            return f.read()

    def words(self):
        return self.text(self.err)

    def wait_for(self, path, pattern, nr=1):
        """The line that is the nth to match."""
        end = time.monotonic() + PATIENCE_S
        while True:
            over = self.process.poll() is not None
            found = [m.group(0) for m in re.finditer(pattern, self.text(path), re.M)]
            if len(found) >= nr:
                return found[nr - 1]
            if over or time.monotonic() > end:
                words = "ended" if over else f"did not say {pattern!r} in {PATIENCE_S} s"
                raise Failed(f"{self.name} {words}: {self.words()[-600:]}")
            if time.monotonic() > Process.until:
                raise OutOfTime(f"{self.name} was still at work")
            time.sleep(0.02)

    def ready(self, nr=1):
        self.wait_for(self.out, "^READY .*$", nr)

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def result(self, nr=1):
        return json.loads(self.wait_for(self.out, r"^\{.*\}\n", nr))

    def kill(self):
        self.process.kill()
        self.process.wait()
        Process.running.remove(self)

    def end(self, expected=0, stop=None):
        if stop:
            self.process.send_signal(stop)
        self.process.stdin.close()
        left_s = max(LAST_S, min(PATIENCE_S, Process.until - time.monotonic()))
        try:
            status = self.process.wait(left_s)
        except subprocess.TimeoutExpired:
            self.kill()
            if left_s < PATIENCE_S:
                raise OutOfTime(f"{self.name} had not ended") from None
            raise Failed(f"{self.name} does not end") from None
        Process.running.remove(self)
        if status != expected:
            raise Failed(f"{self.name}: exit status {status}: {self.words()[-600:]}")


class Trace:
    """What a Chrome trace, kprof's or torch.profiler's, says the device did; in the annotated window if there is one."""

    def __init__(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
            data = json.load(f)
        events = [e for e in data["traceEvents"] if e.get("ph") == "X"]
        self.meta = data.get("kprof", {})
        window = [e for e in events if e["name"] == WINDOW and e.get("cat") == "user_annotation"]
        rows = [e for e in events if e.get("cat") in DEVICE]
        if window:
            begin, end = window[-1]["ts"], window[-1]["ts"] + window[-1]["dur"]
            rows = [e for e in rows if begin <= e["ts"] <= end]
        self.rows = rows
        self.ranges = sorted((e for e in events if e.get("cat") == "cuda_profiler_range"), key=lambda e: e["ts"])
        self.syncs = [e for e in events if e.get("cat") == "cuda_sync"]
        calls = [e for e in events if e.get("cat") in CALLS]
        self.driver = collections.Counter(bare(e["name"]) for e in calls if e["cat"] == "cuda_driver")
        operators = [e for e in events if e.get("cat") == "cpu_op" and "External id" in e.get("args", ())]
        self.operators = {e["args"]["External id"]: e["name"] for e in operators}
        # Both profilers say by its number which call made what.
        self.calls = {e["args"].get("correlation"): e["name"] for e in calls if "args" in e}

    def linked(self):
        return sum(e["args"].get("correlation") in self.calls for e in self.rows)

    @staticmethod
    def count(names):
        return collections.Counter(plain(name) for name in names)

    def names(self):
        return self.count(e["name"] for e in self.rows if e["cat"] == "kernel")

    def by_operator(self):
        """How many kernels of each name each operator launched."""
        launchers = ((self.operators.get(e["args"].get("External id")), e) for e in self.rows if e["cat"] == "kernel")
        return collections.Counter(f"{operator}: {plain(e['name'])}" for operator, e in launchers)

    def copies(self):
        return self.count(e["name"] for e in self.rows if e["cat"] != "kernel")

    def total_us(self):
        return sum(e["dur"] for e in self.rows)


def plain(name):
    """Demanglers differ in blanks."""
    return re.sub(r"\s+", "", name)


def bare(name):
    """A driver's function without the version in its symbol, and whose stream 0 it takes."""
    return re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", name)


class Bench:
    """kprof, where its files are put, and how programs are run under it."""

    def __init__(self, kprof, folder, env=None):
        self.kprof, self.folder, self.env = kprof, folder, env or {}

    def having(self, **env):
        """The same, for programs that need these variables."""
        return Bench(self.kprof, self.folder, {**self.env, **env})

    def path(self, name, suffix):
        return os.path.join(self.folder, f"{name}.{suffix}")

    def export(self, name):
        out = self.path(name, "trace.json")
        command = [self.kprof, "export", self.path(name, "kprof"), "-o", out]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"export of {name} does not end") from None
        if done.returncode:
            raise Failed(f"export: {done.stderr}")
        return Trace(out)

    def start(self, name, command):
        target = Process(command, self.folder, name, self.env)
        target.ready()
        return target

    def alone(self, name, command):
        target = self.start(name, command)
        target.go()
        result = target.result()
        target.end()
        return result

    def by_run(self, name, command, options=()):
        command = [self.kprof, "run", "-v", "-o", self.path(name, "kprof"), *options, "--", *command, "--now"]
        target = Process(command, self.folder, name, self.env)
        result = target.result()
        target.end()
        return result, self.export(name), target.words()

    def recorder(self, name, target, options=()):
        """kprof, attached to a target, when it records."""
        command = [self.kprof, "attach", "-v", "-p", str(target.pid), "-o", self.path(name, "kprof"), *options]
        kprof = Process(command, self.folder, f"{name}-kprof")
        kprof.wait_for(kprof.err, "^kprof: recording$")
        return kprof

    def attach(self, name, target, options=(), nr=1):
        """Attached to a target that is ready, until its nth result is there."""
        kprof = self.recorder(name, target, options)
        target.go()
        result = target.result(nr)
        kprof.end(stop=signal.SIGINT)
        return result, self.export(name), kprof.words()

    def by_attach(self, name, command, options=()):
        target = self.start(name, [*command, "--linger"])
        found = self.attach(name, target, options)
        target.end()
        return found


def median(values):
    return statistics.median(values) if values else float("nan")


def tell(*words):
    if sys.stderr.isatty():
        print(*words, file=sys.stderr, flush=True)
