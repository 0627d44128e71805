# SPDX-License-Identifier: BSD-2-Clause
"""Threads with known stacks, each blocked at a known place for good. Prints what the interpreter itself says of
them, one line of JSON, and ends when standard input does. Runs on every CPython from 3.8 on."""

import asyncio
import ctypes
import functools
import json
import os
import sys
import threading
import time

ready = {}
blocked_inside = os.pipe()  # the second interpreter says there that it has come to its place


def block(name):
    ready[name] = threading.get_ident()
    # In a loop, so that the thread is scheduled now and then and can be seen from the kernel; all on one line.
    while True: time.sleep(0.01)


def recursion(n=30):
    if n:
        recursion(n - 1)
    else:
        block("recursion")


def deep(n=400):
    if n:
        return deep(n - 1)
    block("deep")


def generator():
    def inner():
        yield 1
        block("generator")

    def middle():
        yield from inner()

    def outer():
        for x in middle():
            yield x * 2

    sum(outer())


def expression():
    list(block("expression") for _ in range(1))


def comprehension():
    return {k: [block("comprehension") for _ in range(1)] for k in "a"}


def coroutine():
    class Manager:
        async def __aenter__(self):
            await leaf()

        async def __aexit__(self, *_):
            pass

    async def leaf():
        block("coroutine")

    async def stream():
        async with Manager():
            yield 1

    async def main():
        async for _ in stream():
            pass

    asyncio.run(main())


class Base:
    def __init__(self, last):
        if last:
            block("classes")


class Derived(Base):
    def __init__(self, last):
        super().__init__(last)


def classes():
    # Often enough to be specialized: the interpreter then puts a frame of its own between.
    for i in range(3000):
        Derived(i == 2999)


class Odd:
    def __getattr__(self, name):
        return functools.partial(self.call, name)

    @property
    def prop(self):
        return block("attributes")

    def __eq__(self, other):
        return self.prop

    def call(self, name):
        return self == name

    def __hash__(self):
        return 1


def attributes():
    Odd().anything()


def body():
    class Meta(type):
        def __new__(cls, name, bases, ns):
            block("body")

    class Made(metaclass=Meta):
        pass


def decorated():
    def decorator(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            try:
                raise KeyError
            except KeyError:
                with open("/dev/null"):
                    return fn(*args, **kwargs)
            finally:
                pass

        return wrapper

    @decorator
    @decorator
    def function(a, *, b):
        block(
            "decorated"
            if a
            else b
        )

    function(1, b=2)


def callbacks():
    key = lambda x: next(map(functools.partial(lambda a, b: functools.reduce(lambda c, d: block("callbacks"), [a, b]), 1), [x]))
    sorted([3, 1, 2], key=key)


def from_c():
    proto = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    data = (ctypes.c_int * 2)(2, 1)

    def compare(a, b):
        block("from_c")
        return 0

    libc = ctypes.CDLL(None)
    libc.qsort.restype = None
    libc.qsort(data, ctypes.c_size_t(2), ctypes.c_size_t(4), proto(compare))


def executed():
    # Latin-1, two and four bytes a character; lines that go back, and far ahead.
    latin = "def d\xe9but(f):\n" + "\n" * 700 + "    f('executed')\n"
    scope = {"block": block}
    exec(compile(latin, "<g\xe9n\xe9r\xe9>", "exec"), scope)
    exec(compile("def \u65e5\u672c(f):\n x = (1,\n\n  f(block),\n 2)\n", "<\u65e5\u672c\U0001f600>", "exec"), scope)
    exec("\n\n\nlist(map(a, [b]))", {"a": scope["\u65e5\u672c"], "b": scope["d\xe9but"]})


def long_way():
    # Instructions far into their code, and a call whose arguments lie on earlier lines than its name.
    lines = ["def far(f):", " x = 0"] + [" x = x + 1; x = x - 1"] * 3000 + [" (f", "  (", "  'long_way'", "  ))"]
    scope = {}
    exec(compile("\n".join(lines), "<far>", "exec"), scope)
    scope["far"](block)


def foreign():
    """In a thread that is none of Python's."""
    block("foreign")
    return 0


def start_foreign():
    proto = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    start_foreign.keep = proto(lambda _: foreign())
    libc = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    if libc.pthread_create(ctypes.byref(thread), None, start_foreign.keep, None):
        raise OSError("pthread_create")


def subinterpreter():
    """A second interpreter on the same thread; its frames are none of this one's."""
    script = """import posix, time
def f():
    while True: time.sleep(0.01) or posix.write(%d, b".")

def g():
    f()
g()
""" % blocked_inside[1]
    ready["subinterpreter"] = threading.get_ident()
    if sys.version_info >= (3, 13):
        import _interpreters

        _interpreters.exec(_interpreters.create("legacy"), script)
    else:
        import _xxsubinterpreters

        _xxsubinterpreters.run_string(_xxsubinterpreters.create(), script)


STACKS = [recursion, deep, generator, expression, comprehension, coroutine, classes, attributes, body, decorated,
          callbacks, from_c, executed, long_way]


def spin():
    x = 0
    while True:
        x = (x + 1) & 0xffff


class Mixed(threading.Thread, Exception):
    """Its attributes are not where those of a Thread are."""


class Slotted(threading.Thread):
    __slots__ = ("kept",)


class Wide(threading.Thread):
    """More attributes than a class's shared keys hold."""

    def __init__(self, **kwargs):
        for i in range(200):
            setattr(self, "first%d" % i, i)
        super().__init__(**kwargs)


def name_threads():
    """Thread objects of all forms: attributes in shared keys, a dict of their own, dicts that somebody has asked for."""
    def start(kind, name=None, before=None, after=None):
        thread = kind(target=time.sleep, args=(1e6,), name=name, daemon=True)
        if before:
            before(thread)
        thread.start()
        if after:
            after(thread)

    start(threading.Thread)
    start(threading.Thread, "named")
    start(threading.Thread, "g\xe9n\xe9r\xe9 1")
    start(threading.Thread, "\u65e5\u672c\U0001f600")
    start(threading.Thread, "x" * 5000)
    start(threading.Thread, "with control\n\x01 characters")
    start(threading.Thread, "asked for", lambda t: t.__dict__)
    start(threading.Thread, "copied", lambda t: setattr(t, "__dict__", dict(t.__dict__)))
    start(threading.Thread, "grown", after=lambda t: [setattr(t, "x%d" % i, i) for i in range(100)])
    start(threading.Thread, "shrunk", lambda t: (setattr(t, "x", 1), delattr(t, "x")))
    start(threading.Thread, "renamed at first", after=lambda t: setattr(t, "name", "renamed"))
    start(Slotted, "slotted")
    start(Mixed, "mixed")
    start(Wide, "wide")
    for i in range(300):
        # Entries that are deleted stay in front of those that live.
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
    start(threading.Thread, "late")


def describe(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return frames


def stands(frame):
    """It has come to the last line of block()."""
    return frame.f_code is block.__code__ and frame.f_lineno == block.__code__.co_firstlineno + 3


def main():
    sys.setrecursionlimit(5000)
    threading.stack_size(64 << 20)
    names = [fn.__name__ for fn in STACKS] + ["foreign"]
    if "spin" in sys.argv[1:]:
        names = ["recursion"]
        for _ in range(3):
            threading.Thread(target=spin, daemon=True).start()
    for fn in STACKS:
        if fn.__name__ in names:
            threading.Thread(target=fn, daemon=True).start()
    if "foreign" in names:
        start_foreign()
    if "sub" in sys.argv[1:]:
        try:
            import _interpreters  # noqa: F401
        except ImportError:
            import _xxsubinterpreters  # noqa: F401
        names.append("subinterpreter")
        threading.Thread(target=subinterpreter, daemon=True).start()
    if "spin" not in sys.argv[1:]:
        name_threads()
    deadline = time.monotonic() + 60
    while set(names) - set(ready):
        if time.monotonic() > deadline:
            sys.stderr.write("not blocked: %s\n" % (set(names) - set(ready)))
            os._exit(1)
        time.sleep(0.01)
    if "subinterpreter" in names:
        os.read(blocked_inside[0], 1)
    while threading._limbo:  # one that start() has begun, and that has not entered itself yet
        time.sleep(0.01)
    frames = sys._current_frames()
    while not all(stands(frames[ready[n]]) for n in names if n != "subinterpreter"):
        time.sleep(0.01)
        frames = sys._current_frames()
    out = {"version": sys.hexversion, "free": not getattr(sys, "_is_gil_enabled", lambda: True)(),
           "names": {str(t.ident): t.name[:256] for t in threading.enumerate()},
           "threads": {n: {"id": ready[n], "frames": describe(frames[ready[n]])} for n in names}}
    del frames
    print(json.dumps(out), flush=True)
    sys.stdin.read()
    os._exit(0)  # the others go on for good


main()
