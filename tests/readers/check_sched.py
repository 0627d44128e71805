#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The scheduler's view of a trace in Perfetto's format, as its trace processor computes it from the switches.

    check_sched.py TRACE ROWS

ROWS is the output of kprof report --by wait --json on the same recording, of all waits and from the program's start: there,
the times that each thread was on a CPU, runnable and blocked were summed up by the kernel's programs. All threads have ended.
"""

import json
import sys

from perfetto_sql import TraceProcessor

# of the thread's states, those that end
STATES = """
select tid, state, sum(dur) as dur, count(*) as n from thread_state join thread using(utid) where dur >= 0 and tid != 0
group by tid, state
"""
# at any time, a CPU runs one thread, and a thread has one CPU
OVERLAPS = """
select count(*) as n from (select ts, dur, lead(ts) over (partition by {by} order by ts) as next from sched where utid != 0)
where dur > 0 and next is not null and ts + dur > next
"""
WAKERS = """
select count(*) as n from thread_state s join thread w on s.waker_utid = w.utid where w.tid != 0 and s.state in ('R', 'Running')
"""
BAD = "select name, sum(value) as n from stats where severity in ('error', 'data_loss') and value > 0 group by name"


def main():
    trace, rows = sys.argv[1:]
    with open(rows, encoding="utf-8") as f:
        threads = json.load(f)["threads"]
    bad = []
    with TraceProcessor(trace) as tp:
        states = {}
        for row in tp.query(STATES):
            states.setdefault(row["tid"], {})[row["state"]] = row["dur"]
        for by in ("ucpu", "utid"):
            n = tp.query(OVERLAPS.format(by=by))[0]["n"]
            if n:
                bad.append(f"{n} slices of one {by} overlap")
        wakers = tp.query(WAKERS)[0]["n"]
        bad += [f"{row['n']} {row['name']}" for row in tp.query(BAD)]
    cut = 0
    for t in threads:
        seen = states.get(t["tid"], {})
        for what, names, want in (
            ("running", ["Running"], t["on_cpu_ns"]),
            ("runnable", ["R", "R+"], t["runnable_ns"]),
            ("blocked", ["S", "D", "T"], t["blocked_ns"]),
        ):
            got = sum(seen.get(name, 0) for name in names)
            # the first thread has been waiting when the recording began: with no CPU to show it on
            if what == "blocked" and got < want and not cut:
                cut = want - got
            elif got != want:
                bad.append(f"thread {t['tid']} ({t['name']}): {what} {got} ns, {want} ns in the table")
    print("\n".join(bad) or f"sched: ok: {len(threads)} threads, {wakers} states with a waker")
    return bool(bad) or not threads or not wakers


sys.exit(main())
