#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Device runtimes as tables: the calls of real libraries without a device, each with its arguments and its error. What
# was called the programs of tests/workloads/runtimes say themselves.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
}

teardown() {
	harness_teardown
}

named() { # RUNTIME WHAT: from its source's first comment
	sed -n "s/^ \* $2: //p" "$WORKLOADS/runtimes/$1.c"
}

# built RUNTIME: the program that calls it, $dir/RUNTIME.program
built() {
	local link what
	for what in link needs; do
		[ -n "$(named "$1" $what)" ] || fail "its first comment has no line '$what:'" || return 1
	done
	read -ra link <<<"$(named "$1" link)"
	echo "#include <$(named "$1" needs)>" | cc -D__HIP_PLATFORM_AMD__ -E -o /dev/null - 2>"$dir/cc.err" ||
		skip "$(named "$1" packages) not installed: scripts/setup check installs it"
	cc -std=gnu11 -D_GNU_SOURCE -O0 -g -Wall -Werror -o "$dir/$1.program" "$WORKLOADS/runtimes/$1.c" "${link[@]}"
}

# same_calls NAME RUNTIME CATEGORY SOURCE [COMMAND…]: all calls are in the trace, with all that the program says of them
same_calls() {
	local name=$1 runtime=$2 category=$3 source=$4
	shift 4
	profiled "$name" --no-agent "$@" "$dir/$runtime.program"
	"$PYTHON" "$LIB/compare_calls.py" --category "$category" "$dir/$name.trace.json" "$dir/$name.json"
	jq -e --arg source "$source" '.kprof.sources[$source] | .fired >= .begins and .begins > 0' "$dir/$name.trace.json"
}

@test "hip: calls of the real library, without a device, with arguments and errors" {
	built hip
	same_calls hip hip cuda_runtime hip_runtime
	jq -e '[.calls[] | select(.error)] | length > 0' "$dir/hip.json"
}

@test "level zero: calls of the real loader, without a driver" {
	built level_zero
	same_calls bare level_zero xpu_driver level_zero
	jq -e 'all(.calls[]; .error)' "$dir/bare.json"
}

@test "level zero: calls that a driver answers, and those that it refuses" {
	built level_zero
	cc -std=gnu11 -D_GNU_SOURCE -O2 -DDRIVER -shared -fPIC -o "$dir/libdriver.so" "$WORKLOADS/runtimes/level_zero.c"
	ZE_ENABLE_ALT_DRIVERS=$dir/libdriver.so same_calls driven level_zero xpu_driver level_zero
	jq -e '[.calls[] | select(.name == "zeCommandListAppendMemoryCopy") | .error == null] | any and (all | not)' "$dir/driven.json"
}

@test "a runtime is in what list and check say of a process" {
	built level_zero
	target_start shown "$dir/level_zero.program"
	"$KPROF" list --all >"$dir/list"
	grep -E "^ *${pid[shown]} .*level-zero 1" "$dir/list" || fail "$(grep -w "${pid[shown]}" "$dir/list")"
	"$KPROF" check -v -p "${pid[shown]}" >"$dir/check"
	grep -E "runtime +.*level-zero" "$dir/check"
	target_go shown
	target_result shown
	target_end shown
}
