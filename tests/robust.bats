#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,long
# What is hard on a profiler that follows calls from outside: the target must end with the same result as without it,
# every call must be in the trace, and the spans must nest.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup_file() {
	torch_hosts
}

teardown_file() {
	torch_hosts_end
}

setup() {
	harness_setup
}

teardown() {
	harness_teardown
}

# same_but_seen MODE ARGUMENT…: with each compiler's code; every call captured
same_but_seen() {
	local kind
	for kind in "${kinds[@]}"; do
		echo "-- $kind: $*"
		use_kind "$kind"
		unprofiled "$kind-plain" "$driver" "$@" || return 1
		# Room for all of it: nothing is lost, however long a busy machine keeps kprof from reading.
		profiled "$kind" "--ring 128M" "$driver" "$@" || return 1
		same_result "$kind-plain" "$kind" || return 1
		account "$kind" --only --complete || return 1
	done
}

# same_with PYTHON WORKLOAD ARGUMENT…: the same with this PyTorch; sets release
same_with() {
	local python=$1 workload=$2
	shift 2
	release=$(torch_release "$python")
	echo "-- torch $release: $workload $*"
	unprofiled "plain-$release" "$python" "$WORKLOADS/$workload" "$@" || return 1
	profiled "$release" "" "$python" "$WORKLOADS/$workload" "$@" || return 1
	same_result "plain-$release" "$release"
}

# spans NAME FILTER: how many spans of the trace match
spans() {
	jq "[.traceEvents[] | select(.ph == \"X\" and ($2))] | length" "$dir/$1.trace.json"
}

@test "operators that throw, caught 10,000 times at several depths" {
	same_but_seen throw --n 10000
}

@test "longjmp out of two operators at once" {
	same_but_seen longjmp --n 2000
}

@test "threads that end inside an operator" {
	same_but_seen pthread_exit --n 200
}

@test "two stacks, operators open on both" {
	same_but_seen ucontext --n 2000
	# Whoever takes the switch for a return closes apply early: it must enclose what it called, on its own stack.
	local kind
	for kind in "${kinds[@]}"; do
		[ "$(spans "$kind" '.name == "aten::fake_apply"')" = 4000 ]
	done
}

@test "signal handlers on their own stack, in the middle of an operator" {
	same_but_seen sigaltstack --n 2000
}

@test "recursion 2,000 operators deep" {
	same_but_seen recurse --n 3 --depth 2000
	local kind
	for kind in "${kinds[@]}"; do
		"$PYTHON" "$LIB/check_depth.py" "$dir/$kind.trace.json"
	done
}

@test "operators that end with a jump to another" {
	same_but_seen tail --n 2000
}

@test "fork in the middle of an operator" {
	local kind
	for kind in "${kinds[@]}"; do
		use_kind "$kind"
		unprofiled "$kind-plain" "$driver" fork --n 500 --pace 2
		profiled "$kind" "" "$driver" fork --n 500 --pace 2
		same_result "$kind-plain" "$kind"
		account "$kind" --only
	done
}

@test "a library that comes and goes" {
	use_kind gcc
	unprofiled plain "$driver_dl" reload --lib "$library" --n 2000
	profiled here "" "$driver_dl" reload --lib "$library" --n 2000
	same_result plain here
	account here --only
}

@test "PyTorch: operators that throw, caught 10,000 times" {
	needs_torch
	local python rounds
	for python in $(pythons); do
		# Older releases take 5 ms for each (a stack trace with names): 500 of theirs will do.
		rounds=50
		[ "$python" != "$(newest_python)" ] || rounds=1000
		same_with "$python" exceptions.py --iters "$rounds"
		jq -e ".caught == 10 * $rounds" "$dir/$release.json"
		[ "$(spans "$release" '.name == "aten::mm"')" -ge $((9 * rounds)) ]
	done
}

@test "PyTorch: generators that hold annotations open" {
	needs_torch
	local python
	for python in $(pythons); do
		same_with "$python" generators.py --iters 100
		[ "$(spans "$release" '.name == "aten::sinh"')" = 900 ]
		[ "$(spans "$release" '.name | startswith("generator ")')" = 300 ]
	done
}

@test "PyTorch: fork, exec and multiprocessing between operators" {
	needs_torch
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		unprofiled "plain-$release" "$python" -W ignore "$WORKLOADS/fork_ops.py" --iters 3
		profiled "$release" "--no-children" "$python" -W ignore "$WORKLOADS/fork_ops.py" --iters 3
		same_result "plain-$release" "$release"
	done
}
