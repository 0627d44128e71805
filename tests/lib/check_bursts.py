#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_bursts.py TRACE WORKLOAD: calls of an operator before it was given up, and those that bursts say there were since,
are together as many as the workload counted, within the error that the recording states; and so is the time in them."""
import json
import sys

trace, workload = (json.load(open(name, encoding='utf-8')) for name in sys.argv[1:3])
ledger = trace['kprof']['overhead']['ledger']
ops = [op for step in ledger['steps'] for op in step.get('operators', []) if op['name'].startswith('aten::add')]
if len(ops) != 1:
    sys.exit(f'aten::add was given up {len(ops)} times')
op = ops[0]
since = next(g['ts'] for g in trace['kprof']['gaps'] if g['what'] == op['name'])
calls = [e for e in trace['traceEvents'] if e.get('cat') == 'cpu_op' and e['ph'] == 'X' and e['name'] == 'aten::add']
before = sum(e['ts'] < since for e in calls)
during = sum(e['ts'] >= since for e in calls)
counted = workload['counts']['aten::add'] - before
print(f"{before} calls before, {during} in {op['bursts']} bursts; {counted} since, said to be {op['calls']:.0f} "
      f"± {op['calls_error']:.0f} (standard error), and to take {op['ns'] / 1e9:.3f} ± {op['ns_error'] / 1e9:.3f} s "
      f"of {op['for_ns'] / 1e9:.3f} s; before, {op['mean_ns']:.0f} ns each")
if not during:
    sys.exit('no burst recorded a call')
if abs(op['calls'] - counted) > 4 * op['calls_error'] + counted * 0.1:
    sys.exit('the number of calls is wrong')
if op['calls_error'] > op['calls']:
    sys.exit('the error says nothing')
# a call that is not recorded takes less time than one that is; but one that loses its CPU in a burst may take as long as that
if not 0 < op['ns'] <= op['calls'] * op['mean_ns'] * 1.5 + 2 * op['ns_error']:
    sys.exit('the time in them is wrong')
# the counter has each look at the last second: how long it was over the bound is how long those looks were
looks = sorted((e['ts'], e['args']['value'] / 1e4) for e in trace['traceEvents']
               if e['ph'] == 'C' and e['name'].startswith('kprof overhead'))
near = ledger['bound'] * 0.05  # the counter is rounded
most, least = (sum(now[0] - before[0] for before, now in zip(looks, looks[1:]) if now[1] > ledger['bound'] + off) * 1e3
               for off in (-near, near))
first = 0.5e9  # the first look has none before it
print(f"over the bound: {ledger['over_bound_ns'] / 1e9:.3f} s, by the counter {least / 1e9:.3f} to {most / 1e9:.3f} s")
if not least - 1e6 <= ledger['over_bound_ns'] <= most + first or not 0 < ledger['longest_over_bound_ns'] <= ledger['over_bound_ns']:
    sys.exit('the time over the bound is wrong')
