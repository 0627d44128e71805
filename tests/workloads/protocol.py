# SPDX-License-Identifier: BSD-2-Clause
"""How a test talks to a Python workload.

The workload warms up, prints "READY pid", waits for a line on standard input (end of file: gives
up), runs its measured loop, prints one line of JSON (a checksum of its results, the counts that
it kept itself) and ends; with --linger it first waits for another line. So a test needs no sleep:
it attaches after READY and detaches after the JSON.

With --profile OUT.json the measured loop runs under torch.profiler, and its trace is written to
OUT.json, as users get it, and to OUT.tree.json: the same events as torch's own tree, with
nanoseconds. (The Chrome traces of older releases round to microseconds, which blurs what encloses
what; torch 1.13 without Kineto has not even real thread numbers in them.)

Everything is deterministic: seeded, and one thread for each operator.
"""

import argparse
import array
import contextlib
import gc
import json
import os
import sys
import time
import zlib

WINDOW_BEGIN = "kprof test: window begin"
WINDOW_END = "kprof test: window end"
# Nothing happens meanwhile. Wider than the clocks of two profilers may differ, and than a busy machine keeps a thread waiting.
WINDOW_PAUSE_S = 0.05
# Before a run that is compared begins, kprof learns where the calls return to: a span whose return is not
# known yet ends with the thread's next event, and that can come too late to say what encloses what. So many rounds
# at least, and on until its probes, which change this program's code, have not become more for a while.
SETTLE_ROUNDS, SETTLE_QUIET_ROUNDS, SETTLE_MOST_ROUNDS, SETTLE_PAUSE_S = 8, 4, 80, 0.15


def arguments(extra=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=10)
    parser.add_argument("--seconds", type=float, help="stop after so long, whatever --iters says")
    parser.add_argument("--pause", type=float, default=0, metavar="SECONDS", help="after each step")
    parser.add_argument("--until-file", metavar="PATH", help="stop when it is there")
    parser.add_argument("--profile", metavar="OUT.json")
    parser.add_argument("--linger", action="store_true")
    parser.add_argument("--now", action="store_true", help="don't wait to be told")
    parser.add_argument("--import-late", action="store_true", help="import torch when told to go, say IMPORTED and wait again")
    parser.add_argument("--settle", type=int, help="steps between go and the measured part, at least")
    parser.add_argument("--shapes", action="store_true", help="torch.profiler: record_shapes and with_flops")
    parser.add_argument("--flops", action="store_true", help="with --shapes: say how many operations it counted")
    parser.add_argument("--memory", action="store_true", help="torch.profiler: profile_memory")
    parser.add_argument("--device", metavar="cuda", help="where tensors lie, from PyTorch 2.0 on")
    parser.add_argument("--all-threads", action="store_true", help="torch.profiler: all threads")
    if extra:
        extra(parser)
    return parser.parse_args()


def wait_line(needed):
    if not sys.stdin.readline() and needed:
        sys.exit(9)  # nobody is there any more


def stopped(args):
    return args.until_file and os.path.exists(args.until_file)


def ready(word="READY"):
    print(f"{word} {os.getpid()}", flush=True)


def bits(*values):
    """A checksum of tensors and numbers: their exact bits, not their sum."""
    import hashlib
    import struct

    digest = hashlib.sha256()
    for value in values:
        if hasattr(value, "detach"):
            value = value.detach().to_dense() if value.is_sparse else value.detach()
            digest.update(value.contiguous().view(-1).cpu().numpy().tobytes())
        else:
            digest.update(struct.pack("d", value))
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def marked(torch):
    """Marks the measured window, in kprof's trace and in torch's."""
    time.sleep(WINDOW_PAUSE_S)
    with torch.profiler.record_function(WINDOW_BEGIN):
        pass
    time.sleep(WINDOW_PAUSE_S)
    yield
    time.sleep(WINDOW_PAUSE_S)
    with torch.profiler.record_function(WINDOW_END):
        pass
    time.sleep(WINDOW_PAUSE_S)


def changed_code():
    """A checksum of the pages of code that are not, or no more, as their files have them."""
    total, page = 0, os.sysconf("SC_PAGESIZE")
    with open("/proc/self/maps") as maps:
        rows = [line.split(maxsplit=5) for line in maps]
    with open("/proc/self/pagemap", "rb", 0) as pages, open("/proc/self/mem", "rb", 0) as memory:
        for row in rows:
            if len(row) < 6 or "x" not in row[1] or not row[5].startswith("/"):
                continue
            start, end = (int(x, 16) for x in row[0].split("-"))
            pages.seek(start // page * 8)
            for i, entry in enumerate(array.array("Q", pages.read((end - start) // page * 8))):
                if entry >> 61 & 5 == 4:  # present, and not of a file
                    memory.seek(start + i * page)
                    total = zlib.crc32(memory.read(page), total)
    return total


def settle(step, first, least, most):
    """Calls step(first), step(first + 1), …; how many."""
    before, quiet = changed_code(), 0
    for i in range(most):
        step(first + i)
        time.sleep(SETTLE_PAUSE_S)
        now = changed_code()
        quiet = quiet + 1 if now == before else 0
        if i + 1 >= least and quiet >= SETTLE_QUIET_ROUNDS:
            return i + 1
        before = now
    return most


def fork_rank(args):
    """A child that goes on as rank 1, with nobody to talk to; its number, 0 in it. It need not import PyTorch again."""
    child = os.fork()
    args.rank = 0 if child else 1
    if not child:
        args.now, args.linger, args.profile = True, False, None
        null = os.open(os.devnull, os.O_RDWR)
        for stream in 0, 1:
            os.dup2(null, stream)
    return child


def wait_rank(child):
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise SystemExit(f"rank 1 ended with {code}")


def profiler(torch, args):
    options = {"activities": [torch.profiler.ProfilerActivity.CPU], "record_shapes": args.shapes,
               "with_flops": args.shapes, "profile_memory": args.memory}
    if args.all_threads:
        options["experimental_config"] = torch._C._profiler._ExperimentalConfig(
            profile_all_threads=True
        )
    return torch.profiler.profile(**options)


@contextlib.contextmanager
def unheard_profiler(torch, args):
    """Calls go the same ways as under profiler(), but nothing is made of what it records: that takes longer than the calls."""
    profiler(torch, args).start()
    yield
    torch._C._autograd._disable_profiler()


def inputs_of(event):
    """Sizes and strides of an operator's tensors, None in the place of what is no tensor; 1.13 says more."""

    def one(value):
        if isinstance(value, list):
            return [one(v) for v in value]
        return [value.sizes, value.strides] if hasattr(value, "sizes") else None

    inputs = getattr(event.extra_fields, "inputs", None)
    if inputs is None or isinstance(inputs, list):
        return inputs and {"tensors": [one(v) for v in inputs]}
    return {"sizes": inputs.shapes, "strides": inputs.strides, "types": inputs.dtypes,
            "values": [None if v is None else str(v) for v in inputs.ivalues]}


def flops_of(prof):
    """By operator, in the marked window."""
    events, sums = prof.events(), {}
    begin, end = ([e.time_range.start for e in events if e.name == name] for name in (WINDOW_BEGIN, WINDOW_END))
    for event in events:
        if event.flops and min(begin) <= event.time_range.start < min(end):
            sums[event.name] = sums.get(event.name, 0) + event.flops
    return sums


def sequences_of(prof):
    """Name, start, sequence number and the number of the forward's thread of all that torch.profiler has seen."""
    return [[e.name(), e.start_ns() if hasattr(e, "start_ns") else e.start_us() * 1000, e.sequence_nr(), e.fwd_thread_id(),
             e.start_thread_id()] for e in prof.profiler.kineto_results.events()]


def allocation_of(event):
    """What torch.profiler's row [memory] says, its device by its name."""
    fields = event.extra_fields
    return {"start_ns": event.start_time_ns, "device": fields.device.type, "index": fields.device.index, "addr": fields.ptr,
            "bytes": fields.alloc_size, "allocated": fields.total_allocated, "reserved": fields.total_reserved}


def arguments_of(names):
    """How many arguments the operators of these names have: of each overload."""
    import torch

    schemas = {name: torch._C._jit_get_schemas_for_operator(name) for name in sorted(names) if "::" in name and " " not in name}
    return {name: sorted({len(s.arguments) for s in of}) for name, of in schemas.items() if of}


def export(prof, path, flops):
    prof.export_chrome_trace(path)
    rows, memory = [], []

    def walk(event, parent):
        if event.tag.name == "Allocation":  # with profile_memory
            memory.append(allocation_of(event))
            return
        index = len(rows)
        rows.append(
            {
                "name": event.name,
                "scope": getattr(getattr(event.extra_fields, "scope", None), "name", ""),
                "start_ns": event.start_time_ns,
                "dur_ns": event.duration_time_ns,
                "thread": event.start_tid,
                "parent": parent,
                "inputs": inputs_of(event),
            }
        )
        for child in event.children:
            walk(child, index)

    sys.setrecursionlimit(10000)
    for root in prof.profiler.kineto_results.experimental_event_tree():
        walk(root, -1)
    with open(path[: -len(".json")] + ".tree.json", "w") as f:
        tree = {"pid": os.getpid(), "events": rows, "flops": flops_of(prof) if flops else {},
                "sequences": sequences_of(prof), "memory": memory, "arguments": arguments_of({r["name"] for r in rows})}
        f.write(json.dumps(tree))  # json.dump() is ten times slower: it does not use its part in C


def main(build, extra=None, warmup=3):
    """build(torch, args) returns step(i), finish() that returns the checksum and a dict, and
    perhaps begin(), called when the warm-up is over: from there on the workload counts."""
    args = arguments(extra)
    if args.settle is None:
        args.settle = SETTLE_ROUNDS if args.profile else 0
    args.settle_most = SETTLE_MOST_ROUNDS
    if args.import_late:
        ready()
        wait_line(True)
    import torch

    if args.profile:
        gc.disable()  # each event becomes some objects, all of which are kept
    if args.device:
        torch.set_default_device(args.device)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    step, finish, *begin = build(torch, args)
    for i in range(warmup):
        step(i)
    ready("IMPORTED" if args.import_late else "READY")
    if not args.now:
        wait_line(True)
    for function in begin:
        function()
    began = time.time_ns()
    if args.settle:
        with unheard_profiler(torch, args) if args.profile else contextlib.nullcontext():
            warmup += settle(step, warmup, args.settle, max(args.settle, args.settle_most))
    with profiler(torch, args) if args.profile else contextlib.nullcontext() as prof:
        with marked(torch):
            i, end = 0, time.monotonic() + (args.seconds or float("inf"))
            while i < args.iters and time.monotonic() < end and not stopped(args):
                step(warmup + i)
                i += 1
                if args.pause:
                    time.sleep(args.pause)
    ended = time.time_ns()
    checksum, more = finish()
    if args.profile:
        export(prof, args.profile, args.flops)
    result = {
        "workload": os.path.basename(sys.argv[0]),
        "torch": torch.__version__,
        "pid": os.getpid(),
        "iters": i,
        "begin_real_ns": began,
        "end_real_ns": ended,
        "checksum": checksum,
    }
    print(json.dumps({**result, **more}), flush=True)
    if args.linger:
        wait_line(False)
