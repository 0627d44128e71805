# SPDX-License-Identifier: BSD-2-Clause
"""Annotations for programs that kprof profiles: ranges, marks, steps, metadata.

    import kprof_mark

    with kprof_mark.range("decode"):
        ...
    for i, batch in enumerate(loader):
        kprof_mark.step(i)

While nobody records the process a call does nothing but look at a counter. One file, no compiler and no package: put it
beside your program, or its folder into PYTHONPATH. It calls libkprof_mark.so, which is looked for at
$KPROF_MARK_LIBRARY, beside this file, and where kprof was installed; without it every call does nothing, and
`available` is False. What each call means is said in kprof/mark.h.
"""

import contextlib
import ctypes
import json
import os

__all__ = [
    "available", "watched", "push", "pop", "range", "annotate", "mark", "step", "step_end", "thread_info",
    "backend_event", "backend_memory", "correlation", "metadata", "activity_metadata",
    "invariant_violation",
]

_TEXT, _U64, _I64, _INT = ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_longlong, ctypes.c_int
_FUNCTIONS = {
    "range_push": (_TEXT,),
    "range_pop": (),
    "mark": (_TEXT,),
    "step": (_U64,),
    "step_end": (),
    "thread_info": (_TEXT,),
    "backend_event": (_U64, _U64, _I64, _TEXT, _TEXT),
    "backend_memory": (_U64, _I64, _U64, _U64, _INT, _INT),
    "correlation_push": (_U64, _INT),
    "correlation_pop": (_INT,),
    "metadata": (_TEXT, _TEXT, _INT, _INT),
    "invariant_violation": (_TEXT, _TEXT, _TEXT, _TEXT),
}


def _candidates():
    here = os.path.dirname(os.path.abspath(__file__))
    name = "libkprof_mark.so"
    yield os.environ.get("KPROF_MARK_LIBRARY", "")
    yield os.path.join(here, name)
    yield os.path.join(here, "..", "..", "lib", "kprof", name)  # PREFIX/share/kprof
    yield "/usr/local/lib/kprof/" + name
    yield "/usr/lib/kprof/" + name


def _load():
    for path in _candidates():
        if path and os.path.exists(path):
            with contextlib.suppress(OSError):
                return ctypes.CDLL(path)
    return None


class _Nobody:
    """Stands in for the counter where there is no library."""

    value = 0


def _bind(library):
    calls = {}
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, "kprof_marks_" + name)
        function.argtypes, function.restype = arguments, None
        calls[name] = function
    library.kprof_marks_watched.restype = ctypes.POINTER(ctypes.c_ushort)
    return calls, library.kprof_marks_watched().contents


_library = _load()
available = _library is not None
_calls, _counter = _bind(_library) if available else ({}, _Nobody())


def _bytes(text):
    return None if text is None else str(text).encode("utf-8", "replace").replace(b"\0", b"?")


def watched():
    """Is anybody recording this process?"""
    return _counter.value != 0


def push(name):
    if _counter.value:
        _calls["range_push"](_bytes(name))


def pop():
    if _counter.value:
        _calls["range_pop"]()


class annotate(contextlib.ContextDecorator):
    """A range around a block, or, as a decorator, around every call of a function."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        push(self.name)
        return self

    def __exit__(self, *exception):
        pop()
        return False

    def _recreate_cm(self):
        return self


range = annotate


def mark(name):
    if _counter.value:
        _calls["mark"](_bytes(name))


def step(number):
    """A step of training begins; the one before it on this thread ends."""
    if _counter.value:
        _calls["step"](number)


def step_end():
    if _counter.value:
        _calls["step_end"]()


def thread_info(name):
    if _counter.value:
        _calls["thread_info"](_bytes(name))


def backend_event(start_us, end_us, debug_handle, name, backend):
    if _counter.value:
        _calls["backend_event"](start_us, end_us, debug_handle, _bytes(name), _bytes(backend))


def backend_memory(pointer, size, total_allocated, total_reserved, device_type=0, device=-1):
    """Bytes allocated, or freed (size below 0), and the totals after it."""
    if _counter.value:
        _calls["backend_memory"](pointer, size, total_allocated, total_reserved, device_type, device)


@contextlib.contextmanager
def correlation(number, user=True):
    """What runs in this block belongs to the user's (or an operator's) event of this number."""
    if _counter.value:
        _calls["correlation_push"](number, user)
    try:
        yield
    finally:
        if _counter.value:
            _calls["correlation_pop"](user)


def _metadata(key, value, of_activity):
    if not _counter.value:
        return
    is_json = not isinstance(value, str)
    text = json.dumps(value) if is_json else value
    _calls["metadata"](_bytes(key), _bytes(text), is_json, of_activity)


def metadata(key, value):
    """Of the whole trace. A value that is no str is told as JSON."""
    _metadata(key, value, False)


def activity_metadata(key, value):
    """Of what this thread is doing: its innermost range or operator."""
    _metadata(key, value, True)


def invariant_violation(assertion, error=None, profile_id=None, group_id=None):
    if _counter.value:
        _calls["invariant_violation"](*map(_bytes, (assertion, error, profile_id, group_id)))
