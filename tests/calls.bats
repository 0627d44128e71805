#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Calls of a device's runtime and driver, seen from outside: each is there, with its arguments, and its error if it
# failed. On the simulated CUDA of tests/sim, which is called by programs of several compilers.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/nvidia.bash
source "$BATS_TEST_DIRNAME/lib/nvidia.bash"

setup() {
	harness_setup
	own_targets
	[ -x "$BUILD/workloads/cudacalls-12" ] || fail "the test programs are not built: make workloads"
}

teardown() {
	harness_teardown
}

# called NAME KIND "ATTACH OPTIONS" MODE [ARGUMENT…]: cudacalls-KIND under kprof, without an agent; its code is its own again
called() {
	local name=$1 kind=$2 options=$3 library=$BUILD/sim/12/libcuda.so.1
	shift 3
	[ "$kind" != 13 ] || library=$BUILD/sim/13/libcuda.so.1
	profiled "$name" "--no-agent $options" "$BUILD/workloads/cudacalls-$kind" "$@"
}

# The calls in the trace are those that the target made.
same_calls() { # NAME [OPTION…]
	local name=$1
	shift
	"$PYTHON" "$LIB/compare_calls.py" "$@" "$dir/$name.trace.json" "$dir/$name.json"
}

# A number of the accounting of calls.
calls_number() { # NAME SOURCE KEY
	jq ".kprof.meta.calls.$2.$3 // 0" "$dir/$1.trace.json"
}

errors_of() { # NAME CATEGORY
	jq "[.traceEvents[] | select(.cat == \"$2\" and .args.error)] | length" "$dir/$1.trace.json"
}

source_number() { # NAME SOURCE KEY
	jq ".kprof.sources.$2.$3" "$dir/$1.trace.json"
}

@test "the runtime's calls, their arguments, and kernels by name: either major, several compilers" {
	local kind
	for kind in 12 13 gcc-O0 clang; do
		called "$kind" "$kind" "" runtime
		same_calls "$kind"
	done
}

@test "calls that fail are told with the error" {
	local kind
	for kind in 12 13 gcc-O0 clang; do
		called "$kind" "$kind" "" errors --rounds 5
		same_calls "$kind"
		[ "$(calls_number "$kind" cuda_runtime failed)" = "$(errors_of "$kind" cuda_runtime)" ]
		[ "$(calls_number "$kind" cuda_driver failed)" = "$(errors_of "$kind" cuda_driver)" ]
	done
}

# Of calls that all failed: no table and no trace says less, but for those whose result is said to be unknown.
failed_or_unknown() { # NAME
	"$KPROF" report "$dir/$1.kprof" --by api --json >"$dir/$1.api.json"
	jq -en --slurpfile said "$dir/$1.json" --slurpfile report "$dir/$1.api.json" --slurpfile trace "$dir/$1.trace.json" '
		$said[0].calls as $calls
		| [$report[0].rows[] | select(.name | IN("cudaMalloc", "cudaMallocManaged", "cudaHostAlloc", "cudaMallocAsync",
			"cudaMemcpy", "cudaHostRegister", "cudaMallocHost"))] as $rows
		| ($rows | length == 7) and all($rows[]; . as $row
			| .calls == $calls and (.errors // 0) + .unknown_results == $calls
			and (.errors == null) == (.unknown_results == $calls)
			and ([$trace[0].traceEvents[] | select(.name == $row.name) | .args]
				| map(select(.result == "unknown" and .error == null)) as $unknown
				| map(select(.error != null and .result == null)) as $failed
				| length == $calls and ($unknown | length) == $row.unknown_results
				and ($failed | length) == ($row.errors // 0)))' >/dev/null ||
		fail "$1: $(jq -c '.rows[] | [.name, .calls, .errors, .unknown_results]' "$dir/$1.api.json")" "$(cat "$dir/$1.json")"
}

# How many of the calls that were made once all had settled have no known result.
settled_unknown() { # NAME CALL
	jq -n --slurpfile said "$dir/$1.json" --slurpfile report "$dir/$1.api.json" --arg call "$2" '
		[$report[0].rows[] | select(.name == $call).unknown_results - $said[0].settling, 0] | max'
}

@test "a call's result is read where the code has put it, and else unknown: never a success that nobody saw" {
	local kind call
	for kind in gcc-O0 gcc-O1 gcc-O2 clang-O0; do
		profiled "$kind" --no-agent "$BUILD/workloads/cudaresults-$kind"
		failed_or_unknown "$kind"
		for call in cudaMalloc cudaMallocManaged cudaHostAlloc cudaMallocAsync; do
			[ "$(settled_unknown "$kind" "$call")" = 0 ] || fail "$kind: $call" "$(cat "$dir/$kind.api.json")"
		done
		[ "$(settled_unknown "$kind" cudaMallocHost)" = 300 ]
		"$KPROF" report "$dir/$kind.kprof" --by api >"$dir/$kind.table"
		grep -q '^cudaMallocHost .* ?$' "$dir/$kind.table"
	done
}

@test "where CUPTI's records tell the result, it is theirs" {
	profiled here "" "$BUILD/workloads/cudaresults-gcc-O0"
	failed_or_unknown here
	[ "$(settled_unknown here cudaMallocHost)" = 0 ]
}

@test "without an error none is told, though all results were seen" {
	called here 12 "" runtime --rounds 50
	same_calls here
	[ "$(calls_number here cuda_runtime failed)" = 0 ]
	[ "$(calls_number here cuda_runtime results_seen)" = "$(source_number here cuda_runtime ends_exact)" ]
}

@test "the driver's calls; those inside a runtime call are counted, not told" {
	called driver 12 "" driver
	same_calls driver
	[ "$(calls_number driver cuda_driver folded)" = 0 ]
	called runtime 12 "" runtime
	same_calls runtime # no driver call among them
	[ "$(calls_number runtime cuda_driver folded)" -gt 100 ]
	[ "$(source_number runtime cuda_driver begins)" = 0 ]
}

@test "variants with a default stream per thread are the same calls" {
	called here 12 "" per-thread
	same_calls here
}

@test "a runtime that is linked into the program" {
	called here static "" runtime
	# Who calls the driver cannot be told there but by spans that surely end: not at the very first.
	same_calls here --runtime
	[ "$(calls_number here cuda_driver folded)" -gt 600 ]
	called launches static "" launches --rounds 1000
	same_calls launches --runtime
}

@test "two copies of the runtime in one process" {
	CUDACALLS_OTHER=$BUILD/sim/13/libcudart.so.13 called here 12 "" other --rounds 30
	same_calls here
}

@test "many launches: each is captured, none twice" {
	called here 12 "" launches --rounds 20000
	same_calls here
	[ "$(source_number here cuda_runtime begins)" = $((20000 + $(jq .settling "$dir/here.json"))) ]
	[ "$(source_number here cuda_runtime dropped)" = 0 ]
}

@test "single uprobes, and children's exact mode" {
	called single 12 "--no-multi --max-probes 400" runtime
	same_calls single
	called exact 12 "--children exact" runtime
	same_calls exact
}

@test "--exclude leaves calls out" {
	called here 12 "--exclude cudaMemcpy*,cudaStream*" runtime
	[ "$(jq '[.traceEvents[] | select(.name // "" | test("^cuda(Memcpy|Stream)"))] | length' "$dir/here.trace.json")" = 0 ]
	[ "$(jq '[.traceEvents[] | select(.name == "cudaLaunchKernel")] | length' "$dir/here.trace.json")" -gt 0 ]
}

@test "check says what it would place, with rows" {
	target_start here "$BUILD/workloads/cudacalls-12" runtime
	"$KPROF" check -v -p "${pid[here]}" >"$dir/check"
	grep -q 'runtime *cuda$' "$dir/check"
	grep -q 'cuda_runtime .* probes on cudaLaunchKernel' "$dir/check"
	grep -q 'cuda_driver .* probes on cuLaunchKernel' "$dir/check"
	target_start static "$BUILD/workloads/cudacalls-static" runtime
	"$KPROF" check -v -p "${pid[static]}" >"$dir/check"
	grep -q 'cuda_runtime .* probes on cudaLaunchKernel' "$dir/check"
}

@test "the real runtimes: every row finds its calls, each cheap to probe; errors have their names" {
	local found
	need_nvidia
	found=$(nvidia_first 'libcudart.so.*' | paste -sd:)
	[ -n "$found" ] || fail "no libcudart in $(nvidia_wheels)"
	KPROF_TEST_CUDART=$found "$BUILD/unit/catalog/cuda" >"$dir/out" || fail "$(cat "$dir/out")"
	cat "$dir/out"
	grep -q '# .*libcudart.so.* probes' "$dir/out"
}

@test "arguments lie where the real headers say" {
	local header include found=
	need_nvidia
	mkdir -p "$dir/shim/crt"
	# What the wheels leave out, and the compiler proper needs none of.
	printf '#define %s\n' __host__ __device__ __device_builtin__ __cudart_builtin__ CUDARTAPI CUDARTAPI_CDECL \
		'__builtin_align__(n)' '__align__(n)' __device_builtin_texture_type__ __device_builtin_surface_type__ \
		>"$dir/shim/crt/host_defines.h"
	while read -r header; do
		include=${header%/*}
		CPATH=$include:$dir/shim gcc -std=gnu11 -fsyntax-only "$LIB/cuda_layouts.c"
		found+=" $include"
	done < <(nvidia_first cuda_runtime_api.h)
	[ -n "$found" ] || fail "no headers in $(nvidia_wheels)"
	echo "checked: $found"
}

@test "a real runtime in a process: its calls are told, though they fail for want of a driver" {
	local library
	need_nvidia
	library=$(nvidia_first 'libcudart.so.*' | tail -n 1)
	profiled here "--no-agent" "$PYTHON" "$WORKLOADS/real_cudart.py" "$library"
	"$PYTHON" "$LIB/compare_calls.py" "$dir/here.trace.json" "$dir/here.json"
}
