#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What programs that read stacks make of kprof's files is what the text says.

    check_stacks.py folded|speedscope|pprof|chrome FILE TEXT

TEXT: what tests/bench/gen_stacks made the capture of. $KPROF_SPEEDSCOPE is the directory of speedscope's own built
application, $KPROF_PPROF Google's pprof.
"""

import collections
import functools
import gzip
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import checks
import stacks_truth
from check_perfetto_ui import TIMEOUT_S, Browser, Handler
from perfetto_sql import TraceProcessor

with checks.without("rfc3987_syntax"):  # it makes parsers of the formats of addresses
    import jsonschema

ROWS = """[...document.querySelectorAll('tr')].map((r) => r.innerText.split(/[\\t\\n]+/)).filter((r) => r.length >= 3)"""
UNITS = {"ns": 1, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9, "": 1e3}  # without one: folded stacks, in µs


def plain(_, line):
    return line.function


def want(condition, words):
    if not condition:
        raise checks.Wrong(words)


def by_function(paths):
    """(self, total) of each function; what calls itself counts once."""
    alone, whole = collections.Counter(), collections.Counter()
    for path, ns in paths.items():
        alone[path[-1]] += ns
        for name in set(path):
            whole[name] += ns
    return alone, whole


# ---- speedscope

def number(text):
    """"18.76s (49%)" as nanoseconds and the step of its last digit."""
    value, unit = re.match(r"([\d,]+(?:\.\d+)?)(\D*)", text.split(" (")[0]).groups()
    value = value.replace(",", "")
    digits = len(value.partition(".")[2])
    return float(value) * UNITS[unit.strip()], UNITS[unit.strip()] * 10.0 ** -digits


def wait_until(browser, expression, words, meanwhile=lambda: None):
    end = time.monotonic() + TIMEOUT_S
    while not browser.evaluate(expression):
        want(time.monotonic() < end, f"{words}: {browser.evaluate('document.body.innerText')[:300]!r}")
        time.sleep(.1)
        meanwhile()


def press_3(browser):
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="3", **({"text": "3"} if kind == "keyDown" else {}))


def speedscope(path, read):
    """read(browser) once speedscope shows the file in its table of functions."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        root, name = os.path.join(directory, "ui"), os.path.basename(path)
        shutil.copytree(os.environ["KPROF_SPEEDSCOPE"], root)
        shutil.copy(path, os.path.join(root, name))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=root))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        browser = Browser(os.path.join(directory, "profile"))
        try:
            browser.open(f"{origin}/index.html#profileURL={origin}/{name}")
            browser.call("Emulation.setDeviceMetricsOverride", width=1400, height=4000, deviceScaleFactor=1, mobile=False)
            wait_until(browser, "document.title.endsWith(' - speedscope')", "speedscope does not open it")
            press_3(browser)
            # It may not have listened yet.
            wait_until(browser, "document.querySelectorAll('tr').length > 3", "no table of functions", lambda: press_3(browser))
            return read(browser)
        finally:
            browser.close()
            server.shutdown()


def table_agrees(browser, paths):
    """Rows are sorted by self time; those far down are not drawn."""
    alone, whole = by_function({tuple(" ".join(name.split()) for name in path): ns for path, ns in paths.items()})
    end = time.monotonic() + TIMEOUT_S
    while True:  # it draws more of them once it has seen how high its window is
        rows = [r for r in browser.evaluate(ROWS) if re.match(r"[\d,.]+", r[0])]
        if len(rows) >= min(len(whole), 15) or time.monotonic() > end:
            break
        time.sleep(.1)
    want(len(rows) >= min(len(whole), 15), f"only {len(rows)} rows")
    for total, own, *name in rows:
        name = " ".join(" ".join(name).split())
        want(name in whole, f"speedscope has a function {name!r} that is not in the text")
        for text, ns in ((total, whole[name]), (own, alone[name])):
            seen, step = number(text)
            want(abs(seen - ns) <= max(step, 2e-3 * ns, 2e4), f"{name}: speedscope says {text}, the text {ns} ns")
    return len(rows)


def check_speedscope(path, truth):
    document = json.load(open(path, encoding="utf-8"))
    schema = json.load(open(os.path.join(os.environ["KPROF_SPEEDSCOPE"], "file-format-schema.json")))
    jsonschema.validate(document, schema)
    threads = collections.defaultdict(collections.Counter)
    for sample in truth.samples:
        threads[truth.thread_name(sample.thread)][tuple(stacks_truth.functions(sample.frames, plain))] += \
            sample.count * sample.weight_ns
    names = [f["name"] for f in document["shared"]["frames"]]
    want({p["name"] for p in document["profiles"]} == set(threads), "the threads are not the text's")
    for profile in document["profiles"]:
        sums = collections.Counter()
        for stack, weight in zip(profile["samples"], profile["weights"]):
            sums[tuple(names[i] for i in stack)] += weight
        different = checks.difference(sums, threads[profile["name"]])
        want(not different, f"{profile['name']}: {different}")
    first = document["profiles"][0]["name"]
    rows = speedscope(path, lambda browser: table_agrees(browser, {p: ns for p, ns in threads[first].items() if p}))
    return f"{len(threads)} threads, {len(names)} frames, valid by its schema; {rows} rows in speedscope"


# ---- collapsed stacks

def check_folded(path, truth):
    def name(f, line):
        return stacks_truth.shown(f, line).replace(";", ":") + ("_[k]" if f.kind == "K" else "")

    expected = {tuple(n.replace(";", ":") for n in p): -(-ns // 1000) for p, ns in truth.paths(name).items()}
    seen = {}
    for line in open(path, encoding="utf-8").read().splitlines():
        stack, count = line.rsplit(" ", 1)
        want(tuple(stack.split(";")) not in seen, f"twice: {stack}")
        seen[tuple(stack.split(";"))] = int(count)
    different = checks.difference(expected, seen)
    want(not different, different)
    rows = speedscope(path, lambda browser: table_agrees(browser, {p: us * 1000 for p, us in expected.items()}))
    return f"{len(seen)} stacks; {rows} rows in speedscope"


# ---- pprof

def raw_pprof(path):
    """{(labels, functions innermost first): [samples, ns]}, by what `pprof -raw` prints."""
    text = subprocess.run([os.environ["KPROF_PPROF"], "-raw", path], check=True, capture_output=True,
                          text=True, encoding="utf-8", env={**os.environ, "PPROF_TMPDIR": tempfile.gettempdir()}).stdout
    samples, rest = text.split("\nSamples:\n", 1)[1].split("\nLocations\n", 1)
    locations, mappings = rest.split("\nMappings\n", 1)
    return samples, locations, mappings


def check_pprof(path, truth):
    with gzip.open(path) as file:
        file.read()
    samples, _, mappings = raw_pprof(path)
    seen = [line for line in samples.split("\n") if re.match(r"\s+\d+\s+\d+:", line)]
    counted = sum(int(line.split()[0]) for line in seen)
    timed = sum(int(line.split()[1].rstrip(":")) for line in seen)
    want((counted, timed) == (truth.count, truth.total_ns), f"pprof counts {counted} samples of {timed} ns, "
         f"the text {truth.count} of {truth.total_ns}")
    modules = {(f.module, f.build_id) for s in truth.samples for f in s.frames if f.module}
    want(len(re.findall(r"^\d+: ", mappings, re.M)) == len(modules), f"mappings: {mappings}")
    for module, build_id in modules:
        want(f"{module} {build_id}" in mappings, f"pprof knows no {module} with build id {build_id}")
    labels = set(re.findall(r"thread:\[(.*)\]$", samples, re.M))
    want(labels == {truth.threads[s.thread].name for s in truth.samples}, f"labels: {labels}")
    alone, whole = by_function({p: ns for p, ns in truth.paths(plain).items()})
    for name in list(alone):  # pprof's stacks have no thread as a frame
        if name in {truth.thread_name(i) for i in range(len(truth.threads))}:
            del alone[name], whole[name]
    top = subprocess.run([os.environ["KPROF_PPROF"], "-top", "-unit=ns", "-nodecount=60", "-nodefraction=0", "-symbolize=none",
                          "-trim=false", path], check=True, capture_output=True, text=True, encoding="utf-8").stdout
    rows = re.findall(r"^ *(\d+)ns? +[\d.]+% +[\d.]+% +(\d+)ns? +[\d.]+% +(.*?)(?: \(inline\))?$", top, re.M)
    want(len(rows) > 10, f"pprof -top: {top[:600]}")
    for own, total, name in rows:
        if name in whole:  # pprof shortens some
            want((int(own), int(total)) == (alone[name], whole[name]), f"{name}: pprof {own}/{total}, text {alone[name]}/{whole[name]}")
    known = sum(name in whole for _, _, name in rows)
    want(known > len(rows) / 2, f"{known} of {len(rows)} names are the text's")
    rows = speedscope(path, lambda browser: len(browser.evaluate(ROWS))) if os.environ.get("KPROF_SPEEDSCOPE") else 0
    return f"{counted} samples, {len(modules)} mappings, {known} functions agree; {rows} rows in speedscope"


# ---- Chrome's trace, in Perfetto

STACKS = """
select s.ts, t.tid, s.callsite_id as callsite from cpu_profile_stack_sample s join thread t using (utid) order by s.id
"""
CALLSITES = """
select c.id, c.parent_id as parent, f.name from stack_profile_callsite c join stack_profile_frame f on f.id = c.frame_id
"""


def plain_json(name):
    """A name as it is: Perfetto shows a control character as the JSON file spells it."""
    return re.sub(r"\\u00([0-7][0-9a-f])", lambda m: chr(int(m[1], 16)), name)


def check_chrome(path, truth):
    trace = json.load(gzip.open(path) if path.endswith(".gz") else open(path, encoding="utf-8"))
    with TraceProcessor(path) as tp:
        errors = tp.query("select name, value from stats where value > 0 and severity in ('error', 'data_loss')")
        want(not errors, f"import errors: {errors}")
        sites = {r["id"]: (r["parent"], r["name"]) for r in tp.query(CALLSITES)}
        rows = tp.query(STACKS)

    @functools.cache
    def stack(site):
        path = []
        while site is not None:
            site, name = sites[site]
            path.append(plain_json(name))
        return tuple(reversed(path))

    seen = collections.Counter((r["tid"], stack(r["callsite"])) for r in rows)
    expected = collections.Counter()
    for s in truth.samples:
        path = tuple(stacks_truth.functions(s.frames, plain)) or ("[no stack]",)
        expected[truth.threads[s.thread].tid, path] += s.count
    different = checks.difference(expected, seen)
    want(not different, different)
    window = next(e for e in trace["traceEvents"] if e.get("cat") == "Trace")
    start, end = window["ts"] * 1000, (window["ts"] + window["dur"]) * 1000
    outside = [r["ts"] for r in rows if not start - 1000 <= r["ts"] <= end + 1000]
    want(not outside, f"{len(outside)} samples are outside of the window")
    ops = {e["name"]: e["args"].get("Call stack") for e in trace["traceEvents"] if e.get("cat") == "cpu_op"}
    for name, frames in truth.spans:
        calls = [(f"{l.file}({l.line}): " if l.file and l.line else f"{l.file}: " if l.file else "") + l.function.replace(";", ":")
                 for f in frames for l in reversed(f.lines)]
        want(ops.get(name) == ";".join(calls), f"{name}: Call stack is {ops.get(name)!r}")
    want(trace.get("with_stack", 0) == int(bool(truth.spans)), f"with_stack is {trace.get('with_stack')}")
    return f"{len(rows)} samples of {len(seen)} stacks in Perfetto, {len(ops)} operators with a stack"


if __name__ == "__main__":
    kind, text = sys.argv[1], sys.argv[3]
    del sys.argv[3], sys.argv[1]
    check = {"folded": check_folded, "speedscope": check_speedscope, "pprof": check_pprof, "chrome": check_chrome}[kind]
    stacks_truth.KEEP_CONTROLS = kind in ("speedscope", "chrome")
    checks.main(kind, lambda path: check(path, stacks_truth.Truth(text)))
