#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the parts of a rotated recording against each other, from what workloads/chunk_dump.c prints of them.

    check_rotated.py DUMP [--stats STATS.json] [--joined DUMP] [--sleeps JSON] [--gaps]

DUMP has the parts in their order. Always: each is complete, and begins when the one before ends; what fired was captured or
dropped; a thread's times add up to its life in each, and follow each other; there is a record for each wait that was told of,
no two waits of a thread overlap, and none begins before its time in this part, nor is longer than what the thread waited.
--stats: the last line of workloads/rotating.c: the parts' sums are what the session counted.
--joined: a dump of the parts joined, which has the same sums, and each sample and wait once.
--sleeps: what workloads/sleepers.py says: each of its sleeps is in the parts, once, and in one wait where they are joined.
--gaps: parts may be missing or cut short, and a gap of everything says so.
"""
import argparse
import collections
import json
import sys

# A wait that has lasted for less than is recorded of any is in the part in which it ends, as a whole.
BORDER_NS = 200_000
# The kernel does not report all switches: where a thread is that it has not reported of is estimated.
ESTIMATE_NS = 15_000_000
# What the program's clock says around a sleep, and the kernel of it, may differ by what the program did in between.
SLEEP_ERROR_NS = 20_000_000
bad = []


def check(fine, *what):
    if not fine:
        bad.append(' '.join(str(w) for w in what))


def load(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        records = [json.loads(line) for line in f]
    parts = collections.defaultdict(lambda: collections.defaultdict(list))
    for r in records:
        parts[r['file']][r['type']].append(r)
    return parts


def window(part):
    end = part['finish'][0]['mono_ns'] if part['finish'] else None
    return part['clock'][0]['mono_ns'], end


def of_threads(part):
    """The latest time of each thread, as a later record replaces an earlier one."""
    return {r['thread']: r for r in part['time']}


def not_seen(parts):
    waits = [m['value'] for p in parts.values() for m in p['meta'] if m['key'] == 'waits']
    return sum(w['switches_not_seen'] for w in waits)


def check_threads(name, part, error_ns):
    told = collections.defaultdict(list)
    for wait in part['wait']:
        check(wait['start_ns'] <= wait['wake_ns'] <= wait['end_ns'], name, 'out of order', wait)
        told[wait['thread']].append(wait)
    for thread, t in of_threads(part).items():
        life = t['end_ns'] - t['start_ns']
        check(t['on_ns'] + t['runnable_ns'] + t['blocked_ns'] == life, name, 'times do not add up', t)
        for wait in told[thread]:
            check(wait['start_ns'] + BORDER_NS >= t['start_ns'], name, 'a wait', wait, 'begins before', t)
        waited = sum(w['end_ns'] - w['start_ns'] for w in told[thread])
        check(waited <= t['runnable_ns'] + t['blocked_ns'] + error_ns, name, waited, 'ns of waits, of', t)
        check(len(told[thread]) == t['told'], name, len(told[thread]), 'waits in the file, told of', t)
    for thread, waits in told.items():
        waits.sort(key=lambda w: w['start_ns'])
        for a, b in zip(waits, waits[1:]):
            check(a['end_ns'] <= b['start_ns'], name, 'two waits at once', a, b)


def sums(parts):
    total = collections.defaultdict(lambda: collections.defaultdict(int))
    for part in parts.values():
        for s in part['source']:
            for key in ('fired', 'captured', 'dropped', 'missed'):
                total[s['name']][key] += s[key]
    return total


def check_parts(parts, gaps):
    error_ns = BORDER_NS + (ESTIMATE_NS if not_seen(parts) else 0)
    before = None
    lives = {}
    for name, part in parts.items():
        complete = part['end'][0]['complete']
        check(complete or gaps, name, 'is not complete')
        start, end = window(part)
        if before and not gaps:
            check(start == before, name, 'begins at', start, 'and the one before ended at', before)
        before = end
        for s in part['source']:
            check(s['fired'] == s['captured'] + s['dropped'], name, s)
        if not complete:
            continue
        check_threads(name, part, error_ns)
        for thread, t in of_threads(part).items():
            if thread in lives and not gaps:
                check(t['start_ns'] == lives[thread], name, 'a time of a thread is in none', t, lives[thread])
            lives[thread] = t['end_ns']


def key_of(sample):
    return sample['pid'], sample['tid'], sample['time_ns'], sample['weight_ns']


def check_joined(parts, joined):
    error_ns = BORDER_NS + (ESTIMATE_NS * len(parts) if not_seen(parts) else 0)
    check(len(joined) == 1, 'the joined capture is one')
    for name, part in joined.items():
        check_threads(name, part, error_ns)
        have = sorted(key_of(s) for s in part['sample'])
        want = sorted(key_of(s) for p in parts.values() for s in p['sample'])
        check(have == want, name, len(have), 'samples, and the parts have', len(want))
        for kind in ('on_ns', 'runnable_ns', 'blocked_ns'):
            mine = sum(t[kind] for t in of_threads(part).values())
            theirs = sum(t[kind] for p in parts.values() for t in of_threads(p).values())
            check(mine == theirs, name, kind, mine, 'and the parts have', theirs)
        split = sum(1 for p in parts.values() for w in p['wait'])
        check(len(part['wait']) <= split, name, 'has more waits than its parts')
        # it may have got another name or other arguments meanwhile (fork, then exec), but not for each part anew
        tasks = collections.Counter((p['pid'], p['start_ns']) for p in part['process'] if not p['exit_ns'])
        often = [task for task, nr in tasks.items() if nr > 3]
        check(not often, name, 'says a process again and again:', often)
    mine, theirs = sums(joined), sums(parts)
    check(mine == theirs, 'sums of sources:', json.dumps(mine), json.dumps(theirs))


def check_sleeps(parts, joined, sleeps):
    for sleep in sleeps:
        waits = [w for p in parts.values() for w in p['wait'] if w['pid'] == sleep['pid'] and w['end_ns'] > sleep['from_ns']
                 and w['start_ns'] < sleep['to_ns']]
        slept = sum(min(w['end_ns'], sleep['to_ns']) - max(w['start_ns'], sleep['from_ns']) for w in waits)
        short = sleep['to_ns'] - sleep['from_ns'] - slept
        check(0 <= short < SLEEP_ERROR_NS, slept, 'ns are in waits, of', sleep, waits)
        whole = [w for p in joined.values() for w in p['wait'] if w['pid'] == sleep['pid'] and
                 abs(w['end_ns'] - w['start_ns'] - (sleep['to_ns'] - sleep['from_ns'])) < SLEEP_ERROR_NS]
        check(len(whole) == 1, len(whole), 'waits of the joined capture are', sleep)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('dump')
    parser.add_argument('--stats')
    parser.add_argument('--joined')
    parser.add_argument('--sleeps')
    parser.add_argument('--gaps', action='store_true')
    args = parser.parse_args()
    parts = load(args.dump)
    check(len(parts) > 2, 'only', len(parts), 'parts: nothing was tested')
    check_parts(parts, args.gaps)
    if args.gaps:
        gaps = [g for p in parts.values() for g in p['gap'] if g['what'] == 'anything' and not g['pid']]
        check(gaps, 'no gap of everything')
    if args.stats:
        with open(args.stats, encoding='utf-8') as f:
            stats = json.loads(f.readlines()[-1])
        check(stats['rotations'] == len(parts) - 1, stats['rotations'], 'rotations', len(parts), 'parts')
        check(sum(s['dropped'] for s in sums(parts).values()) == stats['dropped'], 'dropped:', stats)
        check(sum(len(p['sample']) for p in parts.values()) == stats['samples'], 'samples:', stats)
    joined = load(args.joined) if args.joined else {}
    if args.joined:
        check_joined(parts, joined)
    if args.sleeps:
        with open(args.sleeps, encoding='utf-8') as f:
            check_sleeps(parts, joined, json.load(f)['sleeps'])
    print(f'{len(parts)} parts, {sum(len(p["wait"]) for p in parts.values())} waits, '
          f'{sum(len(p["sample"]) for p in parts.values())} samples')
    for line in bad[:20]:
        print('WRONG', line)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
