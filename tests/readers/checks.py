# SPDX-License-Identifier: BSD-2-Clause
"""What the checks of the readers share: the trace as its own text says it."""

import collections
import contextlib
import gzip
import json
import sys


@contextlib.contextmanager
def without(*modules):
    """What is imported inside does without these, which it needs for nothing here: they take longer than many a check."""
    left_out = [name for name in modules if name not in sys.modules]
    sys.modules.update(dict.fromkeys(left_out))
    yield
    for name in left_out:
        del sys.modules[name]


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def slices(trace, *categories):
    """Complete events of these categories; of all when none is given."""
    return [e for e in trace["traceEvents"]
            if e["ph"] == "X" and (not categories or e["cat"] in categories)]


def calls_by_name(events):
    return collections.Counter(e["name"] for e in events)


def difference(ours, theirs):
    """The first few keys in which two dictionaries differ, as a text; "" when they are equal."""
    different = [k for k in ours.keys() | theirs.keys() if ours.get(k) != theirs.get(k)]
    if not different:
        return ""
    shown = ", ".join(f"{k!r}: trace {ours.get(k)}, reader {theirs.get(k)}"
                      for k in sorted(different, key=str)[:3])
    return f"{len(different)} differ: {shown}"


def main(name, check):
    """check(path) returns what was seen, in words, or raises. One line; exit 1 when it raised."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} TRACE.json[.gz]")
    try:
        seen = check(sys.argv[1])
    except Exception as error:  # whatever a reader throws at a file it cannot read
        print(f"{name}: FAILED: {type(error).__name__}: {error}".replace("\n", " ")[:1000])
        sys.exit(1)
    print(f"{name}: ok: {seen}")


class Wrong(Exception):
    """The reader opened the trace and saw something else than what is in it."""
