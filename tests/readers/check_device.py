#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What the readers make of a device: HTA's analyses, the plugin's GPU views and Perfetto's arrows have the kernels, times
and launches of the trace. For traces with kernels, calls that launched them, and several ProfilerSteps.
"""

import collections
import logging
import os
import shutil
import tempfile
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

from hta.trace_analysis import TraceAnalysis  # noqa: E402
from perfetto_sql import TraceProcessor  # noqa: E402
from torch_tb_profiler.profiler.data import RunProfileData  # noqa: E402
from torch_tb_profiler.profiler.run_generator import RunGenerator  # noqa: E402
import checks  # noqa: E402

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver", "opencl_runtime")


def must(holds, what):
    if not holds:
        raise checks.Wrong(what)


def complete_steps(content):
    """
    Work that HTA keeps: it leaves out what was launched from the last ProfilerStep on. For that it takes the
    device's annotations, which as Kineto's have no stream, for the host's.
    """
    steps = [e["ts"] for e in checks.slices(content, "user_annotation", "gpu_user_annotation")
             if e["name"].startswith("ProfilerStep")]
    must(len(steps) > 2, "fewer than three ProfilerSteps")
    launched = {e["args"].get("correlation"): e["ts"] for e in checks.slices(content, *CALLS)}
    return [e for e in checks.slices(content, *WORK)
            if launched.get(e["args"]["correlation"], 0) < max(steps)]


def check_hta(analysis, rank, work):
    sums = collections.Counter()
    for event in work:
        sums[event["name"]] += event["dur"]
    table = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000,
                                              include_memory_kernels=True)[1]
    theirs = {row["name"]: row["sum (us)"] for _, row in table.iterrows()}
    must(theirs.keys() == sums.keys() and
         all(abs(theirs[name] - sums[name]) < 1e-3 * sums[name] for name in sums),
         f"kernel breakdown: {theirs}, trace {dict(sums)}")
    parts = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    must(abs(sum(parts[p] for p in ("idle_time(us)", "compute_time(us)", "non_compute_time(us)"))
             - parts["kernel_time(us)"]) < 1, f"temporal breakdown: {parts.to_dict()}")
    streams = {e["args"]["stream"] for e in work}
    idle = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)[0]
    must(set(idle["stream"]) == streams, f"idle breakdown: streams {set(idle['stream'])}")
    must((idle["idle_time"] >= 0).all(), "idle breakdown: negative times")
    launches = analysis.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False)[rank]
    must(len(launches) > 0 and (launches["launch_delay"] >= 0).all(),
         f"{len(launches)} launches, some before their call")
    must(0 <= analysis.get_comm_comp_overlap(visualize=False).iloc[0, 1] <= 100, "overlap")
    queue = analysis.get_queue_length_summary(ranks=[rank])
    must({stream for _, stream in queue.index} == streams, f"queue length: {queue.index}")
    memory = analysis.get_memory_bw_summary(ranks=[rank])
    must(len(memory) == len({e["name"].split(" (")[0] for e in work if e["cat"] != "kernel"}),
         f"memory bandwidth: {memory.index}")
    graph, found = analysis.critical_path_analysis(rank=rank, annotation="ProfilerStep",
                                                   instance_id=1)
    must(found and len(graph.critical_path_nodes) > 2, "no critical path")
    return len(launches)


def check_tensorboard(path, directory, content):
    copy = os.path.join(directory, "worker.pt.trace.json" + (".gz" if path.endswith(".gz") else ""))
    shutil.copy(path, copy)
    profile = RunProfileData.parse("worker", None, copy, directory)
    run = RunGenerator("worker", "span", profile).generate_run_profile()
    kernels = checks.calls_by_name(checks.slices(content, "kernel"))
    columns = [c["name"] for c in run.kernel_table["data"]["columns"]]
    rows = run.kernel_table["data"]["rows"]
    different = checks.difference(kernels, {row[0]: row[columns.index("Calls")] for row in rows})
    must(not different, f"kernel table: {different}")
    must(all(row[columns.index("Mean Blocks Per SM")] > 0 for row in rows), "no blocks per SM")
    shown = {line["title"]: line["value"] for line in run.gpu_summary}
    must(float(shown["GPU Utilization"].split()[0]) > 0, f"GPU summary: {shown}")


def check_perfetto(path, content):
    ends = sum(e["ph"] == "f" for e in content["traceEvents"])
    with TraceProcessor(path) as tp:
        flows = tp.query("select count(*) as n from flow")[0]["n"]
        early = tp.query("select count(*) as n from flow join slice a on a.id = slice_out "
                         "join slice b on b.id = slice_in where b.ts < a.ts")[0]["n"]
        counters = tp.query("select count(*) as n from counter")[0]["n"]
    must(flows == ends, f"{flows} arrows, trace {ends}")
    must(not early, f"{early} kernels before their launch")
    must(counters == sum(e["ph"] == "C" for e in content["traceEvents"]), f"{counters} counters")
    return flows


def check(path):
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    content = checks.load(path)
    work = complete_steps(content)
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(path, directory)
        analysis = TraceAnalysis(trace_dir=directory)
        launches = check_hta(analysis, analysis.t.get_ranks()[0], work)
    with tempfile.TemporaryDirectory() as directory:
        check_tensorboard(path, directory, content)
    flows = check_perfetto(path, content)
    return f"{len(work)} activities in whole steps, {launches} launches, {flows} arrows"


if __name__ == "__main__":
    checks.main("device", check)
