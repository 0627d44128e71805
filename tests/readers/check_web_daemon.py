#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The page of kprof daemon itself in headless Chromium: a process, the last flame graph, and a recording that goes to Perfetto.

    check_web_daemon.py

Prints READY and the origin that stands in Perfetto's place; then it reads a line of JSON: url, token, pid and name of a process
that the page must show, recording (the id of one that is done), and checks; exit status 0 is well.
"""

import json
import os
import sys
import tempfile
import urllib.request

from check_web import Page, StandIn, has_flame, opens_in_perfetto, serve, want


def fetch(url, token, to):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as reply, open(to, "wb") as file:
        file.write(reply.read())


def check(page, told, directory):
    url, pid, name, recording = told["url"], told["pid"], told["name"], told["recording"]
    page.visit(url.replace("//", f"//kprof:{told['token']}@"))
    cells = f"[...document.querySelectorAll('#processes tr[data-row=\"{pid}\"] td')].map((c) => c.textContent)"
    # with little to do on a machine that has no CPU for it, it is in no sample of a chunk: once it is, and that row
    row = page.until(f"[{cells}].find((row) => parseFloat(row[3]) > 0)", f"CPU time of process {pid}")
    want(row[0] == name and row[1] == str(pid) and row[2] == "root", f"the process's row is {row}")
    want("iB" in row[4], f"its memory: {row}")
    for selector in ("#host", "#cpu", "#memory", "#cost", "#own"):
        want(page.text(selector).strip(), f"{selector} is empty")
    frames = has_flame(page)
    page.until("document.querySelectorAll('#dumps button').length === 1", "the recording")
    trace = f"{directory}/trace"
    fetch(f"{url}trace/{recording}", told["token"], trace)
    opens_in_perfetto(page, trace, url, recording)
    want(not page.complaints, f"the console says: {page.complaints}")
    print(f"{row}, {frames} frames, {os.path.getsize(trace)} bytes went to Perfetto")


def main():
    server, origin = serve(StandIn)
    print("READY", os.getpid(), origin, flush=True)
    told = json.loads(sys.stdin.readline())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        page = Page(os.path.join(directory, "profile"))
        try:
            check(page, told, directory)
        finally:
            page.close()
            server.shutdown()


main()
