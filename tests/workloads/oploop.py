# SPDX-License-Identifier: BSD-2-Clause
"""a + b, over and over: --iters rounds of --calls each, and then as many as it takes until the file --until exists. After each
comes --work times as much as an empty round of a Python loop."""

import os

import protocol


def build(torch, args):
    a, b = torch.ones(4), torch.ones(4)
    counts = {"aten::sinh": 0}
    out = [a]

    def calls():
        for _ in range(args.calls):
            out[0] = a + b
            for _ in range(args.work):
                pass
        torch.sinh(a)  # once a round: an operator that nothing else calls
        counts["aten::sinh"] += 1
        counts["aten::add"] = counts["aten::sinh"] * args.calls

    def step(_):
        calls()
        while args.until and not os.path.exists(args.until):
            calls()

    return step, lambda: (protocol.bits(*out), {"counts": counts})


def options(parser):
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--until")
    parser.add_argument("--work", type=int, default=0)


if __name__ == "__main__":
    protocol.main(build, options, warmup=0)
