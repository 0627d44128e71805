# SPDX-License-Identifier: BSD-2-Clause
"""Users who take all connections that they get. Fails if root, or another user, is not answered meanwhile. Needs root.

    many_users.py SOCKET
"""
import json
import os
import socket
import sys

path = sys.argv[1]
USERS, EACH = 6, 64


def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(path)
    return s


def answers(s, number=1):
    """As many lines as this. Fewer: the daemon has hung up."""
    got = b""
    while got.count(b"\n") < number:
        piece = s.recv(65536)
        if not piece:
            break
        got += piece
    return [json.loads(line) for line in got.splitlines()]


def ask(s, what="list"):
    s.sendall(json.dumps({"do": what}).encode() + b"\n")
    return answers(s)[0]["ok"]


def as_user(uid, run):
    """Runs it in a process of this user's, which stays until end()."""
    ready, is_ready = os.pipe()
    stay, go = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(go)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        status = 1
        try:
            kept = run()  # connections stay open
            os.write(is_ready, b"x")
            os.read(stay, 1)
            status = 0 if kept is not None else 1
        finally:
            os._exit(status)
    os.close(stay)
    os.close(is_ready)
    said = os.read(ready, 1)
    os.close(ready)
    return pid, go, said == b"x"


def end(user):
    pid, go, fine = user
    os.write(go, b"x")  # others have the end of the pipe, too
    os.close(go)
    assert os.waitpid(pid, 0)[1] == 0 and fine


def take_all():
    kept = []
    for _ in range(EACH):
        try:
            s = connect()
            ask(s)
            kept.append(s)
        except (OSError, IndexError):
            pass
    return kept


def one():
    s = connect()
    assert ask(s)
    return s


def many_questions():
    s = connect()
    s.sendall(b'{"do":"list"}\n' * 1000)
    got = answers(s, 1000)
    assert len(got) == 1000 and all(a["ok"] for a in got)
    return s


# Each is answered once, and then keeps its connections.
users = [as_user(30000 + n, take_all) for n in range(USERS)]
assert ask(connect())
end(as_user(31000, one))
for user in users:
    end(user)
# More questions at once than are answered in a second: each is answered, in the end.
end(as_user(31000, many_questions))
assert ask(connect())
# Root asks several on one connection at once, too.
s = connect()
s.sendall(b'{"do":"list"}\n' * 300)
assert len(answers(s, 300)) == 300
