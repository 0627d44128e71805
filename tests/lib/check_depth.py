# SPDX-License-Identifier: BSD-2-Clause
"""The deepest operator of opdriver's recursion is 2,001 deep: check_depth.py TRACE.json"""

import sys
from trace import Trace

deepest = 0
for span in Trace.load(sys.argv[1]).spans:
    if span.name == "aten::fake_add":
        depth = 0
        while span.parent:
            span, depth = span.parent, depth + 1
        deepest = max(deepest, depth)
sys.exit(deepest != 2001)
