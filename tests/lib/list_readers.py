# SPDX-License-Identifier: BSD-2-Clause
"""Clients, all of one user, that ask the daemon what processes there are. Some read it to its end, some do not.

    list_readers.py SOCKET DAEMON_PID owner|group
"""
import fcntl
import json
import os
import signal
import socket
import sys
import termios
import time

path, daemon, kind = sys.argv[1], sys.argv[2], sys.argv[3]
OWN = 150  # processes: far more of a list than the daemon writes ahead of who reads
LIST = "kprof-list"


def ask():
    """A file to read the list from; None: there are others that this user has not read yet."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        s.sendall(b'{"do":"processes"}\n')
        answer, files, _, _ = socket.recv_fds(s, 65536, 1)
    answer = json.loads(answer)
    assert answer["ok"] == bool(files) and (files or "at once" in answer["error"]), answer
    return files[0] if files else None


def rest(file):
    with open(file, "rb") as f:
        return f.read()


def writers():
    """The daemon's processes that write lists."""
    with open(f"/proc/{daemon}/task/{daemon}/children") as f:
        children = f.read().split()
    found = []
    for child in children:
        try:
            with open(f"/proc/{child}/comm") as f:
                if f.read().strip() == LIST:
                    found.append(int(child))
        except OSError:
            pass
    return found


def wait_for(what):
    end = time.monotonic() + 120
    while not (is_so := what()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return is_so


def reads_all():
    """The end says that it is over: the next one can be asked for."""
    for _ in range(5):
        text = rest(ask())
        assert text.endswith(b"]\n") and len(json.loads(text)) > OWN


def unread(file):
    return int.from_bytes(fcntl.ioctl(file, termios.FIONREAD, bytes(4)), sys.byteorder)


def waits(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0] == "S"


def reads_nothing():
    file = ask()
    (writer,) = wait_for(writers)
    wait_for(lambda: unread(file) and waits(writer))
    assert unread(file) < 10000
    assert ask() is None and ask() is None
    try:
        socket.socket(fileno=os.dup(file)).send(b"x")  # a file, too, could come along
        assert False, "the daemon is sent what it never takes"
    except BrokenPipeError:
        pass
    os.close(file)  # of another one, it would have to be waited for
    os.close(wait_for(ask))


def is_cut_off():
    file = wait_for(ask)
    (writer,) = wait_for(writers)
    wait_for(lambda: is_ours(writer))
    try:
        open(f"/proc/{writer}/environ", "rb").close()
        assert False, "it has the daemon's memory"
    except PermissionError:
        pass
    os.kill(writer, signal.SIGKILL)
    text = rest(file)
    assert not text.endswith(b"]\n"), text
    try:
        json.loads(text)
    except ValueError:
        return
    assert False, text


def is_ours(pid):
    try:
        os.kill(pid, 0)
    except PermissionError:  # it is root's still
        return False
    return True


stay, end = os.pipe()
for _ in range(OWN):
    if not os.fork():
        os.close(end)
        os.read(stay, 1)
        os._exit(0)
reads_all()
reads_nothing()
if kind == "owner":
    is_cut_off()
