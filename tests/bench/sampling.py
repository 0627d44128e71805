# SPDX-License-Identifier: BSD-2-Clause
"""`kprof sample` beside perf, py-spy and austin: what each costs in all, and how many stacks are whole. One process, the
tools one after the other in each round, at the same rate, from the start of the tool to its finished profile."""

import bisect
import contextlib
import glob
import os
import re
import resource
import shutil
import subprocess
import threading
import time
from statistics import mean, median

from harness import (
    OTHER_CPUS,
    PATIENCE_S,
    Failed,
    Kprof,
    Target,
    capture_info,
    program,
    row,
    scaled,
    scratch,
    start,
)

HZ = 99
SECONDS = scaled(10, 1)
ROUNDS = scaled(3, 1)
START_SECONDS = scaled(5, 2)  # as long as tables take on a machine that is not idle
PAUSE_S = scaled(1.0, 0.4)  # without any tool: what the target does then is what it is held against
DUMPS = scaled(10, 2)
# The outermost functions of a thread: a stack that ends elsewhere is cut.
ROOTS = {"_start", "__clone3", "clone3", "clone", "__clone", "start_thread", "__libc_start_call_main"}


def tool_path(name, venv):
    """Of the environments that scripts/setup makes, or wherever it is; None."""
    beside = os.path.dirname(os.environ.get("KPROF_READERS_PYTHON") or "")
    cache = os.environ.get("KPROF_CACHE", "/var/cache/kprof")
    for folder in (beside, os.path.join(cache, venv, "bin")):
        if os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    return shutil.which(name)


def cost_of(commands):
    """CPU seconds of these commands, one after the other, and of all they start."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(scratch("sampler.log"), "w", encoding="utf-8") as log:
        for command, output in commands:
            out = open(output, "w", encoding="utf-8") if output else log
            process = start(command, OTHER_CPUS, stdin=subprocess.DEVNULL, stdout=out, stderr=log)
            if process.wait(PATIENCE_S):
                raise Failed(f"{' '.join(command)}: status {process.returncode}: see {log.name}")
            if output:
                out.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# ---- the target's time --------------------------------------------------------------------------


class CpuClock:
    """What a process has had of CPUs, in nanoseconds, at any moment of a with-block."""

    def __init__(self, pid):
        self.clock = (~pid << 3) | 2  # CPUCLOCK_SCHED of all its threads, as clock_getcpuclockid() makes it
        self.points, self.ended = [], threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)

    def follow(self):
        while not self.ended.wait(0.02):
            with contextlib.suppress(OSError):
                self.points.append((time.monotonic_ns(), time.clock_gettime_ns(self.clock)))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def at(self, moment):
        return interpolated(self.points, moment)

    def between(self, begin, end):
        return self.at(end) - self.at(begin)


def interpolated(points, x):
    """On the line through the two points around x; beyond the last, that through the last two."""
    if len(points) < 2:
        raise Failed("the target's CPU time was not seen often enough")
    i = min(max(1, bisect.bisect(points, (x,))), len(points) - 1)
    (x0, y0), (x1, y1) = points[i - 1], points[i]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def compare_with_quiet(free, spans):
    """By name of a span: how much slower the target was in it ("slower", a ratio), and how many seconds it lost. Held
    against the moments just before and after; on average, for a tool that stops the target does so now and then."""
    ends = sorted(spans.values())
    found = {}
    for name, (begin, end) in spans.items():
        before = max([e for _, e in ends if e <= begin], default=0)
        after = min([b for b, _ in ends if b >= end], default=end * 2)
        quiet = free.chunks(before, begin) + free.chunks(end, after)
        during = free.chunks(begin, end)
        if not quiet or not during:
            raise Failed("a tool was done before the target had done anything")
        plain = mean(quiet)
        lost_s = (sum(during) - len(during) * plain) / 1e9
        found[name] = {"slower": mean(during) / plain, "lost": lost_s}
    return found


# ---- the tools: CPU seconds, samples, share of whole stacks ----------------------------------------------


def by_kprof(target, clock):
    path, folded = scratch("sample.kprof"), scratch("sample.folded")
    kprof = Kprof("sample", "-p", str(target.pid), "-F", str(HZ), "-d", f"{SECONDS}s", "-o", path).wait()
    cost = kprof.cpu_ns / 1e9 + cost_of([([program("kprof"), "export", path, "-o", folded], None)])
    info = capture_info(path)
    stacks = info["stacks"]
    if not stacks["samples"]:
        raise Failed("kprof took no samples")
    return {
        "cpu": cost,
        "samples": stacks["samples"],
        "whole": stacks["walks"].get("whole", 0) / stacks["samples"],
        "stacks": stacks,
        # In time, not in number: the periods differ by up to a twentieth.
        "taken": stacks["sampled_ns"] / clock.between(info["start_ns"], info["end_ns"]),
    }


def by_perf(target, _):
    data, text = scratch("perf.data"), scratch("perf.txt")
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "--call-graph", "dwarf"]
    record += ["-p", str(target.pid), "-o", data, "--", "sleep", str(SECONDS)]
    script = ["perf", "script", "-i", data, "-F", "tid,time,ip,sym"]
    cost = cost_of([(record, None), (script, text)])
    with open(text, encoding="utf-8", errors="replace") as f:
        samples, whole = count_perf(f.read())
    return {"cpu": cost, "samples": samples, "whole": whole / max(1, samples)}


def count_perf(text):
    """Samples in what `perf script` printed, and those of them whose stack is whole."""
    samples = whole = 0
    for stack in text.split("\n\n"):
        frames = [line.split(None, 1)[-1] for line in stack.splitlines()[1:] if line.strip()]
        if frames:
            samples += 1
            whole += frames[-1] in ROOTS
    return samples, whole


def by_py_spy(target, *more):
    out = scratch("py-spy.txt")
    command = [tool_path("py-spy", "readers"), "record", "--pid", str(target.pid), "--rate", str(HZ)]
    command += ["--format", "raw", "--duration", str(SECONDS), "--output", out, *more]
    cost = cost_of([(command, None)])
    with open(out, encoding="utf-8", errors="replace") as f:
        samples = sum(int(line.rsplit(" ", 1)[1]) for line in f if line.strip())
    return {"cpu": cost, "samples": samples}


def by_austin(target, _):
    out = scratch("austin.txt")
    command = [tool_path("austin", "samplers"), "-i", f"{1_000_000 // HZ}us", "-x", str(SECONDS)]
    cost = cost_of([([*command, "-o", out, "-p", str(target.pid)], None)])
    with open(out, encoding="utf-8", errors="replace") as f:
        samples = sum(1 for line in f if line.strip() and not line.startswith("#"))
    return {"cpu": cost, "samples": samples}


def tools():
    there = {"kprof": by_kprof}
    if shutil.which("perf"):
        there["perf"] = by_perf
    if tool_path("py-spy", "readers"):
        there["py-spy --native"] = lambda target, _: by_py_spy(target, "--native")
        there["py-spy"] = lambda target, _: by_py_spy(target)
    if tool_path("austin", "samplers"):
        there["austin"] = by_austin
    return there


AIMS = {"perf": "≤ 0.1", "py-spy --native": "≤ 0.1", "py-spy": "≤ 1", "austin": None}

# ---- rounds ---------------------------------------------------------------------------------------------


def one_round(target, chosen):
    """Every tool once, moments without any in between."""
    spans, results = {}, {}
    with target.free() as free, CpuClock(target.pid) as clock:
        time.sleep(PAUSE_S)
        for name, tool in chosen.items():
            begin = time.monotonic_ns()
            results[name] = tool(target, clock)
            spans[name] = begin, time.monotonic_ns()
            time.sleep(PAUSE_S)
    for name, found in compare_with_quiet(free, spans).items():
        results[name].update(found)
        results[name]["total"] = total(results[name])
    return results


def total(result):
    """Own CPU and what the target lost. No tool makes it faster: less than nothing is noise."""
    return result["cpu"] + max(0, result["lost"])


def sums(results):
    """"1.50 (1.40 + 0.10) s": in all, of its own CPU, lost by the target."""
    in_all, cpu, lost = (median(r[key] for r in results) for key in ("total", "cpu", "lost"))
    return f"{in_all:.2f} ({cpu:.2f} + {lost:.2f})"


def rows_of(workload, rounds):
    kprof = [r["kprof"] for r in rounds]
    others = [name for name in rounds[0] if name != "kprof"]
    rows = []
    for other in others:
        theirs = [r[other] for r in rounds]
        what = f"{workload}: its own CPU and what the target lost, kprof sample ÷ {other}"
        ratios = [a["total"] / max(b["total"], 0.01) for a, b in zip(kprof, theirs)]
        rows.append(row(what, ratios, "×", AIMS[other]))
        rows[-1]["note"] = f"{sums(kprof)} ÷ {sums(theirs)} s"
    rows.append(row(f"{workload}: the target's time per step, with kprof sample ÷ without",
                    [r["slower"] for r in kprof], "×", "1.00"))
    rows[-1]["note"] = ", ".join(f"{name} {median(r[name]['slower'] for r in rounds):.2f}" for name in others)
    rows.append(row(f"{workload}: stacks that are whole", [r["whole"] * 100 for r in kprof], "%", "≥ 98"))
    if "perf" in others:
        rows[-1]["note"] = f"perf {median(r['perf']['whole'] for r in rounds) * 100:.0f} %"
    rows.append(row(f"{workload}: samples taken ÷ due", [r["taken"] * 100 for r in kprof], "%", "≥ 99"))
    rows[-1]["note"] = ", ".join(
        f"{name} {median(r[name]['samples'] for r in rounds) / (HZ * SECONDS) * 100:.0f}" for name in others)
    for share in ("p50", "p99"):
        took = [r["stacks"][f"bpf_{share}_ns"] / 1e3 for r in kprof]
        rows.append(row(f"{workload}: a sample in BPF, {share}", took, "µs"))
    return rows


def sample(workload):
    chosen = tools()
    with Target(workload) as target:
        one_round(target, {"kprof": by_kprof})  # caches are filled, as in every recording but the first
        return rows_of(workload, [one_round(target, chosen) for _ in range(ROUNDS)])


# ---- a first recording and a second one ---------------------------------------------------------


class EmptyCache:
    """A mount namespace in which kprof has kept nothing yet."""

    CACHE = "/var/cache/kprof/symbols"

    def __enter__(self):
        os.makedirs(self.CACHE, exist_ok=True)
        script = f"mount -t tmpfs -o mode=700 none {self.CACHE} && echo there && exec sleep 1000"
        self.process = start(["unshare", "-m", "sh", "-c", script], OTHER_CPUS, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "there\n":
            raise Failed("no mount namespace with an empty cache can be had")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def kprof(self, *arguments):
        inside = ["nsenter", f"--mount=/proc/{self.process.pid}/ns/mnt", f"--wd={os.getcwd()}"]
        return Kprof(*arguments, before=inside)


def text_bytes(pid):
    """Code that a process has mapped from files, each once."""
    sizes = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        for line in f:
            span, flags, offset, device, inode = line.split()[:5]
            if "x" in flags and inode != "0":
                begin, end = (int(x, 16) for x in span.split("-"))
                sizes[device, inode, offset] = end - begin
    return sum(sizes.values())


def map_bytes(pid):
    """Kernel memory of the BPF maps that a process has open; not that of maps inside of maps."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as f:
            found = re.search(r"^map_type:.*?^memlock:\s*(\d+)", f.read(), re.M | re.S)
            total += int(found.group(1)) if found else 0
    return total


def recorded(cache, pid):
    """One short recording: what came of it, in what time."""
    path = scratch("start.kprof")
    kprof = cache.kprof("sample", "-p", str(pid), "-F", str(HZ), "-d", f"{START_SECONDS}s", "-o", path)
    time.sleep(START_SECONDS * 0.75)
    maps = map_bytes(kprof.pid)
    kprof.wait()
    info = capture_info(path)
    ready_ns = info["start_ns"] - kprof.start_ns
    return {"cpu": kprof.cpu_ns / 1e9, "ready_ms": ready_ns / 1e6, "maps": maps, **info["stacks"]}


def starting():
    first, second = [], []
    with Target("transformer") as target:
        text_mb = text_bytes(target.pid) / 1e6
        with target.free():
            for _ in range(ROUNDS):
                with EmptyCache() as cache:
                    first.append(recorded(cache, target.pid))
                    second.append(recorded(cache, target.pid))
    rows = []
    for which, runs in (("first", first), ("second", second)):
        what = f"{which} recording of a PyTorch process, of {START_SECONDS} s: kprof's own CPU"
        rows.append(row(what, [r["cpu"] for r in runs], "s"))
        rows.append(row("… command start → recording", [r["ready_ms"] for r in runs], "ms", "≤ 1000"))
        build = [r["table_building_ns"] / 1e6 / text_mb for r in runs]
        rows.append(row("… building tables, of what code it has mapped", build, "ms/MB"))
        rows[-1]["note"] = f"{text_mb:.0f} MB of code; time of all threads that build, with what they wait for a CPU"
    kernel = [r["kernel_bytes"] / 2**20 for r in first]
    rows.append(row("kernel memory for its tables and mappings", kernel, "MiB", "≤ 32"))
    maps = median(r["maps"] for r in first) / 2**20
    rows[-1]["note"] = f"{maps:.0f} MiB beside it, whatever is recorded: ring buffers, room for rules and pages"
    return rows


# ---- dump -----------------------------------------------------------------------------------------------


def times_stopped(pid):
    """How often its first thread gave up its CPU: whoever stops it makes it do so."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", f.read(), re.M).group(1))


def dumpers():
    there = {"nothing": ["true"], "kprof dump": [program("kprof"), "dump", "-p"]}
    py_spy = tool_path("py-spy", "readers")
    if py_spy:
        there["py-spy dump"] = [py_spy, "dump", "--pid"]
        there["py-spy dump --native"] = [py_spy, "dump", "--native", "--pid"]
    return there


def dump():
    chosen, spans = dumpers(), []
    with Target("transformer") as target:
        with target.free() as free:
            for name, command in [*chosen.items()] * DUMPS:
                time.sleep(0.1)
                before, begin = times_stopped(target.pid), time.monotonic_ns()
                cpu = cost_of([([*command, str(target.pid)], scratch("dump.txt"))])
                time.sleep(0.02)
                spans.append((name, begin, time.monotonic_ns(), times_stopped(target.pid) - before, cpu))
    plain = median(free.chunks(0, spans[-1][2]))
    found = {name: {"stops": [], "longest": [], "cpu": []} for name in chosen}
    for name, begin, end, stops, cpu in spans:
        of = found[name]
        of["stops"].append(stops)
        of["cpu"].append(cpu * 1e3)
        # Chunks that the dump fell into: those at the edges, too.
        within = free.chunks(begin - 2 * plain, end + 2 * plain)
        of["longest"].append((max(within) - plain) / 1e6)
    rows = []
    for key, what, unit, aim in (
        ("stops", "how often the target was stopped", "", "0"),
        ("longest", "the target's longest delay of a chunk of 10 ms", "ms", None),
        ("cpu", "its own CPU", "ms", None),
    ):
        rows.append(row(f"kprof dump: {what}", found["kprof dump"][key], unit, aim))
        rows[-1]["note"] = ", ".join(
            f"{name} {median(of[key]):.1f}" for name, of in found.items() if name != "kprof dump")
    return rows
