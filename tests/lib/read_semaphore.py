# SPDX-License-Identifier: BSD-2-Clause
"""A counter of who watches, read in the process: read_semaphore.py PID ADDRESS-IN-THE-FILE"""

import re, struct, sys

pid, symbol = sys.argv[1], int(sys.argv[2], 16)
with open(f"/proc/{pid}/maps") as maps:
    base = int(re.match(r"[0-9a-f]+", maps.readline())[0], 16)
with open(f"/proc/{pid}/mem", "rb") as memory:
    memory.seek(base + symbol)
    print(struct.unpack("<H", memory.read(2))[0])
