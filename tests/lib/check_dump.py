# SPDX-License-Identifier: BSD-2-Clause
"""Compares what `kprof dump --json` saw with what the target says of itself.

native DUMP TARGET   dumpdriver's JSON: the callers' addresses, frame by frame to the thread's root
python DUMP TARGET   dump_python.py's JSON: functions, files and lines of sys._current_frames()
"""
import json
import os
import sys


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def threads_of(dump):
    return {t["tid"]: t for p in dump["processes"] for t in p["threads"]}


def callers_that_call(frames):
    """Of functions w_*: the line that a caller stands on calls the function before it."""
    wrong = []
    for inner, outer in zip(frames, frames[1:]):
        if not inner["function"].startswith("w_"):
            continue
        line = ""
        if outer["file"]:
            with open(outer["file"], encoding="utf-8") as source:
                line = source.read().splitlines()[outer["line"] - 1]
        if inner["function"] + "(" not in line:
            wrong.append(f"{inner['function']} was not called from {outer['function']}, line {outer['line']}:{line}")
    return wrong


def native(dump, target):
    """Every recorded thread: the callers are the dump's outermost frames, and the walk came to the root."""
    seen = threads_of(dump)
    wrong = []
    for thread in target["threads"]:
        mine = seen.get(thread["tid"])
        if mine is None:
            wrong.append(f"{thread['kind']}: not there")
            continue
        frames = [
            [os.path.basename(f["module"]), f["address"]]
            for f in mine["frames"]
            if f["kind"] == "native" and not f["inlined"]
        ]
        callers = [[os.path.basename(m), a] for m, a in thread["callers"]]
        if not any(m for m, _ in callers):  # linked statically: there is one file
            frames = [["", a] for _, a in frames]
        # backtrace() may stop one frame before or behind the thread's first function.
        whole = frames[-len(callers) :] == callers
        if mine["cut"] or not callers or not whole or len(frames) <= len(callers):
            wrong.append(
                f"{thread['kind']} ({mine['state']} {mine['doing']}): cut: {mine['cut'] or 'no'}\n"
                + f"  {len(frames)} frames: {frames[:4]} … {frames[-3:]}\n"
                + f"  {len(callers)} callers: {callers[:4]} … {callers[-3:]}"
            )
        wrong += callers_that_call([f for f in mine["frames"] if f["kind"] == "native"])
        if mine["name"] != thread["kind"]:
            wrong.append(f"{thread['kind']}: its name is {mine['name']}")
    return wrong, len(target["threads"])


def python(dump, target):
    """Every thread: the same functions at the same lines, innermost first."""
    seen = threads_of(dump)
    wrong = []
    for tid, frames in target["threads"].items():
        mine = seen.get(int(tid))
        got = [[f["function"].rsplit(".", 1)[-1], f["file"], f["line"]] for f in (mine or {"frames": []})["frames"] if f["kind"] == "python"]
        # The one that printed has gone on since, to the line where it waits.
        skip = 1 if int(tid) == target["printed_by"] else 0
        if got[skip:] != [list(f) for f in frames][skip:]:
            wrong.append(f"thread {tid}:\n  dump {got}\n  self {frames}")
        if not mine or mine["python_name"] != target["names"][tid]:
            wrong.append(f"thread {tid}: its name is {mine and mine['python_name']}, not {target['names'][tid]}")
    return wrong, len(target["threads"])


def main():
    what, dump, target = sys.argv[1:4]
    wrong, nr = {"native": native, "python": python}[what](load(dump), load(target))
    for line in wrong:
        print(line)
    print(f"{nr - len(wrong)} of {nr} threads as they say themselves")
    return 1 if wrong or not nr else 0


if __name__ == "__main__":
    sys.exit(main())
