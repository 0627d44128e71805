#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two processes that hand a byte to each other for four seconds: each turn is a switch of both. Prints how often."""
import json
import os
import sys
import time

there, back = os.pipe(), os.pipe()
print(f"READY {os.getpid()}", flush=True)
if not sys.stdin.readline():
    sys.exit(9)
child = os.fork()
if not child:
    os.close(there[1])
    while os.read(there[0], 1):
        os.write(back[1], b'x')
    os._exit(0)
turns, end = 0, time.monotonic() + 4
while time.monotonic() < end:
    os.write(there[1], b'x')
    os.read(back[0], 1)
    turns += 1
os.close(there[1])
os.waitpid(child, 0)
print(json.dumps({'turns': turns, 'switches': turns}), flush=True)
