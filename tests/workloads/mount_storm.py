# SPDX-License-Identifier: BSD-2-Clause
"""mount_storm.py FOLDER PROGRAM N: N file systems come and go, with a program in each that is executed; in a mount namespace
of its own. Says how many there were."""

import ctypes, json, os, shutil, sys

folder, program, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


place = f"{folder}/storm"
os.mkdir(place)
print("READY", os.getpid(), flush=True)
sys.stdin.readline()
for _ in range(number):
    check(libc.mount(b"none", place.encode(), b"tmpfs", 0, None))
    shutil.copy(program, f"{place}/kp_storm")
    quiet = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    child = os.posix_spawn(f"{place}/kp_storm", ["kp_storm", "-c", "/proc/self/exe"], os.environ, file_actions=quiet)
    os.waitpid(child, 0)
    check(libc.umount2(place.encode(), 2))  # MNT_DETACH: whoever looks at it now may go on
print(json.dumps({"mounts": number}), flush=True)
sys.stdin.readline()
