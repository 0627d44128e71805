# SPDX-License-Identifier: BSD-2-Clause
"""What `make demo` profiles: a small transformer that learns to copy, as a user would write it.

It knows nothing of kprof. It trains on the CPU until it is killed, or for --seconds at most, and
says so every second. The annotations are the ones that PyTorch programs carry anyway.
"""

import argparse
import time

import torch
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

VOCABULARY, LENGTH, WIDTH = 64, 32, 64


class Copies(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randint(VOCABULARY, (LENGTH,), generator=generator)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=120)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    loader = DataLoader(Copies(), batch_size=32, num_workers=1, persistent_workers=True)
    began = said = time.monotonic()
    steps = 0
    while True:
        for batch in loader:
            with record_function("forward"):
                loss = criterion(model(batch).flatten(0, 1), batch.flatten())
            with record_function("backward"):
                optimizer.zero_grad()
                loss.backward()
            optimizer.step()
            steps += 1
            now = time.monotonic()
            if steps == 1 or now - said >= 1:
                said = now
                print(f"step {steps} loss {loss.item():.3f}", flush=True)
            if now - began >= args.seconds:
                return


if __name__ == "__main__":
    main()
