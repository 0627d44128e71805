#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What kprof lacks when a container's root lacks a capability, found by recording without each in turn.

    capabilities.py KPROF OPDRIVER FOLDER CAPABILITY…

Prints a line of Markdown for the whole set, and one for each of the capabilities: what `kprof sample` and `kprof attach`
do without it. docs/kubernetes.md has these lines. The targets: a program of another user's that nobody else may read, one
whose file is deleted, and two that call the library that stands for PyTorch, which is private or deleted in the same way.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

NOBODY = 65534
BURN = """
#include <cstdio>
#include <unistd.h>
namespace work {
__attribute__((noinline)) unsigned long burn(unsigned long n)
{
	volatile unsigned long s = n;
	for (unsigned long i = 0; i < 1000000; i++)
		s = s + i;
	return s;
}
}
int main()
{
	printf("READY %d\\n", getpid());
	fflush(stdout);
	for (unsigned long x = 1;;)
		x += work::burn(x);
}
"""
PRIVATE = "files that only their owner may read"
NAMELESS = "files that have no name any more"


class Target:
    """A program that says READY, with its files in a folder of its own."""

    def __init__(self, folder, sources, arguments=(), user=0, deleted=False):
        os.mkdir(folder)
        for source in sources:
            shutil.copy(source, folder)
        for name in [folder] + [os.path.join(folder, name) for name in os.listdir(folder)]:
            os.chown(name, user, user)
            os.chmod(name, 0o700)
        program = os.path.join(folder, os.path.basename(sources[0]))
        self.process = subprocess.Popen([program, *arguments], user=user, group=user, extra_groups=[],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().startswith("READY")
        self.pid = self.process.pid
        if deleted:
            shutil.rmtree(folder)

    def end(self):
        self.process.kill()
        self.process.wait()


def confined(names):
    """The command that leaves root these capabilities, as a container does: nothing gives more."""
    keep = ",".join(["-all"] + ["+" + name.removeprefix("CAP_").lower() for name in names])
    return ["setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=" + keep]


def refused(status, said, name):
    """kprof ended at once, and said for want of what; hint: there is a way out."""
    if status == 0:
        return None
    cause = re.search(r"^kprof: (.*)$", said, re.M)[1]
    assert name and name in cause and "\nhint: " in said, said
    return f"refused: `{cause}` (exit status {status})"


def told(missing, said, capability):
    """A loss, of which kprof must have said that this capability is why."""
    assert capability in said, f"no word of {capability}: {said}"
    return missing


def sample(kprof, names, name, folder, targets):
    private, deleted = targets
    out = os.path.join(folder, "sample.kprof")
    ran = subprocess.run(confined(names) + [kprof, "sample", "-F", "499", "-d", "1500ms", "-o", out, "-p",
                                            f"{private.pid},{deleted.pid}"], capture_output=True, text=True)
    why = refused(ran.returncode, ran.stderr, name)
    if why:
        return why
    subprocess.run([kprof, "export", out, "-o", out + ".folded"], check=True, stdout=subprocess.DEVNULL)
    with open(out + ".folded", encoding="utf-8") as file:
        folded = file.read()
    lost = []
    for target, what in ((private, PRIVATE), (deleted, NAMELESS)):
        assert f"({target.pid})" in folded, "it was not sampled at all"
        if not re.search(rf"\({target.pid}\);.*work::burn", folded):
            lost.append(told("stacks end in " + what, ran.stderr, name))
    if "stay mangled" in ran.stderr:
        lost.append(told("names of C++ and Rust stay mangled", ran.stderr, name))
    if "lines are missing" in ran.stderr:
        lost.append("there are no lines")
    return ", ".join(lost) or "nothing"


def attach(kprof, names, name, folder, opdriver):
    files = [opdriver, os.path.join(os.path.dirname(opdriver), "libtorch_cpu.so")]
    work = ["count", "--n", "100", "--linger"]
    targets = [Target(os.path.join(folder, "own"), files, work, user=NOBODY),
               Target(os.path.join(folder, "gone"), files, work, deleted=True)]
    out = os.path.join(folder, "attach.kprof")
    ran = subprocess.Popen(confined(names) + [kprof, "attach", "-v", "-o", out, "-p", ",".join(str(t.pid) for t in targets)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = ""
    while "kprof: recording\n" not in said:
        line = ran.stderr.readline()
        if not line:
            break
        said += line
    known = {}
    for t in targets:
        t.process.stdin.write("go\n")
        t.process.stdin.flush()
        known[t.pid] = sum(json.loads(t.process.stdout.readline())["counts"].values())
    if ran.poll() is None:
        ran.send_signal(signal.SIGINT)
    said += ran.stderr.read()
    ran.wait()
    for t in targets:
        t.end()
    shutil.rmtree(os.path.join(folder, "own"))
    why = refused(ran.returncode, said, name)
    if why:
        return why
    rows = json.loads(subprocess.run([kprof, "report", "--by", "process", "--json", out], check=True, stdout=subprocess.PIPE).stdout)["rows"]
    lost = []
    for t, what in zip(targets, (PRIVATE, NAMELESS)):
        calls = sum(row["calls"] for row in rows if row["pid"] == t.pid)
        assert calls in (0, known[t.pid]), f"{calls} of {known[t.pid]} calls: {said}"
        if not calls:
            lost.append(told("no probes in " + what, said, name))
    return ", ".join(lost) or "nothing"


def main():
    kprof, opdriver, folder, *capabilities = sys.argv[1:]
    os.chmod(folder, 0o755)
    source, burn = os.path.join(folder, "burn.cpp"), os.path.join(folder, "burn")
    with open(source, "w", encoding="utf-8") as file:
        file.write(BURN)
    subprocess.run(["g++", "-O1", "-g", "-o", burn, source], check=True)
    targets = [Target(os.path.join(folder, "private"), [burn], user=NOBODY),
               Target(os.path.join(folder, "deleted"), [burn], deleted=True)]
    try:
        for name in [None] + capabilities:
            names = [c for c in capabilities if c != name]
            print(f"| {f'`{name}`' if name else 'none'} | {sample(kprof, names, name, folder, targets)} "
                  f"| {attach(kprof, names, name, folder, opdriver)} |", flush=True)
    finally:
        for t in targets:
            t.end()


main()
