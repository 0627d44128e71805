#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# Children of PyTorch's from their first instruction on. No other suite runs meanwhile: the probes are in each process that has
# the same library.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
}

teardown() {
	harness_teardown
}

@test "PyTorch: DataLoader workers: complete, or with a declared gap" {
	needs_torch
	local python
	# The oldest, which is imported in a second.
	python=$(pythons | head -n 1)
	profiled follow "--children follow" "$python" -W ignore "$WORKLOADS/cnn.py" --workers 2 --iters 2
	account follow
	python=$(newest_python)
	profiled exact "--children exact" "$python" -W ignore "$WORKLOADS/cnn.py" --workers 2 --iters 2
	# A worker that opens a library of Python's and ends before that is looked at has a gap, but has lost nothing.
	account exact --exact
	[ "$(jq '[.traceEvents[] | select(.name == "aten::sinh").pid] | unique | length' "$dir/exact.trace.json")" = 4 ]
}
