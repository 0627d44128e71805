# SPDX-License-Identifier: BSD-2-Clause
# Of a trace of mark_python.py, which went $n rounds: all of its marks are there.
def count(n): [.traceEvents[] | select(.name == n)] | length;
count("a range, ü") == $n and count("decorated") == 3 * $n and count("tick") == $n and count("pushed") == $n
and count("[memory]") == $n and count("ProfilerStep#0") == 3 and count("invariant violation") == 1
and ([.traceEvents[] | select(.name == "a range, ü") | .args.sizes == [1, {"b": null}]] | all)
and .kprof.meta["user.epoch"] == 3
and ([.traceEvents[] | select(.name == "thread_name" and (.args.name | test("worker [012]")))] | length) == 3
