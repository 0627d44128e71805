#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Arrows from who wakes to who is woken, as Perfetto's trace processor sees them.

    check_wakes.py TRACE WAKER THREAD…

Every arrow to one of these threads (by name) while it waits for other things than a futex comes from the waker, there is
one, and each ends inside the wait that it ends.
"""

import sys

from perfetto_sql import TraceProcessor

WAKES = """
select t1.name as waker, t2.name as woken, wait.name as wait, i.ts >= wait.ts and i.ts + i.dur = wait.ts + wait.dur as inside
from flow join slice o on o.id = slice_out join slice i on i.id = slice_in join slice wait on wait.id = i.parent_id
join thread_track tt1 on tt1.id = o.track_id join thread t1 on t1.utid = tt1.utid
join thread_track tt2 on tt2.id = i.track_id join thread t2 on t2.utid = tt2.utid
where o.name = 'wakes' and i.name = 'runnable'
"""


def main():
    path, waker, threads = sys.argv[1], sys.argv[2], sys.argv[3:]
    bad = []
    with TraceProcessor(path) as tp:
        arrows = tp.query(WAKES)
    for thread in threads:
        wakers = {a["waker"] for a in arrows if a["woken"] == thread and a["wait"] != "wait: futex"}
        if wakers != {waker}:
            bad.append(f"{thread} is woken by {wakers or 'nobody'}")
    bad += [f"not inside its wait: {a}" for a in arrows if not a["inside"]]
    print("\n".join(bad) or f"wakes: ok: {len(arrows)} arrows")
    return bool(bad)


sys.exit(main())
