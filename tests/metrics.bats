#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Hardware metrics (--metrics) on the simulated CUDA: values against its truth, and what is said where there can be none.

bats_require_minimum_version 1.5.0
# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

names=sm__inst_executed.sum,gpu__time_duration.sum,sm__warps_launched.sum,dram__bytes.sum,dram__bytes.sum.per_second
names+=,sm__warps_active.avg.pct_of_peak_sustained_active,sm__cycles_active.avg

setup() {
	harness_setup
	own_targets
	cuda=$BUILD/sim/13/cudadriver
	[ -x "$cuda" ] || fail "the test programs are not built: make test-programs"
	unset CUDA_INJECTION64_PATH OPENCL_LAYERS KPROF_AGENT_WAIT_MS
	export KPROF_SIM_TRUTH=$dir/truth
}

teardown() {
	harness_teardown
}

# by_run NAME "RUN ARGUMENTS" COMMAND…
by_run() {
	local name=$1 arguments
	read -ra arguments <<<"$2"
	shift 2
	"$KPROF" run -v -o "$dir/$name.kprof" "${arguments[@]}" -- "$@" --now >"$dir/$name.out" 2>"$dir/$name.err" ||
		fail "$(cat "$dir/$name.err")"
	grep '^{' "$dir/$name.out" >"$dir/$name.json"
	exported "$name"
}

# right NAME LEAST: there are so many rows, and all are what the device did
right() {
	"$PYTHON" "$LIB/check_metrics.py" "$dir/$1.trace.json" "$dir/truth" "$(jq .pid "$dir/$1.json")" --least "$2"
	"$PYTHON" "$LIB/validate_trace.py" "$dir/$1.trace.json"
}

# meta NAME FILTER: what the trace says about the process's metrics
meta() {
	jq -e ".kprof.meta[\"metrics.$(jq .pid "$dir/$1.json")\"] | $2" "$dir/$1.trace.json"
}

rows() { # NAME CATEGORY
	jq "[.traceEvents[] | select(.ph == \"X\" and .cat == \"$2\")] | length" "$dir/$1.trace.json"
}

@test "metrics: by run, in ranges one after the other, beside all that CUPTI records" {
	by_run plain "--metrics $names" "$cuda" loop --n 100 --pace 10
	right plain 5
	[ "$(rows plain kernel)" = 300 ]
	meta plain '.state == "measured" and .range_ns == 100000000 and .ranges_lost == 0 and (.names | length) == 7'
	# On a row of their own, which is no work of the device's; no call made them.
	jq -e '[.traceEvents[] | select(.cat == "cuda_profiler_range") | .tid] | unique | length == 1' "$dir/plain.trace.json"
	jq -e '[.traceEvents[] | select(.name == "thread_name" and .args.name == "metrics ")] | length == 1' "$dir/plain.trace.json"
	jq -e '.kprof.correlation | .activities == .linked + .without_call' "$dir/plain.trace.json"
	run ! grep -q __profile__ <("$KPROF" report "$dir/plain.kprof" --by kernel)
	"$KPROF" export "$dir/plain.kprof" -o "$dir/plain.pftrace"
}

@test "metrics: ranges of a length of one's own; what ran in none is not measured" {
	by_run long "--metrics $names --metrics-range 400ms" "$cuda" loop --n 100 --pace 10
	right long 2
	jq -e '[.traceEvents[] | select(.cat == "cuda_profiler_range") | .dur] | .[0] > 350000 and length <= 4' "$dir/long.trace.json"
}

@test "metrics: by attach, twice; the profiler is free in between" {
	local i
	target_start target "$cuda" spin
	target_go target
	for i in 1 2; do
		"$KPROF" attach -p "${pid[target]}" -d 2s --metrics "$names" -o "$dir/k$i.kprof" 2>"$dir/k$i.err"
		exported "k$i"
		jq -e "[.traceEvents[] | select(.cat == \"cuda_profiler_range\")]
			| map(select(.args[\"sm__inst_executed.sum\"] > 0)) | length > 3" "$dir/k$i.trace.json"
	done
	[ "$(grep -c 'cuptiRangeProfilerDisable","result":0' "$dir/truth.${pid[target]}.jsonl")" = 2 ]
	kill -TERM "${pid[target]}"
	target_result target
	jq -e .ok "$dir/target.json"
	run ! grep -q '"misuse"' "$dir/truth.${pid[target]}.jsonl"
	target_end target
}

@test "metrics: without them the profiler is not touched" {
	by_run without "" "$cuda" loop --n 20 --pace 10
	[ "$(rows without cuda_profiler_range)" = 0 ]
	run ! grep -q 'Profiler' "$dir/truth.$(jq .pid "$dir/without.json").jsonl"
}

# none NAME REASON WORDS HINT: it was said why there are none; the rest was recorded
none() {
	[ "$(rows "$1" cuda_profiler_range)" = 0 ]
	meta "$1" ".state == \"failed\" and .reason == \"$2\" and .ranges == 0"
	grep -q "^kprof: no metrics of process $(jq .pid "$dir/$1.json"): $3" "$dir/$1.err"
	[ "$(grep -c "^kprof: no metrics" "$dir/$1.err")" = 1 ]
	grep -q "^hint: $4" "$dir/$1.err"
	[ "$(rows "$1" kernel)" = 90 ]
	jq -e .ok "$dir/$1.json"
	run ! grep -q '"misuse"' "$dir/truth.$(jq .pid "$dir/$1.json").jsonl"
}

@test "metrics: where there can be none: the reason, and all the rest" {
	local loop=("$cuda" loop --n 30 --pace 10)
	by_run unknown "--metrics sm__inst_executed.sum,sm__no_such_thing.sum" "${loop[@]}"
	none unknown unknown "this device has no metric 'sm__no_such_thing.sum'" "names are CUPTI's"
	by_run passes "--metrics sm__throughput.avg.pct_of_peak_sustained_elapsed,sm__inst_executed.sum" "${loop[@]}"
	none passes passes "to measure them takes 8 passes over the same work" "ask for fewer"
	KPROF_SIM_CUPTI_PROFILER_BUSY=1 by_run busy "--metrics $names" "${loop[@]}"
	none busy busy "cuptiProfilerGetCounterAvailability: CUPTI_ERROR_HARDWARE_BUSY" "one process at a time"
	KPROF_SIM_CUPTI_PROFILER_DENIED=1 by_run denied "--metrics $names" "${loop[@]}"
	none denied no_permission "cuptiRangeProfilerEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" "it needs CAP_SYS_ADMIN"
	KPROF_SIM_CUPTI_PROFILER_NO_HOST=1 by_run library "--metrics $names" "${loop[@]}"
	none library no_library "libnvperf_host.so cannot be loaded" "it comes with CUPTI"
	by_run old "--metrics $names" "$BUILD/sim/12/cudadriver" loop --n 30 --pace 10
	none old old "this libcupti has no range profiler" "CUDA 12.6"
}

@test "metrics: a program that has only contexts of its own making is told so" {
	export KPROF_CUPTI_PATH=${cuda%/*}/libcupti.so.13
	by_run own "--metrics $names" "$cuda" context --n 30 --pace 10
	meta own '.state == "idle" and .ranges == 0'
	[ "$(rows own kernel)" -gt 0 ]
	grep -q "^kprof: no metrics of process $(jq .pid "$dir/own.json"): it had no primary context for 100 ms" "$dir/own.err"
}

@test "metrics: no process uses CUDA: it is said" {
	"$KPROF" run --metrics "$names" -o "$dir/none.kprof" -- sleep 0.1 2>"$dir/none.err"
	grep -q "^kprof: no metrics: none of the recorded processes has used CUDA" "$dir/none.err"
}

@test "metrics: a context that is destroyed meanwhile is not touched any more" {
	by_run reset "--metrics $names" "$cuda" reset --n 60 --pace 10
	meta reset '.reason == "context" and .ranges_lost > 0'
	jq -e .ok "$dir/reset.json"
	run ! grep -q '"misuse"' "$dir/truth.$(jq .pid "$dir/reset.json").jsonl"
	grep -q "^kprof: no metrics of process .*: the program has destroyed its context" "$dir/reset.err"
}

@test "metrics: several devices, each with its own" {
	export KPROF_SIM_DEVICES=2
	by_run two "--metrics $names" "$cuda" devices --n 60 --pace 10
	right two 4
	jq -e '[.traceEvents[] | select(.cat == "cuda_profiler_range") | .args.device] | unique == [0, 1]' "$dir/two.trace.json"
}

@test "metrics: kprof is killed in the middle of it: the agent stops measuring, and the program goes on" {
	target_start target "$cuda" spin
	target_go target
	kprof_start k attach -p "${pid[target]}" --metrics "$names" -o "$dir/k.kprof"
	wait_for "$PATIENCE" "it to be measured" grep -q cuptiRangeProfilerStart "$dir/truth.${pid[target]}.jsonl"
	kill -KILL "${pid[k]}"
	wait_for "$PATIENCE" "the profiler to be free" grep -q 'cuptiRangeProfilerDisable","result":0' "$dir/truth.${pid[target]}.jsonl"
	kill -TERM "${pid[target]}"
	target_result target
	jq -e .ok "$dir/target.json"
	target_end target
}

@test "metrics: another tool takes CUPTI: what was measured is there, and the profiler is let go" {
	KPROF_SIM_CUPTI_TAKEN_OVER=2 by_run taken "--metrics $names" "$cuda" loop --n 100 --pace 10
	right taken 2
	[ "$(grep -c 'cuptiRangeProfilerDisable","result":0' "$dir/truth.$(jq .pid "$dir/taken.json").jsonl")" = 1 ]
}

@test "metrics: a program that forks while it is measured" {
	by_run fork "--metrics $names" "$cuda" fork --n 40 --pace 10
	jq -e .ok "$dir/fork.json"
	meta fork '.state == "measured" and .ranges > 1'
	run ! grep -q '"misuse"' "$dir"/truth.*.jsonl
}

delivered() { # NAME: so many records as fill a few slots
	[ "$(grep -c '"cupti":"recorded"' "$dir/truth.${pid[$1]}.jsonl")" -gt 600 ]
}

@test "metrics: a program that is killed while it is measured loses a round, and no more" {
	target_start target "$cuda" spin
	target_go target
	kprof_start k attach -p "${pid[target]}" --metrics "$names" -o "$dir/k.kprof"
	wait_for "$PATIENCE" "it to be measured" grep -q cuptiRangeProfilerStart "$dir/truth.${pid[target]}.jsonl"
	wait_for "$PATIENCE" "work" delivered target
	kill -KILL "${pid[target]}"
	wait_for "$PATIENCE" "kprof to end with it" ended "${pid[k]}"
	kprof_stop k
	exported k
	[ "$(rows k kernel)" -gt 0 ]
}

@test "metrics: SASS metrics change the kernels, which is said; the type by itself is not recorded" {
	by_run sass "--metrics smsp__sass_inst_executed.sum" "$cuda" loop --n 3
	grep -q "^kprof: SASS metrics have CUPTI change the kernels" "$dir/sass.err"
	run -2 --separate-stderr "$KPROF" run --types cuda_profiler_range -- true
	# shellcheck disable=SC2154 # run sets it
	[[ $stderr == "kprof: --metrics NAMES records cuda_profiler_range"* ]]
}

@test "metrics: bad input" {
	local bad
	for bad in '--metrics sm__inst_executed' '--metrics ,' '--metrics a..b' '--metrics a.b,' '--metrics a.b;c' \
		"--metrics $(printf 'a.b,%.0s' {1..24})a.b" '--metrics-range 1s' '--metrics a.b --metrics-range 1ms' \
		'--metrics a.b --no-agent' '--metrics a.b --only nvtx'; do
		echo "$bad"
		read -ra bad <<<"$bad"
		run -2 --separate-stderr "$KPROF" run "${bad[@]}" -- true
		# shellcheck disable=SC2154
		[[ $stderr == kprof:*$'\n'hint:* ]]
	done
}
