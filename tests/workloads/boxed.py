# SPDX-License-Identifier: BSD-2-Clause
"""Operators that are called through the dispatcher's boxed door: TorchScript's, torch.ops', a program's own."""

import protocol


def build(torch, args):
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    w = torch.randn(4, 4, requires_grad=True)
    deep = torch.arange(40).view(1, 1, 1, 2, 2, 1, 10)
    library = torch.library.Library("kprof_boxed", "DEF")
    library.define(
        "every(Tensor x, float s, int[] dims, Tensor[] more, Tensor?[] maybe, str mode, bool flag, float[] numbers, "
        "bool[] flags, Scalar scalar, ScalarType? dtype=None, Device? device=None, *, Generator? generator=None) -> Tensor"
    )
    library.define("short(Tensor x) -> Tensor")
    library.define("nothing() -> Tensor")
    library.define(f"{'long' * 30}(Tensor x, int number_with_a_long_name) -> Tensor")
    for name in ("every", "short", "nothing", "long" * 30):
        library.impl(name, lambda *_args, **_named: a + 1, "CompositeExplicitAutograd")
    build.library = library  # as long as it lives, its operators are there
    own, aten = torch.ops.kprof_boxed, torch.ops.aten

    @torch.jit.script
    def nested(x, y, z):
        # Values of the outer sum wait on the interpreter's stack while the inner operators are called.
        return (x + 1) * ((y * z) + (y - z * 2.0)) + torch.addmm(x, y @ z, z.t())

    @torch.jit.script
    def lists(x, y):
        parts = torch.split(torch.cat([x, y], 0), [3, 5])
        total = torch.stack([x, y], 1).sum(dim=[0, 1], keepdim=True)
        return total + torch.zeros([2, 4], dtype=x.dtype).sum() + parts[0].sum() + x.clamp(min=-0.5).mean()

    @torch.jit.script
    def without_tensors(x):
        return x * torch.ones([4, 4]) + x * torch.full([4, 4], 0.25)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(2, 3, 3)
            self.norm = torch.nn.LayerNorm(3)

        def forward(self, x):
            y = torch.relu(self.conv(x)).mean([2, 3])
            return torch.nn.functional.dropout(self.norm(y), 0.25, self.training)

    net, image = torch.jit.script(Net()), torch.randn(2, 2, 8, 8)

    def operators():
        own.every(a, 2.5, [1, -2], [a, b[:2]], [None, a], "mode", True, [0.5, 1.0], [True, False], 3, torch.float32,
                  torch.device("cpu"))
        own.every(deep, 1e300, [], [], [], "", False, [], [], 0.1)
        own.every(a.t(), -1.0, list(range(31)), [a] * 31, [a], "m", False, [1.0] * 30, [True], True,
                  generator=torch.Generator())
        own.short(w)
        own.short(a.to_sparse())
        own.nothing()
        getattr(own, "long" * 30)(b, 7)

    def through_ops():
        aten.dropout(a, 0.5, False)
        aten.layer_norm(a, [4], None, None, 1e-5)
        aten.add.Scalar(a, 2, 3)
        aten.add(a, 2 + 3j)
        aten.cat([a, b], 1)
        aten.index(a, [None, torch.tensor([0, 1])])
        aten.sum.dim_IntList(a, None)
        aten.convolution(image, net.conv.weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        aten.mm(a, b)
        aten.native_dropout(a, 0.5, True)
        aten.native_layer_norm_backward(a, a, [4], a[:, :1], a[:, :1], a[0], a[1], [True, True, True])

    def step(_):
        operators()
        through_ops()
        nested(a, w, b).sum().backward()
        lists(a, w).sum().backward()
        without_tensors(w).sum().backward()
        net(image).sum().backward()
        with torch.no_grad():
            nested(a, a, b)

    return step, lambda: (protocol.bits(a, b), {})


if __name__ == "__main__":
    protocol.main(build, warmup=6)  # the interpreter recompiles what it has seen run twice
