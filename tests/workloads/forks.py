# SPDX-License-Identifier: BSD-2-Clause
"""Forks children while other threads run their first operators, for which PyTorch takes a lock; says which children hung.

A child that has that lock from a thread that it lacks must not need it: its main thread has run operators before.
"""

import os
import threading
import time

import protocol

PATIENCE_S = 20


def build(torch, args):
    x = torch.full((4,), 0.5)
    over, hung, forks = threading.Event(), [], []

    def begin_threads():
        while not over.is_set():
            threads = [threading.Thread(target=torch.sin, args=(x,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def child():
        pid = os.fork()
        if not pid:
            for _ in range(30):
                torch.cosh(x)
            os._exit(0)
        end = time.monotonic() + PATIENCE_S
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                hung.append(pid)
                os.kill(pid, 9)
                os.waitpid(pid, 0)
                return
            time.sleep(0.001)

    def step(_):
        torch.sinh(x)
        child()
        forks.append(None)

    def finish():
        over.set()
        beginner.join()
        return "", {"forks": len(forks), "hung": len(hung)}

    torch.sinh(x)
    beginner = threading.Thread(target=begin_threads)
    beginner.start()
    return step, finish


if __name__ == "__main__":
    protocol.main(build)
