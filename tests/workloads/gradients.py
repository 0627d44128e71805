# SPDX-License-Identifier: BSD-2-Clause
"""Everything that decides whether an operator makes a node of autograd's graph, and which thread runs the node."""

import threading
import warnings

import protocol


def build(torch, args):
    warnings.simplefilter("ignore")
    from torch.utils.checkpoint import checkpoint

    functional = torch.nn.functional
    conv, bn = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)
    linear, attention = torch.nn.Linear(16, 16), torch.nn.MultiheadAttention(16, 2, dropout=0.1)
    image, words = torch.randn(2, 3, 8, 8), torch.randn(4, 2, 16)
    weight = torch.nn.Parameter(torch.linspace(-1, 1, 8))
    plain = torch.randn(8)
    scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh()))
    frozen = torch.nn.Linear(16, 16).requires_grad_(False)
    sums = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    def usual():
        out = bn(conv(image)).relu().mean((2, 3))
        functional.cross_entropy(out, torch.tensor([1, 2])).backward()
        attended, _ = attention(words, words, words)
        functional.gelu(linear(attended)).sum().backward()

    def lists():
        torch.cat([weight, plain]).sum().backward()
        torch.cat([plain, weight]).sum().backward()
        torch.stack([weight, weight]).unbind(0)[1].sum().backward()
        torch.zeros(3)
        torch.zeros_like(weight).add_(1)
        torch.where(plain > 0, weight, plain).sum().backward()
        weight[torch.tensor([0, 1])].sum().backward()

    def without():
        with torch.no_grad():
            linear(words)
        with torch.inference_mode():
            kept = linear(words)
        kept.add(1)
        frozen(words).mul(2)
        plain.add(1).mul(weight).detach().add(1)

    def twice():
        y = (weight**3).sum()
        (g,) = torch.autograd.grad(y, weight, create_graph=True)
        (g**2).sum().backward()
        z = weight * 2
        (h,) = torch.autograd.grad((z * z).sum(), z)
        y2 = (weight * weight).sum()
        y2.backward(retain_graph=True)
        y2.backward()
        sums.append(h.sum())

    def functions():
        Square.apply(weight).sum().backward()
        Square.apply(plain)
        x = words.clone().requires_grad_()
        try:
            checkpoint(linear, x, use_reentrant=True).sum().backward()
            checkpoint(linear, x, use_reentrant=False).sum().backward()
        except TypeError:
            checkpoint(linear, x).sum().backward()
        scripted(x).sum().backward()
        torch.ops.aten.mul.Tensor(weight, 2).sum().backward()

    def mixed():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            functional.relu(linear(words)).sum().backward()

    def forward_here_backward_there():
        out = functional.gelu(linear(words)).sum()
        thread = threading.Thread(target=out.backward)
        thread.start()
        thread.join()

    def step(_):
        usual()
        lists()
        without()
        twice()
        functions()
        mixed()
        if args.all_threads:
            forward_here_backward_there()
        sums.append(1)

    return step, lambda: (protocol.bits(weight, plain), {"steps": len(sums)})


if __name__ == "__main__":
    protocol.main(build)
