#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Clients that an HTTP server does not wish for, each against webdaemon's child; after each, it serves as before.

    http_hostile.py KIND PORT CHILD

KIND: a function below. CHILD: the number of the process whose memory and descriptors are looked at.
"""

import http.client
import os
import socket
import sys
import time

TIMEOUT_S = 60


def want(condition, words):
    if not condition:
        sys.exit(f"http_hostile: {words}")


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)


def talk(port, data):
    """All that comes back until the server closes the connection, or says nothing for two seconds after something came."""
    with connect(port) as s:
        try:
            s.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        got = b""
        while True:
            s.settimeout(2 if got else TIMEOUT_S)
            try:
                more = s.recv(65536)
            except (TimeoutError, ConnectionResetError):
                return got
            if not more:
                return got
            got += more


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else None


def request(line, *headers, host="127.0.0.1"):
    lines = [line] + ([f"Host: {host}"] if host is not None else []) + list(headers) + ["Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def serves(port):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    client.request("GET", "/metrics")
    reply = client.getresponse()
    body = reply.read()
    client.close()
    want(reply.status == 200 and b"kprof_uptime_seconds 3600.5" in body, f"/metrics is {reply.status}")


def memory_kib(child):
    with open(f"/proc/{child}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def descriptors(child):
    return len(os.listdir(f"/proc/{child}/fd"))


def names(port, child):
    """Hosts that a web page of somebody else's could have."""
    for host, expected in {"127.0.0.1": 200, "localhost:9": 200, "[::1]": 200, "node-7.cluster": 200, "10.9.8.7": 200,
                           "evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "": 421,
                           "x" * 500: 421}.items():
        got = status(talk(port, request("GET /metrics HTTP/1.1", host=host)))
        want(got == expected, f"Host {host[:40]!r}: {got}, not {expected}")
    two = status(talk(port, request("GET /metrics HTTP/1.1", "Host: evil.example")))
    want(two in (400, 421), f"two hosts: {two}")
    none = status(talk(port, request("GET /metrics HTTP/1.1", host=None)))
    want(none in (400, 421), f"no host: {none}")
    old = status(talk(port, request("GET /metrics HTTP/1.0", host=None)))
    want(old in (400, 421), f"no host in HTTP/1.0: {old}")


def methods(port, child):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "XYZ"):
        answer = talk(port, request(f"{method} /metrics HTTP/1.1"))
        want(status(answer) in (405, 400), f"{method}: {status(answer)}")
        want(b"Access-Control" not in answer, f"{method} speaks of other origins")
    body = status(talk(port, request("GET /metrics HTTP/1.1", "Content-Length: 5") + b"hello"))
    want(body == 400, f"a body: {body}")
    chunks = status(talk(port, request("GET /metrics HTTP/1.1", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n"))
    want(chunks == 400, f"a body in chunks: {chunks}")
    head = talk(port, request("HEAD /metrics HTTP/1.1"))
    want(status(head) == 200 and head.endswith(b"\r\n\r\n"), "HEAD has a body")


def paths(port, child):
    for path in ("/../../etc/passwd", "/dump/../../../etc/passwd", "/dump/..%2f..%2fetc%2fpasswd", "/dump/%2e%2e", "/dump/slow-step.1%00",
                 "/dump/slow-step.1/", "/dump//slow-step.1", "/dump/.", "/dump/", "/trace/" + "a" * 129, "/dump/a;b", "//metrics",
                 "/metrics/", "/METRICS", "/api", "/.git/config", "http://evil.example/metrics", "*", "/dump/\xe4", "/dump/not-there"):
        got = status(talk(port, request(f"GET {path} HTTP/1.1")))
        want(got in (404, 400), f"{path}: {got}")


def huge(port, child):
    """A line, headers and their number beyond all bounds."""
    before = memory_kib(child)
    for data in (request("GET /" + "a" * 10**6 + " HTTP/1.1"), request("GET /metrics HTTP/1.1", "X: " + "a" * 10**6),
                 request("GET /metrics HTTP/1.1", *(f"X-{i}: y" for i in range(10**5))), b"a" * 10**6, b"\0" * 10**5,
                 request("GET /?" + "&".join(f"a{i}=b" for i in range(10**4)) + " HTTP/1.1")):
        got = status(talk(port, data))
        want(got in (None, 400, 413, 414, 431, 404), f"{data[:30]}: {got}")
    want(memory_kib(child) < before + 8192, f"memory grew from {before} to {memory_kib(child)} KiB")


def garbage(port, child):
    for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 512,
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /metrics HTTP/1.1\r\n Host: x\r\n\r\n", b"GET /metrics HTTP/1.1\r\n: x\r\n\r\n",
                 b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
                 b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"):
        got = status(talk(port, data))
        want(got != 200, f"{data[:40]} was well")
    # A second request, that is none, behind a good one.
    answer = talk(port, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + b"\xff\xfe garbage\r\n\r\n")
    want(status(answer) == 200 and answer.count(b"HTTP/1.1 200") == 1, "not one good answer, and only that")
    many = talk(port, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 50 + request("GET /nothing HTTP/1.1"))
    want(many.count(b"HTTP/1.1 200") == 50 and many.count(b"HTTP/1.1 404") == 1, "not 50 answers to 50 questions at once")


def slow(port, child):
    """As many as fit send a letter now and then, and never end: others are served all the same; and they are not let stay."""
    clients = []
    for _ in range(100):
        clients.append(connect(port))
        clients[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
    end, left = time.monotonic() + TIMEOUT_S, clients
    serves(port)
    while left and time.monotonic() < end:
        alive = []
        for s in left:
            try:
                s.setblocking(False)
                s.send(b"a")
                try:
                    want(s.recv(1) != b"x", "")
                except BlockingIOError:
                    alive.append(s)
            except OSError:
                pass
        left = alive
        serves(port)
        time.sleep(.5)
    want(not left, f"{len(left)} slow clients are still there after {TIMEOUT_S} s")


def many(port, child):
    """200 connections that do nothing, then 200 that ask."""
    before = memory_kib(child)
    idle = [connect(port) for _ in range(200)]
    serves(port)
    want(descriptors(child) < 160, f"{descriptors(child)} descriptors")
    for s in idle:
        s.close()
    asking = []
    for _ in range(200):
        s = connect(port)
        try:
            s.sendall(request("GET /metrics HTTP/1.1"))
        except OSError:
            pass
        asking.append(s)
    good = 0
    for s in asking:
        data = b""
        try:
            while more := s.recv(65536):
                data += more
        except OSError:
            pass
        good += status(data) == 200 and b"kprof_uptime_seconds" in data
        s.close()
    want(good >= 190, f"{good} of 200 were served")
    serves(port)
    want(memory_kib(child) < before + 16384, f"memory grew from {before} to {memory_kib(child)} KiB")


def unread(port, child):
    """Who asks for a large file and does not read it costs a descriptor, and no memory."""
    before = memory_kib(child)
    readers = []
    for _ in range(20):
        s = connect(port)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(request("GET /dump/large HTTP/1.1"))
        want(s.recv(12) == b"HTTP/1.1 200", "no answer")
        readers.append(s)
    serves(port)
    want(memory_kib(child) < before + 4096, f"memory grew from {before} to {memory_kib(child)} KiB")
    for s in readers:
        s.close()
    end = time.monotonic() + TIMEOUT_S
    while descriptors(child) > 16:
        want(time.monotonic() < end, f"{descriptors(child)} descriptors are open")
        serves(port)


def main():
    kind, port, child = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    serves(port)
    globals()[kind](port, child)
    serves(port)
    print(f"http_hostile: {kind}: memory {memory_kib(child)} KiB, {descriptors(child)} descriptors")


main()
