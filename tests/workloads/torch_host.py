# SPDX-License-Identifier: BSD-2-Clause
"""Imports PyTorch once, and is then the parent of many workloads (tests/lib/harness.bash: torch_hosts).

    torch_host.py DIRECTORY

Each line that it reads from DIRECTORY/requests is a path BASE. It forks a process that becomes the workload of which
BASE.args holds Python's options, the script and its arguments, BASE.env the environment (both with NUL after each), and
whose standard streams are BASE.in, BASE.out and BASE.err. BASE.pid says which process that is, and BASE.status how it
ended, as a shell counts. The workload ends as a C program does: what is to be done at the end is, but the interpreter, of which
the fork would have to copy all that it takes apart (two seconds of CPU time), is left as it is. The host ends with the process
that started it.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import select
import sys
import threading
import warnings

# Else torch._inductor starts a pool of compilers when it is imported; workloads are forked from a process without any.
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import torch  # noqa: E402, F401  what this program is for

# What the first optimizer and the first compilation import, for longer than torch itself. Older releases do without.
for late in "torch._dynamo", "torch._inductor.compile_fx":
    with contextlib.suppress(ImportError):
        importlib.import_module(late)


def strings(path):
    with open(path, "rb") as f:
        return [os.fsdecode(s) for s in f.read().split(b"\0")[:-1]]


def say(path, number):
    """All of it at once: whoever waits for the file finds the number in it."""
    try:
        with open(path + "~", "w") as f:
            print(number, file=f)
        os.rename(path + "~", path)
    except OSError:
        pass  # the test has ended, and its directory with it


def become(base):
    """In the child: the streams, the environment and the arguments of the workload; returns its script."""
    for fd, (suffix, flags) in enumerate(((".in", os.O_RDONLY), (".out", os.O_WRONLY), (".err", os.O_WRONLY))):
        stream = os.open(base + suffix, flags)
        os.dup2(stream, fd)
        os.close(stream)
    os.environ.clear()
    os.environ.update(s.split("=", 1) for s in strings(base + ".env"))
    args = strings(base + ".args")
    while args[0] == "-W":
        warnings.simplefilter(args[1])
        del args[:2]
    sys.argv[:] = args
    sys.path[0] = os.path.dirname(args[0])
    return args[0]


def serve(directory):
    """Returns in a child only: the base of its request."""
    parent, children = os.getppid(), {}
    requests = os.open(directory + "/requests", os.O_RDWR | os.O_CLOEXEC)  # no end of file when a writer goes
    text = b""
    say(directory + "/pid", os.getpid())
    while os.getppid() == parent:
        if select.select([requests], [], [], 0.02 if children else 0.5)[0]:
            text += os.read(requests, 65536)
        while b"\n" in text:
            line, text = text.split(b"\n", 1)
            base = os.fsdecode(line)
            pid = os.fork()
            if not pid:
                os.close(requests)
                return base
            children[pid] = base
            say(base + ".pid", pid)
        while children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            if pid in children:
                say(children.pop(pid) + ".status", code)
    sys.exit(0)


gc.collect()
gc.freeze()  # what is here now is no garbage later, and not copied because of looking for some
script = become(serve(sys.argv[1]))
__file__ = script
with open(script, "rb") as source:
    code = compile(source.read(), script, "exec")
for helper in (strings, say, become, serve):
    del globals()[helper.__name__]
exec(code, globals())
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
ctypes.PyDLL(None).exit(0)
