#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what `kprof memory export` wrote with the books of tests/workloads/alive.py.

    check_alive.py table BOOKS.json EXPORT.json      its sums by device and operator
    check_alive.py pickle BOOKS.json FILE.pickle     each block, by its address: of the GPUs if there are any, else of the CPU
    check_alive.py few-stacks BOOKS.json FILE.pickle the same, where only some blocks have stacks (--stack-rate), but these are right
    check_alive.py viz FILE.pickle                   what torch.cuda._memory_viz of this interpreter's PyTorch makes of it
    check_alive.py folded BOOKS.json FILE.folded     bytes of the CPU's by the function that asked for them
    check_alive.py pprof BOOKS.json RAW              the same, with blocks, of what `pprof -raw` printed

Exit status 0: the same; 1: differences.
"""

import collections
import json
import pickle
import re
import sys


def fail(*lines):
    print(*lines, sep="\n", file=sys.stderr)
    sys.exit(1)


def want(ours, theirs, what):
    if ours != theirs:
        only = [sorted(a.items() if isinstance(a, dict) else a) if not isinstance(a, (int, str)) else a for a in (ours, theirs)]
        fail(f"{what}: kprof {str(only[0])[:1500]}", f"the books {str(only[1])[:1500]}")


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def sums(rows):
    """{key: [bytes, blocks]} of (key, bytes)."""
    out = collections.defaultdict(lambda: [0, 0])
    for key, nbytes in rows:
        out[key][0] += nbytes
        out[key][1] += 1
    return dict(out)


def all_blocks(books):
    return [("cpu", a, n) for a, n, *_ in books["cpu"]] + [tuple(row) for row in books["devices"]]


def table(books, export):
    devices = {d["device"]: [d["bytes"], d["blocks"]] for d in export["devices"] if d["blocks"]}
    want(devices, sums((d, n) for d, _, n in all_blocks(books)), "by device")
    ops = {o["operator"]: [o["bytes"], o["blocks"]] for o in export["operators"] if o["device"] == "cpu"}
    want(ops, sums((op, n) for _, n, op, _ in books["cpu"]), "by operator")
    stacks = [sum(s[key] for s in export["stacks"]) for key in ("bytes", "blocks")]
    want(stacks, [sum(o[key] for o in export["operators"]) for key in ("bytes", "blocks")], "stacks in all")
    for d in export["devices"]:
        if d["device"] == "cpu":
            want([d["allocations"], d["frees"]], [books["allocated"], books["freed"]], "allocations, frees")
            want(d["peak_bytes"] >= d["bytes"] and d["reserved_bytes"] == 0, True, f"peak in {d}")
        else:
            want(d["allocations"] - d["frees"], d["blocks"], "what stays of a device's")
            want(d["reserved_bytes"] >= d["bytes"] and d["allocated_bytes"] == (7 << 40) + d["bytes"], True, f"sums in {d}")
        want([d["frees_not_seen"], d["not_kept"]], [0, 0], f"what was lost of {d['device']}")


def bare(name):
    """Since CPython 3.11 it has the class in front."""
    return name.rsplit(".", 1)[-1]


def asks(name):
    return bare(name).startswith("by_")


def python_frame(frames):
    """The function of alive.py's that asked for the memory."""
    return next((bare(f["name"]) for f in frames if asks(f["name"]) and f["filename"].endswith("alive.py")), None)


def check_segment(seg):
    at = seg["address"]
    for b in seg["blocks"]:
        want(b["address"], at, "the place of a block in its segment")
        want(b["state"], "active_allocated", "state")
        at += b["size"]
    want(at, seg["address"] + seg["total_size"], "the end of a segment")


def of_pickle(path):
    with open(path, "rb") as f:
        return pickle.load(f)


def without_stacks(books, snapshot):
    """The books, as if they did not know either who asked for a block that has no stack."""
    bare_blocks = {b["address"] for seg in snapshot["segments"] for b in seg["blocks"] if not b["frames"]}
    want(len(bare_blocks) < len(books["cpu"]), True, "some stacks")
    return books | {"cpu": [row[:3] + [None] if row[0] in bare_blocks else row for row in books["cpu"]]}


def check_pickle(books, snapshot):
    gpus = [row for row in books["devices"] if row[0].startswith("cuda")]
    for seg in snapshot["segments"]:
        check_segment(seg)
    blocks = [(seg["device"], b) for seg in snapshot["segments"] for b in seg["blocks"]]
    if gpus:
        want({(f"cuda:{d}", b["address"], b["size"]) for d, b in blocks}, {tuple(row) for row in gpus}, "blocks")
        touching = {(row[0], row[1] + row[2]) for row in gpus}
        runs = [row for row in gpus if (row[0], row[1]) not in touching]
        want(len(snapshot["segments"]), len(runs), "runs of blocks that are side by side")
    else:
        want({(b["address"], b["size"], b["operator"], python_frame(b["frames"])) for _, b in blocks},
             {tuple(row) for row in books["cpu"]}, "blocks")
    check_events(snapshot, {(d, b["address"]): b["size"] for d, b in blocks})


def check_events(snapshot, alive):
    """What the events leave is what is alive, as far as they go back: here, to the begin."""
    left, last = {}, 0
    for device, events in enumerate(snapshot["device_traces"]):
        last = 0
        for e in events:
            want(e["time_us"] >= last, True, "events in order of time")
            last = e["time_us"]
            if e["action"] == "alloc":
                left[device, e["addr"]] = e["size"]
            elif e["action"] == "free_completed":
                want(left.pop((device, e["addr"]), e["size"]), e["size"], "size of a free")
    want(left, alive, "what the events leave")


def check_viz(snapshot):
    import torch
    from torch.cuda import _memory_viz as viz

    total = sum(b["size"] for seg in snapshot["segments"] for b in seg["blocks"])
    summary = viz.segsum(snapshot)
    want(f"segments: {len(snapshot['segments'])}" in summary, True, summary[:500])
    want(f"total_allocated: {viz.Bytes(total)}" in summary, True, summary[:500])
    trace = viz.trace(snapshot)
    want(sum(line.endswith(" entries") for line in trace.splitlines()), sum(map(bool, snapshot["device_traces"])), trace[:500])
    folded = viz.segments(snapshot, format_flamegraph=lambda text: text)
    want(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), total, "bytes of its flame graph")
    for plot in (viz.trace_plot(snapshot), viz.segment_plot(snapshot)):
        want("MemoryViz.js" in plot, True, plot[:200])
    print(torch.__version__, f"{total} bytes in {len(snapshot['segments'])} segments, {len(trace.splitlines())} lines of trace")


def by_function(books):
    return sums((name, n) for _, n, _, name in books["cpu"])


def check_folded(books, lines):
    seen = collections.Counter()
    for line in lines:
        stack, n = line.rsplit(" ", 1)
        names = [f.split(" (")[0] for f in stack.split(";") if f.endswith("(alive.py)")]
        seen[next((bare(name) for name in names if asks(name)), None)] += int(n)
    want(dict(seen), {name: n for name, (n, _) in by_function(books).items()}, "bytes by function")


def check_pprof(books, text):
    head, rest = text.split("\nSamples:\n", 1)
    samples, rest = rest.split("\nLocations\n", 1)
    locations = rest.split("\nMappings\n", 1)[0]
    want(samples.split("\n", 1)[0].split(), ["inuse_objects/count", "inuse_space/bytes[dflt]"], "types")
    names = dict(re.findall(r"^ *(\d+): .*?\b(by_\w+) \S*alive\.py", locations, re.M))
    seen = collections.defaultdict(lambda: [0, 0])
    for blocks, nbytes, ids in re.findall(r"^ +(\d+) +(\d+): ([\d ]+)$", samples, re.M):
        name = next((names[i] for i in ids.split() if i in names), None)
        seen[name][0] += int(nbytes)
        seen[name][1] += int(blocks)
    want(dict(seen), by_function(books), "bytes and blocks by function")
    want("PeriodType" in head or "Duration" in head, True, head[:200])


def main():
    how, *paths = sys.argv[1:]
    if how == "viz":
        check_viz(of_pickle(paths[0]))
    elif how == "table":
        table(load(paths[0]), load(paths[1]))
    elif how == "pickle":
        check_pickle(load(paths[0]), of_pickle(paths[1]))
    elif how == "few-stacks":
        books, snapshot = load(paths[0]), of_pickle(paths[1])
        check_pickle(without_stacks(books, snapshot), snapshot)
    elif how == "folded":
        with open(paths[1], encoding="utf-8") as f:
            check_folded(load(paths[0]), f.read().splitlines())
    else:
        with open(paths[1], encoding="utf-8") as f:
            check_pprof(load(paths[0]), f.read())


if __name__ == "__main__":
    main()
