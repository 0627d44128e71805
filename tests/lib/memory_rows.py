# SPDX-License-Identifier: BSD-2-Clause
"""The allocations and frees of a trace, by the span around each."""

from collections import defaultdict

MEMORY_ROW = ("[memory]", "cpu_instant_event")  # of an allocation or a free


def memory_by_name(trace, slices, to_ns):
    """Bytes and number of allocations and frees, by name and category of the innermost span around each."""
    rows, sums = defaultdict(list), defaultdict(lambda: [0, 0])
    for event in trace["traceEvents"] if trace.get("profile_memory") else []:
        if event.get("name") == MEMORY_ROW[0] and event.get("ph") == "i":
            rows[event["pid"], event["tid"]].append((to_ns(event["ts"]), event["args"]["Bytes"]))
    spans = defaultdict(list)
    for s in slices:
        if s.is_span and s.row in rows:
            spans[s.row].append(s)
    for row, changes in rows.items():
        inside, waiting = [], sorted(spans[row], key=lambda s: (-s.start, s.end, s.order))
        for ns, change in sorted(changes):
            while waiting and waiting[-1].start <= ns:
                while inside and inside[-1].end <= waiting[-1].start:
                    inside.pop()
                inside.append(waiting.pop())
            while inside and inside[-1].end <= ns:
                inside.pop()
            key = (inside[-1].name, inside[-1].cat) if inside else MEMORY_ROW
            sums[key][0] += change
            sums[key][1] += 1
    return sums
