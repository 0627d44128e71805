# SPDX-License-Identifier: BSD-2-Clause
"""Annotations: nested, odd names, the fast kind, the optimizer's own, a custom autograd function."""

import protocol

NAMES = [
    "plain",
    "quote \" backslash \\ slash /",
    "tab\tnewline\nbell\x07",
    "Grüße, 世界, 🔥",
    "</script><b>",
    "%s%n{}",
    "long " + "x" * 300,
]


def build(torch, args):
    record = torch.profiler.record_function
    fast = getattr(torch._C._profiler, "_RecordFunctionFast", None)

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    weight = torch.nn.Parameter(torch.linspace(-1, 1, 8))
    optimizer = torch.optim.Adam([weight], lr=0.1)

    def step(_):
        optimizer.zero_grad()
        with record("outer"):
            for name in NAMES:
                with record(name):
                    weight.detach().add(1)
            with record("middle"), record("inner"):
                loss = Square.apply(weight).sum()
        loss.backward()
        optimizer.step()
        if fast:
            with fast("kprof test: fast"):
                torch.sinh(weight.detach())

    return step, lambda: (
        protocol.bits(weight),
        {"names": NAMES, "annotations": len(NAMES) + 3, "fast": bool(fast)},
    )


if __name__ == "__main__":
    protocol.main(build)
