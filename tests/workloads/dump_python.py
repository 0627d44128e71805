# SPDX-License-Identifier: BSD-2-Clause
"""Python threads that stand in known places, for `kprof dump`. Says READY, waits for a line, prints what
sys._current_frames() says of each thread (functions, files and lines now executing, innermost first, by the
kernel's thread number) as one line of JSON, and waits for the end of its input.

    dump_python.py          threads that block in many ways
    dump_python.py gil      one holds the interpreter's lock in C and sleeps there for ever, one waits for it
"""
import ctypes
import json
import os
import queue
import select
import sys
import threading
import time

ids = {}  # threading's number: the kernel's
ready = threading.Semaphore(0)


def stand(body):
    ids[threading.get_ident()] = threading.get_native_id()
    ready.release()
    body()


def deep(n, body):
    if n:
        deep(n - 1, body)
    else:
        stand(body)


def generator(body):
    yield 1
    stand(body)
    yield 2


def through_generator(body):
    return [
        x
        for x in generator(body)
        if x
    ]


class Klass:
    def __init__(self, body):
        self.body = body

    def __lt__(self, other):
        stand(self.body)
        return True

    @staticmethod
    def sort(body):
        sorted([Klass(body), Klass(body)])


def through_c(body):
    Klass.sort(body)


async def coroutine(body):
    async def inner():
        stand(body)

    await inner()


def through_coroutine(body):
    try:
        coroutine(body).send(None)
    except StopIteration:
        pass


def through_lambda(body):
    (lambda: list(map(lambda f: stand(f), [body])))()


def through_ctypes(body):
    callback = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: stand(body) or 0)
    callback()


LOCK = threading.Lock()
LOCK.acquire()
BLOCKED = [
    lambda: LOCK.acquire(),
    lambda: time.sleep(100000),
    lambda: select.select([], [], []),
    lambda: queue.Queue().get(),
    lambda: threading.Event().wait(),
]
SHAPES = [
    lambda b: stand(b),
    lambda b: deep(5, b),
    lambda b: deep(200, b),
    through_generator,
    through_c,
    through_coroutine,
    through_lambda,
    through_ctypes,
]


def current_frames():
    out = {}
    for ident, frame in sys._current_frames().items():
        frames = []
        if frame.f_code is current_frames.__code__:
            frame = frame.f_back
        while frame:
            frames.append([frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno])
            frame = frame.f_back
        out[ids[ident]] = frames
    return out


def blocked():
    for i, shape in enumerate(SHAPES):
        # One in two has a name of its own, which the kernel does not know.
        name = "sh\xe4pe number %d, at length" % i if i % 2 else None
        threading.Thread(target=shape, args=(BLOCKED[i % len(BLOCKED)],), daemon=True, name=name).start()
        ready.acquire()
    # Each says so just before it blocks. What sleeps, and goes on sleeping while nobody has the interpreter's lock, does so.
    before, now = None, others()
    while now != before or any(state != "S" for state, _ in now):
        time.sleep(0.05)
        before, now = now, others()


def others():
    """Of each of the other threads: its state, and how often it has stopped."""
    found = []
    for tid in sorted(os.listdir("/proc/self/task")):
        if int(tid) == os.getpid():
            continue
        with open("/proc/self/task/%s/status" % tid) as f:
            status = dict(line.split(":", 1) for line in f if ":" in line)
        found.append((status["State"].split()[0], status["voluntary_ctxt_switches"].strip()))
    return found


def hold_gil():
    ids["holds"] = threading.get_native_id()
    # PyDLL: the lock is not given away during the call.
    ctypes.PyDLL(None).pause()


def want_gil():
    ids["waits"] = threading.get_native_id()
    while True:
        pass


def main():
    ids[threading.get_ident()] = threading.get_native_id()
    if sys.argv[1:] == ["gil"]:
        sys.setswitchinterval(0.001)
        threading.Thread(target=want_gil, daemon=True).start()
        while "waits" not in ids:
            time.sleep(0.001)
        ids["holds"] = threading.get_native_id()
        # Nothing can be said once it is held.
        print(json.dumps({"holds": ids["holds"], "waits": ids["waits"]}), flush=True)
        print("READY", os.getpid(), flush=True)
        hold_gil()
        return
    blocked()
    print("READY", os.getpid(), flush=True)
    sys.stdin.readline()
    print(json.dumps({"printed_by": threading.get_native_id(), "threads": current_frames(),
                      "names": {str(ids[t.ident]): t.name for t in threading.enumerate()}}), flush=True)
    sys.stdin.read()


main()
