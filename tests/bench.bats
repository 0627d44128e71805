# SPDX-License-Identifier: BSD-2-Clause
# The benchmarks' own arithmetic. What they measure is no test: nothing in them passes or fails by a time.
# bats file_tags=parallel

bats_require_minimum_version 1.5.0

@test "figures are reckoned from measurements as they should be, and only their own table changes" {
	run -0 /usr/bin/python3 tests/bench/test_bench.py
	[[ $output == *OK ]]
}

@test "what cannot be run is said" {
	run -2 tests/bench/run no-such-benchmark
	[[ $output == *"no benchmark is called"*hint:* ]]
	run -0 tests/bench/run --list
	[[ $output == *sample-ops*sample-dump* ]]
	grep -q '<!-- results of samples: ' docs/benchmarks.md
}
