#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Asks a server once: prints the status, and writes what came to FILE and its headers to FILE.headers.

    http_ask.py [-n TIMES] URL FILE [HEADER: VALUE…]

With -n, so many ask at once; the status of each is printed, in one line.
"""

import concurrent.futures
import sys
import urllib.error
import urllib.request


def ask(url, file, headers):
    request = urllib.request.Request(url, headers=dict(h.split(": ", 1) for h in headers))
    try:
        reply = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120)
    except urllib.error.HTTPError as error:
        reply = error
    body = reply.read()
    if file:
        with open(file, "wb") as out:
            out.write(body)
        with open(file + ".headers", "w", encoding="latin-1") as out:
            out.write(str(reply.headers))
    return str(reply.status)


def main():
    arguments, times = sys.argv[1:], 1
    if arguments[0] == "-n":
        times = int(arguments[1])
        del arguments[:2]
    url, file, *headers = arguments
    with concurrent.futures.ThreadPoolExecutor(times) as pool:
        print(*pool.map(lambda i: ask(url, file if i == 0 else None, headers), range(times)))


main()
