# SPDX-License-Identifier: BSD-2-Clause
"""Changes files that others read and map: files_damage.py SEED FILE… [-- FILE…]

Cuts them short, makes them longer, overwrites parts of them, and restores them, at random, until a line or the end of the
input; then all are as they were. Of the files behind -- what a loader maps stays as it is: a program that uses them
goes on."""

import json, os, random, select, sys

sys.path.insert(0, os.path.dirname(__file__))


class File:
    def __init__(self, path, keep):
        self.path, self.fd, self.keep = path, os.open(path, os.O_RDWR), keep
        self.data = os.pread(self.fd, os.fstat(self.fd).st_size, 0)
        self.changes = 0

    def place(self, bytes):
        return random.randrange(self.keep, max(self.keep + 1, bytes))

    def cut(self):
        os.ftruncate(self.fd, self.place(len(self.data)))

    def lengthen(self):
        os.ftruncate(self.fd, len(self.data) + random.choice([1, 4096, 1 << 30, 1 << 38]))

    def overwrite(self):
        at = self.place(len(self.data))
        os.pwrite(self.fd, random.randbytes(random.choice([1, 8, 64, 4096])), at)

    def swap(self):
        """Bytes of another place: tables that look like tables."""
        at, other = self.place(len(self.data)), random.randrange(len(self.data))
        os.pwrite(self.fd, self.data[other : other + random.choice([8, 64, 4096])], at)

    def first_page(self):
        if not self.keep:
            os.pwrite(self.fd, random.randbytes(random.choice([1, 8])), random.randrange(4096))

    def restore(self):
        os.pwrite(self.fd, self.data[self.keep :], self.keep)
        os.ftruncate(self.fd, len(self.data))

    def change(self):
        random.choice([self.cut, self.lengthen, self.overwrite, self.swap, self.first_page, self.restore])()
        self.changes += 1


def mapped_end(path):
    from files_target import segments

    return max(offset + in_file for _, offset, in_file in segments(path))


def main():
    random.seed(int(sys.argv[1]))
    names = sys.argv[2:]
    split = names.index("--") if "--" in names else len(names)
    files = [File(path, 0) for path in names[:split]]
    files += [File(path, mapped_end(path)) for path in names[split + 1 :]]
    print("READY", os.getpid(), flush=True)
    while not select.select([sys.stdin], [], [], random.choice([0, 0, 0.001, 0.01]))[0]:
        random.choice(files).change()
    for file in files:
        file.restore()
    print(json.dumps({"changes": [file.changes for file in files]}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
