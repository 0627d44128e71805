# SPDX-License-Identifier: BSD-2-Clause
"""Opens and closes libraries, and starts processes that end at once."""

import _ctypes, os, subprocess, sys, time

print("READY", os.getpid(), flush=True)
sys.stdin.readline()
n = 0
for name in ["libm.so.6", "libz.so.1", "libbz2.so.1.0", "liblzma.so.5"] * 100:
    try:
        _ctypes.dlclose(_ctypes.dlopen(name, 2))
        n += 1
    except OSError:
        pass
ended = [subprocess.run(["/bin/true"]).returncode for _ in range(60)]
if not (child := os.fork()):
    os.execv("/bin/sh", ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7"])
print('{"ended": %d, "opened": %d, "status": %d}' % (sum(ended), n, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])),
      flush=True)
sys.stdin.readline()
