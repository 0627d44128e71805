# SPDX-License-Identifier: BSD-2-Clause
"""Spends 2.5 s of CPU time, and says what the kernel and its own clock know of them."""

import json, os, resource, sys, time

clock = lambda: time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID)
def switches():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_nvcsw + u.ru_nivcsw
def stolen():
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PERIOD = 1_003_009
print("READY", os.getpid(), flush=True)
sys.stdin.readline()
begin, had, had_stolen = clock(), switches(), stolen()
now, lost, holes = begin, 0, 0
while now - begin < 2_500_000_000: # some periods of other lengths, see sampler.c
    for _ in range(1000):
        pass
    before, now = now, clock()
    if now - before > PERIOD:
        lost, holes = lost + now - before - PERIOD, holes + 1
print(json.dumps({"cpu_ns": now - begin, "stays": switches() - had + 1, "lost_ns": lost, "holes": holes,
                  "stolen_ns": stolen() - had_stolen}), flush=True)
sys.stdin.readline()
