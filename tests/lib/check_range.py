# SPDX-License-Identifier: BSD-2-Clause
"""What kprof says of a part of the recorded time, against the trace of all of it.

table WHOLE.json FROM TO REPORT.json      report --from FROM --to TO --by op --json
trace WHOLE.json FROM TO PART.json        export --from FROM --to TO -o PART.json
steps WORKLOAD.json STEPS.json            report --by step --json, and what tests/workloads/steps.py says of its steps

FROM and TO: nanoseconds since the begin of the recording. All but the trace of the whole is computed here anew."""

import json
import sys
from collections import Counter, defaultdict

import trace as traces

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation", "overhead", "cuda_event", "wait",
          "cuda_profiler_range"}


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f, parse_float=str)


def slices(path):
    """(name, cat, pid, tid, start, end, closed) of each slice, and the window's begin."""
    out, window = [], None
    for e in load(path)["traceEvents"]:
        if e["ph"] != "X":
            continue
        start = traces.nanoseconds(e["ts"])
        end = start + traces.nanoseconds(e["dur"])
        if e.get("cat") == "Trace":
            window = start
        else:
            closed = (e.get("args") or {}).get("end") == "closed"
            out.append((e["name"], e["cat"], e["pid"], e["tid"], start, end, closed))
    return out, window


def in_range(start, end, a, b):
    return start < b and (end > a or start >= a)


def cut(start, end, a, b):
    return max(0, min(end, b) - max(start, a))


def union(stretches):
    total, until = 0, -1 << 62
    for start, end in sorted(stretches):
        start = max(start, until)
        if end > start:
            total += end - start
            until = end
    return total


def table(whole, from_ns, to_ns, report):
    """Calls where they begin; total and self time inside of the range alone."""
    spans, window = slices(whole)
    a, b = window + int(from_ns), window + int(to_ns)
    spans = [s for s in spans if s[1] not in DEVICE]
    threads = defaultdict(list)
    for s in spans:
        threads[s[2:4]].append(s)
    calls, self_ns, stretches = Counter(), Counter(), defaultdict(list)
    for thread, mine in threads.items():
        stack = []
        for s in sorted(mine, key=lambda s: (s[4], -s[5])):
            name, cat, _, _, start, end, closed = s
            while stack and stack[-1][5] <= start and stack[-1] is not s and not (stack[-1][5] == start == end):
                stack.pop()
            calls[name, cat] += a <= start < b
            if stack and not stack[-1][6]:
                self_ns[stack[-1][:2]] -= cut(start, end, a, b)
            if not closed:
                self_ns[name, cat] += cut(start, end, a, b)
                stretches[name, cat, thread].append((max(start, a), min(end, b)))
            stack.append(s)
    total = Counter()
    for (name, cat, _), list_ in stretches.items():
        total[name, cat] += union(list_)
    rows = {(r["name"], r["category"]): (r["calls"], r["total_ns"], r["self_ns"]) for r in load(report)["rows"]}
    expected = {k: (calls[k], total[k], self_ns[k]) for k in calls if calls[k] or total[k]}
    # One that ends where the range begins, or has no duration, may be a row of zeros.
    rows = {k: v for k, v in rows.items() if any(v)}
    wrong = [f"{k}: {rows.get(k)}, not {expected.get(k)}" for k in expected.keys() | rows.keys() if rows.get(k) != expected.get(k)]
    said = load(report)["range"]
    inside = sum(in_range(s[4], s[5], a, b) for s in spans)
    if [said["events"], said["events_outside"]] != [inside, len(spans) - inside]:
        wrong.append(f"{said}, not {inside} of {len(spans)} events")
    return wrong, f"{len(expected)} rows, {inside} of {len(spans)} events"


def trace(whole, from_ns, to_ns, part):
    """Whole, all that reaches into the range, and nothing else."""
    spans, window = slices(whole)
    a, b = window + int(from_ns), window + int(to_ns)
    # Rows of devices are numbered, and annotations are as long, as what is there needs.
    key = lambda s: s if s[1] not in DEVICE else s[:3] + s[4:]
    expected = Counter(key(s) for s in spans if s[1] != "gpu_user_annotation" and in_range(s[4], s[5], a, b))
    seen = Counter(key(s) for s in slices(part)[0] if s[1] != "gpu_user_annotation")
    wrong = [f"{n} too many: {s}" for s, n in (seen - expected).items()][:5]
    wrong += [f"{n} missing: {s}" for s, n in (expected - seen).items()][:5]
    said = load(part)["kprof"].get("range")
    if said and (traces.nanoseconds(said["ts"]), traces.nanoseconds(said["dur"])) != (a, b - a):
        wrong.append(f"the range is {said}, not {a} + {b - a}")
    return wrong, f"{sum(expected.values())} of {len(spans)} slices"


def steps(workload, report):
    """Each step's number, and its calls and duration between what the program read around and in it."""
    truth, report = load(workload), load(report)
    rows = {r["step"]: r for r in report["rows"] if r["pid"] == truth["pid"]}
    wrong = []
    for s in truth["steps"]:
        r = rows.pop(s["number"], None)
        if r is None:
            wrong.append(f"step {s['number']} is missing")
            continue
        least, most = (s[k][1] - s[k][0] for k in ("inner_ns", "outer_ns"))
        if not r["inexact"] and not least <= r["total_ns"] <= most:
            wrong.append(f"step {s['number']}: {r['total_ns']} ns, not {least} to {most}")
        if not 0 < r["op_ns"] <= r["total_ns"]:
            wrong.append(f"step {s['number']}: {r['op_ns']} ns in operators, of {r['total_ns']}")
    wrong += [f"there is no step {number}" for number in rows]
    exact = sorted(r["total_ns"] for r in report["rows"] if not r["inexact"])
    summary = report["steps"]
    slowest = max(truth["steps"], key=lambda s: s["inner_ns"][1] - s["inner_ns"][0])
    if summary["slowest"] != slowest["number"] or summary["slowest_ns"] != exact[-1] or summary["exact"] != len(exact):
        wrong.append(f"the slowest is {summary}, not step {slowest['number']}")
    median = (exact[(len(exact) - 1) // 2] + exact[len(exact) // 2]) // 2
    if summary["median_ns"] != median or sum(ns <= summary["p95_ns"] for ns in exact) < .95 * len(exact):
        wrong.append(f"{summary}, of {exact}")
    return wrong, f"{len(truth['steps'])} steps"


def main():
    wrong, what = {"table": table, "trace": trace, "steps": steps}[sys.argv[1]](*sys.argv[2:])
    for line in wrong:
        print(line)
    print(f"{what}: {'WRONG' if wrong else 'ok'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
