#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A trace of opencl_ops.py: each step's commands are that step's, by "External id", and nobody else's.

    check_opencl_ops.py TRACE.json RESULT.json
"""

import collections
import json
import sys

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def main():
    trace, result = (json.load(open(path)) for path in sys.argv[1:3])
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X" and "args" in e]
    steps = {e["args"]["External id"]: e["name"] for e in spans if e["name"].startswith("opencl step ")}
    made = collections.Counter(steps.get(e["args"].get("External id")) for e in spans if e["cat"] in DEVICE)
    # The last ones: probes stood from before they began.
    last = sorted(steps.values(), key=lambda name: int(name.split()[-1]))[-result["iters"] :]
    wrong = {name: made[name] for name in last if made[name] != result["commands_each"]}
    if len(last) != result["iters"] or wrong:
        sys.exit(f"check_opencl_ops: of {len(last)} steps, not {result['commands_each']} commands: {wrong}")
    names = collections.Counter(e["name"] for e in spans if e["cat"] == "kernel")
    if set(names) != {"add", "scale"}:
        sys.exit(f"check_opencl_ops: kernels {dict(names)}")
    print(f"{len(last)} steps with {result['commands_each']} commands each")


if __name__ == "__main__":
    main()
