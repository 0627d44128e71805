# SPDX-License-Identifier: BSD-2-Clause
"""Has code in 8,300 places, and in 50 more with every line that it reads."""

import ctypes, mmap, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
kept = []
def more(n):  # every second page is code
    m = mmap.mmap(-1, 2 * n * 4096)
    kept.append(m)
    at = ctypes.addressof(ctypes.c_char.from_buffer(m))
    for i in range(n):
        assert libc.mprotect(at + 2 * i * 4096, 4096, mmap.PROT_READ | mmap.PROT_EXEC) == 0
more(8300)
print("READY", 0, flush=True)
for line in sys.stdin:
    more(50)
    print("MORE", len(kept), flush=True)
print('{"ok": true}', flush=True)
