# SPDX-License-Identifier: BSD-2-Clause
"""Operators inside and outside of annotations, counted by name.

What is called inside of an annotation `wanted` is aten::sinh (and, in an annotation inside of that, aten::cosh); what is called
outside is aten::atan, before, between, and after it, also in other annotations. Some of them nest in themselves, some are left by an
exception, and threads other than the first are inside at other moments. With --around, all of it is inside of one `wanted` that
begins before the recording.
"""

import os
import sys
import threading

import protocol

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "kprof"))

import kprof_mark  # noqa: E402


def build(torch, args):
    record = torch.profiler.record_function
    x = torch.full((4,), 0.5)
    lock = threading.Lock()
    counts = dict.fromkeys(("aten::sinh", "aten::cosh", "aten::atan", "wanted"), 0)

    def call(name):
        getattr(torch, name)(x)
        with lock:
            counts["aten::" + name] += 1

    def annotation():
        with lock:
            counts["wanted"] += 1
        return {"record": record, "mark": kprof_mark.range}[args.kind]("wanted")

    def recursion(depth):
        with annotation():
            call("sinh")
            if depth:
                recursion(depth - 1)
            with record("inner"):
                call("cosh")
            call("sinh")

    def thrown():
        try:
            with annotation(), record("inner"):
                call("sinh")
                raise ValueError
        except ValueError:
            pass

    def part(_=None):
        call("atan")
        with record("other"):
            call("atan")
            recursion(0)
            call("atan")
        recursion(3)
        call("atan")
        thrown()
        call("atan")
        with record("wanted not"):
            call("atan")

    def step(_):
        part()
        threads = [threading.Thread(target=part) for _ in range(args.threads)]
        for t in threads:
            t.start()
        call("atan")
        for t in threads:
            t.join()

    def clear():
        for name in counts:
            counts[name] = 0

    if args.around:
        # Begun before the recording, for good.
        around = record("wanted")
        around.__enter__()
    return step, lambda: (protocol.bits(torch.sinh(x)), {"counts": dict(counts)}), clear


def options(parser):
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kind", choices=("record", "mark"), default="record")
    parser.add_argument("--around", action="store_true")


if __name__ == "__main__":
    protocol.main(build, options)
