# SPDX-License-Identifier: BSD-2-Clause
"""What a daemon costs, from outside: a line of JSON for each second.

    daemon_cost.py PID SECONDS [CGROUP]    of this process and all that it has begun
    daemon_cost.py new                     makes a cgroup that counts CPU time, and prints its folder; fails where none can be made

CPU time is the cgroup's where there is one: with processes that live for a moment only. Else what /proc has, to the nanosecond,
of those that live, and what the kernel has added up of those that were waited for, to its tick. BPF programs' run time, and what
maps take, are what the kernel says of each descriptor that the processes have. Memory is theirs by shares (PSS).

    ns       since the line before
    cpu_ns   of the processes
    bpf_ns   of the kernel's programs
    busy_ns  of the whole machine's CPUs
    pss, kernel    bytes
    processes
"""

import ctypes
import json
import os
import sys
import time

TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
BPF_ENABLE_STATS = 32


def count_run_times():
    """The kernel counts while the descriptor is open."""
    attr = (ctypes.c_uint32 * 32)(0)  # BPF_STATS_RUN_TIME
    fd = ctypes.CDLL(None, use_errno=True).syscall(BPF_SYSCALL, BPF_ENABLE_STATS, attr, ctypes.sizeof(attr))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "the kernel does not count what BPF programs take")
    return fd


def new_cgroup():
    for top in ("/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"):
        path = f"{top}/kprof-cost-{os.getpid()}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        if os.path.exists(f"{path}/cgroup.procs") and cgroup_ns(path) is not None:
            return path
        os.rmdir(path)
    return None


def cgroup_ns(path):
    try:
        with open(f"{path}/cpuacct.usage", encoding="ascii") as f:
            return int(f.read())
    except OSError:
        pass
    try:
        with open(f"{path}/cpu.stat", encoding="ascii") as f:
            return int(dict(line.split() for line in f)["usage_usec"]) * 1000
    except (OSError, KeyError):
        return None


def text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def fields(of):
    """name → value of lines `name: value`."""
    return dict(line.split(":", 1) for line in of.splitlines() if ":" in line)


def family(pid):
    """The process and all below it."""
    found = [pid]
    for p in found:
        for task in ls(f"/proc/{p}/task"):
            found += [int(c) for c in text(f"/proc/{p}/task/{task}/children").split()]
    return found


def ls(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def live_ns(pid):
    return sum(int(text(f"/proc/{pid}/task/{t}/schedstat").split()[:1] and text(f"/proc/{pid}/task/{t}/schedstat").split()[0] or 0)
               for t in ls(f"/proc/{pid}/task"))


class Watch:
    def __init__(self, pid, cgroup):
        self.pid, self.cgroup = pid, cgroup
        self.programs = {}  # id → run time
        self.lives = {}  # pid → CPU time

    def cpu_ns(self, pids):
        if self.cgroup:
            return cgroup_ns(self.cgroup)
        for pid in pids:
            self.lives[pid] = max(live_ns(pid), self.lives.get(pid, 0))
        return sum(self.lives.values())

    def kernel(self, pids):
        """(run time of all programs, bytes of all maps that are there)"""
        maps = {}
        for pid in pids:
            for fd in ls(f"/proc/{pid}/fd"):
                try:
                    link = os.readlink(f"/proc/{pid}/fd/{fd}")
                except OSError:
                    continue
                if link not in ("anon_inode:bpf-map", "anon_inode:bpf-prog"):
                    continue
                info = fields(text(f"/proc/{pid}/fdinfo/{fd}"))
                if "prog_id" in info and "run_time_ns" in info:
                    self.programs[int(info["prog_id"])] = int(info["run_time_ns"])
                elif "map_id" in info:
                    maps[int(info["map_id"])] = int(info["memlock"])
        return sum(self.programs.values()), sum(maps.values())

    def reading(self):
        pids = family(self.pid)
        bpf_ns, kernel = self.kernel(pids)
        pss = sum(int(fields(text(f"/proc/{p}/smaps_rollup")).get("Pss", "0").split()[0]) * 1024 for p in pids)
        busy = [int(n) for n in text("/proc/stat").split("\n", 1)[0].split()[1:9]]
        return {
            "at": time.monotonic_ns(), "cpu_ns": self.cpu_ns(pids), "bpf_ns": bpf_ns, "pss": pss, "kernel": kernel,
            "busy_ns": (sum(busy) - busy[3] - busy[4] - busy[7]) * TICK_NS, "processes": len(pids),
        }  # fmt: skip


def main():
    if sys.argv[1] == "new":
        path = new_cgroup()
        print(path or "")
        return not path
    counting = count_run_times()
    watch = Watch(int(sys.argv[1]), sys.argv[3] if len(sys.argv) > 3 else None)
    before = watch.reading()
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end and os.path.exists(f"/proc/{watch.pid}"):
        time.sleep(1 - (time.monotonic_ns() - before["at"]) / 1e9 % 1)
        r = watch.reading()
        line = {k: r[k] - before[k] for k in ("cpu_ns", "bpf_ns", "busy_ns")}
        line.update(ns=r["at"] - before["at"], pss=r["pss"], kernel=r["kernel"], processes=r["processes"])
        print(json.dumps(line), flush=True)
        before = r
    os.close(counting)
    return 0


if __name__ == "__main__":
    sys.exit(main())
