# SPDX-License-Identifier: BSD-2-Clause
"""A small convolutional net in training: autograd, optimizer, DataLoader.

Each sample is made by operators that nothing else here uses (sinh, cosh), and every process that
makes samples keeps the number made in a file of its own: what a profiler should have seen of
forked workers is known without one.
"""

import glob
import os
import shutil
import struct
import tempfile

import protocol

SAMPLES, BATCH = 32, 8


def make_dataset(torch, folder):
    class Samples(torch.utils.data.Dataset):
        def __init__(self):
            self.made, self.pid, self.fd = 0, 0, -1

        def __len__(self):
            return SAMPLES

        def count(self):
            if self.pid != os.getpid():  # a new process: its own file, from 0
                self.pid, self.made = os.getpid(), 0
                path = os.path.join(folder, str(self.pid))
                self.fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
            self.made += 1
            os.pwrite(self.fd, struct.pack("Q", self.made), 0)

        def __getitem__(self, i):
            self.count()
            x = torch.full((3, 16, 16), (i + 1) / SAMPLES)
            return torch.sinh(x), torch.cosh(x).sum().long() % 4

    return Samples()


def build(torch, args):
    folder = tempfile.mkdtemp(prefix="kprof-test-")
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 4),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    data = make_dataset(torch, folder)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, num_workers=args.workers)
    losses = []

    def step(_):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

    before = {}

    def made():
        found = {}
        for path in glob.glob(os.path.join(folder, "*")):
            with open(path, "rb") as f:
                found[os.path.basename(path)] = struct.unpack("Q", f.read(8))[0]
        return found

    def finish():
        since = {pid: n - before.get(pid, 0) for pid, n in made().items() if n != before.get(pid)}
        shutil.rmtree(folder)
        counts = {"made": since, "ops_per_sample": {"aten::sinh": 1, "aten::cosh": 1}}
        return protocol.bits(*losses, *model.parameters()), counts

    return step, finish, lambda: before.update(made())


def options(parser):
    parser.add_argument("--workers", type=int, default=0)


if __name__ == "__main__":
    protocol.main(build, options, warmup=1)
