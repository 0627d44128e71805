#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares kprof's trace of a run with torch.profiler's trace of the same run.

    compare_profiler.py KPROF.json TORCH.json [--release R] [--used FILE] [--same-threads TID,…]

The workload (tests/workloads/protocol.py) marks a window. Within it, of the process that
torch.profiler watched, both must show the same calls: per name and category as many, and the same pairs
of caller and callee. What only one of the two shows must stand in the table of
docs/versus-torch-profiler.md, which this reads; such spans are taken out, and their children become
their parents'. --used notes which lines of the table were needed, so that stale ones show.

Durations: the k-th call of a name on a thread is the same call in both. torch.profiler's own work and
kprof's probes lie in different places around an operator, so that small calls differ; long ones may not.

Exit status 0: the same; 1: differences; 2: cannot be compared.
"""

import argparse
import fnmatch
import os
import re
import statistics
import sys
from collections import Counter, defaultdict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from trace import Trace  # noqa: E402

WINDOW = "kprof test: window begin", "kprof test: window end"
DOCUMENT = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "versus-torch-profiler.md")
LONG_NS = 50_000  # of which durations must agree …
LONG_AGREE = 0.30  # … within this share, in the median …
LONG_ENOUGH = 20  # … of at least so many
DEVICE_CALLS = "cuda_runtime", "cuda_driver"
CLOCK_SLACK_NS = 2_000_000
MARK_SLACK_NS = 20_000_000  # less than the pause around the window's marks


def is_of(releases, release):
    """Is the release one of those in a line's column? None there: of each."""
    return release.startswith(tuple(releases.replace(",", " ").split() or [""]))


class Rules:
    """Lines of the document's table: | `pattern` | seen by | inside | releases | why |."""

    def __init__(self, path, used_path, release=None):
        self.rules, self.used_path, self.used = [], used_path, set()
        with open(path, encoding="utf-8") as f:
            text = f.read()
        table = re.search(r"<!-- names -->(.*?)<!-- /names -->", text, re.S)
        if not table:
            sys.exit(f"{path}: no table between <!-- names --> and <!-- /names -->")
        for line in table[1].splitlines():
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            if len(cells) != 5 or cells[1] not in ("kprof", "torch.profiler", "both", "either"):
                continue  # the heading
            if release is None or is_of(cells[3], release):
                self.rules.append((cells[0].strip("`"), cells[1], cells[2].strip("`"), cells[3]))
        if not self.rules:
            sys.exit(f"{path}: the table is empty")

    def explained(self, span, by):
        """Is there a line for a span that is to be left out, or (by: both) lies elsewhere?"""
        for rule in self.rules:
            pattern, seen_by, inside, _releases = rule
            if seen_by != by and (by == "both" or seen_by != "either"):
                continue
            if not fnmatch.fnmatchcase(span.name, pattern):
                continue
            if inside and not any(fnmatch.fnmatchcase(a.name, inside) for a in ancestors(span)):
                continue
            self.used.add(rule)
            return True
        return False

    def unused(self, releases):
        with open(self.used_path, encoding="utf-8") as f:
            used = {tuple(line.rstrip("\n").split("\t")) for line in f}
        return [rule for rule in self.rules if rule not in used and any(is_of(rule[3], r) for r in releases)]

    def save(self):
        if self.used_path:
            with open(self.used_path, "a", encoding="utf-8") as f:
                for rule in sorted(self.used):
                    f.write("\t".join(rule) + "\n")


def ancestors(span):
    while span.parent:
        span = span.parent
        yield span


def window(trace, what, pid=None):
    """Its begin and its end, and the times of both marks, as trace.between() finds them."""
    between = trace.between(*WINDOW, pid)
    if not between:
        sys.exit(f"{what}: the window's marks are missing ({WINDOW[0]!r}, {WINDOW[1]!r})")
    times = []
    for name in WINDOW:
        marks = [s for s in trace.spans if s.name == name and (pid is None or s.pid == pid)]
        times += [min(s.start for s in marks), max(s.end for s in marks)]
    # Older releases open a mark with an operator or two of its own: they lie in the pause.
    return between[0], between[1] - MARK_SLACK_NS, times


def clocks_apart(kprof, torch):
    """
    What to add to torch's times. Between its reading of a clock and kprof's of the same moment the thread may lose its
    CPU, for milliseconds: of the four that the marks give the middle.
    """
    return statistics.median_low(k - t for k, t in zip(kprof, torch))


def select(trace, marks, rules, by, pid=None, without=()):
    """The spans to be compared, without those of some categories; takes the explained ones out of the tree."""
    chosen = []
    kept = {}
    for span in trace.spans:
        if not marks[0] <= span.start < marks[1] or (pid is not None and span.pid != pid):
            continue
        if span.name in WINDOW or span.cat in without or rules.explained(span, by):
            continue
        chosen.append(span)
        kept[id(span)] = True
    elsewhere = {id(span) for span in chosen if rules.explained(span, "both")}
    for span in chosen:
        span.parent = next((a for a in ancestors(span) if id(a) in kept), None)
        span.args["caller"] = (
            "anywhere" if id(span) in elsewhere else span.parent.name if span.parent else "-"
        )
    return chosen


def calls(spans):
    return Counter(f"{s.name} ({s.cat})" for s in spans)


def pairs(spans):
    return Counter((s.args["caller"], s.name) for s in spans)


def differences(what, kprof, torch):
    lines = []
    for key in sorted(set(kprof) | set(torch)):
        if kprof[key] != torch[key]:
            text = " > ".join(key) if isinstance(key, tuple) else key
            lines.append(f"{what:6} {text!r}: kprof {kprof[key]}, torch.profiler {torch[key]}")
    return lines


def threads_of(spans):
    threads = defaultdict(list)
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        threads[span.tid].append(span)
    return threads


def match_threads(kprof, torch, offset):
    """torch's thread → kprof's: the one that starts the same calls at the same times."""
    matched = {}
    for tid, spans in torch.items():
        def likeness(candidate):
            starts = defaultdict(list)
            for s in kprof[candidate]:
                starts[s.name].append(s.start)
            return sum(
                min((abs(t - s.start - offset) for t in starts[s.name]), default=LONG_NS) < LONG_NS
                for s in spans[:100]
            )

        best = max(kprof, key=likeness, default=None)
        if best is not None and likeness(best) > 0:
            matched[tid] = best
    return matched


def durations(kprof, torch, offset):
    """(kprof ns, torch ns) of calls matched one to one."""
    k_threads, t_threads = threads_of(kprof), threads_of(torch)
    both = []
    for t_tid, k_tid in match_threads(k_threads, t_threads, offset).items():
        calls = defaultdict(list)
        for span in k_threads[k_tid]:
            calls[span.name].append(span)
        position = Counter()
        for span in t_threads[t_tid]:
            k = position[span.name]
            position[span.name] += 1
            if k < len(calls[span.name]) and calls[span.name][k].exact:
                both.append((calls[span.name][k].dur, span.dur))
    return both


def check_durations(both):
    if not both:
        return "", ["no call could be matched in time"]
    ratios = sorted(k / t for k, t in both if t > 0)
    p99 = ratios[min(len(ratios) - 1, len(ratios) * 99 // 100)]
    text = (f"durations of {len(both)} calls, kprof ÷ torch.profiler: "
            f"median {statistics.median(ratios):.3f}, p99 {p99:.2f}")
    long = [abs(k / t - 1) for k, t in both if t > LONG_NS]
    if len(long) < LONG_ENOUGH:
        return text, []
    off = statistics.median(long)
    text += f"; of the {len(long)} longer than {LONG_NS // 1000} µs, off by {off:.1%} in the median"
    if off > LONG_AGREE:
        return text, [f"long calls differ by {off:.0%} in the median (allowed: {LONG_AGREE:.0%})"]
    return text, []


def load_torch(path):
    """The exact tree when there is one, after checking that it is what the trace shows."""
    tree_path = re.sub(r"\.json(\.gz)?$", ".tree.json", path)
    try:
        chrome = Trace.load(path)
    except ValueError:  # releases before 2.4 don't escape the names of annotations
        print(f"{path} is no valid JSON; torch's own tree alone is used")
        return Trace.load_tree(tree_path), []
    if not os.path.exists(tree_path):
        return chrome, []
    tree = Trace.load_tree(tree_path)
    if chrome.legacy:  # writes a call and its only child of the same name as one
        return tree, []
    # Kineto writes "unknown" for a name outside ASCII, and other characters for quotes.
    plain = re.compile(r"[ !#-&(-\[\]-~]+")
    exact, shown = (
        calls(s for s in t.spans if plain.fullmatch(s.name) and s.name != "unknown")
        for t in (tree, chrome)
    )
    shown = Counter({call: n for call, n in shown.items() if call in exact})
    problems = differences("tree", exact, shown)
    if len(tree.spans) != len(chrome.spans):
        problems.append(f"{len(tree.spans)} events in the tree, {len(chrome.spans)} in the trace")
    return tree, [f"torch's own trace and tree differ: {line}" for line in problems]


def same_threads(kprof, torch, tids):
    """Threads that torch.profiler cannot see but that do what its one thread did."""
    problems = []
    expected = Counter(s.name for s in torch)
    for tid in tids:
        counts = Counter(s.name for s in kprof if s.tid == tid)
        problems += differences(f"tid {tid}", counts, expected)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kprof", nargs="?")
    parser.add_argument("torch", nargs="?")
    parser.add_argument("--document", default=DOCUMENT)
    parser.add_argument("--release", default="", help="of PyTorch: 2.15.0")
    parser.add_argument("--used", help="append the table's lines that were needed to this file")
    parser.add_argument("--same-threads", type=lambda s: [int(x) for x in s.split(",")], default=[])
    parser.add_argument("--counts", action="store_true", help="don't compare who called whom")
    parser.add_argument("--first", action="store_true",
                        help="the calls are the first that kprof saw, so most ends are not exact: don't compare durations")
    parser.add_argument("--exact", action="store_true", help="nothing may differ, whatever the table says")
    parser.add_argument("--without-device-calls", action="store_true",
                        help="of CUDA's runtime and driver, which torch.profiler records with its GPU part only")
    parser.add_argument("--unused", help="only list the table's lines that are not in this file, of those for the releases in RELEASE")
    args = parser.parse_args()
    if args.unused:
        unused = Rules(args.document, args.unused).unused(args.release.split())
        print("\n".join(f"not needed: {rule}" for rule in unused))
        return 1 if unused else 0
    if not args.torch:
        parser.error("two traces are needed")

    kprof, (torch, problems) = Trace.load(args.kprof), load_torch(args.torch)
    rules = Rules(args.document, args.used, args.release)
    if args.exact:
        rules.rules = []
    pid = next((s.pid for s in torch.spans if isinstance(s.pid, int)), None)
    k_marks, t_marks = window(kprof, args.kprof, pid), window(torch, args.torch)
    offset = clocks_apart(k_marks[2], t_marks[2])
    if t_marks[0] > 1e18 and abs(offset) > CLOCK_SLACK_NS:
        problems.append(f"the two clocks differ by {offset / 1e6:.3f} ms at the window's begin")
    if kprof.overlaps:
        problems.append(f"kprof: {len(kprof.overlaps)} pairs cross: {kprof.overlaps[0]}")

    t_spans = select(torch, t_marks, rules, "torch.profiler")
    k_spans = select(kprof, k_marks, rules, "kprof", pid, DEVICE_CALLS if args.without_device_calls else ())
    all_k = k_spans
    if args.same_threads:
        k_spans = [s for s in k_spans if s.tid not in args.same_threads]
        problems += same_threads(all_k, t_spans, args.same_threads)
    problems += differences("calls", calls(k_spans), calls(t_spans))
    if not args.counts:
        problems += differences("pair", pairs(k_spans), pairs(t_spans))
    text, unlike = "", []
    if not args.first:
        text, unlike = check_durations(durations(k_spans, t_spans, offset))
    problems += unlike
    rules.save()

    inexact = sum(not s.exact for s in k_spans)
    print(f"{len(k_spans)} calls by kprof, {len(t_spans)} by torch.profiler, "
          f"{len(pairs(t_spans))} kinds of pair; {inexact} ends not exact; "
          f"clocks {offset / 1000:+.0f} µs")
    print(text)
    for line in problems[:40]:
        print("DIFFERS", line)
    if len(problems) > 40:
        print(f"… and {len(problems) - 40} more")
    return 1 if problems or not t_spans else 0


if __name__ == "__main__":
    sys.exit(main())
