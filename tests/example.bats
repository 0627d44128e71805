#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# docs/example.c: what a C program can do with the library and its public header alone.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	use_kind gcc
	example=$BUILD/example
	[ -x "$example" ] || fail "$example is not built: make example"
}

teardown() {
	harness_teardown
}

@test "example: the ten dearest operators of a running process, and a trace that agrees with them" {
	target_start target "$driver" spin --pace 20 # a thousand calls, then a rest, until it is told to end
	target_go target
	"$example" "${pid[target]}" "$dir/target.kprof" "$dir/target.trace.json" >"$dir/table"
	cat "$dir/table"
	# The table is what kprof makes of the same capture.
	"$KPROF" report "$dir/target.kprof" --json >"$dir/report.json"
	[ "$(awk '{ print $1, $2 }' "$dir/table")" = "$(jq -r '.rows[:10][] | "\(.name) \(.calls)"' "$dir/report.json")" ]
	[ "$(awk '$2 > 0' "$dir/table" | wc -l)" -ge 3 ]
	"$PYTHON" "$LIB/validate_trace.py" --report "$dir/report.json" "$dir/target.trace.json"
	# Two seconds were recorded, and the process has gone on as if nothing had been.
	[ "$(jq '.kprof.clock | .end_mono_ns - .start_mono_ns >= 1.99e9' "$dir/target.trace.json")" = true ]
	clean_text "${pid[target]}" "$library"
	kill -TERM "${pid[target]}"
	target_result target
	[ "$(jq .ok "$dir/target.json")" = true ]
	target_end target
}

@test "example: says why it could not" {
	run "$example"
	[ "$status" = 2 ]
	run "$example" 999999999 "$dir/a.kprof" "$dir/a.json"
	[ "$status" = 1 ]
	[[ $output == *"hint: "* && $output == *999999999* ]]
	[ ! -e "$dir/a.kprof" ]
	run "$example" "$$" /nowhere/a.kprof "$dir/a.json"
	[ "$status" = 1 ]
	[[ $output == *"/nowhere"* ]]
}
