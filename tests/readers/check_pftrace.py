#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two exports of one capture are the same to Perfetto's trace processor: Chrome's JSON and Perfetto's own format.

    check_pftrace.py TRACE.json[.gz] TRACE.pftrace[.gz]

Slices with their rows, times, depths and values, flows, counters, and threads. Times differ by what lies between the
monotonic clock and the JSON's base, which the JSON states.
"""

import collections
import re
import sys

from check_perfetto import STATS, plain
from perfetto_sql import TraceProcessor
import checks

SLICES = """
select s.id, s.ts, s.dur, s.depth, s.name, s.category, s.arg_set_id, t.tid,
       t.name as thread, tr.name as track, up.name as above
from slice s join track tr on tr.id = s.track_id
left join track up on up.id = tr.parent_id
left join thread_track tt on tt.id = s.track_id left join thread t using (utid)
"""
ARGS = "select arg_set_id as id, key, display_value as value from args"
FLOWS = """
select o.name as name_from, o.ts as ts_from, i.name as name_to, i.ts as ts_to
from flow join slice o on o.id = slice_out join slice i on i.id = slice_in
"""
COUNTERS = """
select c.ts, c.value, tr.name from counter c join track tr on tr.id = c.track_id
where tr.type not like 'perf_%'
"""
THREADS = "select tid, thread.name, pid, process.name as process from thread join process using (upid) where pid > 0"
# What only one of the formats has: the JSON's event that ends the window; an index that is the id less one; what the
# trace processor adds of its own.
NOT_SHARED = ("Ev Idx", "passthrough_utid", "complete")


def key_of(key):
    """The name of a value without what the formats call the place of all of them, and without signs that one replaces."""
    return re.sub(r"[.\[\]_]+", "_", re.sub(r"^(args|debug)\.", "", plain(key))).rstrip("_")


def value_of(text):
    if text is None:
        return None
    try:
        return f"{float(text):.9g}" if not text.startswith("0x") else text
    except ValueError:
        return plain(text)


class Export:
    def __init__(self, path, shift):
        """shift: what is to be added to its times to make them monotonic ones."""
        with TraceProcessor(path) as tp:
            errors = tp.query(STATS)
            if errors:
                raise checks.Wrong(f"{path}: import errors: {errors}")
            self.args = collections.defaultdict(dict)
            for row in tp.query(ARGS):
                self.args[row["id"]][key_of(row["key"])] = value_of(row["value"])
            self.rows = tp.query(SLICES)
            self.flows = collections.Counter(
                (plain(r["name_from"]), r["ts_from"] + shift, plain(r["name_to"]), r["ts_to"] + shift)
                for r in tp.query(FLOWS))
            self.counters = collections.Counter(
                (plain(r["name"]).removesuffix(" value" if shift else ""), r["ts"] + shift, r["value"])
                for r in tp.query(COUNTERS))
            # Of the JSON's threads it keeps the text as it is in the file.
            self.threads = {r["tid"]: (plain(r["name"] or "").replace("\\\\", "\\"), r["pid"]) for r in tp.query(THREADS)}
        self.shift = shift

    def slices(self):
        return collections.Counter(self.slice(r) for r in self.rows
                                   if r["category"] != "Trace" and r["name"] != "Record Window End")

    def slice(self, row):
        args = dict(self.args[row["arg_set_id"]])
        for name in NOT_SHARED:
            args.pop(name, None)
        args = {k: v for k, v in args.items() if not k.startswith("legacy_event")}
        queued = args.pop("queued", None)
        thread = row["thread"] or ""
        if row["tid"] is not None and (not self.shift or thread.startswith("thread ")):
            where = row["tid"]
        else:
            where = plain(row["track"] if row["track"] and not self.shift else thread).strip()
        if queued is not None and float(queued):  # microseconds of the JSON's base, as a double
            queued = round((float(queued) * 1000 + self.shift if self.shift else float(queued)) / 1e4)
        # JSON's slices that take no time are put into those that end there.
        depth = row["depth"] if row["dur"] else None
        return (row["ts"] + self.shift, row["dur"], depth, plain(row["name"]), row["category"],
                where, queued, tuple(sorted(args.items(), key=str)))


def difference(what, json, own):
    missing, more = json - own, own - json
    if missing or more:
        first = [f"only in {name}: {sorted(d, key=str)[0]}" for name, d in (("JSON", missing), (".pftrace", more)) if d]
        raise checks.Wrong(f"{what}: {sum(missing.values())} and {sum(more.values())} differ; {'; '.join(first)}")


def check(paths):
    trace = checks.load(paths[0])
    clock = trace["kprof"]["clock"]
    shift = trace["baseTimeNanoseconds"] - clock["start_real_ns"] + clock["start_mono_ns"]
    json, own = Export(paths[0], shift), Export(paths[1], 0)
    slices = json.slices()
    difference("slices", slices, own.slices())
    difference("flows", json.flows, own.flows)
    difference("counters", json.counters, own.counters)
    for tid, (name, pid) in own.threads.items():
        if json.threads.get(tid, (None, None)) != (f"thread {tid} ({name})", pid):
            raise checks.Wrong(f"thread {tid}: {json.threads.get(tid)}, in .pftrace {name!r} of {pid}")
    return (f"{sum(slices.values())} slices, {sum(json.flows.values())} flows and "
            f"{sum(json.counters.values())} values of counters are the same")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} TRACE.json[.gz] TRACE.pftrace[.gz]")
    both = sys.argv[1:]
    sys.argv[1:] = [both[1]]
    checks.main("pftrace", lambda _: check(both))
