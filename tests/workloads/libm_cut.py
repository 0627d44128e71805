# SPDX-License-Identifier: BSD-2-Clause
"""Calls a function of a copy of libm, then cuts the file short: libm_cut.py LIBRARY"""

import ctypes, os, sys, time

lib = ctypes.CDLL(sys.argv[1])
lib.lgamma.restype, lib.lgamma.argtypes = ctypes.c_double, [ctypes.c_double]
print("READY", os.getpid(), flush=True)
sys.stdin.readline()
end = time.thread_time() + 0.3
while time.thread_time() < end:
    sum(lib.lgamma(i + 0.5) for i in range(100))
os.truncate(sys.argv[1], 4096)
print('{"cut": 1}', flush=True)
sys.stdin.readline()
os._exit(0)  # not through what the library wants to have done at the end
