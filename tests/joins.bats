#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
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

# Kprof reads of their begins when all of them have ended. The last one has a library that nobody had, and comes too late.
@test "processes that live for a moment: each is complete, and has its name" {
	target_start first "$driver" count --n 1
	cp -r "$dir/own" "$dir/late"
	join_start
	pause_process "${pid[k]}"
	local i briefs=()
	for i in $(seq 30); do
		unprofiled "brief$i" "$driver" count --n 10 || return 1
		briefs+=("brief$i")
	done
	unprofiled late "$dir/late/$mine" count --n 10 || return 1
	kill -CONT "${pid[k]}"
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

@test "who was left out joins when it executes a program that is chosen" {
	cp "$driver" "$dir/own/exe" # as the other one is called then
	target_start first "$dir/own/exe" count --n 10
	target_start changed "$driver" exec --n 40
	kprof_start k attach -a --max-overhead 0 --comm exe -o "$dir/k.kprof"
	target_go changed && target_result changed && target_end changed
	target_go first && target_result first && target_end first
	kprof_stop k
	exported k
	jq -e --slurpfile result "$dir/changed.json" '[.traceEvents[] | select(.cat == "cpu_op" and .pid == $result[0].pid)]
		| length == ([$result[0].counts[]] | add)' "$dir/k.trace.json"
}

@test "who was left out joins when it takes a name that is chosen, as servers do; who has joined is shown by its last name" {
	target_start named "$PYTHON" "$WORKLOADS/ctypes_ops.py" --lib "$library" --iters 50 --name "$mine" --last-name "$mine.z" \
		--start-file "$dir/go" --linger
	join_start
	target_go named
	wait_for "$PATIENCE" "probes in it" grep -q "^kprof: probes stand in libtorch_cpu\.so of process ${pid[named]}\$" "$dir/k.err"
	touch "$dir/go"
	target_result named && kprof_stop k && target_end named
	exported k
	jq -e --slurpfile result "$dir/named.json" '[.traceEvents[] | select(.cat == "cpu_op" and .pid == $result[0].pid)]
		| length == ([$result[0].counts[]] | add)' "$dir/k.trace.json" || fail "$(cat "$dir/named.json")"
	jq -e --arg name "$mine.z" '[.traceEvents[] | select(.ph == "M" and .name == "process_name").args.name] == [$name]' "$dir/k.trace.json"
}

has_agent() { # PID
	grep -q kprof_agent "/proc/$1/maps"
}

@test "nothing is put into any process that uses a GPU, unless it is asked for" {
	cp -r "$BUILD/sim/13" "$dir/gpu" && mv "$dir/gpu/gpuops" "$dir/gpu/$mine"
	target_start gpu env LD_LIBRARY_PATH="$dir/gpu" "$dir/gpu/$mine" --n 100 --linger
	join_start
	target_go gpu && target_result gpu
	! has_agent "${pid[gpu]}" || fail "it has the agent"
	kprof_stop k
	"$KPROF" report --by api --json "$dir/k.kprof" | jq -e '.rows | length > 0' || fail "its calls are not there"
	kprof_start asked attach -a --agent --max-overhead 0 --comm "$mine" -o "$dir/asked.kprof"
	has_agent "${pid[gpu]}" || fail "it has no agent"
	kprof_stop asked
	target_end gpu
}

@test "either all, or some" {
	refuses "either all processes .-a., or some .-p PID." attach -a -p $$
	refuses "choose among all processes .-a." attach --comm x -p $$
}
