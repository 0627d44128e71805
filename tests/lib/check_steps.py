# SPDX-License-Identifier: BSD-2-Clause
"""check_steps.py TRACE.json WORKLOAD.json NR: kprof's trace of NR steps, and what torch.profiler counted in each
(tests/workloads/scheduled.py): all of each, and nothing before the first or after the last."""

import json
import sys
from collections import Counter

import trace as traces

# record_function makes a tensor of its own in 1.13, and whether that is inside is a matter of nanoseconds.
OWN = {"aten::zeros", "aten::zero_", "aten::empty"}


def main():
    trace, workload, nr = sys.argv[1:]
    with open(workload, encoding="utf-8") as f:
        truth = json.load(f)["steps"]
    with open(trace, encoding="utf-8") as f:
        events = json.load(f, parse_float=str)["traceEvents"]
    spans = []
    for e in events:
        if e["ph"] == "X" and e.get("cat") in ("cpu_op", "user_annotation"):
            start = traces.nanoseconds(e["ts"])
            spans.append((start, start + traces.nanoseconds(e["dur"]), e["name"]))
    steps = sorted(s for s in spans if s[2].startswith("ProfilerStep#"))
    numbers = [int(s[2].split("#")[1]) for s in steps]
    assert numbers == list(range(numbers[0], numbers[0] + int(nr))), f"steps {numbers}"
    for begin, end, name in spans:
        assert steps[0][0] <= begin and end <= steps[-1][1], f"{name} is outside of the steps"
    for begin, end, name in steps:
        seen = Counter(s[2] for s in spans if begin <= s[0] < end and s[2].startswith("aten::") and s[2] not in OWN)
        told = Counter({op: n for op, n in truth[name.split("#")[1]].items() if op not in OWN})
        assert seen and seen == told, f"{name}: only here {seen - told}, only torch.profiler {told - seen}"


if __name__ == "__main__":
    main()
