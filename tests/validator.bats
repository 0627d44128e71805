# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# The judge of all traces is judged: a good trace broken in every way that matters.

bats_require_minimum_version 1.5.0

@test "validate_trace.py finds what is wrong with a trace" {
	run -0 /usr/bin/python3 tests/lib/test_validate_trace.py
	[[ $output == *OK ]]
}

@test "validate_trace.py fails on a file that is none" {
	echo '{}' > "$BATS_TEST_TMPDIR/a.json"
	run -1 /usr/bin/python3 tests/lib/validate_trace.py "$BATS_TEST_TMPDIR/a.json"
	[[ $output == *"json: no object with an array traceEvents"* ]]
}
