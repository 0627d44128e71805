# SPDX-License-Identifier: BSD-2-Clause
"""What the benchmarks have in common: the measured process, kprof beside it, figures from rounds.

The target gets the last CPU for itself; kprof and this script share the others (with one CPU only,
all share it, and the figures say so). All times are CLOCK_MONOTONIC in nanoseconds.
"""

import contextlib
import glob
import json
import os
import re
import resource
import select
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD", "build")
OUT = os.path.join(BUILD, "bench")
QUICK = os.environ.get("BENCH_QUICK", "0") not in ("", "0")
ROUNDS = 2 if QUICK else 5
PATIENCE_S = 120
CPUS = sorted(os.sched_getaffinity(0))
TARGET_CPUS, OTHER_CPUS = {CPUS[-1]}, set(CPUS[:-1] or CPUS)
now = time.monotonic_ns
started = []


class Failed(Exception):
    """A benchmark could not be carried out; the text says why."""


def scaled(full, quick):
    return quick if QUICK else full


def scratch(name):
    """A path for what a benchmark writes and nobody keeps."""
    os.makedirs(os.path.join(OUT, "tmp"), exist_ok=True)
    return os.path.join(OUT, "tmp", name)


def program(name):
    return os.path.join(BUILD, name)


def python():
    """The interpreter of the targets: the newest PyTorch that scripts/setup has installed."""
    if os.environ.get("KPROF_BENCH_PYTHON"):
        return os.environ["KPROF_BENCH_PYTHON"]
    cache = os.environ.get("KPROF_CACHE", "/var/cache/kprof")
    found = glob.glob(os.path.join(cache, "torch-*", "bin", "python"))
    found.sort(key=lambda path: [int(n) for n in re.findall(r"\d+", path.split("torch-")[-1])])
    return found[-1] if found else "/usr/bin/python3"


def row(what, values, unit, aim=None):
    """A line of the table: the median of one value per round, and how far the rounds lie apart."""
    return {
        "what": what,
        "median": statistics.median(values),
        "low": min(values),
        "high": max(values),
        "rounds": len(values),
        "unit": unit,
        "aim": aim,
    }


def start(command, cpus, **options):
    """A child process on these CPUs, that clean_up() knows."""
    pin = lambda: os.sched_setaffinity(0, cpus)  # noqa: E731
    started.append(subprocess.Popen(command, preexec_fn=pin, **options))
    return started[-1]


def clean_up():
    """Ends what a benchmark that failed has left behind. kprof takes its probes along."""
    while started:
        process = started.pop()
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def run_tool(*command):
    """What a program printed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


# ---- the measured process ------------------------------------------------------------------------


class Target:
    """tests/bench/target.py, or what speaks like it; between commands it sleeps."""

    def __init__(self, workload, command=None, **environment):
        script = [python(), "-W", "ignore", os.path.join(HERE, "target.py"), workload]
        self.log = open(scratch(f"target-{workload}.log"), "w", encoding="utf-8")
        self.process = start(
            command or script,
            TARGET_CPUS,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        ready = self.answer()["ready"]
        self.pid, self.torch, self.chunk = ready["pid"], ready["torch"], ready["chunk"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def send(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            raise Failed(f"the target says nothing more: see {self.log.name}")
        return json.loads(line)

    def run(self, chunks):
        """Nanoseconds per iteration of each of so many chunks."""
        self.send(do="run", chunks=chunks)
        return per_iteration(self.answer()["stamps"], self.chunk)

    def profile(self, chunks, path, shapes=False):
        self.send(do="profile", chunks=chunks, path=path, shapes=shapes)
        return self.answer()

    def free(self):
        """Lets it run until the with-block ends; the moments between its chunks are in .stamps."""
        return FreeRun(self)


class FreeRun:
    def __init__(self, target):
        self.target, self.stamps = target, None

    def __enter__(self):
        self.target.send(do="free")
        return self

    def __exit__(self, kind, *_):
        self.target.send()  # any line ends it
        self.stamps = self.target.answer()["stamps"]

    def chunks(self, begin, end):
        """Durations of the chunks that lie wholly between two moments."""
        pairs = zip(self.stamps, self.stamps[1:])
        return [b - a for a, b in pairs if begin <= a and b <= end]

    def iterations(self, begin, end):
        """How many, those at the edges in part."""
        sum_ = 0.0
        for a, b in zip(self.stamps, self.stamps[1:]):
            sum_ += max(0, min(b, end) - max(a, begin)) / (b - a)
        return sum_ * self.target.chunk


def per_iteration(stamps, chunk):
    return [(b - a) / chunk for a, b in zip(stamps, stamps[1:])]


# ---- kprof ---------------------------------------------------------------------------------------

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def nanoseconds(text):
    number, unit = re.fullmatch(r"([0-9.]+)([a-z]+)", text).groups()
    return float(number) * UNITS[unit]


class Kprof:
    """A kprof command: what it cost itself, and what it said."""

    def __init__(self, *arguments, cpus=OTHER_CPUS, before=()):
        self.command = [*before, program("kprof"), *arguments]
        self.peak_bytes, self.own_bytes, self.cpu_ns, self.end_ns = 0, 0, 0, 0
        self.said = ""
        self.log_path = scratch("kprof.log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.start_ns = now()
            self.process = start(self.command, cpus, stdout=subprocess.DEVNULL, stderr=log)
        self.pid = self.process.pid
        self.fd = os.pidfd_open(self.pid)

    def note_peak(self):
        """While there is one: a zombie has no memory."""
        self.peak_bytes = max(self.peak_bytes, status_kb(self.pid, "VmHWM") * 1024)
        self.own_bytes = max(self.own_bytes, status_kb(self.pid, "RssAnon") * 1024)

    def wait(self):
        """Its end, to the moment; its memory is looked at meanwhile, less and less often."""
        deadline, pause_s = time.monotonic() + PATIENCE_S, 0.005
        while not select.select([self.fd], [], [], pause_s)[0]:
            self.note_peak()
            pause_s = min(pause_s * 1.5, 0.05)
            if time.monotonic() > deadline:
                self.process.kill()
        self.end_ns = now()
        os.close(self.fd)
        _, status, usage = os.wait4(self.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_ns = (usage.ru_utime + usage.ru_stime) * 1e9
        with open(self.log_path, encoding="utf-8") as log:
            self.said = log.read()
        if self.process.returncode:
            raise Failed(f"{' '.join(self.command)}: {self.process.returncode}: {self.said}")
        return self

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def figure(self, what):
        """The time in "attached in TIME", "detached in TIME"."""
        found = re.search(what + r" in ([0-9.]+[a-z]+)", self.said)
        if not found:
            raise Failed(f"kprof did not say '{what} in': {self.said.strip()}")
        return nanoseconds(found.group(1))

    def recording(self):
        """Waits until its probes stand: it holds links, and gets no more."""
        links, quiet, deadline = 0, 0, time.monotonic() + PATIENCE_S
        while quiet < 10:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"kprof does not record: see {self.log_path}")
            time.sleep(0.02)
            before, links = links, count_links(self.pid)
            quiet = quiet + 1 if links and links == before else 0
        return self


def attach(pid, seconds, path, *more, **options):
    duration = ["-d", f"{seconds * 1000:.0f}ms"] if seconds else []
    return Kprof("attach", "-p", str(pid), *duration, "-o", path, *more, **options)


def record(pid, seconds, path, *more):
    """A whole recording; what the capture holds beside what the command cost."""
    kprof = attach(pid, seconds, path, *more).wait()
    info = capture_info(path)
    if not info["events"]:
        raise Failed(f"kprof recorded nothing: {kprof.said.strip()}")
    return kprof, info


def capture_info(path):
    return json.loads(run_tool(program("bench/capture_info"), path))


# ---- /proc ---------------------------------------------------------------------------------------


def status_kb(pid, key):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return next((int(line.split()[1]) for line in f if line.startswith(key + ":")), 0)
    except (FileNotFoundError, ProcessLookupError):
        return 0


def count_links(pid):
    """BPF links that a process holds."""
    count = 0
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="utf-8") as f:
                count += "link_type:" in f.read()
        except OSError:
            pass
    return count


def dirty_text_bytes(pid):
    """Private_Dirty of all code mapped from files: what probes copied on write."""
    text, total = False, 0
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        for line in f:
            mapping = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ (\d+)", line)
            if mapping:
                text = "x" in mapping.group(1) and mapping.group(2) != "0"
            elif text and line.startswith("Private_Dirty:"):
                total += int(line.split()[1]) * 1024
    return total


def pin_self():
    os.sched_setaffinity(0, OTHER_CPUS)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    with open("/proc/meminfo", encoding="utf-8") as f:
        total_kb = int(f.readline().split()[1])
    return {
        "cpu": model.group(1) if model else os.uname().machine,
        "cpus": len(CPUS),
        "pinned": len(CPUS) > 1,
        "memory_gb": round(total_kb / 1e6, 1),
        "virtual": "hypervisor" in open("/proc/cpuinfo", encoding="utf-8").read(),
        "kernel": os.uname().release,
        "load_before": os.getloadavg()[0],
        "page_kb": resource.getpagesize() // 1024,
        "driver": sys.version.split()[0],
    }
