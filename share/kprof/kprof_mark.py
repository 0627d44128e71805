# SPDX-License-Identifier: BSD-2-Clause
"""Annotations for programs that kprof profiles: ranges, marks, steps, metadata; and recordings that they begin themselves.

    import kprof_mark

    with kprof_mark.range("decode"):
        ...
    for i, batch in enumerate(loader):
        kprof_mark.step(i)

While nobody records the process a call does nothing but look at a counter. One file, no compiler and no package: put it
beside your program, or its folder into PYTHONPATH. It calls libkprof_mark.so, which is looked for at
$KPROF_MARK_LIBRARY, beside this file, and where kprof was installed; without it every call does nothing, and
`available` is False. What each call means is said in kprof/mark.h.

    with kprof_mark.profile(shapes=True, with_stack=True) as p:
        ...
    print(p.id, p.path, p.error)

asks kprof's daemon, which must allow it, to record this process meanwhile; also @kprof_mark.profile(), start() and
stop(). Needs no library. kprof/profile.h is the same for C, and says how starts nest.
"""

import contextlib
import ctypes
import json
import os
import select
import socket as _socket
import threading
import time

__all__ = [
    "profile", "start", "stop", "profiling", "Recording",
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


# ---- recordings ----

_SOCKET = "/run/kprofd/socket"
_ANSWER_BYTES = 1 << 16
_START_S, _STOP_S = 10.0, 60.0
_AGAIN = (BlockingIOError, InterruptedError)
# What PyTorch's profiler calls differently.
_ALIASES = {"record_shapes": "shapes", "profile_memory": "memory", "with_flops": "flops", "with_modules": "modules"}


class Recording:
    """What became of a start or a stop. True if it was done; else `error` says why not, and `hint` a way out, if there is one.

    id: of the recording, None if there is none. path: of its capture, after the last stop.
    """

    def __init__(self, ok=False, id=None, path=None, error=None, hint=None):
        self.ok, self.id, self.path, self.error, self.hint = ok, id, path, error, hint

    def __bool__(self):
        return self.ok

    def __repr__(self):
        return f"<kprof recording {self.id or '(none)'}: {'ok' if self.ok else self.error}>"


class _Count:
    """Of starts without their stop: of the process, or of a thread. A process that was forked begins anew."""

    def __init__(self):
        self.lock, self.process, self.number, self.id, self.socket = threading.Lock(), os.getpid(), 0, None, None


_processes, _threads = {}, threading.local()  # by number: this one, and those that it was forked from


def _count(this_thread):
    if not this_thread:
        return _processes.get(os.getpid()) or _processes.setdefault(os.getpid(), _Count())
    count = getattr(_threads, "count", None)
    if count is None or count.process != os.getpid():
        count = _threads.count = _Count()
    return count


def _value(value):
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(_value, value))
    # an element of torch.profiler.ProfilerActivity
    return value.name.lower() if hasattr(value, "name") else str(value)


def _words(options):
    """As on the command line: shapes=True is --shapes, duration="5s" is --duration=5s."""
    words = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        word = "--" + _ALIASES.get(name, name).replace("_", "-")
        words.append(word if value is True else f"{word}={_value(value)}")
    return words


class _Late(Exception):
    pass


def _wait(s, event, until):
    poll = select.poll()
    poll.register(s, event)
    left = until - time.monotonic()
    if left <= 0:
        raise _Late
    poll.poll(left * 1000)


def _connect(s, path, until):
    while True:
        try:
            return s.connect(path)
        except _AGAIN:  # others wait for the daemon to accept them
            if time.monotonic() >= until:
                raise _Late from None
            time.sleep(0.01)


def _read(s, until):
    line, late = b"", False
    while len(line) < _ANSWER_BYTES:
        try:
            part = s.recv(_ANSWER_BYTES)
        except _AGAIN:
            part = None
        line += part or b""
        if b"\n" in line:
            return line
        if late:
            raise _Late
        if part == b"":
            raise EOFError
        try:
            _wait(s, select.POLLIN, until)
        except _Late:
            # From here on, the daemon cannot answer, and knows that it has not.
            s.shutdown(_socket.SHUT_RD)
            late = True
    raise ValueError("too long")


def _exchange(path, question, until):
    line = json.dumps(question).encode() + b"\n"
    with _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM) as s:
        s.setblocking(False)
        _connect(s, path, until)
        while line:
            try:
                line = line[s.send(line, _socket.MSG_NOSIGNAL):]
            except _AGAIN:
                _wait(s, select.POLLOUT, until)
        answer = json.loads(_read(s, until))
    if not isinstance(answer, dict):
        raise ValueError("no object")
    return answer


def _ask(path, question, until):
    """The daemon's answer, or {"error": why there is none}."""
    try:
        return _exchange(path, question, until)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        return {"error": f"no daemon listens at {path}", "hint": "`systemctl start kprof`, or `sudo kprof daemon` in a terminal"}
    except _Late:
        return {"error": "the daemon has not answered in time"}
    except (EOFError, ConnectionError):
        return {"error": "the daemon ended without an answer"}
    except ValueError:
        return {"error": "the daemon's answer is not understood"}
    except OSError as e:
        return {"error": f"cannot ask the daemon: {e.strerror or e}"}


def _recording(answer):
    ok = answer.get("ok") is True and "error" not in answer
    error = None if ok else answer.get("error", "the daemon says no, and not why")
    return Recording(ok, answer.get("id"), answer.get("path"), error, answer.get("hint"))


@contextlib.contextmanager
def _held(count, until):
    held = count.lock.acquire(timeout=max(0, until - time.monotonic()))
    try:
        yield held
    finally:
        if held:
            count.lock.release()


def start(*, this_thread=False, timeout=_START_S, socket=None, **options):
    """Begins to record this process: it is recorded when this returns, if the result is true.

    options: as those of `kprof ctl start`, with _ for -: shapes=True, with_stack=True, activities="cpu", duration="5s";
    torch.profiler's record_shapes, profile_memory, with_flops, with_modules are taken, too. Starts nest: the first one's
    options hold, and the last stop() ends it. this_thread: a recording of this thread alone. timeout: at most so many
    seconds; without a daemon it returns at once. socket: the daemon's ($KPROF_DAEMON_SOCKET, /run/kprofd/socket).
    """
    until = time.monotonic() + timeout
    path = socket or os.environ.get("KPROF_DAEMON_SOCKET") or _SOCKET
    count = _count(this_thread)
    with _held(count, until) as held:
        if not held:
            return Recording(error="the daemon has not answered in time")
        if not count.number:
            question = {"do": "start", "self": True, "options": _words(options)}
            if this_thread:
                question["thread"] = threading.get_native_id()
            result = _recording(_ask(path, question, until))
            if not result:
                return result
            count.id, count.socket = result.id, path
        count.number += 1
        return Recording(True, count.id)


def stop(*, this_thread=False, timeout=_STOP_S):
    """Ends what start() has begun, if this is the last stop, and waits until its capture is finished."""
    until = time.monotonic() + timeout
    count = _count(this_thread)
    with _held(count, until) as held:
        if not held:
            return Recording(error="the daemon has not answered in time")
        if not count.number:
            return Recording(error="nothing was started that could be stopped")
        count.number -= 1
        if count.number:
            return Recording(True, count.id)
        # By its id: others may record this process, too.
        result = _recording(_ask(count.socket, {"do": "stop", "self": True, "id": count.id}, until))
        result.id = count.id
        return result


def profiling():
    """Whether a start() of this process, or of this thread, has not been stopped yet."""
    return bool(_count(False).number or _count(True).number)


class profile(contextlib.ContextDecorator):
    """Records while a block runs, or, as a decorator, while the outermost call of a function does. Takes what start() does.

    The program goes on as it is if it cannot be recorded: ok, error and hint say so; id and path are of the recording.
    """

    def __init__(self, *, this_thread=False, stop_timeout=_STOP_S, **options):
        self._this_thread, self._stop_timeout, self._options = this_thread, stop_timeout, options
        self._on, self._result = False, Recording(error="it has not begun")

    ok = property(lambda self: self._result.ok)
    id = property(lambda self: self._result.id)
    path = property(lambda self: self._result.path)
    error = property(lambda self: self._result.error)
    hint = property(lambda self: self._result.hint)

    def __bool__(self):
        return self.ok

    def __enter__(self):
        self._result = start(this_thread=self._this_thread, **self._options)
        self._on = self._result.ok
        return self

    start = __enter__

    def stop(self):
        """Ends it before the block does; whether the capture is there."""
        if self._on:
            self._on = False
            self._result = stop(this_thread=self._this_thread, timeout=self._stop_timeout)
        return self.ok

    def __exit__(self, *exception):
        self.stop()
        return False

    def _recreate_cm(self):
        return profile(this_thread=self._this_thread, stop_timeout=self._stop_timeout, **self._options)
