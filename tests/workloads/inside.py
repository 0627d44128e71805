# SPDX-License-Identifier: BSD-2-Clause
"""A Python program that has itself recorded: inside.py MODE FOLDER-OF-kprof_mark LIBRARY [torch]

The operators are those of fakeops.cpp, or with "torch" PyTorch's. Prints a line of JSON: how often each was called inside of
what is recorded, and what start and stop have said.
"""

import ctypes
import json
import os
import sys
import threading

sys.path.insert(0, sys.argv[2])
import kprof_mark  # noqa: E402

CALLS = 150
OPERATORS = 7


def fake_operators(path):
    library = ctypes.CDLL(path)
    library.fakeops_name.restype = ctypes.c_char_p
    linear = getattr(library, "_ZN2at4_ops11fake_linear4callEm")
    counts = (ctypes.c_uint64 * OPERATORS)()

    def count():
        library.fakeops_counts(counts)
        return {library.fakeops_name(i).decode(): counts[i] for i in range(OPERATORS) if counts[i]}

    return lambda: linear(ctypes.c_uint64(3)), count


def torch_operators():
    import torch

    torch.set_num_threads(1)
    x, called = torch.ones(4, 4), [0]

    def call():
        torch.mul(x, x)
        called[0] += 1

    return call, lambda: {"aten::mul": called[0]}


call, count = torch_operators() if "torch" in sys.argv else fake_operators(sys.argv[3])
result = {"wrong": []}


def work():
    for _ in range(CALLS):
        call()


def check(what, is_so):
    if not is_so:
        result["wrong"].append(what)


def said(recording):
    return {name: getattr(recording, name) for name in ("ok", "id", "path", "error", "hint")}


def inside(function):
    before = count()
    function()
    result["counts"] = {name: n - before.get(name, 0) for name, n in count().items() if n != before.get(name, 0)}


def plain():
    with kprof_mark.profile(record_shapes=True, profile_memory=False, activities=["cpu"], trace_id='of "x"') as p:
        result["started"] = said(p)
        check("it knows", kprof_mark.profiling() is bool(p))
        inside(work)
    result["stopped"] = said(p)
    check("it knows that it is over", not kprof_mark.profiling())


def thrown():
    try:
        with kprof_mark.profile() as p:
            inside(work)
            raise KeyError("the program's own")
    except KeyError:
        check("it is over", not kprof_mark.profiling())
        result["stopped"] = said(p)


def decorated():
    @kprof_mark.profile()
    def deep(levels):
        work()
        return deep(levels - 1) if levels else "what it returns"

    def both():
        check("what it returns", deep(2) == "what it returns")

    with kprof_mark.profile() as p:
        inside(both)
    result["stopped"] = said(p)


def threads():
    """Each starts and stops: the first start begins the recording, the last stop ends it."""
    together, results = threading.Barrier(5), []

    def one():
        started = kprof_mark.start()
        together.wait()
        work()
        together.wait()
        results.append((started, kprof_mark.stop()))

    def all_of_them():
        them = [threading.Thread(target=one) for _ in range(together.parties)]
        for thread in them:
            thread.start()
        for thread in them:
            thread.join()

    inside(all_of_them)
    check("one recording", len({r.id for pair in results for r in pair}) == 1 and all(a and b for a, b in results))
    ended = [b for _, b in results if b.path]
    check("one of them ended it", len(ended) == 1)
    result["stopped"] = said(ended[0])


def thread():
    """Nothing but what this thread does is recorded, though another one works all the time."""
    over = threading.Event()
    other = threading.Thread(target=lambda: [work() for _ in iter(over.is_set, True)])
    other.start()
    with kprof_mark.profile(this_thread=True) as p:
        work()
    over.set()
    other.join()
    result["stopped"] = said(p)
    result["calls"] = CALLS


def fork():
    def both():
        work()
        child = os.fork()
        if not child:
            right = not kprof_mark.profiling() and kprof_mark.stop().error == "nothing was started that could be stopped"
            work()
            with kprof_mark.profile() as own:
                work()
            os._exit(0 if right and own and own.id != p.id else 8)
        check("the child", os.waitpid(child, 0)[1] == 0)

    with kprof_mark.profile() as p:
        inside(both)
        check("it is still recorded", kprof_mark.profiling())
    result["stopped"] = said(p)


def main():
    for _ in range(20):
        call()
    print(f"READY {os.getpid()}", flush=True)
    if not sys.stdin.readline():
        sys.exit(9)
    globals()[sys.argv[1]]()
    work()
    print(json.dumps(result), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
