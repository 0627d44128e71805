# SPDX-License-Identifier: BSD-2-Clause
"""Clients of the daemon that mean it harm. Fails if an honest one is not answered at once meanwhile, or wrongly.

    hostile_clients.py SOCKET
"""
import array
import json
import os
import random
import socket
import struct
import sys
import time

path = sys.argv[1]


def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.settimeout(60)
    return s


def ask(question, s=None):
    s = s or connect()
    s.sendall(question if isinstance(question, bytes) else json.dumps(question).encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        piece = s.recv(65536)
        if not piece:
            return None
        answer += piece
    return json.loads(answer)


def honest():
    assert ask({"do": "list"})["ok"]


def send_lingering(to, data, flags=0):
    """Sends a TCP socket along whose bytes nobody reads. Returns its peer. This process never has it: it would wait, too."""
    listener = socket.create_server(("127.0.0.1", 0))
    pid = os.fork()
    if not pid:
        s = socket.create_connection(listener.getsockname())
        s.setblocking(False)
        try:
            while True:
                s.send(bytes(65536))
        except BlockingIOError:
            pass
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 30000))
        for one in to:
            try:
                one.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()] * 10))], flags)
            except OSError:  # hung up on, for what came before, or a kernel without such flags
                pass
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    return listener.accept()[0]


random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
honest()
# Not what is asked for.
for text in (b"\n", b"[]\n", b"1\n", b"null\n", b"{\n", b'{"do":1}\n', b'{"do":"x"}\n', b"\xff\xfe\n", b"{}\n", b"[" * 5000 + b"\n",
             b'{"do":"start","options":1}\n', b'{"do":"start","options":[1]}\n', b'{"do":"start","options":[]}\n',
             b'{"do":"get","id":"../../etc/passwd"}\n', b'{"do":"stop","id":[]}\n', b'{"do":"stop","pid":"x"}\n',
             b'{"do":"stop","pid":1e300}\n', b'{"do":"status","id":""}\n', b'{"do":"capturing","pid":-1}\n',
             b'{"do":"start","options":["-p","1","-p"]}\n', b'{"do":"start","options":["--help"]}\n',
             b'{"do":"start","options":["-p","999999999"]}\n',
             b'{"do":"start","options":["--config","/dev/zero","-p","1"]}\n',
             json.dumps({"do": "start", "options": ["x"] * 600}).encode() + b"\n"):
    answer = ask(text)
    assert answer is not None and (not answer["ok"] or b"capturing" in text or b'"stop","pid"' in text), (text, answer)
    assert answer["ok"] or answer["error"], text
honest()
# What is no text, and what would be a line of its own in a log or move a cursor, in what is told of a request.
answer = ask(b'{"do":"start","options":["-p","1","--\xff\xc0\\u001b[2J\\u0000\\n{\\"event\\":\\"forged\\"}\\u202e\xc2\x9b"]}\n')
assert not answer["ok"] and "no option --??" in answer["error"], answer  # and it was UTF-8
honest()
# A line without an end, longer than any may be.
s = connect()
try:
    for _ in range(40):
        s.sendall(b"x" * 4096)
    assert ask(b"\n", s) is None
except (BrokenPipeError, ConnectionResetError):
    pass
honest()
# Random bytes, and lines cut anywhere.
for _ in range(300):
    s = connect()
    line = json.dumps({"do": random.choice(["start", "list", "get", "status"]), "id": "x", "options": ["-p", "1"] * 3}).encode() + b"\n"
    try:
        s.sendall(line[:random.randrange(len(line))] if random.random() < .5 else os.urandom(random.randrange(200)))
    except BrokenPipeError:
        pass
    s.close()
honest()
# Many at once that say nothing, or half of a line. As root there is no limit for one user, but one for all.
idle = [connect() for _ in range(200)]
for s in idle[::2]:
    s.sendall(b'{"do":')
begin = time.monotonic()
honest()
assert time.monotonic() - begin < 5
# A question asked, and hung up before the answer; an answer never read.
for _ in range(50):
    s = connect()
    s.sendall(b'{"do":"list"}\n{"do":"list"}\n')
    s.close()
for s in idle:
    s.close()
honest()
# Files that come along: closing one takes as long as its sender wants. With the first line, and behind one that is answered.
peers = []
for line in (b"", b'{"do":"list"}\n'):
    s = connect()
    s.sendall(line)
    peers.append(send_lingering([s], b'{"do":"list"}\n'))
    honest()
    s.close()
    honest()
# Out of band, where who reads what is behind it does not see it.
s = connect()
peers.append(send_lingering([s], b"x", socket.MSG_OOB))
try:
    s.sendall(b'{"do":"list"}\n')
except (BrokenPipeError, ConnectionResetError):
    pass
honest()
s.close()
honest()
# Many such at once, some of them before they are let in.
many = [connect() for _ in range(300)]
peers.append(send_lingering(many, b"x"))
for s in many:
    s.close()
honest()
# One that says nothing more is answered yet.
s = connect()
s.sendall(b'{"do":"list"}\n')
s.shutdown(socket.SHUT_WR)
assert json.loads(s.recv(65536))["ok"] and s.recv(1) == b""
# Several questions on one connection, one after the other.
s = connect()
for _ in range(20):
    assert ask({"do": "list"}, s)["ok"]
