# SPDX-License-Identifier: BSD-2-Clause
"""A program whose files change while it runs: files_target.py LIBRARY FILE…

LIBRARY is loaded, and its function `turns` called until a line or the end of the input. Each FILE is mapped as a loader
would map it, and never looked at: whatever becomes of it, the program does not notice."""

import ctypes, json, mmap, os, select, struct, sys

PT_LOAD, PAGE = 1, 4096


def segments(path):
    """(flags, first byte, number of bytes) of each part of the file that a loader maps"""
    with open(path, "rb") as file:
        data = file.read()
    at, size, nr = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for i in range(nr):
        kind, flags, offset, _, _, in_file = struct.unpack_from("<IIQQQQ", data, at + i * size)
        if kind == PT_LOAD and in_file:
            yield flags, offset, in_file


def map_file(path):
    """Executable parts too, but nothing is written to them."""
    maps = []
    with open(path, "rb") as file:
        for flags, offset, in_file in segments(path):
            begin = offset & -PAGE
            prot = mmap.PROT_READ | (mmap.PROT_EXEC if flags & 1 else 0)
            maps.append(mmap.mmap(file.fileno(), offset + in_file - begin, mmap.MAP_PRIVATE, prot, offset=begin))
    return maps


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.turns.restype, library.turns.argtypes = ctypes.c_uint64, [ctypes.c_uint64]
    expected, rounds, wrong = library.turns(100000), 0, 0
    kept = [map_file(path) for path in sys.argv[2:]]
    print("READY", os.getpid(), flush=True)
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        wrong += library.turns(100000) != expected
        rounds += 1
    print(json.dumps({"rounds": rounds, "wrong": wrong, "files": len(kept)}), flush=True)
    sys.stdin.readline()
    os._exit(0)  # not through what the library wants to have done at the end


if __name__ == "__main__":
    main()
