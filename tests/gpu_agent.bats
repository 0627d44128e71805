#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# libkprof_agent.so: how it is built, against the real CUPTI of several CUDA releases as far as that goes without a driver, and on
# the simulated CUDA.
#   KPROF_CUPTI   folders with more of NVIDIA's CUPTI (unpacked wheels, toolkits), to check headers and libraries of

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/nvidia.bash
source "$BATS_TEST_DIRNAME/lib/nvidia.bash"

setup() {
	harness_setup
	agent=$BUILD/libkprof_agent.so
	tests=$BUILD/gpu-tests
	[ -x "$tests/on_sim" ] || fail "the test programs are not built: make gpu-test-programs"
}

teardown() {
	harness_teardown
}

absent() { # what grep is asked for is not there, though the files are
	local status=0
	grep "$@" || status=$?
	[ "$status" = 1 ] || fail "found, or no file: $*"
}

# on_sim MAJOR SCENARIO [VARIABLE=VALUE…]: the agent and a program on the simulated CUDA; its output in $output.
on_sim() {
	local major=$1 scenario=$2
	shift 2
	run env LD_LIBRARY_PATH="$BUILD/sim/$major" "$@" "$tests/on_sim" "$major" "$scenario"
	echo "$output"
	[ "$status" = 0 ]
}

@test "agent: asks for nothing that a C library of 2014 lacks" {
	run objdump -T "$agent"
	[ "$status" = 0 ]
	newest=$(grep -o 'GLIBC_[0-9.]*' <<<"$output" | sort -Vu | tail -n 1)
	echo "newest: $newest"
	[ "$(printf '%s\n' "$newest" GLIBC_2.17 | sort -V | tail -n 1)" = GLIBC_2.17 ]
	# Nothing but the C library, and nothing of CUDA or OpenCL.
	run readelf -d "$agent"
	grep NEEDED <<<"$output" >"$dir/needed"
	absent -vE '\[(libc\.so\.6|ld-linux-x86-64\.so\.2)\]' "$dir/needed"
	grep -q 'FLAGS_1.*NOW.*NODELETE' <<<"$output"
}

@test "agent: the probe's place is a nop of five bytes, and a USDT site" {
	run objdump -d --disassemble=kprof_agent_batch --no-addresses "$agent"
	grep -A1 '<kprof_agent_batch>:' <<<"$output" | grep -q '0f 1f 44 00 00'
	place=$(readelf -n "$agent" | sed -nE '/Name: agent_batch/{n;s/.*Location: (0x[0-9a-f]+).*/\1/p}')
	symbol=$(readelf -sW --dyn-syms "$agent" | awk '$8 == "kprof_agent_batch" { print $2; exit }')
	[ -n "$place" ]
	[ $((place)) = $((16#$symbol)) ]
}

@test "agent: CUPTI's records are declared as in every real header" {
	need_nvidia
	mapfile -t headers < <(nvidia_files cupti_activity.h)
	[ ${#headers[@]} -gt 0 ] || fail "none found"
	for header in "${headers[@]}"; do
		echo "$header"
		"$ROOT/tests/gpu/abi" "$(dirname "$header")"
	done
	# The check can fail: a field moved by four bytes does.
	mkdir -p "$dir/wrong/gpu/cupti" "$dir/wrong/tests"
	sed 's/uint32_t device, context, stream;/uint32_t moved, device, context, stream;/' "$ROOT/gpu/cupti/abi.h" >"$dir/wrong/gpu/cupti/abi.h"
	cp -r "$ROOT/tests/gpu" "$dir/wrong/tests/"
	run "$dir/wrong/tests/gpu/abi" "$(dirname "${headers[0]}")"
	[ "$status" != 0 ]
}

@test "agent: finds all that it needs in every real libcupti" {
	need_nvidia
	mapfile -t libraries < <(nvidia_files 'libcupti.so.1[123]*')
	[ ${#libraries[@]} -gt 0 ] || fail "none found"
	usable=0
	for library in "${libraries[@]}"; do
		run "$tests/load" "$library"
		echo "$library: $output"
		if [ "$status" = 0 ]; then
			[[ $output == *": cudaLaunchKernel_v7000 cuLaunchKernel dumps clock" ]]
			usable=$((usable + 1))
		else
			# 13.2 and later are not even asked for their version where there is no driver: they would crash.
			[[ $output == "reason 6: the NVIDIA driver "*"is too old for the process's libcupti" ]]
		fi
	done
	[ "$usable" -gt 0 ]
}

@test "agent: in a process without CUDA, or without a driver, it says so" {
	run "$tests/host" "$agent"
	[[ $output == "0 1 the process has not loaded CUDA "* ]]
	[ ! -e /proc/driver/nvidia/version ] || skip "this machine has a driver"
	need_nvidia
	mapfile -t libraries < <(nvidia_files 'libcudart.so.1[123]*')
	[ ${#libraries[@]} -gt 0 ] || fail "none found"
	for library in "${libraries[@]}"; do
		run "$tests/host" "$agent" "$library"
		echo "$library: $output"
		[[ $output == "0 6 "*"no NVIDIA driver"* ]]
	done
}

@test "agent: on the simulated CUDA, what CUPTI said is what arrives, session after session" {
	for major in 12 13; do
		on_sim "$major" sessions
		on_sim "$major" sessions KPROF_SIM_CUPTI_SHUFFLE=1
		on_sim "$major" sessions KPROF_SIM_CUPTI_LATE_NS=3000000
		on_sim "$major" sessions KPROF_SIM_DEVICES=3
	done
}

@test "agent: calls of no interest are not even recorded, where CUPTI can leave them out" {
	recorded() { # MAJOR FUNCTION: how many of its calls CUPTI has made a record of
		cat "$dir/calls$1".* | grep -a "\"name\":\"$2\"" | grep -ac '"cupti":true'
	}
	on_sim 12 sessions KPROF_SIM_TRUTH="$dir/calls12"
	on_sim 13 sessions KPROF_SIM_TRUTH="$dir/calls13"
	echo "$(recorded 12 cudaGetDevice) $(recorded 13 cudaGetDevice)"
	[ "$(recorded 12 cudaGetDevice)" -gt 0 ]
	[ "$(recorded 13 cudaGetDevice)" = 0 ]
	[ "$(recorded 13 cudaLaunchKernel)" = "$(recorded 12 cudaLaunchKernel)" ]
	absent -ha misuse "$dir"/calls*
}

@test "agent: CUPTI is finalized only if the process asks for it, at the end of a call, and can be used again" {
	on_sim 13 busy KPROF_SIM_TRUTH="$dir/left"
	absent -q '"call":"cuptiFinalize"' "$dir"/left*
	[[ $output == *"CUPTI stays loaded"* ]]
	export TEARDOWN_CUPTI=1
	on_sim 13 busy KPROF_SIM_TRUTH="$dir/truth"
	grep -q '"call":"cuptiFinalize"' "$dir"/truth*
	[[ $output == "left: " ]]
	# An idle process makes no call: nothing waits for one, and nothing is finalized elsewhere.
	on_sim 13 sessions KPROF_SIM_TRUTH="$dir/idle"
	absent -q '"call":"cuptiFinalize"' "$dir"/idle*
	[[ $output == *"CUPTI stays loaded"* ]]
	# CUDA before 12.6: not at all.
	on_sim 12 busy KPROF_SIM_TRUTH="$dir/old"
	absent -q '"call":"cuptiFinalize"' "$dir"/old*
	absent -h misuse "$dir"/left* "$dir"/truth* "$dir"/idle* "$dir"/old*
}

@test "agent: one clock, also when CUPTI's is another tool's, or runs wrong" {
	on_sim 13 clocks
	[[ $output == *"clock 0" ]]
	on_sim 13 clocks KPROF_SIM_CUPTI_TIMESTAMP_TAKEN=1 KPROF_SIM_TRUTH="$dir/taken"
	[[ $output == *"clock 1" ]]
	absent -h misuse "$dir"/taken*
	on_sim 12 clocks KPROF_SIM_CUPTI_CLOCK_DRIFT_PPB=50000 KPROF_SIM_CUPTI_CLOCK_OFFSET_NS=5000000000
	[[ $output == *"clock 1" ]]
	# CUPTI returns to its own clock by itself.
	on_sim 13 clocks KPROF_SIM_CUPTI_CLOCK_LOST=2
}

@test "agent: another tool's clock, buffers and kinds are left alone, whether it was first or comes later" {
	local first
	for first in BUSY OTHER_KINDS; do
		on_sim 13 refused "KPROF_SIM_CUPTI_$first=1" KPROF_SIM_CUPTI_TIMESTAMP_TAKEN=1 KPROF_SIM_TRUTH="$dir/$first"
		[[ $output == "reason 4: another tool "* ]]
	done
	for major in 12 13; do
		TEARDOWN_CUPTI=1 on_sim "$major" taken KPROF_SIM_CUPTI_TAKEN_OVER=2 KPROF_SIM_TRUTH="$dir/taken-$major"
		[[ $output == "reason 4: another tool in the process has begun to use CUPTI" ]]
	done
	absent -h misuse "$dir"/{BUSY,OTHER_KINDS,taken-12,taken-13}.*
}

@test "agent: more work than buffers, many threads, records that cannot be read: all of it counted" {
	for major in 12 13; do
		on_sim "$major" flooded KPROF_SIM_CUPTI_BUFFER_RECORDS=20 KPROF_SIM_CUPTI_LATE_NS=400000000 \
			KPROF_SIM_TRUTH="$dir/flooded-$major"
		read -r _ kernels _ copies _ dropped _ buffers <<<"$(grep '^kernels ' <<<"$output")"
		[ "$buffers" = 64 ]
		dropped_by[major]=$dropped
		# Of each kernel, copy and set, and of the call for it.
		[ $((kernels + copies + dropped)) -ge $((2 * 4 * 3800)) ]
	done
	# The old CUPTI aborts if it is given no buffer: it gets a small one, again and again, which is thrown away.
	thrown=$(jq 'select(.t == "delivery" and .size == 65536).records' "$dir"/flooded-12.* | jq -s add)
	[ "$thrown" -gt 10000 ]
	[ "$thrown" = "${dropped_by[12]}" ]
	on_sim 13 many_threads
	on_sim 13 lossy KPROF_SIM_CUPTI_BAD_RECORD=10
	absent -ah misuse "$dir"/flooded*
}

@test "agent: why there are no activities" {
	on_sim 13 refused KPROF_SIM_CUPTI_BUSY=1
	[[ $output == "reason 4: another tool "* ]]
	on_sim 13 refused KPROF_SIM_CUPTI_DENIED=1
	[[ $output == "reason 5: "*PRIVILEGES* ]]
	on_sim 13 refused KPROF_SIM_CUPTI_VERSION=140000
	[[ $output == "reason 3: "*"newer than CUDA 13"* ]]
	on_sim 13 refused KPROF_SIM_CUPTI_VERSION=14
	[[ $output == "reason 3: "*"older than CUDA 11.6"* ]]
	on_sim 13 refused KPROF_SIM_CUPTI_VERSION=130000
	[[ $output == "reason 3: "*"first CUDA 13.0"* ]]
	on_sim 12 refused KPROF_SIM_RUNTIME_VERSION=11080
	[[ $output == "reason 3: with CUDA 11, "*graphs* ]]
	on_sim 12 later KPROF_SIM_RUNTIME_VERSION=11080 # used first after kprof has come: no graph is older
	on_sim 13 refused KPROF_SIM_DRIVER_VERSION=12040
	[[ $output == "reason 6: "*"for CUDA 12, older than"* ]]
	on_sim 13 refused KPROF_CUPTI_PATH="$dir/libcupti.so"
	[[ $output == "reason 2: KPROF_CUPTI_PATH is $dir/libcupti.so, which cannot be loaded" ]]
	# No libcupti beside libcudart.
	mkdir "$dir/13"
	ln -s "$BUILD"/sim/13/libcud* "$dir/13/"
	run env LD_LIBRARY_PATH="$dir/13" "$tests/on_sim" 13 refused
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == "reason 2: no libcupti was found for CUDA 13"* ]]
}

@test "agent: records that CUPTI lost are counted, every one" {
	on_sim 13 lossy KPROF_SIM_CUPTI_DROP=10
	read -r _ kernels _ copies _ _ _ dropped <<<"$(grep '^kernels ' <<<"$output")"
	[ $((kernels + copies + dropped)) = 3800 ]
	[ "$dropped" -gt 0 ]
}

@test "agent: CUDA that is used later, children, and exit() in the middle" {
	for major in 12 13; do
		on_sim "$major" later
		on_sim "$major" forks
	done
}
