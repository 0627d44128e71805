#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Samples and stacks of the capture that tests/unit/sink/perfetto/pftrace leaves, as Perfetto's trace processor sees them.

    check_pftrace_stacks.py TRACE.pftrace[.gz]

Lines and source files, which that one (v52) passes over, are read by the messages of the `perfetto` package.
"""

import gzip

from perfetto.protos.perfetto.trace import perfetto_trace_pb2
from perfetto_sql import GZIP_MAGIC, TraceProcessor
import checks

START_NS = 10 * 10**9  # tests/lib/sink_fixture.h
SAMPLES = """
select ts, tid, pid, cpu_mode, ifnull(unwind_error, '') as error, callsite_id, perf_session_id as session
from perf_sample join thread using (utid) join process using (upid) order by ts
"""
SITES = """
select c.id, c.parent_id, f.name, m.name as module, m.build_id, f.rel_pc
from stack_profile_callsite c join stack_profile_frame f on f.id = c.frame_id
join stack_profile_mapping m on m.id = f.mapping
"""
COUNTS = "select ts, value, name from counter join track on track.id = track_id where type like 'perf_%'"

PYTHON = ("Net.forward", "/home/me/net.py", "", 0)
OUTER = ("at::outer", "/usr/lib/libtorch.so", "00ffa1", 0x1234)
INLINED = ("at::inlined_", "/usr/lib/libtorch.so", "00ffa1", 0x1234)
KERNEL = ("do_syscall_64", "/[kernel]", "", 0xffffffff81000000 - 2**64)
NAMELESS = ("libtorch.so+0x42", "/usr/lib/libtorch.so", "00ffa1", 0x42)
UNKNOWN = ("[unknown]", "/[unknown]", "", 0)
EXPECTED = [  # ns, tid, mode, error, outermost frame first, so far of this clock
    (1000, 7, "user", "", [PYTHON, OUTER, INLINED], ("cpu-clock", 10)),
    (2000, 7, "kernel", "", [PYTHON, OUTER, INLINED, KERNEL], ("cpu-clock", 30)),
    (3000, 8, "user", "", [PYTHON, OUTER, INLINED], ("cpu-clock", 60)),
    (4000, 8, "unknown", "", [NAMELESS], ("off-cpu", 500)),
    (5000, 7, "user", "unwind_info", [NAMELESS], ("cpu-clock", 100)),
    (6000, 7, "user", "memory_invalid", [UNKNOWN], ("cpu-clock", 150)),
]
LINES = {("Net.forward", "/home/me/net.py", 12), ("at::outer", "a.cpp", 9), ("at::inlined_", "a.h", 3),
         ("do_syscall_64", "", 0), ("libtorch.so+0x42", "", 0), ("[unknown]", "", 0)}


def seen_samples(tp):
    sites = {r["id"]: r for r in tp.query(SITES)}
    counts = {r["ts"]: (r["name"], r["value"]) for r in tp.query(COUNTS)}
    for row in tp.query(SAMPLES):
        frames, at = [], row["callsite_id"]
        while at is not None:
            site = sites[at]
            frames.insert(0, (site["name"], site["module"], site["build_id"], site["rel_pc"]))
            at = site["parent_id"]
        yield (row["ts"] - START_NS, row["tid"], row["cpu_mode"], row["error"], frames, counts[row["ts"]])


def seen_lines(path):
    with open(path, "rb") as file:
        data = file.read()
    trace = perfetto_trace_pb2.Trace()
    trace.ParseFromString(gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data)
    names, sources, lines = {}, {}, set()
    for packet in trace.packet:  # a sequence's numbers are its own
        key = packet.trusted_packet_sequence_id
        data = packet.interned_data
        names.update({(key, n.iid): n.str.decode() for n in data.function_names})
        sources.update({(key, n.iid): n.str.decode() for n in data.source_paths})
        lines.update((names[key, f.function_name_id], sources.get((key, f.source_path_iid), ""), f.line_number)
                     for f in data.frames)
    return lines


def check(path):
    with TraceProcessor(path) as tp:
        seen = list(seen_samples(tp))
    for ours, theirs in zip(EXPECTED, seen):
        if ours != theirs:
            raise checks.Wrong(f"expected {ours}, seen {theirs}")
    if len(seen) != len(EXPECTED):
        raise checks.Wrong(f"{len(seen)} samples, not {len(EXPECTED)}")
    if seen_lines(path) != LINES:
        raise checks.Wrong(f"lines: {seen_lines(path) ^ LINES}")
    return f"{len(seen)} samples, {len(LINES)} frames"


if __name__ == "__main__":
    checks.main("pftrace-stacks", check)
