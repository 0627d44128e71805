# SPDX-License-Identifier: BSD-2-Clause
"""Each iteration runs five operators on a thread of its own, which ends then.

With --together, the threads of all iterations run until the last has run its operators. With --kill, they stay, and the
process is killed then.
"""

import os
import signal
import threading
import time

import protocol


def build(torch, args):
    x = torch.full((4,), 0.5)
    threads = []
    done = threading.Barrier(args.iters + 1)

    def work():
        for _ in range(5):
            torch.sinh(x)
        if args.kill or args.together:
            done.wait()
        if args.kill:
            time.sleep(3600)

    def step(i):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        threads.append(thread)
        if not args.kill and not args.together:
            thread.join()
        elif i == args.iters - 1:
            done.wait()
            if args.kill:
                os.kill(os.getpid(), signal.SIGKILL)
            for each in threads:
                each.join()

    def finish():
        return protocol.bits(torch.cosh(x)), {}

    return step, finish


def options(parser):
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--together", action="store_true")


if __name__ == "__main__":
    protocol.main(build, options, warmup=0)
