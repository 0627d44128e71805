# SPDX-License-Identifier: BSD-2-Clause
"""many_children.py N: N children, each of which uses 30 ms of CPU time, one after the other, twice; they live until the end."""

import json, os, signal, sys, time

def spend():
    end = time.process_time() + 0.03
    while time.process_time() < end:
        pass

children = []
for _ in range(int(sys.argv[1])):
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()
    pid = os.fork()
    if pid:
        children.append((pid, from_parent, to_parent))
        continue
    while os.read(to_child, 1):
        spend()
        os.write(from_child, b"x")
    os._exit(0)
print("READY", os.getpid(), flush=True)
sys.stdin.readline()
for _ in range(2):
    for _, to, back in children:
        os.write(to, b"x")
        os.read(back, 1)
print(json.dumps({"pids": [pid for pid, _, _ in children]}), flush=True)
sys.stdin.readline()
for pid, _, _ in children:
    os.kill(pid, signal.SIGKILL)
