# SPDX-License-Identifier: BSD-2-Clause
"""DistributedDataParallel over gloo, two ranks; this process is rank 0, rank 1 its child."""

import os
import subprocess
import sys
import tempfile

import protocol


def build(torch, args):
    dist = torch.distributed
    store = args.store
    child = None
    if args.rank == 0:
        args.settle *= 2
        store = os.path.join(tempfile.mkdtemp(prefix="kprof-test-"), "store")
        child = subprocess.Popen(
            [sys.executable, __file__, "--rank", "1", "--store", store, "--now"]
            + ["--iters", str(args.iters), "--settle", str(args.settle)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
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
            code = child.wait()
            if code:
                raise SystemExit(f"rank 1 ended with {code}")
            if os.path.exists(store):
                os.unlink(store)
            os.rmdir(os.path.dirname(store))
        return protocol.bits(*model.parameters()), {}

    return step, finish


def options(parser):
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--store")


if __name__ == "__main__":
    protocol.main(build, options)
