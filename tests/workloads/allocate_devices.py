# SPDX-License-Identifier: BSD-2-Clause
"""What the allocator of a GPU says to PyTorch's profilers, said by this program: no GPU is needed for it.

    allocate_devices.py --profile OUT.json

Calls c10::reportMemoryUsageToProfiler() and c10::reportOutOfMemoryToProfiler() as CUDA's caching allocator does, for three
devices in two threads, inside of annotations, beside allocations of the CPU's memory, one of which is too large. The JSON
has "reports": of each [thread, device type, device id, address, bytes, allocated, reserved], and "failed": the same without
an address. OUT.json has what torch.profiler(profile_memory=True) recorded of the main thread: "allocations" as
"reports", but for the thread; "failed": how often; "sums": by operator and annotation, of each type of device the bytes
of its own. The sums are those of step 100."""

import ctypes
import json
import os
import threading

import protocol

CPU, CUDA, XPU = 0, 1, 12
TOO_MUCH = 1 << 50
STEP = "ProfilerStep#100"


class Reporter:
    def __init__(self):
        c10 = ctypes.CDLL(self.library())
        self.of_use = self.function(c10, "_ZN3c1027reportMemoryUsageToProfilerEPvl{}NS_6DeviceE")
        self.of_failure = self.function(c10, "_ZN3c1027reportOutOfMemoryToProfilerEl{}NS_6DeviceE")
        self.reports, self.failed, self.allocated, self.lock = [], [], {}, threading.Lock()
        self.end = 0x7F0000000000

    @staticmethod
    def library():
        with open("/proc/self/maps") as f:
            return next(line.split()[-1] for line in f if "/libc10.so" in line)

    @staticmethod
    def function(library, name):
        for types in ("mm", "ll"):  # before 2.0 the sums were signed
            try:
                return getattr(library, name.format(types))
            except AttributeError:
                continue
        raise SystemExit(f"{name} is not there")

    @staticmethod
    def device(kind, number):
        return ctypes.c_uint64(0xABCD << 16 | number << 8 | kind)  # nobody says what the upper bytes are

    def room(self):
        """Where nothing was allocated yet."""
        with self.lock:
            self.end += 1 << 30
        return self.end

    def use(self, kind, number, addr, nbytes):
        with self.lock:
            allocated = self.allocated.get((kind, number), 7 << 40) + nbytes
            self.allocated[kind, number] = allocated
            reserved = (allocated >> 21) + 1 << 21
            self.of_use(*map(ctypes.c_int64, (addr, nbytes, allocated, reserved)), self.device(kind, number))
            self.reports.append([threading.get_native_id(), kind, number, addr, nbytes, allocated, reserved])

    def fail(self, kind, number, nbytes):
        with self.lock:
            allocated = self.allocated[kind, number]
            self.of_failure(*map(ctypes.c_int64, (nbytes, allocated, allocated + 5)), self.device(kind, number))
            self.failed.append([threading.get_native_id(), kind, number, nbytes, allocated, allocated + 5])


def work(torch, reporter, number, times):
    base = reporter.room()
    for i in range(times):
        with torch.profiler.record_function("outer"):
            reporter.use(CUDA, number, base + i * 512, 512 * (i + 1))
            with torch.profiler.record_function("inner"):
                reporter.use(CUDA, number, base + (i << 20) + 1, 4096)
                reporter.use(XPU, 0, base + (i << 20) + 2, 100 + i)
                torch.ones(3)
                if i % 2:
                    reporter.use(CUDA, number, base + (i << 20) + 1, -4096)
            if i % 3 == 0:
                reporter.use(CUDA, number, base + i * 512, -512 * (i + 1))
        reporter.use(XPU, 0, base + (i << 20) + 2, -100 - i)
        if i % 10 == 0:
            reporter.use(CUDA, number, base - 64, -33)  # of before


def failures(torch, reporter):
    with torch.profiler.record_function("failing"):
        reporter.fail(CUDA, 0, 1 << 45)
    try:
        torch.empty(TOO_MUCH, dtype=torch.uint8)
        raise SystemExit("there is too much memory")
    except RuntimeError:
        pass


def of_torch(prof):
    """What torch.profiler's tree has of the main thread."""
    found = {"allocations": [], "failed": 0, "sums": {}}

    def walk(event, parent, in_step=False):
        fields = event.extra_fields
        if event.tag.name == "Allocation":
            kind = {"cpu": CPU, "cuda": CUDA, "xpu": XPU}[fields.device.type]
            if kind != CPU:
                found["allocations"].append([kind, fields.device.index, fields.ptr, fields.alloc_size,
                                             fields.total_allocated, fields.total_reserved])
            if in_step:
                sums = found["sums"].setdefault(parent, {})
                sums[kind] = sums.get(kind, 0) + fields.alloc_size
        elif event.name == "[OutOfMemory]":
            found["failed"] += 1
        for child in event.children:
            walk(child, event.name, in_step or event.name == STEP)

    for root in prof.profiler.kineto_results.experimental_event_tree():
        walk(root, None)
    return found


def main():
    args = protocol.arguments()
    import torch

    torch.set_num_threads(1)
    reporter = Reporter()
    torch.empty(1)
    protocol.ready()
    protocol.wait_line(True)
    protocol.settle(lambda i: work(torch, reporter, 0, 1), 0, protocol.SETTLE_ROUNDS, protocol.SETTLE_MOST_ROUNDS)
    reporter.reports.clear()
    step = torch.profiler.record_function(STEP)  # in older releases this allocates
    with torch.profiler.record_function("window"):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as prof:
            with step:
                work(torch, reporter, 0, 50)
            del step  # in 1.13 it ends with its object
            failures(torch, reporter)
        other = threading.Thread(target=work, args=(torch, reporter, 3, 50))
        other.start()
        other.join()
    with open(args.profile, "w") as f:
        json.dump(of_torch(prof), f)
    print(json.dumps({"pid": os.getpid(), "reports": reporter.reports, "failed": reporter.failed,
                      "too_much": TOO_MUCH}), flush=True)
    if args.linger:
        protocol.wait_line(False)


if __name__ == "__main__":
    main()
