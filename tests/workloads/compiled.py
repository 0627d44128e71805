# SPDX-License-Identifier: BSD-2-Clause
"""torch.compile with a custom operator in the graph; from torch 2.x on. Needs a C++ compiler."""

import importlib

import protocol


def build(torch, args):
    lib = torch.library.Library("kproftest", "DEF")
    lib.define("scale_shift(Tensor x, float a) -> Tensor")
    lib.impl("scale_shift", lambda x, a: x * a + 1, "CPU")
    lib.impl("scale_shift", lambda x, a: torch.empty_like(x), "Meta")
    operator = torch.ops.kproftest.scale_shift

    # The custom operator has no derivative of its own: it works on what needs no gradient.
    weight = torch.randn(16, 16, requires_grad=True)
    x = torch.randn(8, 16)

    def function(x, weight):
        y = operator(torch.nn.functional.gelu(x), 0.5)
        return torch.nn.functional.gelu(y @ weight).sum()

    # Plain code does: else programs are compiled to find out what the CPU can do, and headers for more kernels than there are.
    inductor = importlib.import_module("torch._inductor.config")
    inductor.cpp.vec_isa_ok = False
    if hasattr(inductor, "cpp_cache_precompile_headers"):
        inductor.cpp_cache_precompile_headers = False
    compiled = torch.compile(function)
    sums = []

    def step(_):
        weight.grad = None
        y = compiled(x, weight)
        y.backward()
        sums.append(y.item())

    return step, lambda: (protocol.bits(*sums, weight.grad), {"library": lib.ns})


if __name__ == "__main__":
    protocol.main(build)
