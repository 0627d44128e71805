# SPDX-License-Identifier: BSD-2-Clause
"""What perfetto.png shows: one step of this training. To make the picture anew:

    python3 docs/images/train.py                   # says its process number; in another shell:
    sudo build/kprof attach -p PID -d 5s -o step.pt.trace.json.gz
    python3 tests/readers/check_perfetto_ui.py step.pt.trace.json.gz docs/images/perfetto.png 47 4629

The last numbers say how many milliseconds are shown, and from when on: choose them so that they hold a
step. (The last script needs tests/readers/requirements.txt, and Chromium.)
"""

import os

import torch
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16 * 16, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = TensorDataset(torch.rand(512, 3, 32, 32), torch.randint(10, (512,)))
    print(f"training in process {os.getpid()}; Ctrl-C ends it", flush=True)
    batches = DataLoader(images, batch_size=32, num_workers=1, persistent_workers=True)
    while True:
        for x, y in batches:
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(x), y)
            with record_function("backward"):
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
