# SPDX-License-Identifier: BSD-2-Clause
"""Collectives over gloo, two ranks; this process is rank 0, rank 1 its child.

Says what each rank communicated in the measured steps, in order: [name, elements in, elements out, type, group, number
of the collective in its group, when it was called (CLOCK_MONOTONIC), of a message between two the peer as it was given, root
and reduction], null where this PyTorch does not tell. --late: that rank sleeps for so long before a step's first collective.
"""

import json
import os
import tempfile
import time

import protocol

RANKS, PER_STEP = 2, 12
NAMES = {"torch.float32": "Float", "torch.int64": "Long", "torch.float64": "Double"}


class Collectives:
    def __init__(self, torch, args):
        self.torch, self.dist, self.args, self.log = torch, torch.distributed, args, []
        self.groups = [None, self.dist.new_group([0, 1])]

    def of_group(self, group):
        """The group's name and the number of its collectives so far."""
        c10d = self.dist.distributed_c10d
        group = group or c10d._get_default_group()
        world = getattr(c10d, "_world", None)  # since 2.0
        number = group._get_sequence_number_for_group() if world else 0
        return [world.pg_names[group], number] if world and number else [None, None]

    def ranks(self, group):
        """The group's ranks where C++ has a list of them, which older releases have not."""
        if group is None:
            return {"Process Group Ranks": [0, 1]}
        backend = hasattr(group, "_get_backend") and group._get_backend(self.torch.device("cpu"))
        ranks = getattr(getattr(backend, "options", None), "global_ranks_in_group", None)
        return {"Process Group Ranks": ranks} if ranks else {}

    def call(self, name, tensor, sizes, function, *arguments, group=None, options=None, **more):
        began = time.monotonic_ns()
        function(*arguments, group=group, **more)
        dtype = None if tensor is None else NAMES[str(tensor.dtype)]
        self.log.append([name, *sizes, dtype, *self.of_group(group), began, None, {**(options or {}), **self.ranks(group)}])

    def peer(self, name, tensor, function, *arguments, **peers):
        """A message between two; it has no number."""
        nr = tensor.numel()
        self.call(name, tensor, (nr, nr), function, tensor, *arguments)
        self.log[-1][5:] = None, self.log[-1][6], peers, self.ranks(None)

    def step(self, _):
        torch, dist, first = self.torch, self.dist, self.args.rank == 0
        if self.args.late == self.args.rank:
            time.sleep(self.args.late_ms / 1000)
        t, small, whole = torch.ones(4, 8), torch.ones(3), torch.zeros(6, dtype=torch.int64)
        rows = [torch.zeros(3) for _ in range(RANKS)]
        sum_, max_, root = {"Reduction": "SUM"}, {"Reduction": "MAX"}, {"Root Rank": 0}
        last, product = {"Root Rank": 1}, {"Root Rank": 1, "Reduction": "PRODUCT"}
        self.call("allreduce", t, (32, 32), dist.all_reduce, t, options=sum_)
        self.call("allreduce", t, (32, 32), dist.all_reduce, t.double(), dist.ReduceOp.MAX, group=self.groups[1], options=max_)
        self.log[-1][3] = "Double"
        self.call("broadcast", t, (32, 32), dist.broadcast, t, 1, options=last)
        self.call("reduce", t, (32, 32), dist.reduce, t, 1, dist.ReduceOp.PRODUCT, options=product)
        self.call("all_gather", small, (3, 6), dist.all_gather, rows, small)
        self.call("gather", small, (3, 6), dist.gather, small, rows if first else None, options=root)
        self.call("scatter", small, (6, 3), dist.scatter, small, rows if first else None, options=root)
        self.call("all_to_all", whole, (6, None), dist.all_to_all_single, whole.clone(), whole)
        if first:
            self.peer("send", small, dist.send, 1, destination=1)
            self.peer("send", small, dist.send, 1, destination=1)
            self.peer("recv", whole, dist.recv, 1, source=1)
        else:
            self.peer("recv", small, dist.recv, 0, source=0)
            self.peer("recvAnySource", small, dist.recv)
            self.peer("send", whole, dist.send, 0, destination=0)
        self.call("barrier", None, (None, None), dist.barrier)


def build(torch, args):
    dist = torch.distributed
    args.settle *= 2
    folder = tempfile.mkdtemp(prefix="kprof-test-")
    store, told = os.path.join(folder, "store"), os.path.join(folder, "told")
    child = protocol.fork_rank(args)
    args.settle_most = args.settle  # the two take as many steps
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", f"file://{store}", rank=args.rank, world_size=RANKS)
    collectives = Collectives(torch, args)

    def finish():
        calls = collectives.log[-args.iters * PER_STEP :]
        dist.barrier()
        if not child:
            with open(told, "w") as f:
                json.dump(calls, f)
            return "", {}
        protocol.wait_rank(child)
        with open(told) as f:
            of_child = json.load(f)
        for path in store, told:
            if os.path.exists(path):
                os.unlink(path)
        os.rmdir(folder)
        return "", {"pids": [os.getpid(), child], "calls": [calls, of_child]}

    return collectives.step, finish


def options(parser):
    parser.add_argument("--late", type=int, default=-1)
    parser.add_argument("--late-ms", type=int, default=100)


if __name__ == "__main__":
    protocol.main(build, options)
