# SPDX-License-Identifier: BSD-2-Clause
"""Becomes a copy of a program, in a file that has no name: exec_memfd.py PROGRAM"""

import os, sys

fd = os.memfd_create("program")
os.write(fd, open(sys.argv[1], "rb").read())
os.execv("/proc/self/fd/%d" % fd, ["program", "--cpu-ms", "20"])
