# SPDX-License-Identifier: BSD-2-Clause
"""A merged capture against the recording whose processes it was made of, as seen by one clock.

check_merged.py ORIGINAL.trace.json MERGED.trace.json MERGED.json ORIGINAL.collectives.json MERGED.collectives.json

MERGED.json is what `kprof merge --json` said. Every event of the original is in the merged trace, and the times of different
machines' processes differ from the original by no more than the error that was told; so do waits for collectives.
"""

import bisect
import collections
import json
import sys

STEP = 10_000_000
problems = []


def load(path):
    with open(path) as f:
        return json.load(f)


def problem(text):
    problems.append(text)


def events(trace):
    """By process on its machine: the begin and end in ns of each of its rows' slices, in order, with their names."""
    of = collections.defaultdict(list)
    for e in trace["traceEvents"]:
        if e.get("ph") == "X" and isinstance(e["pid"], int) and e.get("cat") not in ("Trace", None):
            begin = round(e["ts"] * 1000)
            of[e["pid"] % STEP].append((e["tid"] % STEP, begin, begin + round(e["dur"] * 1000), e["name"]))
    for slices in of.values():
        slices.sort(key=lambda s: (s[0], s[1], -s[2]))
    return of


def shifts(before, after):
    """How much later things are in the merged trace, by time in the original."""
    out = []
    for a, b in zip(before, after):
        if (a[0], a[3]) != (b[0], b[3]):
            problem(f"{a} became {b}")
            return []
        out += [(a[1], b[1] - a[1]), (a[2], b[2] - a[2])]
    return sorted(out)


def nearest(shift, ns):
    i = min(bisect.bisect(shift, (ns, 0)), len(shift) - 1)
    return shift[i][1]


def compare_times(before, after, machines, error):
    """Between machines; on one machine all is shifted alike, but for the clock's speed."""
    shift = {}
    for pid, slices in before.items():
        if len(after.get(pid, ())) != len(slices):
            problem(f"process {pid}: {len(slices)} slices, {len(after.get(pid, ()))} in the merged trace")
            return 0
        shift[pid] = shifts(slices, after[pid])
    if set(after) != set(before):
        problem(f"processes {sorted(after)} instead of {sorted(before)}")
    first, *others = [s for s in shift.values() if s]
    return max(abs(change - nearest(first, ns)) for other in others for ns, change in other)


def compare_collectives(before, after, error):
    if after["clock_error_ns"] != error:
        problem(f"report says {after['clock_error_ns']} ns of clocks, merge {error}")
    rows = {(r["name"], r["category"]): r for r in before["rows"]}
    if len(before["rows"]) != len(after["rows"]) or not rows:
        problem(f"{len(before['rows'])} rows of collectives, {len(after['rows'])} when merged")
    for row in after["rows"]:
        was = rows.get((row["name"], row["category"]))
        if not was:
            problem(f"no such collective before: {row['name']}")
            continue
        if was["calls"] != row["calls"] or was["ranks"] != row["ranks"]:
            problem(f"{row['name']}: {was['calls']} of {was['ranks']}, {row['calls']} of {row['ranks']} when merged")
        if abs(was["waited_ns"] - row["waited_ns"]) > error * row["calls"] * row["ranks"]:
            problem(f"{row['name']}: waited {was['waited_ns']} ns, {row['waited_ns']} when merged")
    was, now = ({(c["name"], c["group"], c["number"]): c for c in r["longest"]} for r in (before, after))
    for key, c in now.items():
        if was[key]["longest_ns"] > 2 * error and c["last_rank"] != was[key]["last_rank"]:
            problem(f"{key}: rank {was[key]['last_rank']} came last, {c['last_rank']} when merged")
    return len(was)


def main():
    original, merged, told, collectives, merged_collectives = map(load, sys.argv[1:])
    machines = told["machines"]
    error = max(m["error_ns"] for m in machines)
    for m in machines[1:]:
        if m["clock"] != "collectives" and machines[0]["clock"] != "collectives":
            problem(f"{m['host']}: its clock is known by {m['clock']}")
    before, after = events(original), events(merged)
    worst = compare_times(before, after, machines, error)
    if worst > error + 2:  # rounded
        problem(f"times are {worst} ns apart, and {error} at most were promised")
    nr = compare_collectives(collectives, merged_collectives, error)
    for text in problems[:20]:
        print(text)
    print(f"{sum(map(len, before.values()))} slices, {nr} collectives: {worst} ns off, {error} promised")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
