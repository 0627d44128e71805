# SPDX-License-Identifier: BSD-2-Clause
"""Two processes with a GPU each, that sum up over NCCL (scripts/gpu-check).

    allreduce.py [--now]
"""

import json
import os
import subprocess
import sys

RANKS, TIMES = 2, 20


def rank(number):
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(number)
    dist.init_process_group("nccl", rank=number, world_size=RANKS)
    x = torch.ones(1 << 20, device="cuda")
    for _ in range(TIMES):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    right = x[0].item() == float(RANKS**TIMES)
    dist.destroy_process_group()
    sys.exit(0 if right else 1)


def main():
    if "GPUCHECK_RANK" in os.environ:
        rank(int(os.environ["GPUCHECK_RANK"]))
    print(f"READY {os.getpid()}", flush=True)
    if "--now" not in sys.argv:
        sys.stdin.readline()
    here = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    ranks = [
        subprocess.Popen([sys.executable, os.path.realpath(__file__)], env={**here, "GPUCHECK_RANK": str(i)})
        for i in range(RANKS)
    ]
    ended = [r.wait() for r in ranks]
    print(json.dumps({"pid": os.getpid(), "ranks": RANKS, "times": TIMES, "right": not any(ended)}), flush=True)
    sys.exit(any(ended))


if __name__ == "__main__":
    main()
