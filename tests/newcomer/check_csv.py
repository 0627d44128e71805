#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The format that output.patch adds, read by Python's csv, against the Chrome trace of the same capture.

    check_csv.py TRACE.csv TRACE.json
"""

import csv
import json
import sys
from collections import Counter


def nanoseconds(text):
    whole, _, fraction = text.partition(".")
    return int(whole) * 1000 + int((fraction + "000")[:3])


with open(sys.argv[1], encoding="utf-8", newline="") as f:
    rows = list(csv.DictReader(f))
with open(sys.argv[2], encoding="utf-8") as f:
    trace = json.load(f, parse_float=str)
base = trace["baseTimeNanoseconds"]
ours = Counter((int(r["pid"]), int(r["tid"]), r["name"], int(r["start_ns"]), int(r["duration_ns"])) for r in rows)
theirs = Counter(
    (e["pid"], e["tid"], e["name"], base + nanoseconds(str(e["ts"])), nanoseconds(str(e["dur"])))
    for e in trace["traceEvents"]
    if e["ph"] == "X" and e["cat"] != "Trace"
)
print(f"{ours.total()} rows, {theirs.total()} spans of the trace, {(ours & theirs).total()} in both")
sys.exit(not ours or ours != theirs)
