# SPDX-License-Identifier: BSD-2-Clause
"""fake_jvm.py MODE DIR: a program that calls itself a Java virtual machine: it maps a file called libjvm.so, runs generated
code, and behaves at SIGQUIT and at its socket as MODE says, until the file DIR/enough is there. It counts what it is told.

  unready   it does not handle SIGQUIT, which would end it
  deaf      it handles SIGQUIT, and never listens
  silent    it listens, and never answers
  endless   it answers without end
  other     another process listens in its place
  old       it does not know the command, as JDKs before 17
  answers   it writes a perf map
"""

import ctypes, json, mmap, os, shutil, signal, socket, struct, sys, threading

mode, folder = sys.argv[1], sys.argv[2]
own = f"/tmp/.java_pid{os.getpid()}"
perf_map = f"/tmp/perf-{os.getpid()}.map"
seen = {"signals": 0, "requests": [], "users": []}

with open("/proc/self/maps") as maps:
    small = next(line.split()[-1] for line in maps if "/libm.so" in line or "/libm-" in line)
shutil.copy(small, f"{folder}/libjvm.so")
ctypes.CDLL(f"{folder}/libjvm.so")

# mov $20000000, %ecx; again: dec %ecx; jnz again; ret
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b9002d3101" "ffc9" "75fc" "c3"))
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
spin = ctypes.CFUNCTYPE(None)(at)


def listen():
    s = socket.socket(socket.AF_UNIX)
    s.bind(own)
    s.listen(5)
    return s


def serve(s):
    while True:
        peer = s.accept()[0]
        if mode == "silent":
            seen.setdefault("kept", []).append(peer.fileno())
            peer.detach()
            continue
        seen["users"].append(struct.unpack("iII", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1:])
        request = b""
        while request.count(b"\0") < 5:
            request += peer.recv(1000)
        seen["requests"].append(request.decode().split("\0"))
        try:
            while mode == "endless":
                peer.send(b"0" * 65536)
            if mode == "answers":
                with open(perf_map, "w") as f:
                    f.write(f"{at:x} 20 fake_compiled\n")
            peer.send(b"0\nwritten" if mode == "answers" else b"1\njava.lang.IllegalArgumentException: Unknown diagnostic command")
        except BrokenPipeError:
            pass
        peer.close()


def on_quit(*_):
    seen["signals"] += 1
    if mode not in ("deaf", "other") and seen["signals"] == 1:
        threading.Thread(target=serve, args=(listen(),), daemon=True).start()


if mode != "unready":
    signal.signal(signal.SIGQUIT, on_quit)
child = 0
if mode == "other":
    ready, told = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        s = listen()
        os.write(told, b"x")
        serve(s)
    os.read(ready, 1)
print("READY", os.getpid(), flush=True)
sys.stdin.readline()
while not os.path.exists(f"{folder}/enough"):
    spin()
print(json.dumps(seen), flush=True)
sys.stdin.readline()
if child:
    os.kill(child, signal.SIGKILL)
for path in (own, perf_map):
    if os.path.exists(path):
        os.unlink(path)
