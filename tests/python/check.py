# SPDX-License-Identifier: BSD-2-Clause
"""check.py PYSTACKS [sub] [spin] [bpf] [native] [layout=PROGRAM] -- PYTHON…: runs stacks.py by that interpreter, and holds what
pystacks reads from outside against what the interpreter says of itself, frame by frame."""

import json
import os
import subprocess
import sys

LAST = 256
HERE = os.path.dirname(os.path.abspath(__file__))


def fail(text):
    print("FAIL: " + text)
    sys.exit(1)


def outside(pystacks, pid, *how):
    out = subprocess.run([pystacks, str(pid), *how], stdout=subprocess.PIPE, timeout=120, check=False)
    if out.returncode:
        fail("pystacks %s ended with %d" % (" ".join(how), out.returncode))
    return json.loads(out.stdout)


def expected_frames(name, said):
    frames = said["threads"][name]["frames"]
    if name != "subinterpreter":
        return frames
    # What the second interpreter runs, in front of what the first one says.
    file = "<script>" if said["version"] >= 0x030e0000 else "<string>"
    return [["f", file, 3], ["g", file, 6], ["<module>", file, 7], *frames]


def compare(said, seen, kind):
    by_thread = {t["thread"]: t for t in seen["threads"]}
    if seen["version"] >> 16 != said["version"] >> 16:
        fail("%x is taken for %x" % (said["version"], seen["version"]))
    wrong = 0
    for name, thread in said["threads"].items():
        got = by_thread.get(str(thread["id"]))
        want = expected_frames(name, said)
        if not got:
            print("%s: %s: no such thread seen" % (kind, name))
            wrong += 1
            continue
        if got["frames"] != want[:LAST]:
            wrong += 1
            print("%s: %s: %d frames, not %d" % (kind, name, len(got["frames"]), len(want)))
            for i in range(max(len(got["frames"]), min(len(want), LAST))):
                a = want[i] if i < len(want) else None
                b = got["frames"][i] if i < len(got["frames"]) else None
                if a != b:
                    print("   #%d: %s, not %s" % (i, b, a))
        if got["cut"] != (len(want) > LAST) or got["bad"]:
            wrong += 1
            print("%s: %s: cut %s, bad %s" % (kind, name, got["cut"], got["bad"]))
    if wrong:
        fail("%s: %d differ" % (kind, wrong))
    print("%s: %d threads, %d frames" % (kind, len(said["threads"]),
                                         sum(min(LAST, len(expected_frames(n, said))) for n in said["threads"])))


def compare_names(said, seen):
    """threading.enumerate()'s names, whatever form the objects and their attributes' dicts have."""
    if seen["names"] != said["names"]:
        fail("names: %s, not %s" % (seen["names"], said["names"]))
    print("names: %d" % len(said["names"]))


def native_problem(name, got):
    if got["cut"]:
        return ""
    if got["evals"] != got["groups"] or not got["evals"]:
        return "%s: %d eval frames, %d groups of Python frames" % (name, got["evals"], got["groups"])
    # time.sleep() within, the thread's start without, C code between where there is a callback.
    if not (got["merged"].startswith("np") and got["merged"].endswith("pn")):
        return "%s: %s" % (name, got["merged"])
    if name in ("callbacks", "from_c") and got["merged"].strip("n").count("n") < 1:
        return "%s: no native frames between: %s" % (name, got["merged"])
    return ""


def compare_native(said, pystacks, pid):
    """The interpreter's C frames are as many as the groups of Python frames, and each thread begins and ends natively."""
    wrong = list(said["threads"])
    # They wake a hundred times a second: one may just be on its way from one sleep to the next.
    for _ in range(3):
        by_thread = {t["thread"]: t for t in outside(pystacks, pid, "native")["threads"]}
        problems = {n: native_problem(n, by_thread[str(said["threads"][n]["id"])]) for n in wrong}
        wrong = [n for n in wrong if problems[n]]
        if not wrong:
            break
        print("\n".join(problems[n] for n in wrong))
    if wrong:
        fail("native: %s" % ", ".join(wrong))
    print("native: " + " ".join("%s=%s" % (n, by_thread[str(t["id"])]["merged"])
                                for n, t in said["threads"].items() if n in ("recursion", "callbacks", "from_c")))


def compare_layout(pystacks, pid, headers):
    """headers: tests/python/layout.c, compiled with the interpreter's own."""
    got, want = (subprocess.run(c, stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
                 for c in ([pystacks, str(pid), "layout"], [headers]))
    if set(got) != set(want):
        fail("layout: %s, not %s" % (sorted(set(got) - set(want)), sorted(set(want) - set(got))))
    print("layout: %d fields" % len(got))


def compare_gil(said, pystacks, pid):
    """Three threads contend for it, a fourth sleeps."""
    sleeper = str(said["threads"]["recursion"]["id"])
    held, waited, both, sleeps = set(), set(), 0, 0
    for _ in range(60):
        seen = outside(pystacks, pid)
        for t in seen["threads"]:
            spins = t["thread"] != sleeper and t["frames"] and t["frames"][0][0] == "spin"
            if said["free"] and not t["no_gil"]:
                fail("a GIL, where there is none")
            if not spins:
                sleeps += t["thread"] == sleeper and t["holds"]
                continue
            both += t["holds"] and t["waits"]
            if t["holds"]:
                held.add(t["thread"])
            if t["waits"]:
                waited.add(t["thread"])
        if len(held) == 3 and len(waited) == 3:
            break
    if said["free"]:
        if held or waited:
            fail("threads hold or wait for a GIL that there is not")
    elif len(held) < 3 or len(waited) < 3 or both or sleeps > 3:
        fail("held by %d, waited for by %d, both %d, by the sleeping one %d" % (len(held), len(waited), both, sleeps))
    print("gil: held by %d, waited for by %d" % (len(held), len(waited)))


def main():
    split = sys.argv.index("--")
    pystacks, *modes = sys.argv[1:split]
    target = sys.argv[split + 1:]
    arguments = [m for m in modes if m in ("sub", "spin")]
    process = subprocess.Popen([*target, os.environ.get("PYSTACKS_SCRIPT", HERE + "/stacks.py"), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        line = process.stdout.readline()
        if not line:
            fail("the program ended")
        said = json.loads(line)
        pid = process.pid
        compare(said, outside(pystacks, pid), "user space")
        compare_names(said, outside(pystacks, pid))
        if "bpf" in modes:
            compare(said, outside(pystacks, pid, "bpf", *(str(t["id"]) for t in said["threads"].values())), "kernel")
        if "native" in modes:
            compare_native(said, pystacks, pid)
        for mode in modes:
            if mode.startswith("layout="):
                compare_layout(pystacks, pid, mode.split("=", 1)[1])
        if "spin" in modes:
            compare_gil(said, pystacks, pid)
        process.stdin.close()
        process.wait(60)
    finally:
        process.kill()
    if process.returncode:
        fail("the program ended with %d" % process.returncode)


main()
