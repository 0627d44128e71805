# SPDX-License-Identifier: BSD-2-Clause
"""Calls a function of a copy of libm: libm_calls.py LIBRARY"""

import ctypes, os, sys, time

lib = ctypes.CDLL(sys.argv[1])
lib.lgamma.restype, lib.lgamma.argtypes = ctypes.c_double, [ctypes.c_double]
print("READY", os.getpid(), flush=True)
sys.stdin.readline()
total, end = 0.0, time.thread_time() + 0.3
while time.thread_time() < end:
    total += sum(lib.lgamma(i + 0.5) for i in range(100))
print('{"total": %d}' % (total > 0), flush=True)
sys.stdin.readline()
