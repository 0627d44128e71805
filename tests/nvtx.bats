#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# NVTX ranges and marks, without any tool of NVIDIA's in the process: through a library of version 2 and inside a program
# (test doubles), and through PyTorch's own where a build for CUDA is at hand.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
}

teardown() {
	harness_teardown
}

# record NAME COMMAND…: $dir/NAME.trace.json and $dir/NAME.json. $with: further options
record() {
	local name=$1
	target_start "$@"
	# shellcheck disable=SC2086 # words
	kprof_start "k-$name" attach ${with:---no-agent} -p "${pid[$name]}" -o "$dir/$name.trace.json"
	target_go "$name"
	target_result "$name"
	kprof_stop "k-$name"
	target_end "$name"
	"$PYTHON" "$LIB/validate_trace.py" "$dir/$name.trace.json"
}

# counts NAME CATEGORY: what is how often in the trace, one a line
counts() {
	jq -r --arg cat "$2" '[.traceEvents[] | select(.cat == $cat) | .name] | group_by(.)[] | "\(length) \(.[0])"' "$dir/$1.trace.json"
}

driver() { # NAME PROGRAM
	local program=$BUILD/workloads/nvtx/$2 n
	[ -x "$program" ] || fail "$program is not built: make workloads"
	record "$1" "$program"
	n=$(jq .rounds "$dir/$1.json")
	diff <(counts "$1" user_annotation) - <<-END
		$n (unnamed nvtx)
		$n in a domain
		$n nvtxRangePushW
		$n plain
		$n with attributes
	END
	diff <(counts "$1" cpu_instant_event) - <<-END
		$n a mark
		$((2 * n)) a mark with attributes
		$n anywhere (range start)
		$n nvtxRangeEnd
	END
	# What the attributes have beside the text, and nothing where they have nothing.
	jq -e --argjson n "$n" '[.traceEvents[] | select(.cat == "user_annotation" or .cat == "cpu_instant_event") |
		{name, args: (.args | with_entries(select(.key == ("category", "colour", "payload", "payload type"))))}] |
		group_by(.name) | map({key: .[0].name, value: (map(.args) | unique)}) | from_entries |
		.["with attributes"] == [{"category": 7, "colour": "#ff102030", "payload": -5}] and
		.["a mark with attributes"] == [{"payload": 0.5}] and .["in a domain"] == [{}] and .plain == [{}]' "$dir/$1.trace.json"
	# Pushed inside one another, and every end is its own.
	jq -e --argjson n "$n" '.kprof.sources.nvtx | .begins == 5 * $n and .ends_exact == 5 * $n and .fired == 15 * $n and .captured == .fired' \
		"$dir/$1.trace.json"
	jq -e '[.traceEvents[] | select(.cat == "user_annotation")] |
		([.[] | select(.name == "plain")] | map([.ts, .ts + .dur])) as $outer |
		[.[] | select(.name == "nvtxRangePushW") | . as $e | any($outer[]; .[0] <= $e.ts and $e.ts + $e.dur <= .[1])] | all' \
		"$dir/$1.trace.json"
}

@test "nvtx: version 2, a library" {
	driver library linked
}

@test "nvtx: the headers of version 3, inside a program" {
	driver program inside
}

@test "nvtx: torch.cuda.nvtx" {
	local python name seen=''
	for python in $(pythons); do
		name=torch-$(torch_release "$python")
		record "$name" "$python" -W ignore "$WORKLOADS/nvtx_ranges.py" torch
		[ "$(jq .there "$dir/$name.json")" = true ] || continue
		seen+=" $name"
		diff <(counts "$name" user_annotation) <(printf '20 %s\n' inner outer)
		diff <(counts "$name" cpu_instant_event) <(printf '%s\n' '20 a mark' '1 anywhere (range start)' '1 nvtxRangeEnd')
	done
	[ -n "$seen" ] || skip "no PyTorch that is built for CUDA"
	echo "#$seen"
}

@test "nvtx: nothing but it" {
	local with='--only nvtx' python name seen=''
	driver library linked
	jq -e '.kprof.sources | keys - ["nvtx", "return_sites", "tasks", "agent", "annotations"] == []' "$dir/library.trace.json"
	for python in $(pythons); do
		name=torch-$(torch_release "$python")
		record "$name" "$python" -W ignore "$WORKLOADS/nvtx_ranges.py" torch
		[ "$(jq .there "$dir/$name.json")" = true ] || continue
		seen+=" $name"
		diff <(counts "$name" user_annotation) <(printf '20 %s\n' inner outer)
		[ -z "$(counts "$name" cpu_op)" ]
		jq -e '.kprof.sources | keys - ["nvtx", "return_sites", "tasks", "agent", "annotations"] == []' "$dir/$name.trace.json"
	done
	with='--only mark'
	record other "$BUILD/workloads/nvtx/linked"
	[ -z "$(counts other user_annotation)$(counts other cpu_instant_event)" ]
	echo "#$seen"
}

@test "nvtx: the Python package" {
	local name=package python=${KPROF_READERS_PYTHON:-$PYTHON}
	[ -x "$python" ] || python=$PYTHON
	record "$name" "$python" "$WORKLOADS/nvtx_ranges.py" nvtx
	[ "$(jq .there "$dir/$name.json")" = true ] || skip "no package nvtx that works without a tool (up to 0.2.11)"
	[ "$(counts "$name" user_annotation)" = "40 nvtx range" ]
	diff <(counts "$name" cpu_instant_event) <(printf '%s\n' '20 nvtx mark' '1 nvtx range end' '1 nvtx range start')
}
