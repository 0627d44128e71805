#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# kprof top and the steps of trainings, which it counts in all processes of the machine that have PyTorch: no other suite runs
# meanwhile.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/top.bash
source "$BATS_TEST_DIRNAME/lib/top.bash"

setup() {
	top_setup
}

teardown() {
	top_teardown
}

@test "a training: its framework, its operators where that is asked for, its steps beside its own count" {
	target_start train "$(pythons | head -n 1)" "$load" steps --text "$mine"
	top_starts
	chooses train
	keys o && shows 'operators and device calls are recorded: probes are placed' '^ +[0-9.]+ +[0-9.]+ +[0-9.]+us +aten::add_ '
	keys c && shows 'no device runtime|nothing in the last ten seconds' # nor operators
	keys Escape && shows "^ *${pid[train]} .* pytorch [0-9.]+"
	keys s && shows 'steps are counted: probes at annotations' 'STEPS/s' "^ *${pid[train]} +[^ ]+( +[0-9.]+)+ +[0-9]+\\.[0-9]{2} "
	keys s
	wait_for "$PATIENCE" "no steps" eval '! screen_says "STEPS/s"'
	quits
	# Of some seconds; the program counts, and looks at the clock, before and after them.
	local before after
	before=$(answer train .steps,.now_ns)
	"$KPROF" top --steps -n 1 -d 4s --json >"$dir/steps"
	after=$(answer train .steps,.now_ns)
	printf '%s\n' "$before" "$after" | jq -se --slurpfile seen "$dir/steps" --argjson pid "${pid[train]}" '((.[2] - .[0]) * 1e9 / (.[3] - .[1])) as $rate
		| $seen[0].processes[] | select(.pid == $pid) | .steps_per_s > $rate / 2 and .steps_per_s < $rate * 2 and (.frameworks | test("^pytorch"))' ||
		fail "$before $after $(jq -c ".processes[] | select(.pid == ${pid[train]})" "$dir/steps")"
}

@test "steps of processes that start afterwards: where no process had a framework, and beside one whose steps are counted" {
	local python
	python=$(pythons | head -n 1)
	spawn top "$KPROF" top --steps -d 0.5s --json --filter "$mine"
	has_rate() { tail -n 1 "$dir/top.out" | jq "any(.processes[]; .pid == ${pid[$1]} and .steps_per_s > 0)" | grep -q true; }
	wait_for "$PATIENCE" "a look" [ -s "$dir/top.out" ]
	target_start first "$python" "$load" steps --text "$mine"
	wait_for "$PATIENCE" "the first one's rate" has_rate first
	# Not because the recording began anew, which it does each minute.
	local try file same=
	for try in 1 2 3; do
		target_start "other$try" "$python" "$load" steps --text "$mine"
		file=$(recording "${pid[top]}") || continue
		wait_for "$PATIENCE" "both rates" eval 'has_rate "other$try" && has_rate first'
		[ "$(recording "${pid[top]}")" != "$file" ] || { same=1 && break; }
	done
	[ "$same" ]
	# All have ended: then it is as in the beginning.
	target_end first
	for ((; try; try--)); do target_end "other$try"; done
	target_start last "$python" "$load" steps --text "$mine"
	wait_for "$PATIENCE" "the last one's rate" has_rate last
	kill -INT "${pid[top]}"
	wait "${pid[top]}"
	unset "pid[top]"
}

# A recording that is a minute old begins anew. A minute passes for kprof when there is a file.
@test "the processes whose steps are counted end: the other numbers go on, and so they do when the recording begins anew" {
	local old
	cc -O2 -shared -fPIC -o "$dir/libjump.so" "$WORKLOADS/clock_jump.c"
	target_start train "$(pythons | head -n 1)" "$load" steps --text "$mine"
	target_start other "$(pythons | head -n 1)" "$load" steps --text "$mine"
	spawn top env LD_PRELOAD="$dir/libjump.so" CLOCK_JUMP="$dir/jump" "$KPROF" top --steps -d 0.5s --json --filter "$mine"
	# looks_more NR: so many more than now
	looks_more() { wait_for "$PATIENCE" "looks" eval "[ \$(wc -l <'$dir/top.out') -ge $(($(wc -l <"$dir/top.out") + $1)) ]"; }
	another_file() { recording "${pid[top]}" >"$dir/now" && [ "$(cat "$dir/now")" != "$old" ]; }
	no_file() { ! recording "${pid[top]}"; }
	wait_for "$PATIENCE" "steps" eval "jq -se 'any(.[]; [.processes[] | select(.steps_per_s > 0)] | length == 2)' '$dir/top.out' >/dev/null"
	old=$(recording "${pid[top]}")
	target_end train
	looks_more 3
	[ "$(recording "${pid[top]}")" = "$old" ]
	touch "$dir/jump"
	wait_for "$PATIENCE" "the recording to begin anew" another_file
	looks_more 3
	# the minute was in one of them
	jq -se 'any(.[]; .interval_ns > 60e9)' "$dir/top.out"
	# the last one of them ends, and the recording with it
	target_end other
	wait_for "$PATIENCE" "the recording to end" no_file
	looks_more 3
	kill -INT "${pid[top]}"
	wait "${pid[top]}"
	unset "pid[top]"
}
