#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Sets and types of activity: a set records the work of its devices and nothing else, and what nothing can record is
# refused or named. On the simulated CUDA, and on OpenCL where it is installed.

bats_require_minimum_version 1.5.0
# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

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

# by_run NAME "RUN ARGUMENTS" COMMAND…: the program from its first instruction to its end
by_run() {
	local name=$1 arguments status=0
	read -ra arguments <<<"$2"
	shift 2
	"$KPROF" run -v -o "$dir/$name.kprof" "${arguments[@]}" -- "$@" --now >"$dir/$name.out" 2>"$dir/$name.err" || status=$?
	[ "$status" = 0 ] || fail "exit status $status" "$(cat "$dir/$name.err")" || return 1
	grep '^{' "$dir/$name.out" >"$dir/$name.json"
	exported "$name"
}

# categories NAME: of the trace's slices, one a line
categories() {
	jq -r '[.traceEvents[] | select(.ph == "X" and .cat != "Trace") | .cat] | unique[]' "$dir/$1.trace.json"
}

# only NAME CATEGORY…: the trace has these, all of them, and no others
only() {
	local name=$1
	shift
	diff <(categories "$name") <(printf '%s\n' "$@" | sort)
}

# refused CAUSE ARGUMENT…: exit status 2, with the cause
refused() {
	local cause=$1 status=0
	shift
	"$KPROF" "$@" >"$dir/out" 2>"$dir/err" || status=$?
	[ "$status" = 2 ] || fail "exit status $status: $(cat "$dir/err")" || return 1
	grep -qF -- "$cause" "$dir/err" || fail "$(cat "$dir/err")"
}

@test "activities: cuda records CUDA's work and calls" {
	by_run cuda "--activities cuda" "$cuda" loop --n 20
	"$PYTHON" "$LIB/compare_device.py" "$dir/cuda.trace.json" "$dir/truth" "$(jq .pid "$dir/cuda.json")"
	categories cuda | grep -qx kernel
	categories cuda | grep -qx cuda_runtime
	run ! grep 'nothing here records' "$dir/cuda.err"
}

@test "activities: cpu records calls, and puts nothing into the process" {
	by_run cpu "--activities cpu" "$cuda" loop --n 2000 # nothing holds it until its probes stand
	# The driver's calls are seen where the runtime does not make them itself.
	diff <(categories cpu | grep -vx cuda_driver) <(echo cuda_runtime)
	run ! grep -rlqs '"cupti":"recorded"' "$dir"/truth.*
	# What of the set is not to be had is said once, by name.
	[ "$(grep -c 'of the set cpu, nothing here records .*python_function.*privateuse1_driver' "$dir/cpu.err")" = 1 ]
}

@test "activities: of a process that uses CUDA xpu records nothing, and says so: by run" {
	by_run xpu "--activities xpu" "$cuda" loop --n 20 --pace 20 # it lives until kprof has looked at what it maps
	[ -z "$(categories xpu)" ] || fail "$(categories xpu)"
	grep -q "^kprof: no device activities of process $(jq .pid "$dir/xpu.json"): it uses CUDA, which was not asked for" "$dir/xpu.err" ||
		fail "$(cat "$dir/xpu.err")"
	run ! grep -rlqs '"cupti":"recorded"' "$dir"/truth.*
}

@test "activities: … and by attach" {
	target_start target "$cuda" spin
	target_go target
	wait_for "$PATIENCE" "CUDA to be used" grep -q libcuda.so "/proc/${pid[target]}/maps"
	kprof_start k attach -p "${pid[target]}" --activities xpu -o "$dir/target.kprof"
	wait_for "$PATIENCE" "it to be said" grep -q "no device activities of process ${pid[target]}: it uses CUDA, which was not asked for" \
		"$dir/k.err"
	run ! grep -q kprof_agent "/proc/${pid[target]}/maps"
	kprof_stop k
	kill -TERM "${pid[target]}"
	target_result target
	jq -e .ok "$dir/target.json"
	target_end target
	"$KPROF" export "$dir/target.kprof" -o "$dir/target.trace.json"
	[ -z "$(categories target)" ] || fail "$(categories target)"
}

@test "activities: types by name are of every device" {
	by_run kernels "--types kernel" "$cuda" loop --n 20
	only kernels cuda_runtime kernel # launches come with what they launched
	by_run both "--activities xpu --types kernel" "$cuda" loop --n 20
	categories both | grep -qx kernel
}

@test "activities: OpenCL's devices are PrivateUse1's, and not CUDA's" {
	local ocl=$BUILD/workloads/ocldriver
	[ -x "$ocl" ] || skip "OpenCL is not installed: scripts/setup check installs it"
	export POCL_CACHE_DIR=$BATS_FILE_TMPDIR/pocl
	mkdir -p "$POCL_CACHE_DIR"
	by_run priv "--activities privateuse1" "$ocl" plain --n 20
	categories priv | grep -qx kernel
	by_run none "--activities cuda" "$ocl" plain --n 20
	[ -z "$(categories none)" ] || fail "$(categories none)"
	grep -q 'it uses OpenCL, which was not asked for' "$dir/none.err" || fail "$(cat "$dir/none.err")"
}

@test "activities: what nothing can record is refused by name, and so is another name for PrivateUse1" {
	local type
	for type in glow_runtime xpu_runtime xpu_sync hpu_op mtia_runtime mtia_counters privateuse1_runtime; do
		refused "nothing here records $type" attach -p 1 --types "$type"
		grep -q '^hint: there are .*cpu_op.*kernel' "$dir/err"
	done
	refused "nothing here records hpu_op" attach -p 1 --activities hpu
	refused "no backend named npu can be recorded" attach -p 1 --activities privateuse1=npu
}
