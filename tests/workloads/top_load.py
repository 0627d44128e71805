# SPDX-License-Identifier: BSD-2-Clause
"""What kprof top is shown: a process that does one thing, and knows how much CPU time it has used.

    top_load.py burn|sleep|steps|jit [--comm BYTES] [--megabytes N] [--text TEXT]

burn: the first thread spins on the line that is marked below; another sleeps. For each line on standard input it prints
its CPU time, in nanoseconds. sleep: nothing happens. steps: a training of PyTorch's that does next to nothing; counts its
steps. jit: runs generated code, and names it in a perf map with the first line of input. Ends with the end of its
input."""

import argparse
import ctypes
import json
import mmap
import os
import sys
import threading
import time


steps = 0


def spin_here():
    n = 0
    while True:
        n += 1  # the hot line: tests look for its number


def sleep_here():
    while True:
        time.sleep(1000)


def step_here(torch):
    global steps
    x = torch.zeros(4)
    while True:
        with torch.profiler.record_function(f"ProfilerStep#{steps}"):
            x.add_(1)
            time.sleep(0.05)
        steps += 1


# mov $20000000, %ecx; again: dec %ecx; jnz again; ret
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b9002d3101" "ffc9" "75fc" "c3"))
code_at = ctypes.addressof(ctypes.c_char.from_buffer(code))


def compiled_here():
    spin = ctypes.CFUNCTYPE(None)(code_at)
    while True:
        spin()


def answer(what):
    for _ in sys.stdin:
        if what == "jit":
            with open(f"/tmp/perf-{os.getpid()}.map", "w") as f:
                f.write(f"{code_at:x} 20 late_name\n")
        print(json.dumps({"cpu_ns": time.process_time_ns(), "steps": steps, "now_ns": time.monotonic_ns()}), flush=True)
    os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("burn", "sleep", "steps", "jit"))
    parser.add_argument("--comm")
    parser.add_argument("--megabytes", type=int, default=0)
    parser.add_argument("--text", help="to be found by")
    args = parser.parse_args()
    memory = bytearray(os.urandom(1 << 20) * args.megabytes)
    torch = __import__("torch") if args.what == "steps" else None
    if args.comm:
        ctypes.CDLL(None).prctl(15, os.fsencode(args.comm), 0, 0, 0)  # PR_SET_NAME
    for function, arguments in ((answer, (args.what,)), (sleep_here, ())):
        threading.Thread(target=function, args=arguments, name=function.__name__, daemon=True).start()
    print("READY", os.getpid(), flush=True)
    if torch:
        step_here(torch)
    {"burn": spin_here, "sleep": sleep_here, "jit": compiled_here}[args.what]()
    del memory


if __name__ == "__main__":
    main()
