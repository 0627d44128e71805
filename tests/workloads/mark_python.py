# SPDX-License-Identifier: BSD-2-Clause
"""share/kprof/kprof_mark.py from Python: counts what it does. See protocol.py."""

import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "kprof"))

import kprof_mark  # noqa: E402

ROUNDS = 50


@kprof_mark.annotate("decorated")
def decorated(deep):
    if deep:
        decorated(deep - 1)


def work():
    for i in range(ROUNDS):
        kprof_mark.step(i)
        with kprof_mark.range("a range, ü"):
            decorated(2)
            kprof_mark.mark("tick")
            kprof_mark.activity_metadata("sizes", [1, {"b": None}])
        with kprof_mark.correlation(7):
            kprof_mark.push("pushed")
            kprof_mark.pop()
        kprof_mark.backend_memory(4096, -8, 1, 2)
    kprof_mark.step_end()
    kprof_mark.thread_info(f"worker {threading.current_thread().name}")


def main():
    print(f"READY {os.getpid()}", flush=True)
    if not sys.stdin.readline():
        sys.exit(9)
    threads = [threading.Thread(target=work, name=str(i)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kprof_mark.metadata("epoch", 3)
    kprof_mark.invariant_violation("loss is finite", "it is not")
    n = ROUNDS * len(threads)
    print(json.dumps({"rounds": n, "available": kprof_mark.available, "watched": kprof_mark.watched()}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
