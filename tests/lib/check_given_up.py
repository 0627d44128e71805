#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_given_up.py TRACE REPORT: of what a recording gave up, the trace has nothing after that was done."""
import json
import sys

trace = json.load(open(sys.argv[1], encoding='utf-8'))
report = json.load(open(sys.argv[2], encoding='utf-8'))
steps = trace['kprof']['overhead']['ledger']['steps']
start_us = min(e['ts'] for e in trace['traceEvents'] if e.get('cat') == 'cpu_op')
wrong = 0
for step in steps:
    names = {op['name'].split('.')[0] for op in step.get('operators', [])}
    after_us = (step['at_ns'] + step['took_ns']) / 1e3
    events = [e for e in trace['traceEvents'] if e.get('cat') == 'cpu_op' and e['name'] in names]
    # the first event is not before the recording's begin: what is later than that by so much is later still
    late = [e for e in events if e['ts'] - start_us > after_us]
    endless = [e for e in events if e['ts'] + e['dur'] - start_us > after_us + 5e5]
    print(f"{step['step']}: {len(names)} names, {len(events)} events, {len(late)} later, {len(endless)} that never end")
    wrong += len(late) + len(endless)
calls = sum(row['calls'] for row in report['rows'])
if not calls:
    sys.exit('nothing was recorded before')
sys.exit(wrong > 0)
