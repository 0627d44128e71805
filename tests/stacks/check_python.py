#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Samples of known.py against what it says of itself.

    check_python.py [--hz N] [--copies] CAPTURE RESULT.json

In each phase: the Python frames of every whole sample are the ones that the program saw, function, file and line; the
innermost one's line is one of the function's that spins. How many samples there are is as many as CPU time allows,
and the shares of four parts are those that their CPU clocks say, within four standard deviations. Of threads that all
want to run one has the GIL. --copies: libraries that are mapped meanwhile are walked by copies of parts of stacks at first,
which may be too short for the native frames; at most a fifth of all.
"""

import argparse
import json
import math

from samples import BAD_STACK, NO_MAPPING, NOT_YET, SIGMA, WHOLE, Problems, check_number, dropped, interval, load, show

MAX_PYTHON = 256


def python_frames(sample):
    return [f for f in sample["frames"] if f["kind"] == "python"]


def check_stack(sample, phase, bare_names, early, problems):
    want = [(f if not bare_names else f.split(".")[-1], file, line) for f, file, line in phase["stack"]]
    have = [(f["function"], f["file"], f["line"]) for f in python_frames(sample)]
    if len(want) > MAX_PYTHON:
        want = want[:MAX_PYTHON]
        if not sample["cut"]:
            problems.add(f"{phase['name']}: cut, and not said", show(sample))
    if sample["end"] in early:
        phase["early"] = phase.get("early", 0) + 1
    elif sample["end"] != WHOLE and not sample["cut"]:
        problems.add(f"{phase['name']}: not whole", show(sample))
    first, last = phase["lines"]
    if not have or have[0][:2] != want[0][:2] or not first <= have[0][2] <= last:
        return problems.add(f"{phase['name']}: spins elsewhere", f"{have[:1]} not {want[:1]} {show(sample)}")
    if have[1:] != want[1:]:
        problems.add(f"{phase['name']}: another stack", f"{show(sample)}\n  not {want}")
    return None


def check_shares(phases, problems):
    parts = [p for p in phases if p["name"].startswith("share ")]
    n, cpu = sum(p["samples"] for p in parts), sum(p["cpu_ns"] for p in parts)
    for part in parts:
        due, have = part["cpu_ns"] / cpu, part["samples"] / n
        room = interval(due, n)
        print(f"{part['name']}: {have:.3f}, {due:.3f} ± {room:.3f} due")
        if abs(have - due) > room:
            problems.add("shares", f"{part['name']}: {have:.3f} of {n} samples, not {due:.3f} ± {room:.3f}")


def check_gil(result, samples, hz, problems):
    begin, end = result["contended"]
    tids = {p["tid"] for p in result["phases"] if p["name"] == "contended"}
    found = [s for tid in tids for s in samples[result["pid"], tid] if begin <= s["time_ns"] <= end]
    # In the interpreter's code, and not on its way to or from the lock.
    running = [s for s in found if s["state"] == "user" and not s["gil_wait"]]
    holding = [s for s in running if s["gil"]]
    room = (end - begin) / 1e9 * hz
    print(f"contended: {len(found)} samples, {len(running)} run, {len(holding)} with the GIL; {room:.0f} periods")
    if len(holding) < 0.9 * len(running) or not holding:
        problems.add("GIL", f"{len(holding)} of {len(running)} samples that run have it")
    if len(holding) > room + SIGMA * math.sqrt(room):
        problems.add("GIL", f"{len(holding)} samples have it, in {room:.0f} periods: more than one at a time")
    if {s["tid"] for s in holding} != tids:
        problems.add("GIL", "not every thread has ever had it")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("capture")
    parser.add_argument("result")
    parser.add_argument("--hz", type=float, default=499)
    parser.add_argument("--copies", action="store_true")
    args = parser.parse_args()
    early = (NO_MAPPING, NOT_YET, BAD_STACK) if args.copies else ()
    with open(args.result, encoding="utf-8") as f:
        result = json.loads(f.readlines()[-1])
    problems, samples = Problems(), load(args.capture, result["pid"])
    phases = result["phases"]
    for phase in phases:
        found = [
            s
            for s in samples[result["pid"], phase["tid"]]
            if phase["begin_ns"] <= s["time_ns"] <= phase["end_ns"]
        ]
        phase["samples"] = len(found)
        for sample in found:
            check_stack(sample, phase, result["version"] < [3, 11], early, problems)

    total, lost = sum(p["samples"] for p in phases), dropped(args.capture)
    due = check_number(total, phases, args.hz, lost, problems)
    version = ".".join(map(str, result["version"]))
    print(f"Python {version}: {total} samples, {due:.0f} due, {len(phases)} phases")
    for name in {p["name"] for p in phases}:
        if not sum(p["samples"] for p in phases if p["name"] == name):
            problems.add("samples", f"none in {name}")
    if sum(p.get("early", 0) for p in phases) > 0.2 * total:
        problems.add("not whole", "more than a fifth")
    check_shares(phases, problems)
    if result["gil"]:
        check_gil(result, samples, args.hz, problems)
    problems.exit()


main()
