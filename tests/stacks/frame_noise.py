# SPDX-License-Identifier: BSD-2-Clause
"""Overwrites a part of what describes a library's frames: frame_noise.py LIBRARY SEED"""

import random, subprocess, sys

path, seed = sys.argv[1:]
random.seed(int(seed))
for line in subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout.splitlines():
    words = line.replace("[ ", "[").split()
    if len(words) > 5 and words[1] == ".eh_frame":
        at, size = int(words[4], 16), int(words[5], 16)
        with open(path, "r+b") as f:
            for _ in range(size // 20):
                f.seek(at + random.randrange(size))
                f.write(bytes([random.randrange(256)]))
