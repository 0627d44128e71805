# SPDX-License-Identifier: BSD-2-Clause
"""Parts of scripts/gpu-check: the agent and CUPTI by themselves, and what CUPTI says of calls that probes see."""

import glob
import json
import os
import subprocess
from collections import Counter

from report import COPYING_KERNEL, difference
from runs import Failed, Process, bare

KERNELS, COPIES, SETS = (3, 10), (1,), (2,)  # CUpti_ActivityKind
PLACES = ("/usr/local/cuda*/extras/CUPTI/lib64", "/usr/local/cuda*/lib64", "/usr/lib/x86_64-linux-gnu")
# Where wheels have it: in folders of their own, or beside PyTorch's libraries.
IN_PYTHON = """
import glob, importlib.util
for package, below in (("nvidia", "*/lib"), ("torch", "lib")):
    spec = importlib.util.find_spec(package)
    for folder in spec.submodule_search_locations if spec else ():
        for path in glob.glob(f"{folder}/{below}/libcupti*.so.1[0-9]*"):
            print(path)
"""


def find_cupti(args):
    """The path of a libcupti for programs that have no CUDA runtime beside them; None: there is none."""
    if args.simulated:
        return os.path.join(args.build, "sim", "13", "libcupti.so.13")
    named = os.environ.get("KPROF_CUPTI_PATH")
    if named:
        return named
    try:
        done = subprocess.run([args.python, "-c", IN_PYTHON], capture_output=True, text=True, timeout=60)
        found = sorted(done.stdout.split())
    except (OSError, subprocess.TimeoutExpired):
        found = []
    for folder in (*PLACES, os.path.join(os.environ.get("CONDA_PREFIX", "/nowhere"), "lib")):
        found += sorted(glob.glob(f"{folder}/libcupti.so.1[0-9]"), reverse=True)
    return found[0] if found else None


def for_programs(bench, args):
    """For programs of tests/gpucheck: they have no CUDA runtime, beside which the agent would look for CUPTI."""
    env = {"KPROF_CUPTI_PATH": args.cupti} if args.cupti else {}
    if args.simulated:
        env["LD_LIBRARY_PATH"] = os.path.join(args.build, "sim", "13")
    return bench.having(**env)


def watch_of(args):
    return os.path.join(args.build, "gpucheck", "gpucheck_watch.so")


def table(lines, head):
    return "\n".join([head, *(f"  {line}" for line in lines)])


def judge_calls(report, how, watch):
    calls = []
    for r in sorted(watch["results"], key=lambda r: (r["call"], r["of"])):
        of = f"({r['of']})" if r["of"] >= 0 else "()"
        failed = f", {r['failed']} failed, the last with {r['failure']} {r['words']}" if r["failed"] else ""
        calls.append(f"{r['call']}{of}: {r['calls']} calls{failed}")
    report.block(table(calls, f"{how}: calls of CUPTI"))
    # While cuInit runs some fail, and are tried again.
    wrong = [f"{r['call']}({r['of']}) = {r['last']} {r['words']}" for r in watch["results"] if r["last"] > 0]
    report.check(not wrong, f"{how}: no function of CUPTI failed for good;", *wrong)


def judge_records(report, how, result, watch):
    kinds = sorted(watch["records"], key=lambda r: (r["kind"], r["bytes"]))
    report.block(table([f"kind {r['kind']}, {r['bytes']} bytes: {r['nr']}" for r in kinds], f"{how}: records of CUPTI"))
    launched = {"kernels": sum(result["kernels"].values()), "copies": sum(result["copies"].values()), "sets": result["sets"]}
    seen = {
        what: sum(r["nr"] for r in kinds if r["kind"] in numbers)
        for what, numbers in (("kernels", KERNELS), ("copies", COPIES), ("sets", SETS))
    }
    within = result["copies"]["DtoD"]
    if how == "dlopen" and seen["copies"] == launched["copies"] - within:
        report.say(f"{how}: {within} copies of a graph that was there before CUPTI are kernels, {COPYING_KERNEL}")
        launched["kernels"] += within
        launched["copies"] -= within
    for what, nr in launched.items():
        report.check(seen[what] == nr, f"{how}: {nr} {what}, CUPTI has records of {seen[what]}")


def judge_clock(report, how, agent, watch):
    """The agent registers the monotonic clock. It copes with CUPTI's return to its own; any other it has to have measured."""
    clock, times = watch["clock"], watch["times"]
    strange = times["other"] or "other" in clock.values()
    report.check(agent["clock"] or not strange, f"{how}: CUPTI's clock is one that the agent knows; {clock}")
    report.check(not times["none"], f"{how}: every record has its time; {times}")
    if len(set(clock.values())) > 1:
        report.say(f"{how}: **CUPTI has changed its clock meanwhile**")


def judge(report, how, result):
    agent, watch = result["agent"], result["watch"]
    if not report.check(agent, f"{how}: the agent was loaded"):
        return
    report.agent = "Agent: " + ", ".join(f"{k} {v}" for k, v in agent.items() if "version" in k or k == "clock")
    good = agent["recorded"] and not agent["reason"]
    report.check(good, f"{how}: the agent records, to the end; reason {agent['reason']}", agent["detail"])
    report.check(result["right"], f"{how}: the program's results are right")
    if not report.check(watch, f"{how}: the agent has loaded CUPTI"):
        return
    judge_calls(report, how, watch)
    judge_records(report, how, result, watch)
    judge_clock(report, how, agent, watch)
    lost = {k: agent[k] for k in ("device_dropped", "agent_dropped", "unknown_records", "buffers")}
    lost["refused"], lost["not watched"] = watch["buffers"]["refused"], watch["left_out"]
    report.check(not any(lost.values()), f"{how}: nothing lost, and every buffer came back; {lost}")
    most, records = agent["max_buffers"], agent["records"]
    report.say(f"{how}: buffers {watch['buffers']}, at most {most} at once; {records} records of the agent")
    report.figures[f"agent alone, {how}"] = {"agent": agent, "buffers": watch["buffers"], "clock": watch["clock"]}


def agent_alone(report, bench, args):
    report.section("The agent without BPF")
    if not args.cupti:
        report.skip("no libcupti was found; KPROF_CUPTI_PATH can name one")
        return
    report.say("CUPTI:", os.path.realpath(args.cupti))
    bench = for_programs(bench, args).having(GPUCHECK_CUPTI=args.cupti)
    program = os.path.join(args.build, "gpucheck", "agentprog")
    library = os.path.join(args.build, "libkprof_agent.so")
    for how in ("injection", "dlopen"):
        command = [program, library, watch_of(args), how, "20" if args.simulated else "50"]
        target = Process(command, bench.folder, f"agent-{how}", bench.env)
        try:
            result = target.result()
            target.end()
        except Failed as e:
            report.check(False, f"{how}: {e}")
            continue
        judge(report, how, result)


def names_of_calls(report, bench, args):
    """The probes' hits come from a recording in which nothing is loaded, so that nothing else can have told of the calls."""
    report.section("Calls of the driver: CUPTI's records against hits of probes")
    if not args.cupti:
        report.skip("no libcupti was found")
        return
    program = [os.path.join(args.build, "gpucheck", "cudaprog"), "--n", "20"]
    bench = for_programs(bench, args)
    kept = bench.path("names", "watch.json")
    watched = bench.having(KPROF_CUPTI_PATH=watch_of(args), GPUCHECK_CUPTI=args.cupti, GPUCHECK_WATCH=kept)
    watched.by_attach("names-cupti", program)
    _, trace, _ = bench.by_attach("names-probes", program, ["--no-agent"])
    if not report.check(os.path.exists(kept), "CUPTI has recorded calls"):
        return
    with open(kept) as f:
        records = Counter()
        for call in json.load(f)["driver"]:
            records[bare(call["name"])] += call["nr"]
    both = {name: records[name] for name in records if name in trace.driver}
    wrong = difference(trace.driver, Counter(both))
    report.check(both and not wrong, f"{sum(both.values())} calls of {len(both)} functions;", *wrong)
    report.say("recorded by CUPTI, without a probe:", {n: nr for n, nr in records.items() if n not in both} or "none")
