# SPDX-License-Identifier: BSD-2-Clause
# Trains a small network and says its loss to the last bit, as JSON.
import os
import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
x, y = torch.randn(256, 64), torch.randint(0, 10, (256,))
print("READY", os.getpid(), flush=True)
sys.stdin.readline()
for _ in range(1000):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print('{"loss": "%s"}' % loss.item().hex(), flush=True)
