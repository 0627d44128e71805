#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the waits of a trace with what `perf sched record -a -k CLOCK_MONOTONIC` saw of the same threads meanwhile.

    compare_sched.py TRACE.json REPORT.json PERF.data

Both were told by the same tracepoints, so the two times of an event differ by what one of the two programs took. perf loses
events (on some kernels all of an idle CPU): a wait of which perf lacks the end is not judged. One in a hundred may differ, since
a hypervisor may take the CPU away between the two programs.
"""
import bisect
import json
import re
import subprocess
import sys

NEAR_NS = 50_000  # more than the tracepoint takes, less than the shortest wait
EVENT = re.compile(r'\[\d+\]\s+(\d+)\.(\d{9}):\s+sched:(sched_switch|sched_waking): (.*)')
SWITCH = re.compile(r'prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+) ')
WAKING = re.compile(r' pid=(\d+) ')


def waits_of_kprof(trace):
    """{tid: [(when it got a CPU, nanoseconds off the CPU, of these runnable)]}, by CLOCK_MONOTONIC"""
    clock = trace['kprof']['clock']  # as it was then: it may have been set since
    base = trace['baseTimeNanoseconds'] - (clock['start_real_ns'] - clock['start_mono_ns'])
    slices = [e for e in trace['traceEvents'] if e.get('cat') == 'wait' and e['ph'] == 'X' and e['name'] != 'wakes']
    found = {}
    for e in sorted(slices, key=lambda e: (e['ts'], -e['dur'])):
        waits, ns = found.setdefault(e['tid'], []), e['dur'] * 1000
        if e['name'] == 'runnable':  # the last part of the wait before it
            waits[-1] = (*waits[-1][:2], ns)
        else:
            waits.append((base + e['ts'] * 1000 + ns, ns, ns if e['name'] == 'wait: run queue' else 0))
    return found


def waits_of_perf(data):
    """The same; None for how long it was runnable where nobody was seen to wake it. And how often each thread left a CPU."""
    text = subprocess.run(['perf', 'script', '--ns', '-i', data, '-F', 'comm,tid,cpu,time,event,trace'],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode(errors='replace')
    left, woken, waits, times_left = {}, {}, {}, {}
    for line in text.splitlines():
        m = EVENT.search(line)
        if not m:
            continue
        now = int(m[1]) * 10**9 + int(m[2])
        if m[3] == 'sched_waking':
            woken[int(WAKING.search(m[4])[1])] = now
            continue
        prev, state, after = SWITCH.search(m[4] + ' ').groups()
        prev, after = int(prev), int(after)
        if after in left:
            since, was = left.pop(after)
            runnable = now - since if was[0] == 'R' else now - max(woken[after], since) if after in woken else None
            waits.setdefault(after, []).append((now, now - since, runnable))
        woken.pop(prev, None)  # it was awake
        left[prev] = (now, state)
        times_left.setdefault(prev, []).append(now)
    return waits, times_left


def main():
    trace, report = (json.load(open(name, encoding='utf-8')) for name in sys.argv[1:3])
    threads = {t['tid']: t for t in report['threads']}
    ours, (theirs, left) = waits_of_kprof(trace), waits_of_perf(sys.argv[3])
    judged = runnable = 0
    bad = []
    for tid, waits in ours.items():
        ends = [w[0] for w in waits]
        first, last = waits[0][0] - waits[0][1], ends[-1]
        for end, off, queued in theirs.get(tid, []):
            if end - off < first - NEAR_NS or end > last + NEAR_NS:
                continue  # begun before the recording, or ended after it
            at = bisect.bisect(ends, end)
            near = [w for w in waits[max(at - 1, 0):at + 1] if abs(w[0] - end) < NEAR_NS and abs(w[1] - off) < NEAR_NS]
            judged += 1
            if not near:
                bad.append(f'{threads[tid]["name"]} {tid}: perf saw a wait of {off} ns end at {end}, kprof none')
            elif queued is not None:
                runnable += 1
                if all(abs(w[2] - queued) >= NEAR_NS for w in near):
                    bad.append(f'{threads[tid]["name"]} {tid}: runnable for {queued} ns of a wait that ended at {end}, '
                               f'kprof says {near[0][2]}')
        seen = sum(first - NEAR_NS <= t <= last + NEAR_NS for t in left.get(tid, []))
        if seen > len(waits):
            bad.append(f'{threads[tid]["name"]} {tid}: perf saw it leave a CPU {seen} times, kprof {len(waits)}')
    total = sum(map(len, ours.values()))
    print(f'{total} waits of {len(ours)} threads; perf has {judged} of them, and of {runnable} who was woken when')
    for line in bad[:20]:
        print(line)
    return len(bad) > judged / 100 or judged < total / 3 or runnable < judged / 3


if __name__ == '__main__':
    sys.exit(main())
