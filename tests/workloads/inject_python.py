# SPDX-License-Identifier: BSD-2-Clause
# A Python program of any version, 2.7 and on: threads that compute, allocate, wait, import and run programs, and check
# what comes out; READY, works until a line (or the end) is read, then says as JSON how often it was wrong.
import hashlib
import json
import os
import subprocess
import sys
import threading
import time

over = threading.Event()
wrong = []


def hashes():
    data = b"x" * 100000
    return hashlib.sha256(data).hexdigest() == EXPECTED


def allocates():
    return sum(len(str(i)) for i in range(2000)) == 6890


def sleeps():
    clock = getattr(time, "monotonic", time.time)
    start = clock()
    time.sleep(0.02)
    return clock() - start > 0.015


def floats():
    return sum(1.0 / (i + 1) for i in range(1000)) == HARMONIC


def runs():
    return subprocess.call([sys.executable, "-S", "-c", "import sys; sys.exit(7)"]) == 7


def work(what):
    while not over.is_set():
        try:
            if not what():
                wrong.append(what.__name__)
        except Exception as e:
            wrong.append("%s: %r" % (what.__name__, e))


EXPECTED = hashlib.sha256(b"x" * 100000).hexdigest()
HARMONIC = sum(1.0 / (i + 1) for i in range(1000))
threads = [threading.Thread(target=work, args=(w,)) for w in (hashes, allocates, sleeps, floats, runs)]
for t in threads:
    t.start()
print("READY %d" % os.getpid())
sys.stdout.flush()
sys.stdin.readline()
over.set()
for t in threads:
    t.join()
print(json.dumps({"wrong": len(wrong), "what": wrong[:5]}))
sys.stdout.flush()
