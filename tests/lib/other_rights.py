# SPDX-License-Identifier: BSD-2-Clause
"""A process that acts as a user, and is more than that. Needs root. Prints a line when it is, and waits.

    other_rights.py UID hides|had
"""
import ctypes
import os
import signal
import sys

PR_SET_DUMPABLE = 4
uid = int(sys.argv[1])
os.setgroups([])
os.setresgid(uid, uid, uid)
if sys.argv[2] == "had":  # and could be root again
    os.setresuid(uid, uid, 0)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
else:  # what giving up root does by itself, too
    os.setresuid(uid, uid, uid)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
print("ready", flush=True)
signal.pause()
