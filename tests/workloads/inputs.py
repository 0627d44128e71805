# SPDX-License-Identifier: BSD-2-Clause
"""Operators with every kind of input that PyTorch's functions have, so that what kprof reads of them can be compared."""

import warnings

import protocol


def build(torch, args):
    warnings.simplefilter("ignore")
    functional = torch.nn.functional
    a, b = torch.randn(3, 4), torch.randn(3, 4)
    image, kernel = torch.randn(1, 3, 8, 8, requires_grad=True), torch.randn(4, 3, 3, 3, requires_grad=True)
    attention = torch.nn.MultiheadAttention(8, 2)
    sums = []

    def numbers():
        torch.add(a, b, alpha=2)
        torch.add(a, 1.5)
        torch.add(a, 2 + 3j)
        a.clone().fill_(True)
        torch.full((2,), False)
        a.clamp(min=0.1)
        a.clamp(min=0, max=3)
        torch.addcmul(b, b, b, value=0.5)
        torch.full((2,), -1e-7)
        torch.full((2,), float("inf"))
        torch.full((2,), 10**10)
        torch.arange(0, 10, 3)
        torch.quantile(b, 0.5)  # in a vector register
        functional.dropout(a, 0.5)

    def lists():
        a.sum(dim=[0, 1])
        a.sum()
        torch.cat([a, b])
        torch.stack([a, b], 0)
        torch.zeros([1] * 31)  # longer than torch.profiler shows
        torch.cat([a] * 31)
        torch._foreach_add([a.clone(), b.clone()], 1)
        torch._foreach_mul([a.clone(), b.clone()], [0.5, 2.0])
        functional.interpolate(image, scale_factor=2.0, mode="bilinear")
        functional.interpolate(image, size=(4, 4), mode="bilinear")
        torch.einsum("ij,jk->ik", a, b.t())
        torch.empty_strided((2, 3), (1, 2))
        a[torch.tensor([0, 1])]
        torch.broadcast_tensors(a, b[:1])

    def tensors():
        torch.arange(40).view(1, 1, 1, 2, 2, 1, 10).sum()  # more sizes than the object has room for
        a.t().contiguous()
        a[1:, ::2].mul(2)
        a.expand(5, 3, 4).mul(2)
        torch.tensor(3.0).add(1)
        torch.empty(0).add(1)
        torch.conv2d(image, kernel).sum().backward()  # no bias: a tensor that is not there
        torch.ones(2, device="meta").add(1)
        sparse = a.to_sparse()
        torch.sparse.mm(sparse, b.t())
        torch.ones(2, 2).to_sparse_csr().matmul(torch.ones(2, 2))
        torch.quantize_per_tensor(b, 0.1, 0, torch.quint8).dequantize()
        torch.complex(b, b).real.mul(2)
        for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.bool):
            a.to(dtype).view(4, 3)
        attention(torch.ones(2, 1, 8), torch.ones(2, 1, 8), torch.ones(2, 1, 8))
        out = torch.empty(3, 4)
        torch.add(a, b, out=out)
        torch.max(a, 0, out=(torch.empty(4), torch.empty(4, dtype=torch.int64)))

    def others():
        torch.div(a, b, rounding_mode="floor")
        torch.randn(2, generator=torch.Generator())
        torch.empty(2, 3, dtype=torch.int32, device="cpu", memory_format=torch.contiguous_format)
        a[None, None].contiguous(memory_format=torch.channels_last)
        torch.searchsorted(torch.tensor([1.0, 2.0]), torch.tensor([1.0]), right=True)
        functional.layer_norm(a, (4,))
        functional.pad(b, [1, 1])
        torch.std(a, unbiased=False)
        torch.cumsum(a, 0, dtype=torch.float64)
        torch.linalg.norm(a, "fro")
        torch.roll(a, [1], [0])

    def step(_):
        numbers()
        lists()
        tensors()
        others()
        sums.append(1)

    return step, lambda: (protocol.bits(a, b), {"steps": len(sums)})


if __name__ == "__main__":
    protocol.main(build)
