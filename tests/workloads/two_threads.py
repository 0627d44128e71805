# SPDX-License-Identifier: BSD-2-Clause
"""The main thread and two more train the same net at the same time.

All three do exactly the same calls, so that what torch.profiler sees of one (older releases see
the main thread only) holds for the others too.
"""

import threading

import protocol


def build(torch, args):
    nn = torch.nn

    class Trainer:
        def __init__(self):
            torch.manual_seed(3)
            self.model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
            self.x = torch.randn(8, 16)

        def train(self):
            self.optimizer.zero_grad()
            self.model(self.x).square().mean().backward()
            self.optimizer.step()

    trainers = [Trainer() for _ in range(3)]
    # The others live as long as the workload, each waiting for its next step: a profiler that is
    # attached late finds them running.
    gates = [(threading.Semaphore(0), threading.Semaphore(0)) for _ in trainers[1:]]

    def others(trainer, go, done):
        while True:
            go.acquire()
            trainer.train()
            done.release()

    tids = []
    for trainer, (go, done) in zip(trainers[1:], gates):
        thread = threading.Thread(target=others, args=(trainer, go, done), daemon=True)
        thread.start()
        tids.append(thread.native_id)

    def step(_):
        for go, _done in gates:
            go.release()
        trainers[0].train()
        for _go, done in gates:
            done.acquire()

    def finish():
        checksum = protocol.bits(*(p for t in trainers for p in t.model.parameters()))
        return checksum, {"other_tids": tids}

    return step, finish


if __name__ == "__main__":
    protocol.main(build)
