# SPDX-License-Identifier: BSD-2-Clause
"""The process that is measured: one iteration after the other, in chunks of about 10 ms.

    target.py ops|cnn|transformer|python

Reads commands, one line of JSON each, and answers with a line of JSON. Times are CLOCK_MONOTONIC in
nanoseconds; "stamps" are the moments between chunks, so that nothing falls through between two.

    {"do": "run", "chunks": N}                   N chunks -> stamps
    {"do": "free"}                               chunks until the next line arrives -> stamps
    {"do": "profile", "chunks": N, "path": P, "shapes": false}    N chunks under torch.profiler (CPU), stopped and
                                                 exported to P -> stamps, start, stop, export

End of file ends it. First of all it prints "ready": its number, the release, iterations in a chunk.
"""

import gc
import json
import os
import select
import sys
import time
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads"))
CHUNK_NS = 10_000_000
now = time.monotonic_ns


def add_loop(torch):
    """The op-bound loop: an addition of one-element tensors, nearly all of it overhead. KPROF_BENCH_PAUSE: turns of Python after each."""
    a, b = torch.ones(1), torch.ones(1)
    pause = range(int(os.environ.get("KPROF_BENCH_PAUSE", "0")))

    def iterate(n):
        for _ in range(n):
            a + b

    def iterate_with_pauses(n):
        for _ in range(n):
            a + b
            for _ in pause:
                pass

    return iterate_with_pauses if pause else iterate


def python_loop():
    """Nothing but Python: calls, attributes, numbers."""

    class Counter:
        def __init__(self):
            self.value = 0

        def add(self, n):
            self.value = (self.value + n) % 1000003

    def work(n, counter):
        for i in range(n * 100):
            counter.add(i)

    counter = Counter()
    return lambda n: work(n, counter)


def training(torch, name):
    """The training step that the tests compare with torch.profiler (tests/workloads/)."""
    step, _ = __import__(name).build(torch, types.SimpleNamespace(workers=0))[:2]

    def iterate(n):
        for i in range(n):
            step(i)

    return iterate


class Target:
    def __init__(self, name):
        import torch

        self.torch = torch
        torch.manual_seed(1)
        torch.set_num_threads(1)
        if name == "python":
            self.iterate = python_loop()
        else:
            self.iterate = add_loop(torch) if name == "ops" else training(torch, name)
        self.chunk = self.calibrate()
        self.stdin = open(0, "rb", buffering=0)  # unbuffered: select() must know of every line

    def calibrate(self):
        """Iterations that take CHUNK_NS; every one warms up, too."""
        n, took = 1, 0
        while True:
            began = now()
            self.iterate(n)
            took = now() - began
            if took > CHUNK_NS / 4 and n > 3 or took > CHUNK_NS * 2:
                return max(1, round(n * CHUNK_NS / took))
            n *= 2

    def run(self, chunks):
        stamps = [now()]
        for _ in range(chunks):
            self.iterate(self.chunk)
            stamps.append(now())
        return {"stamps": stamps}

    def free(self):
        stamps = [now()]
        while not select.select([self.stdin], [], [], 0)[0]:
            self.iterate(self.chunk)
            stamps.append(now())
        self.stdin.readline()
        return {"stamps": stamps}

    def profile(self, chunks, path, shapes=False):
        profiler = self.torch.profiler
        prof = profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=shapes)
        moments = [now()]
        prof.start()
        moments.append(now())
        stamps = self.run(chunks)["stamps"]
        moments.append(now())
        prof.stop()
        moments.append(now())
        cpu = time.process_time_ns()
        prof.export_chrome_trace(path)
        cpu = time.process_time_ns() - cpu
        moments.append(now())
        took = [b - a for a, b in zip(moments, moments[1:])]
        del prof
        gc.collect()
        return {
            "stamps": stamps,
            "start": took[0],
            "stop": took[2],
            "export": took[3],
            "export_cpu": cpu,
        }

    def serve(self):
        for line in iter(self.stdin.readline, b""):
            command = json.loads(line)
            answer = getattr(self, command.pop("do"))(**command)
            print(json.dumps(answer), flush=True)


def main():
    if os.environ.get("KPROF_BENCH_NAME"):  # as a flight recorder finds it
        with open("/proc/self/comm", "w", encoding="ascii") as f:
            f.write(os.environ["KPROF_BENCH_NAME"])
    target = Target(sys.argv[1])
    ready = {"pid": os.getpid(), "torch": target.torch.__version__, "chunk": target.chunk}
    print(json.dumps({"ready": ready}), flush=True)
    target.serve()


if __name__ == "__main__":
    main()
