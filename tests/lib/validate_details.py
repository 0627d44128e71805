# SPDX-License-Identifier: BSD-2-Clause
"""A part of validate_trace.py: what operators are called with, and memory."""

import decimal
from collections import defaultdict

INPUT_KEYS = "Input Dims", "Input type", "Input Strides", "Concrete Inputs"
MEMORY_ROW = ("[memory]", "cpu_instant_event")  # of an allocation or a free


def to_ns(us):
    return int((us * 1000).to_integral_value()) if isinstance(us, decimal.Decimal) else us * 1000


class Details:
    """What the class of the whole check inherits."""

    def inputs_shape(self, name, args):
        """Four lists with an entry for each input, as Kineto writes them; sizes and strides agree."""
        lists = [args.get(key) for key in INPUT_KEYS]
        if not any(lists):
            return
        if not all(isinstance(x, list) and len(x) == len(lists[0]) for x in lists if x or not self.kineto):
            self.bad("inputs", f"{name!r} has inputs {lists}")
            return
        dims, types, strides, values = (x or [None] * len(lists[0]) for x in lists)
        for d, t, s, v in zip(dims, types, strides, values):
            if not isinstance(d, list) or not isinstance(t, str) or s and len(s) != len(d):
                self.bad("inputs", f"{name!r} has an input {d} of type {t} with strides {s}")
            if v and t not in ("Scalar", "ScalarList"):
                self.bad("inputs", f"{name!r} has an input of type {t} with the value {v}")

    def memory_by_name(self):
        """The innermost spans' bytes of the CPU's memory and of devices', and how many changes; by name and category."""
        rows, sums = defaultdict(list), defaultdict(lambda: [0, 0, 0])
        for event in self.events if self.trace.get("profile_memory") else []:
            if event.get("name") == MEMORY_ROW[0] and event.get("ph") == "i":
                args = event["args"]
                change = to_ns(event["ts"]), args["Device Type"] != 0, args["Bytes"]
                rows[event["pid"], event["tid"]].append(change)
        spans = defaultdict(list)
        for s in self.slices:
            if s.in_report and s.row in rows:
                spans[s.row].append(s)
        for row, changes in rows.items():
            inside, waiting = [], sorted(spans[row], key=lambda s: (-s.start, s.end, s.order))
            for ns, of_device, change in sorted(changes):
                while waiting and waiting[-1].start <= ns:
                    while inside and inside[-1].end <= waiting[-1].start:
                        inside.pop()
                    inside.append(waiting.pop())
                while inside and inside[-1].end <= ns:
                    inside.pop()
                key = (inside[-1].name, inside[-1].cat) if inside else MEMORY_ROW
                sums[key][of_device] += change
                sums[key][2] += 1
        return sums
