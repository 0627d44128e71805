#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_given_up.py TRACE REPORT: of what a recording gave up, the trace has something before that was done, and nothing after, but for bursts."""
import json
import sys

trace = json.load(open(sys.argv[1], encoding='utf-8'))
report = json.load(open(sys.argv[2], encoding='utf-8'))
SLACK_US = 2e5  # the kernel's programs that have begun by then may lose their CPU
wrong = 0


def spans(cat, has=None, names=None):
    return [e for e in trace['traceEvents'] if e.get('cat') == cat and e['ph'] == 'X' and
            (has is None or has in e['args']) and (names is None or e['name'] in names)]


def parts(step):
    """What the step gave up: (what its gap is of, spans)."""
    if step['step'] == 'operators':
        return [(op['name'], spans('cpu_op', names={op['name'].split('.')[0]})) for op in step['operators']]
    return {
        'stacks': [('stacks of operators and calls', spans('cpu_op', has='Call stack'))],
        'wait_stacks': [('stacks of waits', spans('wait', has='stack'))],
        'waits': [('waits', spans('wait'))],
        'all_operators': [('all operators and calls', spans('cpu_op'))],
    }.get(step['step'], [])


def bursts(times):
    """When they began: two are at least a second apart, less what it takes to remove probes."""
    times.sort()
    return [now for before, now in zip([0] + times, times) if now > before + 3e5]


ledger = trace['kprof']['overhead']['ledger']
for step in ledger['steps']:
    for what, found in parts(step):
        # the last gap of this name lasts to the end; one before may be of a time in which some were given up
        gaps = [g for g in trace['kprof']['gaps'] if g['pid'] == 0 and g['what'] == what]
        if not gaps:
            print(f"{step['step']}: {what}: no gap")
            wrong += 1
            continue
        after_us = gaps[-1]['ts'] + step['took_ns'] / 1e3 + SLACK_US
        late = [e for e in found if e['ts'] > after_us]
        # a stack is one of the begin: only spans that were given up themselves have to end
        endless = [e for e in found if 'stack' not in step['step'] and e['dur'] > 5e5 and e['ts'] + e['dur'] > after_us + 5e5]
        if step['step'] == 'operators':
            starts = bursts([e['ts'] for e in late])
            print(f'{len(late)} of {what} in bursts at {starts}')
            # the last one may not have been read to its end
            late = late if len(starts) > ledger.get('bursts', 0) + 1 else []
        print(f"{step['step']}: {what}: {len(found)} events, {len(late)} later, {len(endless)} that never end")
        wrong += len(late) + len(endless) + (not found)
calls = sum(row['calls'] for row in report['rows'])
if not calls:
    sys.exit('nothing was recorded before')
sys.exit(wrong > 0)
