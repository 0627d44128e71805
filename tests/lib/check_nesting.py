# SPDX-License-Identifier: BSD-2-Clause
"""The spans of opdriver's quiet loop enclose each other as its calls did: check_nesting.py TRACE.json [CALLS]"""

import sys
from collections import Counter
from trace import Trace

trace = Trace.load(sys.argv[1])
pairs = Counter((s.parent and s.parent.name, s.name) for s in trace.spans)
print(pairs)
linear, mul, add = "aten::fake_linear", "aten::fake_mul", "aten::fake_add"
calls = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
expected = {(None, linear): calls, (linear, mul): calls, (mul, add): calls, (linear, add): calls}
sys.exit(pairs != expected or bool(trace.overlaps))
