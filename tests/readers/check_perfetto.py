#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Perfetto's trace processor imports a trace without an error, and no slice is missing."""

import re

from perfetto_sql import TraceProcessor
import checks

# `|| ''` makes SQLite sort: Perfetto v52's own order by name is not one for every set of names, and
# then a group comes in pieces.
NAMES = "select name || '' as word, count(*) as n, sum(dur) as dur from slice group by word"
# Import errors, and whatever the importer dropped or could not make sense of.
STATS = """
select name, value from stats
where value > 0 and (severity in ('error', 'data_loss') or name like '%drop%')
"""


def plain(word):
    """A name as it is: Perfetto shows a control character as the JSON file spells it."""
    return re.sub(r"\\u00([01][0-9a-f])", lambda m: chr(int(m[1], 16)), word)


def check(path):
    # An instant becomes a slice of no length.
    events = [e for e in checks.load(path)["traceEvents"] if e["ph"] in ("X", "i")]
    names = checks.calls_by_name(events)
    durations = dict.fromkeys(names, 0)
    for event in events:
        durations[event["name"]] += round(event.get("dur", 0) * 1000)
    with TraceProcessor(path) as tp:
        errors = tp.query(STATS)
        if errors:
            raise checks.Wrong(f"import errors: {errors}")
        rows = tp.query(NAMES)
        deepest = tp.query("select max(depth) as d from slice")[0]["d"]
        threads = tp.query("select count(distinct utid) as n from thread_track "
                           "join slice on slice.track_id = thread_track.id")[0]["n"]
    different = checks.difference(names, {plain(r["word"]): r["n"] for r in rows}) or \
        checks.difference(durations, {plain(r["word"]): r["dur"] for r in rows})
    if different:
        raise checks.Wrong(different)
    return (f"{len(events)} slices of {len(names)} names on {threads} threads, "
            f"{deepest + 1} deep, no import error")


if __name__ == "__main__":
    checks.main("perfetto", check)
