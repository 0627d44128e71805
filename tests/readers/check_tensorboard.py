#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TensorBoard's PyTorch plugin opens a trace; its operator table has the trace's calls."""

import collections
import logging
import os
import shutil
import tempfile

from torch_tb_profiler import consts
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator
import checks


def operator_table(profile):
    """Calls by name, as the plugin's operator page shows them."""
    rows = RunGenerator("worker", "span", profile).generate_run_profile().operation_table_by_name
    return {row["name"]: row["calls"] for row in rows["data"]}


def shown_calls(content):
    """
    The calls that the plugin shows. As torch.autograd.profiler does, it takes an operator whose only
    child has its own name (aten::sum calls aten::sum) for one.
    """
    threads = collections.defaultdict(list)
    for event in checks.slices(content, "cpu_op", "user_annotation"):
        threads[event["pid"], event["tid"]].append(event)
    calls = collections.Counter()
    for events in threads.values():
        children = collections.defaultdict(list)
        stack = []
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"]:
                stack.pop()
            if event["cat"] != "cpu_op":
                continue  # the plugin keeps annotations out of its tree
            if stack:
                children[id(stack[-1])].append(event)
            stack.append(event)
        operators = [e for e in events if e["cat"] == "cpu_op"]
        calls.update(e["name"] for e in operators)
        for event in operators:
            only = children[id(event)]
            if len(only) == 1 and only[0]["name"] == event["name"]:
                calls[event["name"]] -= 1
    return calls


def check(path):
    logging.disable(logging.CRITICAL)
    content = checks.load(path)
    operators = checks.slices(content, "cpu_op")
    suffix = ".pt.trace.json.gz" if path.endswith(".gz") else ".pt.trace.json"
    with tempfile.TemporaryDirectory() as directory:
        copy = os.path.join(directory, "worker" + suffix)
        if not consts.WORKER_PATTERN.match(os.path.basename(copy)):
            raise checks.Wrong(f"{copy} is no name that the plugin looks for")
        shutil.copy(path, copy)
        profile = RunProfileData.parse("worker", None, copy, directory)
        different = checks.difference(shown_calls(content), operator_table(profile))
    if different:
        raise checks.Wrong(f"operator table: {different}")
    threads = len({e["tid"] for e in operators})
    if len(profile.tid2tree) < threads:
        raise checks.Wrong(f"{len(profile.tid2tree)} threads, trace {threads}")
    return f"{len(operators)} operator calls of {len(checks.calls_by_name(operators))} names"


if __name__ == "__main__":
    checks.main("tensorboard", check)
