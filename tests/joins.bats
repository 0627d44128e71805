#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# kprof attach -a: all processes that map a known framework, those that start meanwhile, too. Each test has a library of its
# own, which nobody else maps; by the name of the program, processes of other tests are left out.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	cp -r "$(dirname "$driver")" "$dir/own"
	mine=kp$BATS_TEST_NUMBER.$$ # names of processes have 15 bytes
	mv "$dir/own/opdriver" "$dir/own/$mine"
	driver=$dir/own/$mine
}

teardown() {
	harness_teardown
}

join_start() {
	kprof_start k attach -a --max-overhead 0 --comm "$mine" -o "$dir/k.kprof"
}

# account_all NAME… [-- OPTION…]: all these are in the trace, with what each has counted
account_all() {
	local files=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do files+=("$dir/$1.json"); shift; done
	[ $# = 0 ] || shift
	jq -cs '.[0] + {children: [.[1:][] | {pid, counts}]}' "${files[@]}" >"$dir/k.json"
	exported k && account k --only "$@"
}

@test "processes that run, and one that starts meanwhile, are complete; each can have a trace of its own" {
	target_start first "$driver" count --n 100
	target_start second "$driver" threads --n 50 --threads 3
	join_start
	target_go first && target_result first && target_end first
	unprofiled later "$driver" count --n 70
	target_go second && target_result second && target_end second
	kprof_stop k
	account_all first second later -- --complete || return 1
	"$KPROF" export "$dir/k.kprof" -o "$dir/one.%p.json" >/dev/null
	local name file
	for name in first second later; do
		file=$dir/one.$(jq .pid "$dir/$name.json").json
		[ "$(jq '[.traceEvents[] | select(.cat == "cpu_op")] | length' "$file")" = "$(jq '[.counts[]] | add' "$dir/$name.json")" ] ||
			fail "$file"
	done
}

@test "processes that live for a moment: each is complete, and has its name" {
	target_start first "$driver" count --n 1
	join_start
	local i briefs=()
	for i in $(seq 30); do
		unprofiled "brief$i" "$driver" count --n 10 || return 1
		briefs+=("brief$i")
	done
	target_go first && target_result first && target_end first
	kprof_stop k
	account_all first "${briefs[@]}" -- --exact || return 1
	# where the kernel tells that a process that ended before it was looked at had all its probes; it cannot while they are placed
	! grep -q ' bpf_iter_task_vma_new$' /proc/kallsyms ||
		jq -e '[.kprof.gaps[].pid] | unique | length <= 3' "$dir/k.trace.json" || return 1
	jq -c '[.traceEvents[] | select(.ph == "M" and .name == "process_name").args.name]' "$dir/k.trace.json" >"$dir/names"
	jq -e --arg name "$mine" 'length == 31 and all(test($name))' "$dir/names" || fail "$(cat "$dir/names")"
}

@test "a library that nobody had mapped is found when it is mapped, and a gap says since when" {
	join_start
	target_start late "$driver" count --n 20 --until-file "$dir/go"
	target_go late
	wait_for "$PATIENCE" "probes in it" grep -q "^kprof: probes stand in libtorch_cpu\.so of process ${pid[late]}\$" "$dir/k.err"
	touch "$dir/go"
	target_result late && target_end late
	kprof_stop k
	exported k
	mv "$dir/k.trace.json" "$dir/late.trace.json" && account late # what is missing is in the gap
	jq -e '.kprof.gaps | length == 1 and all(.reason | test("once a library is mapped"))' "$dir/late.trace.json" || return 1
	jq -e '[.traceEvents[] | select(.cat == "cpu_op")] | length >= 40' "$dir/late.trace.json"
}

@test "who is not chosen is left out, and its hits are counted; until it executes another program" {
	target_start first "$driver" count --n 10
	cp "$driver" "$dir/own/other"
	target_start other "$dir/own/other" count --n 500
	join_start
	target_go other && target_result other && target_end other
	# shellcheck disable=SC2016 # the inner shell's
	unprofiled chosen sh -c 'exec "$0" "$@"' "$driver" count --n 30
	target_go first && target_result first && target_end first
	kprof_stop k
	account_all first chosen -- --complete
	[ "$(jq '.kprof.overhead.hits_in_other_processes' "$dir/k.trace.json")" -ge 2000 ] || fail "hits of the other one"
	jq -e --argjson other "$(jq .pid "$dir/other.json")" 'all(.traceEvents[]; .pid != $other)' "$dir/k.trace.json"
}

@test "nothing is put into any process, unless it is asked for" {
	target_start first "$driver" count --n 10
	"$KPROF" attach -a --comm "$mine" -d 300ms -o "$dir/k.kprof" -v 2>"$dir/k.err"
	target_go first && target_result first && target_end first
	! grep -q agent "$dir/k.err" || fail "$(cat "$dir/k.err")"
}

@test "either all, or some" {
	refuses "either all processes .-a., or some .-p PID." attach -a -p $$
	refuses "choose among all processes .-a." attach --comm x -p $$
}
