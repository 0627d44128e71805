# SPDX-License-Identifier: BSD-2-Clause
"""Each iteration runs five operators on a thread of its own, which ends then.

With --kill, the threads of all iterations stay, and the process is killed once each has run its operators.
"""

import os
import signal
import threading
import time

import protocol


def build(torch, args):
    x = torch.full((4,), 0.5)
    done = threading.Barrier(args.iters + 1)

    def work():
        for _ in range(5):
            torch.sinh(x)
        if args.kill:
            done.wait()
            time.sleep(3600)

    def step(i):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        if not args.kill:
            thread.join()
        elif i == args.iters - 1:
            done.wait()
            os.kill(os.getpid(), signal.SIGKILL)

    def finish():
        return protocol.bits(torch.cosh(x)), {}

    return step, finish


def options(parser):
    parser.add_argument("--kill", action="store_true")


if __name__ == "__main__":
    protocol.main(build, options, warmup=0)
