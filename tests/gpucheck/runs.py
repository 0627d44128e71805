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

PATIENCE_S = 180
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
WINDOW = "gpucheck window"


class Failed(Exception):
    pass


class Process:
    """One that says READY, waits for a line, prints its line of JSON, and perhaps waits for another."""

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

    def text(self, path):
        with open(path, errors="replace") as f:
            return f.read()

    def wait_for(self, path, pattern):
        """The first line that matches."""
        end = time.monotonic() + PATIENCE_S
        while True:
            over = self.process.poll() is not None
            found = re.search(pattern, self.text(path), re.M)
            if found:
                return found.group(0)
            if over or time.monotonic() > end:
                words = "ended" if over else f"did not say {pattern!r} in {PATIENCE_S} s"
                raise Failed(f"{self.name} {words}: {self.text(self.err)[-600:]}")
            time.sleep(0.02)

    def ready(self):
        self.wait_for(self.out, "^READY .*$")

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def result(self):
        return json.loads(self.wait_for(self.out, r"^\{.*\}$"))

    def end(self, expected=0, stop=None):
        if stop:
            self.process.send_signal(stop)
        self.process.stdin.close()
        try:
            status = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"{self.name} does not end") from None
        if status != expected:
            raise Failed(f"{self.name}: exit status {status}: {self.text(self.err)[-600:]}")


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
        # Both profilers say by it which call made what.
        self.calls = {e["args"].get("correlation") for e in events if e.get("cat") in CALLS and "args" in e}

    def linked(self):
        return sum(e["args"].get("correlation") in self.calls for e in self.rows)

    @staticmethod
    def count(names):
        return collections.Counter(plain(name) for name in names)

    def names(self):
        return self.count(e["name"] for e in self.rows if e["cat"] == "kernel")

    def copies(self):
        return self.count(e["name"] for e in self.rows if e["cat"] != "kernel")

    def total_us(self):
        return sum(e["dur"] for e in self.rows)


def plain(name):
    """Demanglers differ in blanks."""
    return re.sub(r"\s+", "", name)


class Bench:
    """kprof, where its files are put, and how programs are run under it."""

    def __init__(self, kprof, folder, env=None):
        self.kprof, self.folder, self.env = kprof, folder, env or {}

    def path(self, name, suffix):
        return os.path.join(self.folder, f"{name}.{suffix}")

    def export(self, name):
        out = self.path(name, "trace.json")
        done = subprocess.run([self.kprof, "export", self.path(name, "kprof"), "-o", out], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"export: {done.stderr}")
        return Trace(out)

    def alone(self, name, command):
        target = Process(command, self.folder, name, self.env)
        target.ready()
        target.go()
        result = target.result()
        target.end()
        return result

    def by_run(self, name, command, options=()):
        command = [self.kprof, "run", "-v", "-o", self.path(name, "kprof"), *options, "--", *command, "--now"]
        target = Process(command, self.folder, name, self.env)
        result = target.result()
        target.end()
        return result, self.export(name), target.text(target.err)

    def attach(self, name, target, options=()):
        """Attached to a target that is ready, until its result is there."""
        command = [self.kprof, "attach", "-v", "-p", str(target.pid), "-o", self.path(name, "kprof"), *options]
        kprof = Process(command, self.folder, f"{name}-kprof")
        try:
            kprof.wait_for(kprof.err, "^kprof: recording$")
            target.go()
            result = target.result()
        finally:
            kprof.end(stop=signal.SIGINT)
        return result, self.export(name), kprof.text(kprof.err)

    def by_attach(self, name, command, options=()):
        target = Process([*command, "--linger"], self.folder, name, self.env)
        target.ready()
        try:
            return self.attach(name, target, options)
        finally:
            target.end()


def median(values):
    return statistics.median(values) if values else float("nan")


def tell(*words):
    if sys.stderr.isatty():
        print(*words, file=sys.stderr, flush=True)
