# SPDX-License-Identifier: BSD-2-Clause
"""Threads of Python that wait: for time, for a lock, and for the interpreter's lock, which spinning threads hold.

Prints for each thread its number, its kind, and how long it waited by its own clock.
"""

import json
import sys
import threading
import time

ROUNDS = 40
lock = threading.Lock()
done = threading.Event()
result = []


def body(kind, rounds):
    waited, count = rounds()
    result.append({"tid": threading.get_native_id(), "kind": kind, "waits": count, "waited_ns": waited})


def napper_rounds():
    waited = 0
    for _ in range(ROUNDS):
        since = time.monotonic_ns()
        time.sleep(0.01)
        waited += time.monotonic_ns() - since
    return waited, ROUNDS


def holder_rounds():
    for _ in range(ROUNDS):
        with lock:
            time.sleep(0.01)
        time.sleep(0.002)
    done.set()
    return 0, 0


def locker_rounds():
    waited = count = 0
    while not done.is_set():
        since = time.monotonic_ns()
        with lock:
            waited += time.monotonic_ns() - since
            count += 1
        time.sleep(0.001)
    return waited, count


def spinner_rounds():
    while not done.is_set():
        sum(range(2000))
    return 0, 0


def main():
    kinds = [("napper", napper_rounds), ("holder", holder_rounds), ("locker", locker_rounds),
             ("spinner", spinner_rounds), ("spinner", spinner_rounds)]
    print(f"READY {threading.get_native_id()}", flush=True)
    if not sys.stdin.readline():
        sys.exit(9)
    threads = [threading.Thread(target=body, args=kind, name=kind[0]) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"threads": result}), flush=True)
    sys.stdin.readline()


main()
