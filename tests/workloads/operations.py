# SPDX-License-Identifier: BSD-2-Clause
"""Attention and convolutions of all kinds, forwards and backwards, of which PyTorch's own counter knows the operations.

Says {name: operations} of one step, by torch.utils.flop_counter; {} where this PyTorch has none. It knows attention on the
CPU from some release on; and of the convolutions' backward with groups it counts those of the weights once for each group,
so there are none here.
"""

import protocol


def build(torch, args):
    functional = torch.nn.functional
    attention = getattr(functional, "scaled_dot_product_attention", None)
    q, k, v = (torch.randn(2, 4, n, 8, requires_grad=True) for n in (16, 20, 20))
    masked = [torch.randn(2, 3, 5, 4, requires_grad=True) for _ in range(3)]
    line, image, volume = torch.randn(2, 4, 9), torch.randn(2, 4, 9, 11), torch.randn(1, 2, 4, 5, 6)
    weights = [torch.randn(size, requires_grad=True) for size in
               ((6, 4, 3), (6, 4, 3, 2), (4, 6, 3, 3), (3, 2, 2, 2, 2), (6, 4, 3, 3))]
    losses = []

    def step(_):
        loss = functional.conv1d(line, weights[0], stride=2, padding=1).sum()
        loss = loss + functional.conv2d(image, weights[1], dilation=(1, 2)).sum()
        loss = loss + functional.conv_transpose2d(image, weights[2], stride=2).sum()
        loss = loss + functional.conv3d(volume, weights[3]).sum()
        # The image's gradient, too.
        loss = loss + functional.conv2d(image.clone().requires_grad_(), weights[4], padding=1).sum()
        loss = loss + torch.mm(q.view(-1, 8), k.view(-1, 8).t()).sum()
        if attention:
            loss = loss + attention(q, k, v).sum() + attention(*masked, is_causal=True).sum()
        loss.backward()
        losses.append(loss.item())

    def counted():
        try:
            from torch.utils.flop_counter import FlopCounterMode
        except ImportError:
            return {}
        counter = FlopCounterMode(display=False)
        with counter:
            step(0)
        return {str(name).replace(".", "::"): n for name, n in counter.get_flop_counts()["Global"].items()}

    flops = counted()
    return step, lambda: (protocol.bits(*losses), {"flops": flops})


if __name__ == "__main__":
    protocol.main(build)
