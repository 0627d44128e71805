# SPDX-License-Identifier: BSD-2-Clause
"""Benchmarks of what is recorded of devices: launches on a simulated CUDA, the agent's records."""

import json
import os
import re
import subprocess
import time
from statistics import median

from harness import (
    CPUS,
    OTHER_CPUS,
    ROUNDS,
    Failed,
    Target,
    attach,
    capture_info,
    now,
    program,
    row,
    run_tool,
    scaled,
    scratch,
    start,
)
from live import PLAIN_CHUNKS, compare

# Work takes no time there: the host never waits for the device, which would hide what is added.
DEVICE = {"KPROF_SIM_LAUNCH_NS": "0", "KPROF_SIM_GAP_NS": "0"}
# What each has to place and to enable.
HOW = {
    "calls alone (--no-agent)": ["--no-agent"],
    "device activities alone (--types kernel)": ["--types", "kernel"],
    "both, the default": [],
}


def target(name, **environment):
    return Target(name, [program("bench/cuda_target")], **DEVICE, **environment)


def launch_round(target_, options):
    """Nanoseconds a launch without and with. It goes on at the end: CUPTI is left in a call."""
    path, seconds = scratch("launch.kprof"), scaled(0.6, 0.3)
    with target_.free() as free:
        time.sleep(seconds / 2)
        began = now()
        kprof = attach(target_.pid, None, path, *options).recording()
        time.sleep(seconds / 4)
        during = now()
        time.sleep(seconds)
        stopping = now()
        kprof.stop()
        ended = now()
        time.sleep(seconds / 2)
    plain = free.chunks(0, began) + free.chunks(ended, now())
    busy = free.chunks(during, stopping)
    if not plain or not busy:
        raise Failed("the recording was too short for a chunk of the target")
    return {
        "plain": median(plain) / target_.chunk,
        "busy": median(busy) / target_.chunk,
        "lost": capture_info(path)["lost"],
    }


def launch():
    """A program that only launches, with the agent in it; beside it the same without one."""
    rounds, ratios, added = {how: [] for how in HOW}, [], []
    agent = os.path.abspath(program("libkprof_agent.so"))
    with (
        target("launch-bare") as bare,
        target("launch", CUDA_INJECTION64_PATH=agent) as carrying,
    ):
        for _ in range(ROUNDS):
            ratios.append(compare(carrying, bare, scaled(100, 10)))
            added.append((ratios[-1] - 1) * median(bare.run(PLAIN_CHUNKS)))
            for how, options in HOW.items():
                rounds[how].append(launch_round(carrying, options))
    what = "a launch, agent loaded, no session ÷ no agent"
    rows = [row(what, ratios, "×", "1.00")]
    rows[0]["note"] = f"{median(added):+.0f} ns, aim < 20"
    for how, list_ in rounds.items():
        what = f"a launch, {how}: during ÷ agent at rest"
        rows.append(row(what, [r["busy"] / r["plain"] for r in list_], "×"))
        more = median(r["busy"] - r["plain"] for r in list_) / 1e3
        plain, lost = median(r["plain"] for r in list_) / 1e3, sum(r["lost"] for r in list_)
        rows[-1]["note"] = f"{more:+.2f} µs to {plain:.2f} µs; {lost} lost"
    return rows


# ---- the agent's way of records ------------------------------------------------------------------

RATES = [0, 8, 6, 5, 4, 3, 2, 1, 0.5]  # million records a second; 0: what one thread can hand over


def rate_round(rate, seconds):
    """A program that makes so many records, kprof on what CPU time is left for it."""
    path, library = scratch("batch.kprof"), program("bench/agent/libkprof_agent.so")
    serve = start(
        [program("bench/agent_bench"), "serve", library, f"{rate * 1e6:.0f}"],
        CPUS,
        stdout=subprocess.PIPE,
        text=True,
    )
    if not serve.stdout.readline().startswith("READY"):
        raise Failed("agent_bench did not start")
    kprof = attach(serve.pid, seconds, path, cpus=CPUS).wait()
    made = json.loads(serve.stdout.readline())
    serve.wait()
    info = capture_info(path)
    return {
        "rate": made["records_per_s"] / 1e6,
        "share": 1 - info["device_records"] / made["records"],
        "cpu": kprof.cpu_ns / made["records"],
    }


def batch_rate():
    """From the most downwards, to the first rate at which nothing is lost."""
    rows = []
    for rate in RATES:
        rounds = [rate_round(rate, scaled(1.5, 0.5)) for _ in range(scaled(3, 1))]
        what = f"{rate:g} M kernel records a second" if rate else "one thread's kernel records"
        lost = median(r["share"] for r in rounds)
        rows.append(row(f"{what}, to the capture", [r["rate"] for r in rounds], "M/s"))
        if any(r["share"] for r in rounds):
            rows[-1]["note"] = f"{lost:.1%} lost"
            continue
        rows[-1]["aim"] = "≥ 5"
        cpu = median(r["cpu"] for r in rounds)
        rows[-1]["note"] = f"none lost; kprof's CPU time {cpu:.0f} ns each, start and end included"
        break
    return rows


def figures(text, words):
    """Rows from "name value unit" lines, in the order of the words for the names."""
    lines = re.findall(r"^(\S+) ([-0-9.]+) (\S+)$", text, re.M)
    found, rows = {name: (float(value), unit) for name, value, unit in lines}, []
    for name, (what, aim) in words.items():
        value, unit = found[name]
        unit = unit.replace("Mrecords/s", "M/s").replace("bytes/record", "B")
        rows.append(row(what, [value], unit, aim))
    return rows


def agent_figures(key, *arguments):
    """A figure that agent_bench prints, of each round."""
    tool = program("bench/agent_bench")
    return [json.loads(run_tool(tool, *arguments))[key] for _ in range(ROUNDS)]


def agent_rate(what, aim, *arguments):
    rates = agent_figures("records_per_s", *arguments)
    return row(what, [rate / 1e6 for rate in rates], "M/s", aim)


def batch_parts():
    """What each half of that way can do alone."""
    text = run_tool(program("bench/batch_bench"), str(scaled(1, 0.02)))
    words = {
        "batch_kernel": ("kprof's half alone, kernels: batches → capture, one core", "≥ 5"),
        "batch_kernel_cpu": ("… CPU time each", None),
        "batch_launch": ("… kernels and the calls that launched them", "≥ 5"),
        "batch_launch_cpu": ("… CPU time each", None),
    }
    resting = "agent: the call that hands over, without a session"
    return [
        row(resting, agent_figures("ns", "idle"), "ns", "< 20"),
        agent_rate("agent's half alone: a record into a slot", None, "append", "1"),
        agent_rate("… from CUPTI's buffers", "≥ 5", "parse"),
        *figures(text, words),
    ]


def details():
    """details_bench takes medians of its own."""
    words = {}
    for name, what in (
        ("kernel", "a kernel with 14 attributes"),
        ("api", "a call without"),
        ("args", "a span's four arguments"),
    ):
        words[f"details_{name}_write"] = (f"capture file, one core, {what}: written", None)
        words[f"details_{name}_read"] = ("… read", None)
        words[f"details_{name}_size"] = ("… size", None)
    return figures(run_tool(program("bench/details_bench"), str(scaled(1, 0.02))), words)


# ---- other runtimes, marks -----------------------------------------------------------------------


def opencl():
    text = run_tool(program("bench/opencl_bench"), str(scaled(5, 1)))
    resting = "OpenCL's layer, a launch on a driver that does nothing: at rest"
    words = {
        "opencl.layer.rest": (resting, "< 20"),
        "opencl.layer.recording": ("… while a session records", None),
    }
    return figures(text, words)


def watched_mark():
    """One macro while kprof records; few, for every one is kept."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [program("bench/mark_bench"), str(scaled(0.05, 0.002)), "--wait"]
    marked = start(command, set(CPUS) - OTHER_CPUS or set(CPUS), **pipes)
    if not marked.stdout.readline().startswith("READY"):
        raise Failed("mark_bench did not start")
    kprof = attach(marked.pid, None, scratch("marks.kprof")).recording()
    marked.stdin.write("go\n")
    marked.stdin.close()
    said = marked.stdout.read()
    marked.wait()
    kprof.wait()  # its target has ended
    return figures(said, {"mark_watched": ("a mark of kprof/mark.h, recorded", None)})[0]["median"]


def marks():
    unwatched = [
        figures(
            run_tool(program("bench/mark_bench"), str(scaled(5, 0.5))),
            {"mark_unwatched": ("", None)},
        )[0]["median"]
        for _ in range(ROUNDS)
    ]
    watched = [watched_mark() for _ in range(ROUNDS)]
    return [
        row("a mark of kprof/mark.h, nobody watching", unwatched, "ns", "≈ 0"),
        row("… recorded", watched, "ns"),
    ]
