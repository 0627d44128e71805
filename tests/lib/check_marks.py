# SPDX-License-Identifier: BSD-2-Clause
"""Is every mark of tests/workloads/marks.c in the trace, and as it was meant?  check_marks.py TRACE RESULT"""

import json
import sys
from collections import Counter


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        trace = json.load(f)
    with open(sys.argv[2], encoding="utf-8") as f:
        did = json.load(f)
    problems = []

    def check(what, got, expected):
        if got != expected:
            problems.append(f"{what}: {got!r}, not {expected!r}")

    events = trace["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    ranges = [e for e in spans if e["cat"] == "user_annotation"]
    instants = [e for e in events if e["ph"] == "i" and e.get("cat") == "cpu_instant_event"]
    names = Counter(e["name"] for e in ranges)
    moments = Counter(e["name"] for e in instants)

    check("outer", names["outer"], did["outer"])
    inner = [e for e in ranges if e["name"].startswith("inner ")]
    check("inner", len(inner), did["inner"])
    check("names of inner ranges", {e["name"] for e in inner}, {f"inner {i}" for i in range(3)})
    for e in inner:
        check("metadata of a range", e["args"].get("note"), "what a note says")
        check("JSON metadata of a range", e["args"].get("shape"), [2, 3])
    for i in range(did["steps"]):
        check(f"ProfilerStep#{i}", names[f"ProfilerStep#{i}"], did["threads"])
    for kind, base in (("correlation", 1000), ("user correlation", 2000)):
        key = "Operator correlation id" if kind == "correlation" else "User correlation id"
        ids = Counter(e["args"].get(key) for e in ranges if e["name"] == kind)
        check(kind, ids, Counter({base + i: did["threads"] for i in range(did["steps"])}))
    check("tick", moments["tick"], did["ticks"])
    check("in a leaf", moments["in a leaf"], did["outer"])

    # Each range lies in its step, and each inner one in an outer one, on its own thread.
    for parent, child in (("ProfilerStep#", "outer"), ("outer", "inner ")):
        outside = [
            e for e in ranges if e["name"].startswith(child) and not any(
                p["name"].startswith(parent) and p["tid"] == e["tid"] and p["ts"] <= e["ts"]
                and e["ts"] + e["dur"] <= p["ts"] + p["dur"] for p in ranges)
        ]
        check(f"{child}outside {parent}", len(outside), 0)

    memory = [e for e in instants if e["name"] == "[memory]"]
    check("[memory]", len(memory), did["memory_events"])
    check("bytes", Counter(e["args"]["Bytes"] for e in memory).keys(), {4096: 0, -4096: 0}.keys())
    for e in memory:
        check("totals", (e["args"]["Total Allocated"], e["args"]["Total Reserved"]), (8192, 16384))
        check("device", (e["args"]["Device Type"], e["args"]["Device Id"]), (0, -1))

    backend = [e for e in spans if e["name"] == "delegate"]
    check("backend events", len(backend), did["backend_events"])
    check("their category", {e["cat"] for e in backend}, {"cpu_op"})
    check("their backend", {e["args"]["Backend"] for e in backend}, {"a backend"})
    check("their handles", {e["args"]["Debug handle"] for e in backend}, {40, 41})
    if ranges:  # told by either clock, they lie where the work was, as far as a busy machine has let it go on
        first, last = min(e["ts"] for e in ranges), max(e["ts"] + e["dur"] for e in ranges)
        strays = [e for e in backend if not first - 1e6 <= e["ts"] <= last + 1e6]
        check("backend events elsewhere", len(strays), 0)

    long = [e["name"] for e in instants if e["name"].startswith("xxx")]
    check("a long text", [len(name) for name in long], [1500])
    check("no name", moments["(unnamed annotation)"], 1)
    violations = [e["args"] for e in instants if e["name"] == "invariant violation"]
    check("an invariant", violations,
          [{"assertion": "a > b", "error": "a was 1", "profile id": "profile 7"}])
    meta = trace["kprof"]["meta"]
    check("metadata", meta.get("user.model"), 'a "model"\n')
    check("JSON metadata", meta.get("user.config"), {"layers": [1, 2], "big": 12345678901234567890})
    check("broken JSON metadata", meta.get("user.broken"), '{"layers": [1, 2')
    check("threads", sum(1 for e in events if e["name"] == "thread_name"
                         and "(the second)" in e["args"]["name"]), 1)

    source = trace["kprof"]["sources"]["annotations"]
    check("fired", source["fired"], source["captured"] + source["dropped"])
    check("dropped", source["dropped"] + source["missed"], 0)
    check("begins", source["begins"], len(ranges))
    check("exact ends", source["ends_exact"], len(ranges))
    check("evaluated", did["evaluated"], did["outer"])
    check("red zones written over", did["wrong"], 0)
    print("\n".join(problems), file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
