# SPDX-License-Identifier: BSD-2-Clause
"""other_name.py N PROGRAM MS: N children, one after the other, each of which uses MS of CPU time, and as much again as PROGRAM, which
is another name of this interpreter."""

import json, os, sys, time

ms = sys.argv[3]
burn = "import time\nend = time.process_time() + %s / 1000\nwhile time.process_time() < end: pass" % ms
print("READY", os.getpid(), flush=True)
sys.stdin.readline()
pids = []
for _ in range(int(sys.argv[1])):
    pids.append(os.fork())
    if not pids[-1]:
        exec(burn)
        os.execv(sys.argv[2], [sys.argv[2], "-SIc", burn])
    os.waitpid(pids[-1], 0)
print(json.dumps({"pids": pids}), flush=True)
sys.stdin.readline()
