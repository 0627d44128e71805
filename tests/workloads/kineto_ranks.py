# SPDX-License-Identifier: BSD-2-Clause
"""Ranks of a training over gloo, each with Kineto's poll thread: children of this process, which imports no PyTorch itself.

    KINETO_USE_DAEMON=1 kineto_ranks.py RANKS FOLDER

Says READY when all of them have met, and goes on until FOLDER/stop is there.
"""

import os
import sys


def rank_main(rank, ranks, folder, ready):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    a = torch.ones(32, 32)
    dist.barrier()
    os.write(ready, b".")
    stop = torch.zeros(1)
    while not stop:
        for _ in range(5):
            a = torch.tanh(a @ a)
        stop[0] = rank == 0 and os.path.exists(f"{folder}/stop")
        dist.all_reduce(stop)
        if rank == 0:
            import time
            time.sleep(0.02)
    dist.destroy_process_group()


def main():
    ranks, folder = int(sys.argv[1]), sys.argv[2]
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    here, ready = os.pipe()
    children = []
    for rank in range(ranks):
        child = os.fork()
        if not child:
            rank_main(rank, ranks, folder, ready)
            return
        children.append(child)
    os.close(ready)
    if sum(len(os.read(here, 1)) for _ in range(ranks)) == ranks:
        print(f"READY {os.getpid()}", flush=True)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(max(codes, key=abs))


main()
