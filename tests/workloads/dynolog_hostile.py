# SPDX-License-Identifier: BSD-2-Clause
"""Does all that it should not to a daemon's dynolog sockets, and beside it what Kineto and dyno do, which must be answered.

Prints READY, waits for a line, and says in JSON what it sent, and how often honest ones were answered.
"""

import json
import os
import random
import socket
import struct
import sys
import time
import uuid

DAEMON = b"\0dynolog\0"
PORT = 1778
sent = {"malformed": 0, "forged": 0, "unnamed": 0, "bad_requests": 0}


def datagram(kind, payload):
    return struct.pack("=Q32s", len(payload), kind) + payload


def poll_of(*pids):
    return datagram(b"req", struct.pack(f"=iiq{len(pids)}i", 2, len(pids), 0, *pids))


def client(named=True):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if named:
        s.bind(b"\0dynoconfigclient" + str(uuid.uuid4()).encode() + b"\0")
    s.settimeout(20)
    return s


def honest_poll():
    """Whether a poll is answered, however long that takes."""
    with client() as s:
        s.sendto(poll_of(os.getpid(), os.getppid()), DAEMON)
        return s.recv(65536) == datagram(b"req", b"")


def honest_request():
    with socket.create_connection(("127.0.0.1", PORT), timeout=20) as s:
        text = b'{"fn":"getStatus"}'
        s.sendall(struct.pack("=i", len(text)) + text)
        return s.recv(65536)[4:] == b'{"status":1}'


def wrong_sizes():
    good = poll_of(os.getpid())
    with client() as s:
        for data in [good[:n] for n in range(len(good))] + [good + bytes(n) for n in (1, 4, 300, 60000)]:
            s.sendto(data, DAEMON)
            sent["malformed"] += 1
        for _ in range(2000):
            data = bytearray(good)
            data[random.randrange(8)] ^= random.randrange(1, 256)  # another size
            s.sendto(data, DAEMON)
            sent["malformed"] += 1
        for kind in (b"", b"re", b"reqx", b"ctx", b"x" * 32):
            s.sendto(datagram(kind, good[40:]), DAEMON)
            sent["malformed"] += 1


def forged():
    with client() as s:
        for pid in (1, os.getppid(), 2**31 - 1):
            s.sendto(poll_of(pid, os.getpid()), DAEMON)
            s.sendto(datagram(b"ctxt", struct.pack("=iiq", 0, pid, 0)), DAEMON)
            sent["forged"] += 2


def unnamed():
    with client(named=False) as s:
        for _ in range(100):
            s.sendto(poll_of(os.getpid()), DAEMON)
            sent["unnamed"] += 1


def flood(seconds):
    """A child that sends as fast as it can, and never reads an answer."""
    child = os.fork()
    if child:
        return child
    s = client()
    s.setblocking(False)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            s.sendto(poll_of(os.getpid()), DAEMON)
        except BlockingIOError:
            pass
    os._exit(0)


def bad_connections():
    deep = b'{"fn":' + b"[" * 100000 + b"]" * 100000 + b"}"
    for data in (struct.pack("=i", -1), struct.pack("=i", 2**31 - 1), b"GET / HTTP/1.0\r\n\r\n", struct.pack("=i", 3) + b"{}x",
                 struct.pack("=i", len(deep)) + deep, struct.pack("=i", 8) + os.urandom(8)):
        with socket.create_connection(("127.0.0.1", PORT), timeout=20) as s:
            try:
                s.sendall(data)
                if s.recv(100):
                    sys.exit(f"{data[:20]} was answered")
            except ConnectionError:
                pass  # closed before all was sent
        sent["bad_requests"] += 1


def main():
    print(f"READY {os.getpid()}", flush=True)
    sys.stdin.readline()
    wrong_sizes()
    forged()
    unnamed()
    bad_connections()
    held = [socket.create_connection(("127.0.0.1", PORT)) for _ in range(100)]
    for s in held[::2]:
        s.sendall(b"\x20\0")
    flooder = flood(3)
    answered = 0
    for _ in range(20):
        answered += honest_poll() + honest_request()
    os.waitpid(flooder, 0)
    print(json.dumps({**sent, "honest": answered}), flush=True)


main()
