# SPDX-License-Identifier: BSD-2-Clause
"""short_lived.py PROGRAM N: executes a program N times, two at a time, and says how much CPU time all of them took."""

import json, os, resource, sys, time

program, number = sys.argv[1], int(sys.argv[2])
print("READY", os.getpid(), flush=True)
sys.stdin.readline()
running = 0
for _ in range(number):
    if running == 2:
        os.wait()
        running -= 1
    os.posix_spawn(program, [program], os.environ)
    running += 1
while running:
    os.wait()
    running -= 1
used = resource.getrusage(resource.RUSAGE_CHILDREN)
time.sleep(2)  # the kernel has given their memory back by then
print(json.dumps({"processes": number, "cpu_ns": round((used.ru_utime + used.ru_stime) * 1e9)}), flush=True)
sys.stdin.readline()
