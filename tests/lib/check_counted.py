#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_counted.py TRACE RESULT REPORT: counters of annotations against what tests/workloads/counted.c knows of them.

RESULT is the workload's line of JSON, REPORT is `kprof report --json` of the same recording.
"""
import json
import sys

# Kept by the kernel for each thread, so that each exact end has them; made of the CPUs' numbers at switches, where one
# that the kernel does not tell of costs the spans around it theirs.
OF_THREADS = ('page-faults', 'context-switches', 'cpu-migrations')
OF_CPUS = ('page-faults:u', 'task-clock', 'cpu-clock')
wrong = []


def check(holds, text):
    if not holds:
        wrong.append(text)


def near(a, b, share, least):
    return abs(a - b) <= max(share * max(a, b), least)


def check_spans(spans):
    """The two ways of counting agree, span by span; of clocks, an interrupt may come between the readings of the two."""
    apart = []
    for s in spans:
        args = s['args']
        for name in OF_THREADS:
            check(name in args, f'{s["name"]}: no {name}')
        if 'page-faults:u' in args:
            check(args['page-faults:u'] == args['page-faults'],
                  f'{s["name"]}: {args["page-faults:u"]} page faults of perf, {args["page-faults"]} of the thread')
            if not near(args['cpu-clock'], args['task-clock'], 0.05, 50000):
                apart.append(f'{s["name"]}: cpu-clock {args["cpu-clock"]}, task-clock {args["task-clock"]}')
        for name in ('task-clock', 'cpu-clock'):
            check('end' in args or args.get(name, 0) <= s['dur'] * 1000 + 1,
                  f'{s["name"]}: {args.get(name)} ns on a CPU in {s["dur"]} us')
    check(len(apart) <= len(spans) / 50, ', '.join(apart))


def check_row(name, row, known):
    """The sums of an annotation."""
    counts = row['counters']
    times = known['times']
    for counter in OF_THREADS:
        check(counts[counter]['calls'] == times, f'{name}: {counts[counter]["calls"]} of {times} have {counter}')
    for counter in OF_CPUS:
        check(counts[counter]['calls'] >= times * 0.8, f'{name}: {counts[counter]["calls"]} of {times} have {counter}')
    if name != 'outer':
        for counter in ('page-faults', 'cpu-migrations'):
            key = 'faults' if counter == 'page-faults' else 'migrations'
            check(counts[counter]['total'] == known[key],
                  f'{name}: {counts[counter]["total"]} {counter}, the program knows of {known[key]}')
    if known['switches_inside']:
        check(known['switches_inside'] <= counts['context-switches']['total'] <= known['switches_around'],
              f'{name}: {counts["context-switches"]["total"]} switches, not '
              f'{known["switches_inside"]} to {known["switches_around"]}')
    # The program's clock leaves out what a hypervisor took, and interrupts. The time of other threads would be several times as much.
    for counter in ('task-clock', 'cpu-clock') if known['cpu_ns'] else ():
        each = counts[counter]['total'] / counts[counter]['calls']
        check(near(each, known['cpu_ns'] / times, 0.3, 0), f'{name}: {counter} {each}, not {known["cpu_ns"] / times}')


def check_nested(rows):
    """What the outer annotation had by itself and what those inside of it had are all that it had."""
    for counter in OF_THREADS:
        inside = sum(rows[name]['counters'][counter]['total'] for name in ('pages', 'sleeps', 'burn', 'moves'))
        outer = rows['outer']['counters'][counter]
        check(outer['self'] + inside == outer['total'] and outer['self_calls'] == outer['calls'],
              f'outer: {counter} {outer}, {inside} inside')


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        trace = json.load(f)
    with open(sys.argv[2], encoding='utf-8') as f:
        known = json.load(f)
    with open(sys.argv[3], encoding='utf-8') as f:
        rows = {row['name']: row for row in json.load(f)['rows']}
    spans = [e for e in trace['traceEvents'] if e.get('cat') == 'user_annotation']
    check(len(spans) == sum(k['times'] for k in known.values()), f'{len(spans)} annotations')
    check_spans(spans)
    for name, k in known.items():
        check_row(name, rows[name], k)
    check_nested(rows)
    print('\n'.join(wrong[:20]), end='\n' if wrong else '')
    return bool(wrong)


sys.exit(main())
