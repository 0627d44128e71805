#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes profiles as an OpenTelemetry collector, Pyroscope and Parca do, and refuses what they refuse.

    receiver.py FOLDER [--port N] [--tls CERT KEY [CLIENT-CA]] [--token TEXT | --basic TEXT] [--passed-on] [--keep]

Listens on a free port of 127.0.0.1, or the given one; FOLDER/port has it. FOLDER/log gets a JSON object for each request that
was taken. What it is to do with the next requests instead stands in FOLDER/faults, a word a line: a status with or without a
Retry-After (503, 429:2), reset, slow, hang, redirect:URL, huge, headers, garbage, partial; it takes each line once.
With --keep, FOLDER/N.body has what came with the N-th that was taken, from 1.
"""

import base64
import gzip
import http.server
import json
import os
import re
import signal
import ssl
import struct
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "readers"))

import check_otlp

LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")


class Refused(Exception):
    """What is wrong with a request."""


def want(condition, words):
    if not condition:
        raise Refused(words)


# ---- pprof, read by its wire format alone

def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            want(key & 7 == 2, f"wire type {key & 7}")
            size, at = varint(data, at)
            want(at + size <= len(data), "cut short")
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def numbers(value):
    if isinstance(value, int):
        return [value]
    at, out = 0, []
    while at < len(value):
        number, at = varint(value, at)
        out.append(number)
    return out


def many(message, number):
    return [v for n, v in message if n == number]


def one(message, number, default=0):
    return (many(message, number) or [default])[-1]


def check_pprof(data):
    """Parca's demands. {type: {function: samples innermost}} and who the samples are of."""
    want(data[:2] == b"\x1f\x8b", "no gzip")
    profile = list(fields(gzip.decompress(data)))
    strings = [s.decode() for s in many(profile, 6)]
    want(strings and strings[0] == "", "string 0 is not empty")
    mappings, locations, functions = ([list(fields(m)) for m in many(profile, n)] for n in (3, 4, 5))
    for name, table in (("mapping", mappings), ("location", locations), ("function", functions)):
        want([one(m, 1) for m in table] == list(range(1, len(table) + 1)), f"{name} ids are not 1, 2, 3 …")
    for l in locations:
        want(one(l, 2) <= len(mappings), "a location's mapping")
        for line in many(l, 4):
            want(1 <= one(list(fields(line)), 1) <= len(functions), "a line's function")
    types = [strings[one(list(fields(t)), 1)] for t in many(profile, 1)]
    want(types, "no sample types")
    want(one(profile, 9) > 10 ** 18 and one(profile, 10) > 0, "no time")
    seen = {t: {} for t in types}
    pids = set()
    for s in (list(fields(m)) for m in many(profile, 2)):
        place = [n for v in many(s, 1) for n in numbers(v)]
        values = [n for v in many(s, 2) for n in numbers(v)]
        want(len(values) == len(types), "values of a sample")
        want(place and all(1 <= i <= len(locations) for i in place), "a sample's locations")
        names = [strings[one(functions[one(list(fields(line)), 1) - 1], 2)] for i in place for line in many(locations[i - 1], 4)]
        own = names[1 if "off_cpu" in types else 0]  # a wait's innermost frame says what it was for
        for kind, value in zip(types, values):
            seen[kind][own] = seen[kind].get(own, 0) + value
        pids |= {one(l, 3) for l in (list(fields(m)) for m in many(s, 3)) if strings[one(l, 1)] == "pid"}
    want(not any("--password" in s for s in strings), "a command line")
    return {"own": seen, "pids": sorted(pids)}


# ---- what each takes

def take_otlp(handler, body):
    want(handler.headers["Content-Type"] == "application/x-protobuf", "content type")
    want(handler.headers["Content-Encoding"] == "gzip", "content encoding")
    request = check_otlp.decode(body)
    try:
        profiles = check_otlp.check_rules(request, handler.server.passed_on)
    except SystemExit as error:
        raise Refused(str(error)) from error
    own = {kind[0]: dict(check_otlp.by_function(profiles, kind, request.dictionary)[0])
           for kind in (check_otlp.ON_CPU, check_otlp.OFF_CPU)}
    return {"own": own, "resources": [check_otlp.attributes(rp) for rp in request.resource_profiles],
            "began": str(profiles[0][1].time_unix_nano)}


def take_ingest(query, body):
    app = re.fullmatch(r"([\w./-]+)(?:\{([^{}]*)\})?", query["name"])
    want(app, f"name {query['name']!r}")
    labels = dict(pair.split("=", 1) for pair in (app[2] or "").split(",") if pair)
    want(all(LABEL.match(name) and value for name, value in labels.items()), f"labels {labels}")
    want(query["format"] == "pprof", "format")
    want(int(query["from"]) < int(query["until"]), "times")
    return {"service": app[1], "labels": labels, **check_pprof(body)}


def take_write_raw(handler, body):
    want(handler.headers["Content-Type"] == "application/json", "content type")
    request = json.loads(body)
    want(set(request) == {"series", "normalized"} and request["normalized"] is True and len(request["series"]) == 1, "series")
    series = request["series"][0]
    labels = [(l["name"], l["value"]) for l in series["labels"]["labels"]]
    want(len({n for n, _ in labels}) == len(labels) and all(LABEL.match(n) for n, _ in labels), f"labels {labels}")
    want("__name__" in dict(labels), "no __name__")
    want(len(series["samples"]) == 1, "samples")
    return {"labels": dict(labels), **check_pprof(base64.b64decode(series["samples"][0]["rawProfile"], validate=True))}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fault(self, word):
        """Answers as told. False: the request is to be taken."""
        name, _, rest = word.partition(":")
        if name == "reset":
            self.connection.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER: the close is a reset
            self.connection.close()
            self.close_connection = True
        elif name in ("slow", "hang"):
            self.send_response(200)
            self.end_headers()
            for _ in range(600 if name == "hang" else 20):
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(.1)
            self.close_connection = True
        elif name == "redirect":
            self.answer(307, Location=rest)
        elif name == "huge":
            self.send_response(200)
            self.end_headers()
            for _ in range(4096):  # 256 MiB, if somebody reads it
                self.wfile.write(b"x" * 65536)
            self.close_connection = True
        elif name == "headers":
            self.send_response(200)
            for i in range(100000):
                self.send_header(f"X-{i}", "y" * 1000)
                self.flush_headers()
            self.close_connection = True
        elif name == "garbage":
            self.wfile.write(os.urandom(2000))
            self.close_connection = True
        elif name == "partial":
            self.answer(200, b"\x0a\x14\x08\x03\x12\x10" + b"bad\x1b[31mprofile!", Content_Type="application/x-protobuf")
        else:
            self.answer(int(name), b"\x1b]0;not now\x07", **({"Retry_After": rest} if rest else {}))

    def next_fault(self):
        path = os.path.join(self.server.folder, "faults")
        try:
            with open(path, encoding="utf-8") as file:
                words = file.read().split()
        except FileNotFoundError:
            return ""
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(words[1:]))
        return words[0] if words else ""

    def log(self, entry):
        with open(os.path.join(self.server.folder, "log"), "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def do_POST(self):  # pylint: disable=invalid-name # http.server's
        body = self.rfile.read(int(self.headers["Content-Length"]))
        url = urllib.parse.urlsplit(self.path)
        fault = self.next_fault()
        with open(os.path.join(self.server.folder, "seen"), "a", encoding="utf-8") as file:
            file.write(f"{fault or 'taken'} {time.time():.3f}\n")
        if fault:
            try:
                self.fault(fault)
            except OSError:
                self.close_connection = True
            return
        if self.server.secret and self.headers["Authorization"] != self.server.secret:
            self.answer(401, b"who are you?")
            return
        try:
            if url.path == "/v1development/profiles":
                seen = take_otlp(self, body)
            elif url.path == "/ingest":
                seen = take_ingest(dict(urllib.parse.parse_qsl(url.query, strict_parsing=True)), body)
            elif url.path == "/api/profiles/writeraw":
                seen = take_write_raw(self, body)
            else:
                self.answer(404, b"404 page not found")
                return
        except (Refused, ValueError, KeyError, IndexError) as error:
            self.log({"refused": repr(error)})
            self.answer(400, repr(error).encode())
            return
        if self.server.keep:
            self.server.keep += 1
            with open(os.path.join(self.server.folder, f"{self.server.keep - 1}.body"), "wb") as file:
                file.write(body)
        self.log({"path": url.path, "bytes": len(body), "tenant": self.headers["X-Scope-OrgID"], **seen})
        self.answer(200, b"\x0a\x00" if "profiles" in url.path and "api" not in url.path else b"{}")

    def do_GET(self):  # pylint: disable=invalid-name
        self.log({"refused": "GET"})
        self.answer(405)


def main():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # pylint: disable=protected-access # without waiting for anybody
    folder, args = sys.argv[1], sys.argv[2:]
    port = int(args[1]) if args[:1] == ["--port"] else 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.folder, server.secret, server.passed_on = folder, "", "--passed-on" in args
    server.keep = int("--keep" in args)
    if args[:1] == ["--tls"]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(args[1], args[2])
        if len(args) > 3 and not args[3].startswith("--"):
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(args[3])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    if "--token" in args:
        server.secret = "Bearer " + args[args.index("--token") + 1]
    if "--basic" in args:
        server.secret = "Basic " + base64.b64encode(args[args.index("--basic") + 1].encode()).decode()
    with open(os.path.join(folder, "port.new"), "w", encoding="utf-8") as file:
        file.write(str(server.server_port))
    os.rename(os.path.join(folder, "port.new"), os.path.join(folder, "port"))
    server.serve_forever()


main()
