#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A flame graph in headless Chromium: what it shows is what the text says, and it answers.

    check_flame.py GRAPH.svg TEXT [SCREENSHOTS [FIRST LAST FOLDED SAMPLES]]

TEXT: what tests/bench/gen_stacks made the capture of. SCREENSHOTS: a directory for pictures to be looked at. FIRST and
LAST: parts of the strip of time to be chosen by mouse; FOLDED: collapsed stacks of that time alone, which `kprof export
--from --to` has made; SAMPLES: how many there are in it.
"""

import base64
import os
import sys
import tempfile
import time
import xml.parsers.expat

from check_perfetto_ui import TIMEOUT_S, Browser
import checks
import stacks_truth

SPAN, MIN_WIDTH, NAME_COLUMNS = 1176, 0.08, 400
FRAMES = """[...document.querySelectorAll('.f')].map((g) => {
  const r = g.querySelector('rect'), t = g.querySelector('text');
  const b = t && t.textContent ? t.getBBox() : null;
  return {x: r.x.baseVal.value, y: r.y.baseVal.value, w: r.width.baseVal.value, h: r.height.baseVal.value,
          kind: g.getAttribute('class'), seen: g.style.display !== 'none', text: t ? t.textContent : '',
          left: b ? b.x : 0, right: b ? b.x + b.width : 0, top: b ? b.y : 0, bottom: b ? b.y + b.height : 0};
})"""
COLOURS = """[...document.querySelectorAll('.f')].slice(0, 2000).map((g) => [g.getAttribute('class'),
  getComputedStyle(g.querySelector('rect')).fill, getComputedStyle(document.querySelector('text')).fill])"""


def want(condition, words):
    if not condition:
        raise checks.Wrong(words)


def tree_of(path):
    """(path of names, width's share, lines of its title) of each frame, by XML alone."""
    frames, now, stack, text = [], None, [], None

    def start(name, attributes):
        nonlocal now, text
        if name == "g" and attributes.get("class", "").startswith("f "):
            now = {}
        elif now is not None and name == "title":
            text = ""
        elif now is not None and name == "rect":
            now.update(x=float(attributes["x"]), y=float(attributes["y"]), w=float(attributes["width"]))

    def end(name):
        nonlocal now, text
        if text is not None and name == "title":
            now["lines"], text = text.split("\n"), None
        elif now is not None and name == "g":
            frames.append(now)
            now = None

    def data(chunk):
        nonlocal text
        if text is not None:
            text += chunk

    parser = xml.parsers.expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, data
    with open(path, "rb") as file:
        parser.ParseFile(file)
    rows = sorted({f["y"] for f in frames})
    for f in frames:
        depth = rows.index(f["y"])
        del stack[depth:]
        want(len(stack) == depth, f"a frame without a caller: {f}")
        if stack:
            above = stack[-1]
            want(f["x"] > above["x"] - .01 and f["x"] + f["w"] < above["x"] + above["w"] + .01,
                 f"{f} does not stand on its caller")
        stack.append(f)
        f["path"] = tuple(g["lines"][0] for g in stack[1:])
    return frames


def columns(letter):
    return 1 if ord(letter) < 0x1100 or 0x2000 <= ord(letter) < 0x2e80 else 2


def cut(name):
    """A long name as the graph has it."""
    if sum(map(columns, name)) <= NAME_COLUMNS:
        return name
    taken, kept = 0, ""
    for letter in name:
        taken += columns(letter)
        if taken > NAME_COLUMNS - 1:
            return kept + "…"
        kept += letter
    return kept


def against_text(frames, truth):
    sums = {}
    for path, ns in truth.paths(stacks_truth.shown).items():
        path = tuple(map(cut, path))
        sums[path] = sums.get(path, 0) + ns
    sums = stacks_truth.below(sums)
    drawn = {f["path"]: f["w"] / SPAN for f in frames}
    want(len(drawn) == len(frames), "a path is drawn twice")
    for path, ns in sums.items():
        share = ns / truth.total_ns
        if share * SPAN > MIN_WIDTH * 1.01:
            want(path in drawn, f"{path} is missing")
        if path in drawn:
            want(abs(drawn[path] - share) < 2e-6, f"{path}: {drawn[path]} of the width, {share} of the time")
    extra = set(drawn) - set(sums)
    want(not extra, f"drawn, but not in the text: {list(extra)[:3]}")
    numbers = frames[0]["lines"][-1]
    want(f" {truth.count:,} sample" in numbers, f"{truth.count} samples, not {numbers}")


def visible(browser):
    return [f for f in browser.evaluate(FRAMES) if f["seen"]]


def laid_out(browser, width):
    """What is drawn in a window of that width, once it stays as it is."""
    end, before = time.monotonic() + TIMEOUT_S, None
    while True:
        frames = visible(browser)
        fits = abs(frames[0]["w"] - (width - 24)) < 20
        if fits and frames == before:
            return frames
        want(time.monotonic() < end, f"{width} wide, and the root is {frames[0]['w']}" if not fits else "it does not come to rest")
        before = frames
        time.sleep(.1)


def texts_fit(browser, width):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    frames = laid_out(browser, width)
    for f in frames:
        if f["text"]:
            want(f["left"] >= f["x"] and f["right"] <= f["x"] + f["w"] + .5 and f["top"] >= f["y"] - 1 and
                 f["bottom"] <= f["y"] + f["h"] + 2, f"{width} wide: a text leaves its box: {f}")
    want(browser.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), f"{width} wide: it scrolls sideways")
    return sum(bool(f["text"]) for f in frames)


def press(browser, key, text=""):
    code = {"Escape": 27, "Enter": 13, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39}.get(key, ord(key[0]))
    browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
    browser.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)


def mouse(browser, x, y, click=False):
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    for kind in ("mousePressed", "mouseReleased") if click else ():
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def zooms(browser):
    """Click, keys and the button; returns the zoomed frame."""
    before = visible(browser)
    target = next(f for f in before if .1 < f["w"] / before[0]["w"] < .5 and f["y"] < 700)
    mouse(browser, target["x"] + 5, target["y"] + 8)
    tip = browser.evaluate("(() => { const t = document.querySelector('.tip'), b = t.getBoundingClientRect();"
                           "return [t.style.display, t.firstChild.textContent, b.left, b.top, b.right, b.bottom, innerWidth, innerHeight]; })()")
    name = target["text"].rstrip("…")
    want(tip[0] != "none" and tip[1].startswith(name), f"the tooltip over {target['text']} says {tip}")
    want(tip[2] >= 0 and tip[3] >= 0 and tip[4] <= tip[6] and tip[5] <= tip[7], f"the tooltip leaves the window: {tip}")
    mouse(browser, target["x"] + 5, target["y"] + 8, click=True)
    zoomed = visible(browser)
    same = [f for f in zoomed if f["y"] == target["y"]]
    want(len(same) == 1 and abs(same[0]["w"] - before[0]["w"]) < .1 and same[0]["text"].startswith(name),
         f"a click on {target} shows {same}")
    want(len(zoomed) < len(before), "zooming hides nothing")
    want(all(abs(f["w"] - before[0]["w"]) < .1 for f in zoomed if f["y"] <= target["y"]), "a caller is not whole")
    press(browser, "Escape")
    want(visible(browser) == before, "Escape does not bring back what was there")
    press(browser, "ArrowDown")
    press(browser, "ArrowDown")
    press(browser, "ArrowDown")
    picked = browser.evaluate("document.querySelectorAll('.picked').length")
    want(picked == 1, f"{picked} frames are picked by the arrows")
    press(browser, "Enter", "\r")
    want(len(visible(browser)) < len(before), "Enter does not zoom")
    browser.evaluate("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Reset zoom').click()")
    want(len(visible(browser)) == len(before), "the button does not reset")
    press(browser, "i")
    flipped = visible(browser)
    want(flipped[0]["y"] == max(f["y"] for f in flipped), "flipped, the root is not at the bottom")
    press(browser, "i")
    mouse(browser, target["x"] + 5, target["y"] + 8, click=True)


def searches(browser, truth, term):
    """What is found is that share of the time that lies below a match."""
    press(browser, "Escape")
    press(browser, "/", "/")
    want(browser.evaluate("document.activeElement.type") == "search", "/ does not lead to the search")
    for letter in term:
        press(browser, letter, letter)
    found = browser.evaluate("document.querySelector('[aria-live]').textContent")
    hit = sum(ns for path, ns in truth.paths(lambda f, line: "\n".join(
        [stacks_truth.shown(f, line), line.function, line.file, f.module])).items()
              if any(term.lower() in name.lower() for name in path))
    expected = f"{100 * hit / truth.total_ns:.1f} % of the time"
    want(found.endswith(expected), f"searching for {term} says {found!r}, not {expected!r}")
    return found


def folded_shares(path):
    """Of each path of names its share of the time, by collapsed stacks."""
    sums, total = {}, 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            names, us = line.rstrip("\n").rsplit(" ", 1)
            names = [name.removesuffix("_[k]") for name in names.split(";")]
            total += int(us)
            for depth in range(len(names) + 1):
                key = tuple(map(cut, names[:depth]))
                sums[key] = sums.get(key, 0) + int(us)
    return {path: us / total for path, us in sums.items()}


def drag(browser, x, to, y):
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    browser.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
    for at in ((x + to) / 2, to):
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=at, y=y, button="left", buttons=1)
    browser.call("Input.dispatchMouseEvent", type="mouseReleased", x=to, y=y, button="left", clickCount=1)


def chooses(browser, frames, first, last, folded, samples):
    """What is drawn of a part of the time is what collapsed stacks of it say, width for width."""
    for _ in range(2):  # of the search: its text, then itself
        press(browser, "Escape")
    before = browser.evaluate(FRAMES)
    parts = browser.evaluate("+document.getElementById('heat').dataset.parts")
    left, top, width = browser.evaluate("(() => { const b = document.getElementById('field').getBoundingClientRect();"
                                        "return [b.left, b.top + b.height / 2, b.width]; })()")
    middle = [left + (part + .5) / parts * width for part in (last, first)]  # from the end to the begin
    drag(browser, *middle, top)
    shares = folded_shares(folded)
    drawn = browser.evaluate(FRAMES)
    said = browser.evaluate("document.getElementById('when').textContent")
    want(f" {samples:,} sample" in said, f"{samples} samples are chosen, and it says: {said}")
    want(len(drawn) == len(frames), f"{len(drawn)} frames, not {len(frames)}")
    right = {}
    for f, known in zip(drawn, frames):
        share = shares.get(known["path"], 0)
        seen = f["w"] / drawn[0]["w"] if f["seen"] else 0
        want(abs(seen - share) < 1e-3, f"{known['path']}: {seen} of the width, {share} of the time")
        if f["seen"]:  # beside the one before it, above or below its caller
            want(f["x"] >= right.get(f["y"], 0) - .1, f"{f} lies over another")
            right[f["y"]] = f["x"] + f["w"]
    want(sum(share > .01 for share in shares.values()) > 20, "there is next to nothing in that time")
    # As a whole again: by key, and by the button after another choice.
    press(browser, "Escape")
    want(browser.evaluate(FRAMES) == before, "Escape does not bring back all of the time")
    drag(browser, *middle[::-1], top)
    want(browser.evaluate(FRAMES) == drawn, "the same part, from its begin to its end, is drawn otherwise")
    browser.evaluate("[...document.querySelectorAll('button')].find((b) => b.textContent === 'All time').click()")
    want(browser.evaluate(FRAMES) == before, "the button does not bring back all of the time")
    drag(browser, *middle, top)
    return said


def luminance(colour):
    numbers = [float(n) / 255 for n in colour[colour.index("(") + 1:-1].split(",")[:3]]
    linear = [n / 12.92 if n <= .04045 else ((n + .055) / 1.055) ** 2.4 for n in numbers]
    return .2126 * linear[0] + .7152 * linear[1] + .0722 * linear[2]


def readable(browser, scheme):
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    worst = 99
    for kind, fill, ink in browser.evaluate(COLOURS):
        a, b = sorted((luminance(fill), luminance(ink)))
        worst = min(worst, (b + .05) / (a + .05))
        want(worst >= 4.5, f"{scheme}: text on {kind} has a contrast of {worst:.1f}")
    return worst


def picture(browser, directory, name):
    if directory:
        png = browser.call("Page.captureScreenshot", format="png")["data"]
        with open(os.path.join(directory, f"{name}.png"), "wb") as file:
            file.write(base64.b64decode(png))


def in_browser(browser, path, truth, directory, part):
    browser.open("file://" + os.path.abspath(path))
    end = time.monotonic() + TIMEOUT_S
    while not browser.evaluate("Boolean(document.querySelector('svg.live'))"):
        want(time.monotonic() < end, "its program does not run")
        time.sleep(.1)
    for width in (420, 1000, 1600):
        labels = texts_fit(browser, width)
    contrast = readable(browser, "dark")
    picture(browser, directory, "dark")
    contrast = min(contrast, readable(browser, "light"))
    picture(browser, directory, "light")
    zooms(browser)
    picture(browser, directory, "zoomed")
    found = searches(browser, truth, "mm")
    picture(browser, directory, "search")
    if part:
        found += "; " + chooses(browser, *part)
        picture(browser, directory, "part")
    asked = browser.evaluate("performance.getEntriesByType('resource').length")
    want(asked == 0, f"it loads {asked} things from somewhere")
    return f"{labels} labels fit, contrast {contrast:.1f}, search: {found}"


def check(path, text, directory=None, *part):
    truth = stacks_truth.Truth(text)
    frames = tree_of(path)
    against_text(frames, truth)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            if part:
                part = (frames, int(part[0]), int(part[1]), part[2], int(part[3]))
            seen = in_browser(browser, path, truth, directory, part)
        finally:
            browser.close()
    return f"{len(frames)} frames, {seen}"


if __name__ == "__main__":
    rest = sys.argv[2:]
    del sys.argv[2:]
    checks.main("flame", lambda path: check(path, *rest))
