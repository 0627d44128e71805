# SPDX-License-Identifier: BSD-2-Clause
"""Operators that do not come straight from Python: TorchScript's interpreter, an LSTM, sparse."""

import protocol


def build(torch, args):
    nn = torch.nn

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(16, 16)
            self.b = nn.Linear(16, 16)

        def forward(self, x, n: int):
            h = torch.zeros_like(x)
            for _ in range(n):
                if bool(h.sum() > 100):
                    h = h * 0.5
                h = torch.tanh(self.a(x) + self.b(h))
            return h

    cell = torch.jit.script(Cell())
    lstm = nn.LSTM(16, 16, batch_first=True)
    x = torch.randn(4, 8, 16)
    index = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])
    sparse = torch.sparse_coo_tensor(index, torch.arange(1.0, 5.0), (4, 4))
    sums = []

    def step(_):
        y, _state = lstm(x)
        z = cell(y[:, -1], 3)
        w = torch.sparse.mm(sparse, z)
        w.sum().backward()
        sums.append(w.sum().item())

    parameters = [*cell.parameters(), *lstm.parameters()]
    return step, lambda: (protocol.bits(*sums, *(p.grad for p in parameters)), {})


if __name__ == "__main__":
    protocol.main(build, warmup=6)  # the interpreter recompiles what it has seen run twice
