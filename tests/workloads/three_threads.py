# SPDX-License-Identifier: BSD-2-Clause
"""Three threads, of which each calls an operator of its own, and many that only wait. "TIDS" and then their numbers are a
line of the output: first those three. The JSON has how often each called its operator."""

import json
import os
import threading

import protocol

MANY = 61


def main():
    args = protocol.arguments(None)
    import torch

    torch.set_num_threads(1)
    x = torch.ones(4, 4)
    go, over = threading.Event(), threading.Event()
    operators = {"aten::mul": torch.mul, "aten::add": torch.add, "aten::mm": torch.mm}
    called = {}

    def work(name):
        operators[name](x, x)
        go.wait()
        for _ in range(args.iters):
            operators[name](x, x)
        called[name] = args.iters

    threads = [threading.Thread(target=work, args=(name,)) for name in operators]
    many = [threading.Thread(target=over.wait) for _ in range(MANY)]
    for thread in threads + many:
        thread.start()
    print("TIDS", *[thread.native_id for thread in threads + many], flush=True)
    protocol.ready()
    protocol.wait_line(True)
    go.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"pid": os.getpid(), "called": called}), flush=True)
    if args.linger:
        protocol.wait_line(False)
    over.set()


if __name__ == "__main__":
    main()
