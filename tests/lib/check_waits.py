#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares `report --by wait --json` with what the threads of workloads/waiter.c, or of python_waits.py, know of themselves.

    check_waits.py REPORT.json WORKLOAD.json STACKS.folded
    check_waits.py --sums REPORT.json     only that each thread's times add up to its life
    check_waits.py --met REPORT.json WORKLOAD.json    of a recording of all processes, to which threads come when they are met

A thread's own clock also counts what is not waiting: it is on a CPU before and after, and other threads may take that from
it, which kprof shows as waits for a CPU. So its time is at least that of the reason's waits, and at most that of all the time
that kprof has of the thread meanwhile.
"""
import json
import re
import sys

# By kind: what it waits for, whether every wait of that reason is one that the thread counted, and who wakes it.
KINDS = {
    'sleep': ('sleep', True, 'an interrupt'),
    'poll': ('poll', True, 'an interrupt'),
    'futex': ('futex', False, None),
    'mutex': ('futex', False, None),
    'parent': ('futex', False, None),
    'pipe': ('pipe read', True, 'writer ('),
    'socket': ('socket read', True, 'writer ('),
    'epoll': ('epoll', True, 'writer ('),
    'child': ('child process', True, 'child ('),
    'napper': ('sleep', True, 'an interrupt'),
    'locker': ('Python lock', False, None),
}
# A switch of the CPU is seen by the kernel's own accounting and by the tracepoint at different places.
SWITCH_NS = 60_000
MIN_WAIT_NS = 100_000
bad = []


def check(fine, *what):
    if not fine:
        bad.append(' '.join(str(w) for w in what))


def check_sums(report):
    for t in report['threads']:
        sums = t['on_cpu_ns'] + t['runnable_ns'] + t['blocked_ns']
        check(abs(sums - t['life_ns']) <= t['life_ns'] / 1000, t, 'does not add up to its life:', sums)
        check(t['life_ns'] <= report['window_ns'], t, 'lived longer than the recording')
    check(report['threads'], 'no thread has a time')


def check_schedstat(workload, thread, time):
    """What the kernel counted; a hypervisor's theft may be in one count and not in the other."""
    slack = time['switches'] * SWITCH_NS + workload['stolen_ns'] + 20_000_000
    ours, theirs = time['on_cpu_ns'], thread['ran_ns']
    check(abs(ours - theirs) <= theirs * 0.02 + slack, thread['kind'], 'ran for', ours, 'the kernel says', theirs)
    ours += time['runnable_ns']
    theirs += thread['delayed_ns']
    check(abs(ours - theirs) <= theirs * 0.05 + slack, thread['kind'], 'ran or was runnable for', ours,
          'the kernel says', theirs)


def rows_of(report, kind, name=None):
    return [r for r in report['rows'] if r['category'].split(' ', 1)[1] == kind and name in (None, r['name'])]


def check_kind(report, thread, time, threads_of_kind):
    reason, only, waker = KINDS[thread['kind']]
    rows = rows_of(report, thread['kind'], reason)
    seen = sum(r['total_ns'] for r in rows)
    others = ['run queue', '[shorter waits]', 'GIL']
    if thread['kind'] in ('napper', 'locker'):
        others += ['futex']  # a wait for the GIL whose stack was not taken
    others = sum(r['total_ns'] for name in others for r in rows_of(report, thread['kind'], name))
    known = thread['waited_ns'] - thread['waits'] * MIN_WAIT_NS
    check(len(rows) == 1, thread, 'has', len(rows), 'rows of', reason)
    if not rows:
        return
    check(seen + others + time['on_cpu_ns'] >= known, thread, 'waited longer than', seen, '+', others)
    if only:
        check(seen <= thread['waited_ns'] + thread['waits'] * 1000, thread, 'did not wait for', seen)
        # a switch that the kernel did not report may make two of one
        check(rows[0]['calls'] <= thread['waits'] * 1.1, thread, 'did not wait', rows[0]['calls'], 'times')
    if waker and threads_of_kind == 1:
        check(rows[0]['woken_by'].startswith(waker), thread, 'was woken by', rows[0]['woken_by'])


def check_stacks(stacks, report, thread):
    """Most of the time is below the function that waits, of which the samples' stacks have the name."""
    reason = KINDS[thread['kind']][0]
    inside = total = 0
    for line in stacks:
        stack, number = line.rsplit(' ', 1)
        frames = stack.split(';')
        if not any(re.fullmatch(re.escape(thread['kind']) + r' \(\d+\)', f) for f in frames) or frames[-1] != f'[{reason}]':
            continue
        total += int(number)
        if any(re.fullmatch(f"(round_{thread['kind']}|{thread['kind']}_rounds.*)", f) for f in frames):
            inside += int(number)
    if KINDS[thread['kind']][1]:
        check(inside >= 0.5 * total > 0, thread, 'only', inside, 'of', total, 'us have its function')
    else:
        check(inside > 0, thread, 'has no stack with its function')


def check_met(report, workload):
    times = {t['tid']: t for t in report['threads']}
    for thread in workload['threads']:
        if thread['kind'] in KINDS:
            check(thread['tid'] in times, thread, 'was never met')
            check_kind(report, thread, times[thread['tid']], 1)


def main():
    if sys.argv[1] in ('--sums', '--met'):
        with open(sys.argv[2], encoding='utf-8') as f:
            report = json.load(f)
        check_sums(report)
        if sys.argv[1] == '--met':
            with open(sys.argv[3], encoding='utf-8') as f:
                check_met(report, json.load(f))
    else:
        with open(sys.argv[1], encoding='utf-8') as f:
            report = json.load(f)
        with open(sys.argv[2], encoding='utf-8') as f:
            workload = json.load(f)
        with open(sys.argv[3], encoding='utf-8') as f:
            stacks = f.read().splitlines()
        check_sums(report)
        times = {t['tid']: t for t in report['threads']}
        for thread in workload['threads']:
            time = times[thread['tid']]
            if 'ran_ns' in thread:
                check_schedstat(workload, thread, time)
                check(abs(time['life_ns'] - report['window_ns']) <= report['window_ns'] / 1000, thread, 'lived only',
                      time['life_ns'])
            if thread['kind'] in KINDS:
                check_kind(report, thread, time, sum(t['kind'] == thread['kind'] for t in workload['threads']))
                check_stacks(stacks, report, thread)
            if thread['kind'] == 'nothing':
                check(time['blocked_ns'] >= 0.9 * time['life_ns'], thread, 'was blocked for', time['blocked_ns'])
            if thread['kind'] == 'spinner':
                check(rows_of(report, 'spinner', 'GIL'), thread, 'never waited for the GIL')
    print('\n'.join(bad), end='\n' if bad else '', file=sys.stderr)
    return bool(bad)


sys.exit(main())
