#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Arrows from operators to autograd's nodes, as Perfetto's trace processor sees them.

    check_flow.py TRACE.json TRACE.pftrace

It connects the same slices in both, as many as the trace has arrows, each to the node that has the operator's sequence
number. (Holistic Trace Analysis 0.5 drops all arrows before it looks for them, Kineto's own too.)
"""

import sys
from collections import Counter

from perfetto_sql import TraceProcessor
import checks

ARROWS = """
select o.name as a, i.name as b, extract_arg(o.arg_set_id, 'KEYSequence number') as m,
       extract_arg(i.arg_set_id, 'KEYSequence number') as n
from flow join slice o on o.id = slice_out join slice i on i.id = slice_in
"""


def of_perfetto(path, key):
    with TraceProcessor(path) as tp:
        rows = tp.query(ARROWS.replace("KEY", key))
        bad = tp.query("select name, value from stats where value > 0 and name like '%flow%'")
    wrong = [r for r in rows if r["m"] is None or r["m"] != r["n"]]
    if bad or wrong:
        raise checks.Wrong(f"{path}: {bad} {wrong[:3]}")
    return Counter((r["a"], r["b"], r["m"]) for r in rows)


def main():
    path, pftrace = sys.argv[1:]
    ends = [e for e in checks.load(path)["traceEvents"] if e.get("cat") == "fwdbwd" and e["ph"] == "f"]
    json, own = of_perfetto(path, "args."), of_perfetto(pftrace, "debug.")
    if not ends or sum(json.values()) != len(ends) or json != own:
        raise checks.Wrong(f"{len(ends)} arrows, {sum(json.values())} in JSON, {sum(own.values())} in .pftrace: "
                           f"{list(((json - own) + (own - json)).items())[:5]}")
    print(f"flow: ok: {len(ends)} arrows")


if __name__ == "__main__":
    main()
