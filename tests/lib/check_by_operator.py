# SPDX-License-Identifier: BSD-2-Clause
"""check_by_operator.py TRACE TSV MOST: does each device activity of the trace have its call, and each kernel its operator?

TSV has a count, an operator and a kernel a line, from torch.profiler's trace of an equal run. Up to MOST kernels may be at
another operator than there: where the ends of operators were not seen, one can look as if it went on.
"""

import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "gpucheck"))

from runs import Trace  # noqa: E402


def main():
    path, expected, most = sys.argv[1:]
    trace = Trace(path)
    with open(expected) as f:
        wanted = {pair: int(nr) for nr, pair in (line.rstrip("\n").split("\t") for line in f)}
    found = trace.by_operator()
    print(f"{len(trace.rows)} activities, {trace.linked()} with their call; {sum(found.values())} kernels")
    elsewhere = sum(max(0, nr - wanted.get(pair, 0)) for pair, nr in found.items())
    for pair, nr in sorted(found.items()):
        if nr != wanted.get(pair):
            print(f"{nr}, not {wanted.get(pair, 0)}: {pair[:160]}")
    good = trace.rows and trace.linked() == len(trace.rows) and sum(found.values()) == sum(wanted.values())
    return 0 if good and elsewhere <= int(most) else 1


if __name__ == "__main__":
    sys.exit(main())
