#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holistic Trace Analysis opens a trace; its tables and call stacks hold every span of it."""

import logging
import math
import os
import shutil
import tempfile
import warnings

# HTA rounds to whole microseconds otherwise, and fails on shorter slices, Kineto's too.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

from hta.common.trace_call_graph import CallGraph  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402
from hta.trace_diff import LabeledTrace  # noqa: E402
import checks  # noqa: E402


def names_of(analysis, frame):
    symbols = analysis.t.symbol_table.get_sym_table()
    return frame["name"].map(lambda number: symbols[number])


def check_rows(analysis, rank, events):
    frame = analysis.t.get_trace(rank)
    different = checks.difference(checks.calls_by_name(events),
                                 names_of(analysis, frame).value_counts().to_dict())
    if different:
        raise checks.Wrong(f"rows: {different}")


def check_operators(analysis, rank, events):
    """Counts and times by HTA's operator summary (TraceDiff's; that one wants ProfilerSteps)."""
    frame = analysis.t.get_trace(rank)
    summary = LabeledTrace(t=analysis.t).get_ops_summary(frame[frame["stream"].eq(-1)])
    theirs = {(row.cat, row.name): (row.counts, round(row.total_duration * 1000))
              for row in summary.itertuples(index=False)}
    times = {}
    for event in events:
        times.setdefault((event["cat"], event["name"]), []).append(event["dur"])
    # Rounded once, as HTA's sum is: some times have a fourth decimal, for readers that cut.
    ours = {key: (len(us), round(math.fsum(us) * 1000)) for key, us in times.items()}
    different = checks.difference(ours, theirs)
    if different:
        raise checks.Wrong(f"operator summary: {different}")


def check_stacks(analysis, rank, events):
    """Every span is in the call stack of its thread."""
    graph = CallGraph(analysis.t)
    rows = {(e["pid"], e["tid"]) for e in events}
    stacks = list(graph.rank_to_stacks[rank].values())
    nodes = sum(index >= 0 for index in graph.rank_to_nodes[rank])  # the threads' roots are below
    if len(stacks) != len(rows) or nodes != len(events):
        raise checks.Wrong(f"call stacks: {nodes} spans on {len(stacks)} threads, "
                          f"trace {len(events)} on {len(rows)}")
    return int(analysis.t.get_trace(rank)["depth"].max())


def check(path):
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore", FutureWarning)
    content = checks.load(path)
    # HTA drops the window's own span.
    events = [e for e in checks.slices(content) if e["cat"] != "Trace"]
    rank = content["distributedInfo"]["rank"]
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(path, directory)
        analysis = TraceAnalysis(trace_dir=directory)
        if analysis.t.get_ranks() != [rank]:
            raise checks.Wrong(f"ranks {analysis.t.get_ranks()}, trace {rank}")
        check_rows(analysis, rank, events)
        check_operators(analysis, rank, events)
        depth = check_stacks(analysis, rank, events)
    return f"{len(events)} rows as rank {rank}, operator counts and times equal, stacks {depth + 1} deep"


if __name__ == "__main__":
    checks.main("hta", check)
