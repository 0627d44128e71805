# SPDX-License-Identifier: BSD-2-Clause
"""DistributedDataParallel over gloo, two ranks; this process is rank 0, rank 1 its child."""

import os
import tempfile

import protocol


def build(torch, args):
    dist = torch.distributed
    args.settle *= 2
    store = os.path.join(tempfile.mkdtemp(prefix="kprof-test-"), "store")
    child = protocol.fork_rank(args)
    args.settle_most = args.settle  # the two take as many steps
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", f"file://{store}", rank=args.rank, world_size=2)
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    x = torch.randn(8, 32) * (args.rank + 1)

    def step(_):
        optimizer.zero_grad()
        ddp(x).square().mean().backward()
        optimizer.step()

    def finish():
        dist.barrier()
        if child:
            protocol.wait_rank(child)
            if os.path.exists(store):
                os.unlink(store)
            os.rmdir(os.path.dirname(store))
        return protocol.bits(*model.parameters()), {}

    return step, finish


if __name__ == "__main__":
    protocol.main(build)
