# SPDX-License-Identifier: BSD-2-Clause
"""One rank of a training over gloo, as RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment say.

    RANK=0 WORLD_SIZE=8 … rank.py FILE

Says READY when all ranks have met, and goes on until rank 0 finds FILE. It does little, so that eight are no load for two CPUs.
"""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
    rank = dist.get_rank()
    a, gradient, stop = torch.ones(32, 32), torch.ones(1000), torch.zeros(1)
    dist.barrier()
    print(f"READY {os.getpid()}", flush=True)
    while not stop:
        for _ in range(5):
            a = torch.tanh(a @ a)
        dist.all_reduce(gradient)
        gradient /= dist.get_world_size()
        stop[0] = rank == 0 and os.path.exists(sys.argv[1])
        dist.all_reduce(stop)
        if rank == 0:
            time.sleep(0.08)
    dist.destroy_process_group()


main()
