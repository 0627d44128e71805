# SPDX-License-Identifier: BSD-2-Clause
"""What `kprof daemon` costs a machine: samples of all processes, and the flight recorder."""

import contextlib
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import time
from statistics import median

from harness import CPUS, HERE, PATIENCE_S, Failed, Kprof, Target, now, program, row, run_tool, scaled, scratch, start

sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import daemon_cost  # noqa: E402

BEGIN_S = scaled(8, 1)  # reading all that there is costs once, and is told by itself
WATCHED = "kprof-bench"
# Between two operators: without it their traps are more than the daemon's bound can be, and they are given up.
PAUSE = "400"


class Daemon:
    """One of its own, by /proc and, where there may be one, by its cgroup."""

    def __init__(self, *options):
        self.state = os.path.abspath(scratch("daemon"))
        shutil.rmtree(self.state, ignore_errors=True)
        self.socket = f"/tmp/kprof-bench-{os.getpid()}/socket"  # its path must be short
        os.makedirs(os.path.dirname(self.socket), 0o755, exist_ok=True)
        self.cgroup = daemon_cost.new_cgroup()
        command = [program("kprof"), "daemon", "--state", self.state, "--socket", self.socket, "--config", "/dev/null", *options]
        if self.cgroup:
            command = ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', self.cgroup, *command]
        with open(scratch("daemon.log"), "w", encoding="utf-8") as log:
            self.process = start(command, set(CPUS), stdout=log, stderr=log)
        self.watch = daemon_cost.Watch(self.process.pid, self.cgroup)
        end = time.monotonic() + PATIENCE_S
        while not self.records():
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failed(f"the daemon does not record: see {scratch('daemon.log')}")
            time.sleep(0.1)

    def status(self):
        with contextlib.suppress(Failed, ValueError):
            return json.loads(run_tool(program("kprof"), "ctl", "status", "--socket", self.socket, "--json"))
        return None

    def records(self):
        status = self.status() or {}
        return any(status.get(part, {}).get("state") == "recording" for part in ("sampler", "flight"))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        status = {} if kind else self.status()
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE_S)
        shutil.rmtree(os.path.dirname(self.socket), ignore_errors=True)
        time.sleep(0.2)
        if self.cgroup:
            with contextlib.suppress(OSError):
                os.rmdir(self.cgroup)
        if status is None:
            raise Failed(f"the daemon does not answer: see {scratch('daemon.log')}")
        if ((status.get("flight") or {}).get("now") or {}).get("given_up"):
            raise Failed("the flight recorder gave something up: what it cost is not what all costs")


# ---- the whole machine ----


def source():
    path = scratch("mixed.c")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(f"int f{i}(int x) {{ return x * {i} + (x >> {i % 31}); }}" for i in range(scaled(600, 100))))
    return path


def piece_of_work(path):
    """A compiler, Python, a shell that begins programs, one that compresses: the same work each time. CPU seconds."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    shell = f"i=0; while [ $i -lt {scaled(200, 20)} ]; do /bin/true; i=$((i+1)); done"
    for command in (
        ["gcc", "-O1", "-c", path, "-o", "/dev/null"],
        [sys.executable, "-c", f"sum(x * x for x in range({scaled(3, 1)} * 10**6))"],
        ["sh", "-c", shell],
        ["gzip", "-c", program("kprof")],
    ):
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


def share(before, after):
    """What it cost between two readings, of busy CPU time or of one CPU, in percent."""
    took = after["cpu_ns"] - before["cpu_ns"] + after["bpf_ns"] - before["bpf_ns"]
    return took / max(after["busy_ns"] - before["busy_ns"], after["at"] - before["at"]) * 100


def slowdown():
    """CPU time of a fixed piece of work with the daemon ÷ without, in turn; and what the daemon takes itself meanwhile."""
    path, ratios, own, begins = source(), [], [], []
    counting = daemon_cost.count_run_times()
    piece_of_work(path)
    for _ in range(scaled(5, 1)):
        without = [piece_of_work(path) for _ in range(2)]
        with Daemon() as d:
            time.sleep(BEGIN_S)
            first = d.watch.reading()
            begins.append((first["cpu_ns"] + first["bpf_ns"]) / 1e6)
            with_it = [piece_of_work(path) for _ in range(2)]
            last = d.watch.reading()
        ratios.append(sum(with_it) / sum(without) * 100 - 100)
        own.append(share(first, last))
    os.close(counting)
    return [
        row("daemon: CPU time of a mixed load, with it more than without", ratios, "%", "≤ 0.5"),
        row("… its processes and its BPF programs, of busy CPU time", own, "%", "≤ 1"),
        row("… its first seconds, in all", begins, "ms of CPU time"),
    ]


def seconds(daemon, number):
    """What each of so many costs, of busy CPU time or of one CPU, in percent."""
    shares, before = [], daemon.watch.reading()
    for _ in range(number):
        time.sleep(1)
        after = daemon.watch.reading()
        shares.append(share(before, after))
        before = after
    return shares


def idle():
    """What a second costs where nothing goes on beside it, and whether that is too much for all that it records."""
    counting = daemon_cost.count_run_times()
    with Daemon() as d:
        time.sleep(BEGIN_S)
        rows = [row("daemon: a second on an idle machine", seconds(d, scaled(40, 2)), "% of one CPU", "≤ 1")]
        given_up = d.status()["sampler"]["now"]["given_up"]
        rows[0]["note"] = f"things given up: {given_up}"
    os.close(counting)
    return rows


def crowd():
    """What a second costs beside thousands of processes that wake once a second, when it has met them."""
    number = scaled(3000, 50)
    counting = daemon_cost.count_run_times()
    with subprocess.Popen([program("bench/crowd"), str(number)], stdout=subprocess.PIPE) as processes:
        processes.stdout.readline()
        with Daemon() as d:
            time.sleep(2 * BEGIN_S)
            shares = seconds(d, scaled(40, 2))
        processes.kill()
    os.close(counting)
    return [row(f"daemon: a second beside {number} processes that wake in each", shares, "%", "≤ 1.2")]


def memory():
    """Of all its processes, by shares, and of the kernel's maps, while programs come and go; and the dearest second."""
    minutes, rows = [int(m) for m in os.environ.get("BENCH_DAEMON_MINUTES", "1,3").split(",")], []
    path, shares = source(), []
    counting = daemon_cost.count_run_times()
    with Daemon() as d:
        begin, before = time.monotonic(), None
        for minute in minutes:
            end = begin + scaled(minute * 60, minute * 2)
            while time.monotonic() < end:
                if time.monotonic() % 10 < 3:
                    piece_of_work(path)
                time.sleep(1)
                r = d.watch.reading()
                if before and time.monotonic() - begin > BEGIN_S:
                    shares.append(share(before, r))
                before = r
            rows.append(row(f"daemon: memory after {minute} min", [(before["pss"] + before["kernel"]) / 1e6], "MB", "≤ 250"))
            rows[-1]["note"] = f"{before['pss'] / 1e6:.0f} of its processes (PSS) + {before['kernel'] / 1e6:.0f} of maps"
    os.close(counting)
    shares.sort()
    rows.append(row("… what a second cost, of busy CPU time or one CPU", shares, "%", "≤ 1.2"))
    rows[-1]["note"] = f"99 % of seconds at most {shares[int(len(shares) * 0.99) - 1]:.2f}"
    return rows


# ---- the flight recorder ----


def added_ns(target, recorder):
    """To an iteration, with a recorder on: a context."""
    chunks = scaled(60, 4)
    before = median(target.run(chunks))
    with recorder:
        time.sleep(scaled(2, 1))  # return sites are learnt, the process is met
        target.run(scaled(20, 2))
        during = median(target.run(chunks))
    return during - (before + median(target.run(chunks))) / 2


@contextlib.contextmanager
def attached(pid):
    kprof = Kprof("attach", "-p", str(pid), "-o", scratch("flight.kprof")).recording()
    yield
    kprof.stop()


def flight():
    """A call of an operator while the flight recorder watches ÷ while `attach` records."""
    ratios, ours, theirs = [], [], []
    with Target("ops", KPROF_BENCH_NAME=WATCHED, KPROF_BENCH_PAUSE=PAUSE) as target:
        for _ in range(scaled(3, 1)):
            theirs.append(added_ns(target, attached(target.pid)))
            ours.append(added_ns(target, Daemon("--no-sampling", "--watch", WATCHED, "--max-overhead", "100%")))
            ratios.append(ours[-1] / theirs[-1])
    rows = [row("flight recorder: added to an operator, ÷ attach", ratios, "×", "≤ 1.1")]
    rows[0]["note"] = f"{median(ours):.0f} ÷ {median(theirs):.0f} ns"
    return rows


def dump():
    """How long a dump of the last minute takes, of a process that calls operators at some pace."""
    took, sizes, seconds = [], [], scaled(60, 3)
    with Target("cnn", KPROF_BENCH_NAME=WATCHED) as target:
        with Daemon("--no-sampling", "--watch", WATCHED, "--max-overhead", "100%") as d, target.free():
            time.sleep(seconds + 2)
            for _ in range(scaled(3, 1)):
                path, begin = scratch("dump.kprof"), now()
                run_tool(program("kprof"), "ctl", "dump", "--socket", d.socket, "-o", path, "--last", f"{seconds}s")
                took.append((now() - begin) / 1e6)
                sizes.append(os.path.getsize(path) / 1e6)
                os.unlink(path)
    rows = [row(f"flight recorder: a dump of {seconds} s of a training", took, "ms")]
    rows[0]["note"] = f"{median(sizes):.1f} MB"
    return rows


# ---- on demand ----


def first_ns(capture):
    """When its first operator began, by CLOCK_REALTIME."""
    trace = scratch("first.json")
    run_tool(program("kprof"), "export", capture, "-o", trace)
    with open(trace, encoding="utf-8") as f:
        parsed = json.load(f)
    return parsed["baseTimeNanoseconds"] + min(e["ts"] for e in parsed["traceEvents"] if e.get("cat") == "cpu_op") * 1000


def start_prepared(d, pid, path):
    """From the request to the first operator, in ms, of a recording that is prepared."""
    ctl = [program("kprof"), "ctl"]
    recording = run_tool(*ctl, "prepare", "--socket", d.socket, "-p", str(pid)).strip()
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(d.socket)
        asked = time.time_ns()
        s.sendall(json.dumps({"do": "start", "id": recording}).encode() + b"\n")
        s.recv(65536)
    time.sleep(0.3)
    run_tool(*ctl, "stop", "--socket", d.socket, recording)
    run_tool(*ctl, "get", "--socket", d.socket, recording, "-o", path)
    return (first_ns(path) - asked) / 1e6


def start_attach(pid, path):
    asked = time.time_ns()
    kprof = Kprof("attach", "-p", str(pid), "-o", path).recording()
    time.sleep(0.3)
    kprof.stop()
    return (first_ns(path) - asked) / 1e6


def begins():
    """How soon a recording that is prepared begins, of a process that calls operators all the time; and `attach`."""
    ours, theirs, path = [], [], scratch("begins.kprof")
    with Target("ops", KPROF_BENCH_PAUSE=PAUSE) as target, Daemon() as d, target.free():
        for _ in range(scaled(9, 1)):
            ours.append(start_prepared(d, target.pid, path))
            theirs.append(start_attach(target.pid, path))
    rows = [row("prepared recording: from start to its first event", ours, "ms", "≤ 5")]
    rows[0]["note"] = f"attach: {median(theirs):.0f} ms"
    return rows
