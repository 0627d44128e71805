#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does for a service what systemd does (sd_notify(3), sd_listen_fds(3)), and writes down what the service says.

    service_manager.py NOTES SOCKET STORE_MAX COMMAND…

Prints READY, then takes lines: start, hup, stop (SIGTERM), kill. NOTES gets a JSON object a line: {"run": N, "said": KEY,
"value": …, "main": whether it is of the service's own process, "usec": the clock when it came, and "connects": whether SOCKET
could be connected to then}; {"run": N, "ended": STATUS}. Descriptors that are stored, at most STORE_MAX, are given to the next
run.
"""
import array
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

notes, path, most, command = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
store = {}  # descriptor: name
run, service = 0, None


def note(**what):
    with open(notes, "a", encoding="utf-8") as file:
        file.write(json.dumps({"run": run, **what}) + "\n")


def connects():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.setblocking(False)
        try:
            s.connect(path)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


def start():
    global run, service
    run += 1
    kept = [os.dup(fd) for fd in store]

    def become():
        high = [os.dup2(fd, 100 + i) for i, fd in enumerate(kept)]  # out of the way of those that are wanted
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i)
            os.close(fd)

    os.environ.update(LISTEN_FDS=str(len(kept)), LISTEN_FDNAMES=":".join(store.values()))
    service = subprocess.Popen(["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"] + command, close_fds=False, stdin=subprocess.DEVNULL,
                               preexec_fn=become)  # pylint: disable=subprocess-popen-preexec-fn # there is one thread
    for fd in kept:
        os.close(fd)


def take(notify):
    data, control, _, _ = notify.recvmsg(65536, 65536)
    sender, files = 0, array.array("i")
    for level, kind, content in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
            sender = struct.unpack("3i", content)[0]
        elif (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            files.frombytes(content)
    said = dict(line.split("=", 1) for line in data.decode().splitlines())
    if "FDSTOREREMOVE" in said:
        for fd in [fd for fd, name in store.items() if name == said["FDNAME"]]:
            os.close(fd)
            del store[fd]
    for fd in files:
        os.set_inheritable(fd, False)
        if "FDSTORE" in said and len(store) < most:
            store[fd] = said["FDNAME"]
        else:
            os.close(fd)
    for key, value in said.items():
        note(said=key, value=value, main=sender == service.pid, files=len(files), usec=time.monotonic_ns() // 1000,
             connects=connects() if key == "READY" else None)


def main():
    global service
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    notify.bind(notes + ".notify")
    os.environ["NOTIFY_SOCKET"] = notes + ".notify"
    orders = {"hup": signal.SIGHUP, "stop": signal.SIGTERM, "kill": signal.SIGKILL}
    print("READY 1", flush=True)
    lines = b""
    while True:
        ready = select.select([notify, 0], [], [], 0.05)[0]
        if notify in ready:
            take(notify)
        elif service and service.poll() is not None:  # all that it has said was taken
            note(ended=service.returncode)
            service = None
        if 0 not in ready:
            continue
        more = os.read(0, 4096)
        if not more:
            return
        *whole, lines = (lines + more).split(b"\n")
        for order in (line.decode() for line in whole):
            if order == "start":
                start()
            else:
                service.send_signal(orders[order])


main()
