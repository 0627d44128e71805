#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# ITT (Intel's annotations) of PyTorch, without any collector in the process.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
}

teardown() {
	harness_teardown
}

# record NAME PYTHON [OPTION…]: $dir/NAME.trace.json. False: this PyTorch has no ITT.
record() {
	local name=$1 python=$2
	shift 2
	target_start "$name" "$python" -W ignore "$WORKLOADS/itt_ranges.py"
	kprof_start "k-$name" attach -p "${pid[$name]}" -o "$dir/$name.trace.json" "$@"
	target_go "$name"
	target_result "$name"
	kprof_stop "k-$name"
	target_end "$name"
	"$PYTHON" "$LIB/validate_trace.py" "$dir/$name.trace.json"
	[ "$(jq .there "$dir/$name.json")" = true ]
}

# counts NAME CATEGORY: what is how often in the trace, one a line
counts() {
	jq -r --arg cat "$2" '[.traceEvents[] | select(.cat == $cat) | .name] | group_by(.)[] | "\(length) \(.[0])"' "$dir/$1.trace.json"
}

# What the workload did, of both threads
judge() { # NAME
	diff <(counts "$1" user_annotation) <(printf '%s\n' '40 inner' '20 other' '20 outer')
	[ "$(counts "$1" cpu_instant_event)" = '40 a mark' ]
	jq -e '.kprof.sources.itt | .begins == 80 and .ends_exact == 80 and .fired == 200 and .captured == .fired' "$dir/$1.trace.json"
	# Each inner one lies inside of an outer one of its own thread.
	jq -e '[.traceEvents[] | select(.cat == "user_annotation")] |
		([.[] | select(.name != "inner")] | map([.tid, .ts, .ts + .dur])) as $outer |
		[.[] | select(.name == "inner") | . as $e | any($outer[]; .[0] == $e.tid and .[1] <= $e.ts and $e.ts + $e.dur <= .[2])] | all' \
		"$dir/$1.trace.json"
}

@test "itt: torch.profiler.itt" {
	local python name seen=''
	for python in $(pythons); do
		name=torch-$(torch_release "$python")
		record "$name" "$python" || continue
		seen+=" $name"
		judge "$name"
		jq -e '[.traceEvents[] | select(.name == "aten::ones")] | length >= 40' "$dir/$name.trace.json"
	done
	[ -n "$seen" ] || skip "no PyTorch that is built with ITT"
	echo "#$seen"
}

@test "itt: nothing but it" {
	local python name seen=''
	for python in $(pythons); do
		name=torch-$(torch_release "$python")
		record "$name" "$python" --only itt || continue
		seen+=" $name"
		judge "$name"
		jq -e '.kprof.sources | keys - ["itt", "return_sites", "tasks", "agent", "annotations"] == []' "$dir/$name.trace.json"
		[ -z "$(counts "$name" cpu_op)" ]
	done
	[ -n "$seen" ] || skip "no PyTorch that is built with ITT"
	echo "#$seen"
}
