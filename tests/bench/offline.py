# SPDX-License-Identifier: BSD-2-Clause
"""Benchmarks of what is made of a capture: export, memory, the passes over it."""

import json
import os
import re
from statistics import median

from harness import ROUNDS, Kprof, Target, program, record, row, run_tool, scaled, scratch

NAMES, THREADS = 100, 4  # of generated captures


def count_events(trace):
    """Spans in a trace of torch.profiler's."""
    with open(trace, "rb") as f:
        return f.read().count(b'"ph": "X"')


# ---- export, against torch.profiler's ------------------------------------------------------------


def torch_speed(target, chunks, events, suffix):
    """Million events per second of CPU time, export alone: each profile can be exported once."""
    return events / target.profile(chunks, scratch("torch" + suffix))["export_cpu"] * 1e3


def kprof_speed(path, to):
    format_ = ["-f", "chrome"] if to == "/dev/null" else []
    done = run_tool(program("bench/export_bench"), "-r", "1", *format_, path, to)
    return json.loads(done)["events_per_s"] / 1e6


def recording_of(target, events):
    """A capture of about so many events, and how many they are."""
    path = scratch("export.kprof")
    _, info = record(target.pid, 0.5, path)
    per_ns = info["events"] / (info["last_ns"] - info["first_ns"])
    _, info = record(target.pid, events / per_ns / 1e9, path)
    return path, info["events"]


def export():
    """The same training step recorded by both, about as many events; the exports in turn."""
    events, speeds = scaled(100_000, 5_000), {}
    with Target("transformer") as target:
        with target.free():
            path, recorded = recording_of(target, events)
        target.profile(4, scratch("torch.json"))
        chunks = max(1, round(recorded / count_events(scratch("torch.json")) * 4))
        target.profile(chunks, scratch("torch.json"))
        profiled = count_events(scratch("torch.json"))
        for _ in range(ROUNDS):
            for suffix in (".json", ".json.gz"):
                to = "/dev/null" if suffix == ".json" else scratch("export.json.gz")
                ours = kprof_speed(path, to)
                torchs = torch_speed(target, chunks, profiled, suffix)
                speeds.setdefault(suffix, []).append((ours, torchs))
    rows = []
    for suffix, what in ((".json", "uncompressed"), (".json.gz", "gzipped")):
        pairs = speeds[suffix]
        ratio = row(f"export, {what}: kprof ÷ torch.profiler", [a / b for a, b in pairs], "×")
        us, them = median(a for a, _ in pairs), median(b for _, b in pairs)
        ratio["note"] = f"{us:.2f} ÷ {them:.2f} M/s"
        ratio["note"] += f", {recorded / 1e3:.0f} k and {profiled / 1e3:.0f} k events"
        rows.append(ratio)
    return [*rows, *export_rate()]


def generated(events):
    """A capture of so many events, always the same."""
    path = scratch(f"generated-{events}.kprof")
    if not os.path.exists(path):
        run_tool(program("bench/gen_capture"), *map(str, (events, NAMES, THREADS)), path)
    return path


def export_rate():
    path = generated(scaled(4_000_000, 50_000))
    speeds = [kprof_speed(path, "/dev/null") for _ in range(ROUNDS)]
    return [row("export of a long capture, uncompressed, to /dev/null", speeds, "M/s", "≥ 3")]


# ---- memory --------------------------------------------------------------------------------------


def memory():
    """The whole command, as people run it. Its memory does not vary: once for each size."""
    sizes = scaled((10_000_000, 40_000_000), (500_000, 2_000_000))
    peaks = []
    for events in sizes:
        path = generated(events)
        peaks.append(Kprof("export", path, "-o", "-").wait().peak_bytes / 1e6)
        os.unlink(path)
    rows = [
        row(f"kprof export of {events / 1e6:g} M events: peak memory", [peak], "MB", "< 100")
        for events, peak in zip(sizes, peaks)
    ]
    rows.append(row("… the larger ÷ the smaller", [peaks[1] / peaks[0]], "×", "< 1.10"))
    return rows


# ---- profiles for backends -----------------------------------------------------------------------


def profile_size():
    """The same samples in both formats, as kprof push sends them. Sizes do not vary."""
    rows = []
    for samples in (2_000, 100_000):
        path = scratch(f"samples-{samples}.kprof")
        run_tool(program("bench/gen_samples"), str(samples), path)
        sizes = []
        for suffix in ("otlp.pb.gz", "pb.gz"):
            run_tool(program("kprof"), "export", path, "-o", scratch("samples." + suffix))
            sizes.append(os.stat(scratch("samples." + suffix)).st_size)
        rows.append(row(f"profile of {samples:,} samples, gzip: OTLP ÷ pprof", [sizes[0] / sizes[1]], "×"))
        rows[-1]["note"] = f"{sizes[0] / samples:.2f} ÷ {sizes[1] / samples:.2f} B per sample"
    return rows


# ---- a device's activities -----------------------------------------------------------------------


def device():
    """The whole command on a training loop's activities, with their launches, operators and arrows."""
    activities = scaled(10_000_000, 50_000)
    path = scratch(f"device-{activities}.kprof")
    run_tool(program("bench/gen_device"), str(activities), path)
    tool = program("bench/export_bench")
    small = scratch("device-1000.kprof")
    run_tool(program("bench/gen_device"), "1000", small)
    least = json.loads(run_tool(tool, "-r", "1", "-f", "chrome", small, "/dev/null"))
    done = json.loads(run_tool(tool, "-r", "1", "-f", "chrome", path, "/dev/null"))
    idle = Kprof("report", path, "--by", "idle", "--json").wait()
    os.unlink(path)
    of = f"{activities / 1e6:g} M activities"
    each = (done["peak_bytes"] - least["peak_bytes"]) / activities
    rate = activities / done["cpu_s"] / 1e6
    return [
        row(f"export of {of}, correlated, one core", [rate], "M/s"),
        row("… peak memory, with an API record for each", [each], "B per activity", "< 20"),
        row(f"report --by idle of {of}: peak memory", [idle.peak_bytes / activities],
            "B per activity", "< 20"),
    ]


# ---- the store and the model, by themselves ------------------------------------------------------


def store():
    """store_bench takes medians of its own."""
    text = run_tool(program("bench/store_bench"), str(scaled(2, 0.02)))
    what = {
        "store_write": "capture file, one core: written",
        "store_read": "… read",
        "store_pass_over": "… passed over, for its tables only",
        "store_size": "… size, of a synthetic training loop",
    }
    rows = []
    for name, value, unit in re.findall(r"^(\w+) ([0-9.]+) (\S+)$", text, re.M):
        unit = unit.replace("Mrecords/s", "M records/s").replace("bytes", "B")
        rows.append(row(what[name], [float(value)], unit))
    return rows


def model():
    """model_bench interleaves its passes over one capture."""
    path = generated(scaled(4_000_000, 50_000))
    text = run_tool(program("bench/model_bench"), path, str(ROUNDS))
    events = int(re.match(r"\d+", text).group())
    rows = []
    for name, middle, shortest, longest in re.findall(
        r"^(\S.*?) +([0-9.]+) M spans/s +\(([0-9.]+) … ([0-9.]+) s\)$", text, re.M
    ):
        rows.append(row(f"pass over a capture, one core: {name}", [float(middle)], "M/s"))
        slow, fast = (events / 1e6 / float(s) if float(s) else None for s in (longest, shortest))
        low, high = (x or float(middle) for x in (slow, fast))  # printed to 10 ms
        rows[-1].update(low=min(low, float(middle)), high=max(high, float(middle)), rounds=ROUNDS)
    return rows
