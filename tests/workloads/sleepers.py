#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes that sleep for longer than a part of a rotated recording lasts, and have slept from before its begin on.

    sleepers.py EARLY LATE

READY once EARLY children wait for a pipe. From the line on standard input on, LATE children, one after another, sleep for half
a second each. All wake at the end, do a little and sleep a little, and end. A line of JSON says for each late one since when it
slept, and until when: {"sleeps":[{"pid", "from_ns", "to_ns"}]}, in CLOCK_MONOTONIC.
"""
import json
import os
import sys
import time

SLEEP_S = 0.5
APART_S = 0.01


def end_slowly():
    """A process that is met by its last wait goes on for a while."""
    until = time.monotonic() + 0.002
    while time.monotonic() < until:
        pass
    time.sleep(0.05)
    os._exit(0)


def early(gate):
    if os.fork():
        return
    os.read(gate, 1)
    end_slowly()


def late(report):
    if os.fork():
        return
    begin = time.monotonic_ns()
    time.sleep(SLEEP_S)
    end = time.monotonic_ns()
    os.write(report, (json.dumps({'pid': os.getpid(), 'from_ns': begin, 'to_ns': end}) + '\n').encode())
    end_slowly()


def main():
    gate, opens = os.pipe()
    for _ in range(int(sys.argv[1])):
        early(gate)
    reports, report = os.pipe()
    time.sleep(0.1)
    print('READY', os.getpid(), flush=True)
    sys.stdin.readline()
    for _ in range(int(sys.argv[2])):
        late(report)
        time.sleep(APART_S)
    os.close(report)
    with os.fdopen(reports) as f:
        sleeps = [json.loads(line) for line in f]
    os.write(opens, b'x' * int(sys.argv[1]))
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    print(json.dumps({'pid': os.getpid(), 'sleeps': sleeps}), flush=True)


main()
