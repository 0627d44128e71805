# SPDX-License-Identifier: BSD-2-Clause
"""Generators that run operators in turn, each inside an annotation that stays open meanwhile."""

import protocol


def build(torch, args):
    record = torch.profiler.record_function
    sums = []

    def worker(x, name):
        with record(name):
            for _ in range(3):
                x = torch.sinh(x)
                yield x

    def step(i):
        x = torch.full((4,), 1 / (i + 2))
        turns = [worker(x, f"generator {k}") for k in range(3)]
        while turns:
            turn = turns.pop(0)
            for y in turn:
                sums.append(y.sum().item())
                turns.append(turn)
                break

    def finish():
        return protocol.bits(*sums), {"sinh": len(sums)}

    return step, finish, sums.clear


if __name__ == "__main__":
    protocol.main(build)
