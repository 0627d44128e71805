# SPDX-License-Identifier: BSD-2-Clause
"""A process in a PID namespace of its own connects to a daemon, hands the connection out of it, and ends.

    handed_out.py SOCKET

Prints whether the daemon tells the connection of another process there, before that end and after it: numbers of namespaces and
processes are given again, so that the connection must not count as theirs for ever.
"""

import ctypes
import json
import os
import signal
import socket
import sys

USER = 4711
CLONE_NEWPID = 0x20000000
PR_SET_DUMPABLE = 4
libc = ctypes.CDLL(None)


def become_user():
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    libc.prctl(PR_SET_DUMPABLE, 1)  # as a program is that this user has begun


def inside(to):
    """Begins the namespace's first process, and the one that connects; tells both numbers, and when the latter has ended."""
    assert not libc.unshare(CLONE_NEWPID)
    first = os.fork()
    if not first:
        become_user()
        signal.pause()
    who = os.fork()
    if not who:
        become_user()
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
        socket.send_fds(to, [json.dumps("connected").encode()], [s.fileno()])
        signal.pause()
    to.send(json.dumps([first, who]).encode())
    os.waitpid(who, 0)
    to.send(json.dumps("ended").encode())
    os.waitpid(first, 0)


def main():
    signal.alarm(100)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    middle = os.fork()
    if not middle:
        inside(theirs)
        os._exit(0)
    theirs.close()  # what it says ends with it
    numbers, fds = None, []
    while not numbers or not fds:
        data, got, _, _ = socket.recv_fds(ours, 1024, 1)
        assert data, "it could not connect"
        fds += got
        said = json.loads(data)
        numbers = said if isinstance(said, list) else numbers
    connection = socket.socket(fileno=fds[0])

    def told():
        connection.sendall(json.dumps({"do": "capturing", "pid": numbers[0]}).encode() + b"\n")
        return json.loads(connection.recv(65536))["exists"]

    before = told()
    os.kill(numbers[1], signal.SIGKILL)
    assert json.loads(ours.recv(1024)) == "ended"
    print(before, told())
    os.kill(numbers[0], signal.SIGKILL)
    os.waitpid(middle, 0)


main()
