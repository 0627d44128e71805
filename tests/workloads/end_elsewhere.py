# SPDX-License-Identifier: BSD-2-Clause
"""Annotations that another thread closes, as a future's callback does, an operator inside of each and one after it.

The other thread runs no operator, and begins no annotation.
"""

import queue
import threading

import protocol


def build(torch, _):
    x = torch.full((4,), 0.5)
    begin = torch.ops.profiler._record_function_enter_new
    end = torch.ops.profiler._record_function_exit._RecordFunction
    to_end = queue.Queue()

    def work():
        while True:
            end(to_end.get())
            to_end.task_done()

    threading.Thread(target=work, daemon=True).start()

    def step(_):
        record = begin("elsewhere", None)
        torch.sinh(x)
        to_end.put(record)
        del record
        to_end.join()
        torch.cosh(x)

    def finish():
        return protocol.bits(torch.sinh(x)), {}

    return step, finish


if __name__ == "__main__":
    protocol.main(build)
