# SPDX-License-Identifier: BSD-2-Clause
"""Operators that throw, caught: 10,000 times with --iters 1000, in all kinds of company."""

import protocol


def build(torch, args):
    record = torch.profiler.record_function
    a, b = torch.ones(2, 3), torch.ones(2, 3)  # no matrix product of these
    good = torch.ones(3, 2)
    caught, total = [0], [0.0]

    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.mm(x, b)

        @staticmethod
        def backward(ctx, grad):
            return grad

    class RaisesBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return torch.mm(grad, b)

    def attempt(f):
        try:
            f()
        except RuntimeError:
            caught[0] += 1
        else:
            raise AssertionError("it should have thrown")

    def annotated():
        with record("outer"), record("inner"):
            torch.mm(a, b)

    def nested():
        try:
            torch.mm(a, b)
        except RuntimeError:
            attempt(lambda: torch.nn.functional.linear(a, good))  # while the first is handled
            raise

    def backward():
        x = a.clone().requires_grad_()
        RaisesBackward.apply(x).sum().backward()

    def step(_):
        for _ in range(4):
            attempt(lambda: torch.mm(a, b))
        attempt(lambda: torch.nn.functional.linear(a, good))
        attempt(annotated)
        attempt(nested)  # two
        attempt(lambda: Raises.apply(a.clone().requires_grad_()))
        attempt(backward)
        total[0] += torch.mm(a, good).sum().item()

    def finish():
        return protocol.bits(*total), {"caught": caught[0]}

    return step, finish, lambda: caught.__setitem__(0, 0)


if __name__ == "__main__":
    protocol.main(build)
