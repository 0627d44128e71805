#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# OpenCL on PoCL: a device that nobody here has made up. What kprof says of it against what the program was told by the
# driver: the same commands, with the same times, each made by its call.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	oclprogram=$BUILD/workloads/ocldriver
	agent=$BUILD/libkprof_agent.so
	[ -x "$oclprogram" ] || skip "OpenCL is not installed: scripts/setup check installs it"
	# What PoCL compiles is kept between tests.
	export POCL_CACHE_DIR=$BATS_FILE_TMPDIR/pocl
	mkdir -p "$POCL_CACHE_DIR"
}

teardown() {
	harness_teardown
}

check() { # NAME [OPTION…]
	local name=$1
	shift
	"$PYTHON" "$LIB/check_opencl.py" "$dir/$name.trace.json" "$dir/$name.json" "$@"
}

# by_run NAME ARGUMENT…: the program from its first instruction to its end; the trace is valid
by_run() {
	local name=$1
	shift
	"$KPROF" run -v -o "$dir/$name.kprof" -- "$oclprogram" "$@" --now >"$dir/$name.out" 2>"$dir/$name.err" ||
		fail "exit status $?" "$(cat "$dir/$name.err")" || return 1
	grep '^{' "$dir/$name.out" >"$dir/$name.json"
	exported "$name"
}

# answers NAME…: what the program was told and what came out were the same in all these runs
answers() {
	local first=$1 other
	for other; do
		diff <(jq -c '.answers, .checksum' "$dir/$first.json") <(jq -c '.answers, .checksum' "$dir/$other.json") ||
			fail "$first and $other were told different things" || return 1
	done
}

# ---- the same commands at the same times ----

@test "opencl: every command is an activity, with the times that its program was told" {
	by_run plain plain --n 200
	check plain
}

@test "opencl: every kind of command there is" {
	by_run every every --n 20
	check every
}

@test "opencl: threads, each with a queue of its own" {
	by_run threads threads --n 50 --threads 6
	check threads
}

@test "opencl: two contexts" {
	by_run contexts contexts --n 50
	check contexts
	[ "$(jq '[.kprof.meta | keys[] | select(startswith("context."))] | length' "$dir/contexts.trace.json")" = 2 ]
}

@test "opencl: a queue without order, commands that wait for each other and for the program" {
	by_run unordered unordered --n 50
	check unordered --unordered
}

# ---- programs that are not tidy ----

@test "opencl: calls that fail have their error's name, and no activity" {
	local error
	by_run errors errors --n 30
	check errors
	for error in "CL_INVALID_WORK_DIMENSION (-53)" "CL_INVALID_MEM_OBJECT (-38)" "CL_INVALID_VALUE (-30)"; do
		jq -e --arg error "$error" \
			'[.traceEvents[] | select(.cat == "opencl_runtime") | .args.error] | index($error) != null' \
			"$dir/errors.trace.json" || fail "nobody says $error"
	done
}

@test "opencl: a program that releases nothing" {
	by_run untidy untidy --n 50
	check untidy
}

@test "opencl: a queue that is released while its commands run" {
	by_run early early --n 50
	check early
}

@test "opencl: a program that forks in the middle" {
	by_run fork fork --n 50
	check fork
}

@test "opencl: exit() after the last command loses nothing" {
	by_run exit exit --n 50
	check exit
}

# ---- the program notices nothing ----

@test "opencl: results, errors and what is said of queues are the same, with and without the layer, and recorded" {
	local mode
	for mode in plain every contexts unordered errors early fork; do
		"$oclprogram" $mode --n 5 --now --no-profiling | grep '^{' >"$dir/bare-$mode.json"
		OPENCL_LAYERS=$agent "$oclprogram" $mode --n 5 --now --no-profiling | grep '^{' >"$dir/rest-$mode.json"
		by_run "recorded-$mode" $mode --n 5 --no-profiling
		answers "bare-$mode" "rest-$mode" "recorded-$mode"
		# It was told no times, as without the layer; the trace has them nevertheless.
		[ "$(jq -c '[.events[].error] | unique' "$dir/recorded-$mode.json")" = '[-7]' ]
		[ "$(jq '.kprof.correlation.activities' "$dir/recorded-$mode.trace.json")" = \
			"$(jq '(.events | length) + .launches_without_event' "$dir/recorded-$mode.json")" ]
	done
}

@test "opencl: the layer named twice is one" {
	OPENCL_LAYERS=$agent:$agent "$oclprogram" plain --n 5 --now | grep '^{' >"$dir/twice.json"
	"$oclprogram" plain --n 5 --now | grep '^{' >"$dir/bare.json"
	answers bare twice
}

# ---- attaching ----

@test "opencl: a program that has loaded the layer by itself is recorded from when kprof attaches, and again" {
	local i
	export OPENCL_LAYERS=$agent
	for i in 1 2; do
		profiled "attached$i" "" "$oclprogram" plain --n 100
		check "attached$i"
	done
	# One process, two sessions: what the second has is its own.
	target_start twice "$oclprogram" plain --n 100 --linger
	kprof_start first attach -p "${pid[twice]}" -o "$dir/first.kprof"
	kprof_stop first
	kprof_start second attach -p "${pid[twice]}" -o "$dir/twice.kprof"
	target_go twice
	target_result twice
	kprof_stop second
	target_end twice
	exported twice
	check twice
}

@test "opencl: without the layer, calls are seen all the same" {
	profiled calls "" "$oclprogram" plain --n 100
	[ "$(jq '[.traceEvents[] | select(.name == "clEnqueueNDRangeKernel")] | length' "$dir/calls.trace.json")" = 200 ]
	jq -e '[.traceEvents[] | select(.name == "clEnqueueReadBuffer") | .args | select(.bytes == 16384 and .blocking == 0)]
		| length == 100' "$dir/calls.trace.json"
	jq -e '[.traceEvents[] | select(.name == "clEnqueueNDRangeKernel") | .args |
		select(."global size x" == 4096 and .dimensions == 2 and ."local size x" == 64)] | length == 100' \
		"$dir/calls.trace.json"
	jq -e '[.traceEvents[] | select(.cat == "kernel")] | length == 0' "$dir/calls.trace.json"
}

# Probes are placed in a library once it is there.
probes_stand() { # NAME LIBRARY
	wait_for "$PATIENCE" "probes in $2" grep -q "probes stand in $2" "$dir/$1.err"
}

@test "opencl: --no-agent puts no layer into the program" {
	target_start none "$KPROF" run -v --no-agent -o "$dir/none.kprof" -- "$oclprogram" plain --n 5
	probes_stand none libOpenCL.so
	target_go none
	target_end none
	exported none
	jq -e '[.traceEvents[] | select(.cat == "kernel")] | length == 0' "$dir/none.trace.json"
	jq -e '[.traceEvents[] | select(.cat == "opencl_runtime")] | length > 0' "$dir/none.trace.json"
}

# ---- operators ----

@test "opencl: each command belongs to the annotation in which it was queued" {
	local library=$BUILD/workloads/libocldriver.so
	"$PYTHON" -c 'import torch' || skip "no Debian PyTorch here: scripts/setup check installs it"
	target_start ops "$KPROF" run -v -o "$dir/ops.kprof" -- "$PYTHON" "$WORKLOADS/opencl_ops.py" --iters 5 --settle 10 \
		--library "$library"
	probes_stand ops libtorch_cpu.so
	target_go ops
	target_result ops
	target_end ops
	exported ops
	"$PYTHON" "$LIB/check_opencl_ops.py" "$dir/ops.trace.json" "$dir/ops.json"
}

# ---- views ----

@test "opencl: kernels by name, streams, and why the device was idle" {
	by_run views plain --n 100
	"$KPROF" report "$dir/views.kprof" --by kernel --json >"$dir/kernels.json"
	jq -e '[.rows[] | select(.name == "add") | .calls] == [100]' "$dir/kernels.json"
	"$KPROF" report "$dir/views.kprof" --by stream >/dev/null
	"$KPROF" report "$dir/views.kprof" --by idle >/dev/null
}
