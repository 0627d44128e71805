# SPDX-License-Identifier: BSD-2-Clause
"""Much of everything at once against a daemon, for a time. The daemon is begun by this script, since it is killed, too.

    soak_daemon.py KPROF STATE SOCKET SECONDS SEED LOG [KILL]

On a slow machine, longer, until some of everything was done. Programs come and go, users ask, some slowly, what is recorded ends in the middle; with KILL, processes of the daemon's, and the
daemon, are killed at random moments, and begun anew. Fails where the daemon answers what is no answer, where it or one of its
processes ends by itself, where it does not end when asked to, or leaves something behind. Prints what it did, in a line of JSON.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

KPROF, STATE, SOCKET, SECONDS, SEED, LOG = sys.argv[1:7]
KILL = len(sys.argv) > 7
CLIENTS, TARGETS, STORM = 64, 6, 0.05
# so that a test that runs beside others does not wait for long; and no answer is later than that
PATIENCE_S = 60
END = time.monotonic() + float(SECONDS)
MOST_LATE_S = 120
chance = random.Random(int(SEED))
did = {"asked": 0, "refused": 0, "slow": 0, "programs": 0, "killed": 0, "reloads": 0, "begun": 0, "no_answer": 0, "recordings": 0}
wrong = []
lock = threading.Lock()
targets = {}
daemon = None
killing = threading.Event()  # the daemon is not there, or may not be
ids = []


def count(what):
    with lock:
        did[what] += 1


def enough():
    return did["asked"] > 200 and did["programs"] > 500 and did["recordings"] > 5 and (not KILL or did["killed"] > 1)


def goes_on():
    now = time.monotonic()
    return (now < END or (now < END + MOST_LATE_S and not enough())) and not wrong


# ---- the daemon ----


def begin_daemon():
    global daemon
    with open(LOG, "ab") as log:
        daemon = subprocess.Popen(
            [KPROF, "daemon", "--state", STATE, "--socket", SOCKET, "--config", "/dev/null", "--min-free", "1M", "--chunk", "2s",
             "--watch", "kprof-soaked", "--flight-chunk", "1s", "--max-overhead", "20%"],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL)  # fmt: skip
    count("begun")
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if ask({"do": "list"}):
                killing.clear()
                return
        except OSError:
            time.sleep(0.05)
    wrong.append("the daemon does not answer once it is begun")


def ask(question, slowly=False):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(PATIENCE_S)
        s.connect(SOCKET)
        s.sendall(json.dumps(question).encode() + b"\n")
        if slowly:
            time.sleep(chance.random() * 2)
        answer = b""
        while not answer.endswith(b"\n"):
            # a descriptor may come along, and is closed
            piece, files, _, _ = socket.recv_fds(s, 64 if slowly else 65536, 4)
            for f in files:
                os.close(f)
            if not piece:
                return None
            answer += piece
    return json.loads(answer)


# ---- clients ----


def question():
    pid = chance.choice(list(targets) or [1])
    known = chance.choice(ids[-20:] or ["none"])
    return chance.choice([
        {"do": "list"}, {"do": "status"}, {"do": "status", "id": known}, {"do": "stop", "pid": pid}, {"do": "stop", "id": known},
        {"do": "get", "id": known}, {"do": "cancel", "id": known}, {"do": "start", "id": known},
        {"do": chance.choice(["start", "prepare"]), "options": ["-p", str(pid), "-d", "1s"]},
    ])  # fmt: skip


def client():
    while goes_on():
        q, slowly = question(), chance.random() < 0.1
        if "options" in q and chance.random() < 0.8:  # each is a process, and there may be 64
            continue
        try:
            a = ask(q, slowly)
        except (OSError, TimeoutError) as e:
            if not killing.is_set() and isinstance(e, TimeoutError):
                wrong.append(f"no answer in {PATIENCE_S} s: {q}")
            count("no_answer")
            time.sleep(0.1)
            continue
        count("slow" if slowly else "asked")
        if a is None:
            count("no_answer")
        elif not a.get("ok"):
            count("refused")
            if not a.get("error"):
                wrong.append(f"{q} was refused without a cause: {a}")
        elif q["do"] in ("start", "prepare") and a.get("id"):
            ids.append(a["id"])
            count("recordings")
        time.sleep(chance.random() * 1.5)


# ---- what runs on the machine ----


def program():
    """Forks and execs, a moment of work, and ends in some way."""
    end = chance.choice(["exit", "kill -SEGV $$", "kill -KILL $$", "exec true"])
    return ["sh", "-c", f"(true); /bin/true; (/bin/true & exec /bin/true); {end}"]


def storm():
    while goes_on():
        p = subprocess.Popen(program(), stderr=subprocess.DEVNULL)
        p.wait()
        with lock:
            did["programs"] += 5
        time.sleep(STORM)


def target():
    """One of those that clients have recorded; the flight recorder watches it. It is killed in the middle."""
    while goes_on():
        p = subprocess.Popen([os.path.join(os.path.dirname(STATE), "kprof-soaked"), "600"], stdin=subprocess.DEVNULL)
        targets[p.pid] = p
        end = time.monotonic() + 1 + chance.random() * 6
        while goes_on() and time.monotonic() < end:
            time.sleep(0.1)
        targets.pop(p.pid, None)
        p.kill()
        p.wait()


# ---- what is done to the daemon ----


def children():
    try:
        with open(f"/proc/{daemon.pid}/task/{daemon.pid}/children", encoding="ascii") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def kill_daemon():
    killing.set()
    daemon.kill()
    daemon.wait()
    count("killed")
    begin_daemon()


def chaos():
    first = [0.5, 0.9, 0.5]  # whatever chance says, a child and the daemon are killed
    while goes_on():
        time.sleep(0.5 + chance.random() * 3)
        if daemon.poll() is not None:
            wrong.append(f"the daemon ended by itself: {daemon.returncode}")
            return
        what = first.pop() if first else chance.random()
        if not KILL or what < 0.4:
            daemon.send_signal(signal.SIGHUP)
            count("reloads")
        elif what < 0.85:
            pids = children()
            if pids:
                try:
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    count("killed")
                except OSError:
                    pass
        else:
            kill_daemon()


# ---- what is left ----


def text(path):
    try:
        with open(path, "rb") as f:
            return f.read().decode(errors="replace")
    except OSError:
        return ""


def memory(pids):
    """PSS of these processes, in bytes."""
    found = 0
    for p in pids:
        for line in text(f"/proc/{p}/smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                found += int(line.split()[1]) * 1024
    return found


def of_daemon(pid):
    """A process of any of the daemons of this test."""
    return STATE.encode() in text(f"/proc/{pid}/cmdline").encode() and "kprof" in text(f"/proc/{pid}/comm")


def left_over():
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]
    return [p for p in pids if of_daemon(p)]


def end_daemon():
    daemon.terminate()
    try:
        if daemon.wait(PATIENCE_S):
            wrong.append(f"the daemon ended with {daemon.returncode}")
    except subprocess.TimeoutExpired:
        wrong.append("the daemon does not end")
    end = time.monotonic() + PATIENCE_S
    while left_over() and time.monotonic() < end:
        time.sleep(0.1)
    for p in left_over():
        wrong.append(f"left: process {p} {text(f'/proc/{p}/comm').strip()}")
    if os.path.exists(SOCKET):
        wrong.append("the socket is left")


def ended_by_themselves():
    """Recorders that died, and not by this script."""
    for line in text(LOG).splitlines():
        try:
            m = json.loads(line)
        except ValueError:
            wrong.append(f"in the log: {line[:200]}")
            continue
        if m["event"] == "recorder_ended" and m.get("signal", 9) != 9:
            wrong.append(f"by signal {m['signal']}: {m['message']}")
        if "ended by signal" in m["message"] and "signal 9" not in m["message"]:
            wrong.append(m["message"])


def main():
    begin_daemon()
    threads = [threading.Thread(target=f) for f in [client] * CLIENTS + [target] * TARGETS + [storm, storm, chaos]]
    for t in threads:
        t.start()
    sizes = []
    while goes_on():
        time.sleep(1)
        sizes.append(memory([daemon.pid] + children()))
    for t in threads:
        t.join()
    end_daemon()
    ended_by_themselves()
    third = sorted(sizes[len(sizes) // 6 : len(sizes) // 3]) or [0]
    last = sorted(sizes[-len(sizes) // 6 :]) or [0]
    did.update(pss_before=third[len(third) // 2], pss_after=last[len(last) // 2], wrong=wrong[:10])
    print(json.dumps(did))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
