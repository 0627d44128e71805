# SPDX-License-Identifier: BSD-2-Clause
"""Marks without a library to make them with: mark_without.py FOLDER-OF-kprof_mark"""

import sys
sys.path.insert(0, sys.argv[1])
import kprof_mark

with kprof_mark.range("a"):
    kprof_mark.metadata("b", {})
assert kprof_mark.watched() is False
