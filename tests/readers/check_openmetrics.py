#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Both texts of /metrics, by the strict parsers of Prometheus' Python client: the same numbers in either, and those expected.

    check_openmetrics.py OPENMETRICS TEXT PAGE.md [daemon]

PAGE: docs/metrics.md, whose tables must have each family with its type and labels, and no other. daemon: the texts are of kprof
daemon itself: of two moments, with other numbers, and of what has not been there yet nothing is said.
"""

import re
import sys

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as open_parser
import checks

# What tests/workloads/webdaemon.c has set. A name's bytes that are no UTF-8, and its control characters, are replaced.
EXPECTED = {
    ("kprof_build_info", (("kernel", "6.1.0-made-up"), ("version", "0.1.0"))): 1,
    ("kprof_uptime_seconds", ()): 3600.5,
    ("kprof_cpu_seconds_total", (("part", "bpf"), ("session", "sampler"))): 2.5,
    ("kprof_overhead_ratio", (("part", "daemon"), ("session", "daemon"))): .0015,
    ("kprof_overhead_max_ratio", ()): .01,
    ("kprof_memory_max_bytes", ()): 262144000,
    ("kprof_samples_total", (("process", "python3"),)): 1000,
    ("kprof_samples_total", (("process", 'a"b\\c d\ufffd'),)): 5,
    ("kprof_operators_total", (("process", "python3"),)): 123456789,
    ("kprof_step_seconds_bucket", (("le", "0.005"), ("process", "python3"))): 1,
    ("kprof_step_seconds_bucket", (("le", "0.05"), ("process", "python3"))): 3,
    ("kprof_step_seconds_bucket", (("le", "0.25"), ("process", "python3"))): 5,
    ("kprof_step_seconds_bucket", (("le", "60.0"), ("process", "python3"))): 5,
    ("kprof_step_seconds_bucket", (("le", "+Inf"), ("process", "python3"))): 6,
    ("kprof_step_seconds_count", (("process", "python3"),)): 6,
    ("kprof_requests_total", (("request", "start"), ("result", "ok"))): 9,
    ("kprof_chunks_dropped_total", (("kind", "samples"), ("reason", "not_stored"))): 1,
}


def samples(families):
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families for s in f.samples}


def documented(path):
    """Name, type and labels of the families in the page's tables."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = re.match(r"\| `(kprof_\w+)` \| (\w+) \|([^|]*)\|", line)
            if row:
                found[row[1]] = (row[2], tuple(sorted(re.findall(r"`(\w+)`", row[3]))))
    return found


def check(path, text_path, page, of_daemon=None):
    with open(path, encoding="utf-8") as file:
        families = list(open_parser.text_fd_to_metric_families(file))
    with open(text_path, encoding="utf-8") as file:
        older = samples(text_parser.text_fd_to_metric_families(file))
    numbers = samples(families)
    for key, value in ({} if of_daemon else EXPECTED).items():
        if numbers.get(key) != value:
            raise checks.Wrong(f"{key} is {numbers.get(key)}, not {value}")
    if not of_daemon and numbers != older:
        raise checks.Wrong(f"the texts differ: {checks.difference(numbers, older)}")
    for f in families:
        if f.unit and not f.name.endswith("_" + f.unit):
            raise checks.Wrong(f"{f.name} is in {f.unit}")
    suffix = {"counter": "_total", "info": "_info"}
    shown = {f.name + suffix.get(f.type, ""):
             (f.type, tuple(sorted(f.samples[0].labels.keys() - {"le"}))) for f in families}
    page = documented(page)
    if of_daemon:
        page = {name: what for name, what in page.items() if name in shown}
    if shown != page:
        raise checks.Wrong(f"docs/metrics.md says otherwise: {checks.difference(shown, page)}")
    return f"{len(families)} families, {len(numbers)} samples"


if __name__ == "__main__":
    rest = sys.argv[2:]
    del sys.argv[2:]
    checks.main("openmetrics", lambda path: check(path, *rest))
