#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Is a process's code what its file says?    text_diff.py PID LIBRARY

A probe stands in the target as a changed byte of its code. Prints how many bytes differ; exit status
0: none; 1: some; 2: the library is not mapped.
"""

import os
import sys


def main():
    pid, library = sys.argv[1], os.path.realpath(sys.argv[2])
    differ, mapped = 0, False
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        rows = [line.split(maxsplit=5) for line in maps]
    with open(f"/proc/{pid}/mem", "rb", 0) as memory, open(library, "rb") as file:
        for row in rows:
            if len(row) < 6 or "x" not in row[1] or row[5].strip() != library:
                continue
            mapped = True
            start, end = (int(x, 16) for x in row[0].split("-"))
            file.seek(int(row[2], 16))
            memory.seek(start)
            while start < end:
                want = file.read(min(1 << 20, end - start))
                have = memory.read(len(want))
                if not want:
                    break  # the rest of the last page
                if want != have:
                    differ += sum(a != b for a, b in zip(want, have))
                start += len(want)
    print(differ)
    return 2 if not mapped else 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
