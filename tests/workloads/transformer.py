# SPDX-License-Identifier: BSD-2-Clause
"""A small transformer encoder in training, with AdamW and gradient clipping."""

import protocol


def build(torch, args):
    nn = torch.nn
    embedding = nn.Embedding(100, 32)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2)
    head = nn.Linear(32, 100)
    parameters = [*embedding.parameters(), *encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    tokens = torch.randint(0, 100, (4, 17))
    losses = []

    def step(_):
        optimizer.zero_grad()
        out = head(encoder(embedding(tokens[:, :-1])))
        loss = nn.functional.cross_entropy(out.reshape(-1, 100), tokens[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())

    return step, lambda: (protocol.bits(*losses, *parameters), {})


if __name__ == "__main__":
    protocol.main(build)
