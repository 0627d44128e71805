# SPDX-License-Identifier: BSD-2-Clause
"""Two threads that keep a CPU busy each: "holder" runs Python, and so has the interpreter's lock; "released" hashes in C
without it, in pieces so long that it hardly ever asks. READY, a line is waited for, then each runs for --cpu-ms of
its CPU time, and a line of JSON says how much it was; then the end of the input.
"""

import argparse
import hashlib
import json
import os
import sys
import threading
import time

spent = {}


def keep_busy(work, cpu_ns):
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < cpu_ns:
        work()
    spent[threading.current_thread().name] = time.thread_time_ns() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu-ms", type=int, default=500)
    args = parser.parse_args()
    data = b"x" * 30_000_000
    works = {"holder": lambda: sum(range(2000)), "released": lambda: hashlib.sha256(data).digest()}
    threads = [threading.Thread(target=keep_busy, args=(work, args.cpu_ms * 1_000_000), name=name)
               for name, work in works.items()]
    print("READY", os.getpid(), flush=True)
    if not sys.stdin.readline():
        sys.exit(9)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"pid": os.getpid(), "cpu_ns": spent}), flush=True)
    sys.stdin.readline()


main()
