# SPDX-License-Identifier: BSD-2-Clause
"""A part of scripts/gpu-check for the tests' simulated CUDA."""

import os

from report import device_time, links, same_work
from runs import Trace


def simulated(report, bench, args):
    """Compares with the simulator's own record of what it did, instead of torch.profiler and the program."""
    from compare_device import demangled
    from truth import Truth

    # So slow that most of the work is still to come when the agent is loaded, which is when CUDA is first used.
    command = [os.path.join(args.build, "sim", "13", "gpuops"), "--n", "60", "--pace", "20"]
    truth = bench.path("truth", "sim")
    bench = bench.having(KPROF_SIM_TRUTH=truth)
    report.section("Simulated: training loop")
    for what, how in (("attach", bench.by_attach), ("run", bench.by_run)):
        what = f"training loop, {what}"
        result, trace, _ = how(f"gpuops-{how.__name__}", command)
        links(report, what, trace)
        work = Truth.load(truth, result["pid"]).work(fate="recorded")
        shown = demangled([w["name"] for w in work if w["t"] == "kernel"])
        kernels = Trace.count(shown[w["name"]] for w in work if w["t"] == "kernel")
        same_work(report, what, trace, kernels, None)
        device_time(report, what, [trace.total_us()], [sum(w["end"] - w["start"] for w in work) / 1000])
