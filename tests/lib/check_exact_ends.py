# SPDX-License-Identifier: BSD-2-Clause
"""Of the spans of a loop's second half 99.9 % end where that was seen: check_exact_ends.py TRACE.json"""

import sys
from trace import Trace

trace = Trace.load(sys.argv[1])
# The last spans of all may be open when kprof stops: not those of the loop, which had ended.
begin, end = trace.between("kprof test: window begin", "kprof test: window end")
spans = [s for s in trace.spans if (begin + end) // 2 < s.start < end]
exact = sum(s.exact for s in spans)
print(f"{len(spans)} spans, {exact / len(spans):.4%} exact")
for name in sorted({s.name for s in spans if not s.exact}):
    print("not exact:", name, sum(s.name == name and not s.exact for s in spans))
sys.exit(len(spans) < 1000 or exact < 0.999 * len(spans))
