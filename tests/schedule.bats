#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,long
# Recordings of some steps of a training (--steps). The judges: torch.profiler with a schedule, in the same program at the
# same time; programs that say what they did in each step.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup_file() {
	[ "$(id -u)" != 0 ] || torch_hosts
}

teardown_file() {
	torch_hosts_end
}

setup() {
	harness_setup
	own_targets
}

teardown() {
	harness_teardown
}

# kprof_ends NAME [EXPECTED STATUS]: by itself
kprof_ends() {
	local status=0
	wait_for "$PATIENCE" "kprof to end" ended "${pid[$1]}" || return 1
	wait "${pid[$1]}" || status=$?
	unset "pid[$1]"
	[ "$status" = "${2:-0}" ] || fail "kprof: exit status $status, not ${2:-0}" "$(cat "$dir/$1.err")"
}

@test "--steps: of each step all that torch.profiler counts in it, and nothing before or after" {
	local python nr=0
	needs_torch
	for python in $(pythons); do
		nr=$((nr + 1))
		target_start "t$nr" "$python" -W ignore "$WORKLOADS/scheduled.py" --iters 60 --linger
		kprof_start k attach -p "${pid[t$nr]}" --steps 7 --warm-up 3steps -o "$dir/k$nr.kprof"
		target_go "t$nr"
		kprof_ends k
		target_result "t$nr"
		target_end "t$nr"
		exported "k$nr"
		"$PYTHON" "$LIB/check_steps.py" "$dir/k$nr.trace.json" "$dir/t$nr.json" 7
		"$KPROF" report "$dir/k$nr.kprof" --by step --json | jq -e '(.rows | length) == 7 and ([.rows[].inexact] | add) == 0'
	done
}

@test "--steps: annotations that are called a step, or are named, and optimizer's steps" {
	local name
	needs_torch
	for name in named optimizer; do
		target_start "$name" "$(newest_python)" -W ignore "$WORKLOADS/scheduled.py" --name "$name" --iters 60 --linger
		kprof_start k attach --sched -p "${pid[$name]}" --steps 6 -o "$dir/$name.kprof"
		target_go "$name"
		kprof_ends k
		target_result "$name"
		target_end "$name"
		"$KPROF" report "$dir/$name.kprof" --by step --json >"$dir/steps"
		# They are numbered anew. Which ones they are, their calls say: 1 + i % 5 of the model, which has two layers.
		jq -e '(.rows | length) == 6 and ([.rows[].inexact] | add) == 0 and (.rows[0].start_ns <= 1) and
			.window_ns == (.rows[-1] | .start_ns + .total_ns) and all(.rows[]; .wait_ns > 3000000)' "$dir/steps" ||
			fail "$name: $(jq -c '.window_ns, .rows[]' "$dir/steps")"
		for i in 0 1 2 3 4 5; do
			"$KPROF" report "$dir/$name.kprof" --step "$i" --json | jq '[.rows[] | select(.name == "aten::linear").calls] | add'
		done | jq -es '. as $calls | any(range(0; 5); . as $k | $calls == [range(0; 6) | 2 * (1 + (. + $k) % 5)])'
	done
	# With the name that is given; the number behind it does not matter.
	target_start chosen "$(newest_python)" -W ignore "$WORKLOADS/steps.py" --iters 20 --linger
	kprof_start k attach -p "${pid[chosen]}" --steps 2 --step-at Optimizer.step#SGD.step -o "$dir/chosen.kprof"
	target_go chosen
	kprof_ends k
	target_result chosen
	target_end chosen
	[ "$("$KPROF" report "$dir/chosen.kprof" --by step --json | jq -c '[.rows[].name]')" = '["step 0","step 1"]' ]
}

# In six calls of within::wanted(), one of which the one before has made itself, are two, two, four, one and one of fake_linear; the last
# two are left by an exception and by longjmp().
@test "--steps: calls of a function of native code" {
	use_kind gcc
	for warm_up in "" "--warm-up 1000steps"; do # where it is not known yet where they return, and where it is
		target_start t "$driver" within --n 4000 --threads 1 --linger
		# shellcheck disable=SC2086 # two words
		kprof_start k attach -p "${pid[t]}" --steps 10 $warm_up --step-at symbol:within::wanted -o "$dir/k.kprof"
		target_go t
		kprof_ends k
		target_result t
		target_end t
		"$KPROF" report "$dir/k.kprof" --by step --json >"$dir/steps"
		jq -e '(.rows | length) == 10' "$dir/steps" || fail "$(jq -c '.rows[]' "$dir/steps")"
		for i in 0 1 2 3 4 5 6 7 8 9; do
			"$KPROF" report "$dir/k.kprof" --step "$i" --json | jq '[.rows[] | select(.name == "aten::fake_linear").calls] | add'
		done >"$dir/calls"
		jq -es '. as $calls | any(range(0; 5); . as $k | $calls == [range(0; 10) | [2, 2, 4, 1, 1][(. + $k) % 5]])' "$dir/calls" || fail "$(tr '\n' ' ' <"$dir/calls")"
	done
	# One that is not there.
	spawn none sleep 1000
	kprof_start none-kprof attach -p "${pid[none]}" --steps 1 --step-at symbol:within::wanted -o "$dir/none.kprof"
	kprof_stop none-kprof
	grep -q '^hint: no file of the process has such a function' "$dir/none-kprof.err"
	kill "${pid[none]}"
}

@test "--steps: of two processes, until each has had so many" {
	needs_torch
	target_start few "$(newest_python)" -W ignore "$WORKLOADS/scheduled.py" --name named --iters 40 --linger
	target_start many "$(newest_python)" -W ignore "$WORKLOADS/scheduled.py" --iters 100 --linger
	kprof_start k attach -p "${pid[few]},${pid[many]}" --steps 5 -o "$dir/k.kprof"
	target_go few
	target_go many
	kprof_ends k
	target_result few
	target_result many
	"$KPROF" report "$dir/k.kprof" --by step --json >"$dir/steps"
	# What is only named like a step is known to be one by the second: the first does not count.
	jq -e '[.rows[] | select(.inexact == 0)] | group_by(.pid) | length == 2 and all(.[]; length >= 5) and
		any(.[]; length == 5 or (length == 6 and (.[0].name | startswith("train_step"))))' \
		"$dir/steps" || fail "$(jq -c '.rows[]' "$dir/steps")"
	target_end few
	target_end many
}

@test "--steps: of a program from its start, which goes on when they are recorded" {
	needs_torch
	"$KPROF" run --steps 3 -o "$dir/r.kprof" -- "$(pythons | head -n 1)" -W ignore "$WORKLOADS/scheduled.py" --iters 60 --now --name named </dev/null >"$dir/out" 2>"$dir/err" ||
		fail "$(cat "$dir/err")"
	grep -q '^{"pid"' "$dir/out"
	"$KPROF" report "$dir/r.kprof" --by step --json | jq -e '(.rows | length) == 3'
}

@test "--steps: a program that ends before, or has none" {
	needs_torch
	target_start short "$(newest_python)" -W ignore "$WORKLOADS/scheduled.py" --iters 4
	kprof_start k attach -p "${pid[short]}" --steps 100 -o "$dir/short.kprof"
	target_go short
	target_result short
	target_end short
	kprof_ends k
	grep -q '^kprof: only [1-5] of 100 steps ended before the recording did$' "$dir/k.err"
	"$KPROF" report "$dir/short.kprof" --by step --json | jq -e '(.rows | length) >= 1'
	spawn none sleep 1000
	kprof_start k attach -p "${pid[none]}" --steps 1 -o "$dir/none.kprof"
	wait_for "$PATIENCE" "kprof to say so" grep -q '^kprof: no step has begun for 10 seconds: waiting for the first$' "$dir/k.err"
	grep -q '^hint: a step is an annotation such as ProfilerStep#7, .* --step-at NAME names another one; Ctrl-C stops$' "$dir/k.err"
	kprof_stop k
	grep -q '^kprof: nothing was recorded: no step began' "$dir/k.err"
	kill "${pid[none]}"
}

@test "--wait, --repeat: rounds of steps, each a file, with steps in between" {
	local i
	needs_torch
	target_start t "$(newest_python)" -W ignore "$WORKLOADS/scheduled.py" --name optimizer --until-file "$dir/over" --iters 1000000 --linger
	spawn k "$KPROF" attach -v -p "${pid[t]}" --steps 3 --warm-up 1step --wait 20steps --repeat 2 -o "$dir/r.json.gz"
	wait_for "$PATIENCE" "kprof to wait" grep -q '^kprof: waiting$' "$dir/k.err"
	target_go t
	kprof_ends k
	touch "$dir/over"
	target_result t
	target_end t
	[ "$(cat "$dir/k.out")" = "$dir/r.1.json.gz"$'\n'"$dir/r.2.json.gz" ]
	"$PYTHON" "$LIB/validate_trace.py" "$dir/r.1.json.gz" "$dir/r.2.json.gz"
	for i in 1 2; do
		# Of each round two ends of optimizer steps and what lies before them, and the last one. Each begins 1 + i % 5 calls.
		zcat "$dir/r.$i.json.gz" | jq -c '[.traceEvents[] | select(.name == "Optimizer.step#SGD.step")] | length' | grep -qx 3
		zcat "$dir/r.$i.json.gz" | jq '[.traceEvents[] | select(.name == "Optimizer.step#SGD.step" or .name == "aten::linear")] |
			sort_by(.ts | tonumber) | map(if .name == "aten::linear" then "x" else "|" end) | add' -r >"$dir/calls.$i"
		grep -qE '^(x+\|){3}$' "$dir/calls.$i"
	done
	# All of the second comes at least 20 steps, and so 80 ms, after the first.
	for i in 1 2; do zcat "$dir/r.$i.json.gz" | jq '[.traceEvents[] | select(.cat == "cpu_op").ts] | min, max'; done | jq -es '.[2] - .[1] > 80000'
}

@test "--wait: of a program from its start; Ctrl-C ends the rounds" {
	needs_torch
	"$KPROF" run --wait 5steps --steps 2 -o "$dir/w.kprof" -- "$(pythons | head -n 1)" -W ignore "$WORKLOADS/scheduled.py" --name named --iters 400 --now </dev/null >"$dir/out" 2>"$dir/err" ||
		fail "$(cat "$dir/err")"
	"$KPROF" report "$dir/w.kprof" --by step --json | jq -e '(.rows | length) == 2'
	target_start t "$(newest_python)" -W ignore "$WORKLOADS/scheduled.py" --name named --until-file "$dir/over" --iters 1000000 --linger
	spawn k "$KPROF" attach -v -p "${pid[t]}" --steps 1 --wait 1h --repeat 3 -o "$dir/none.json"
	wait_for "$PATIENCE" "kprof to wait" grep -q '^kprof: waiting$' "$dir/k.err"
	kprof_stop k
	grep -q '^kprof: 0 of 3 rounds were recorded$' "$dir/k.err"
	[ ! -e "$dir/none.1.json" ]
	target_go t
	touch "$dir/over"
	target_result t
	target_end t
}

@test "--steps: what makes no sense is refused" {
	for words in "--steps 0|is no number of steps" "--warm-up 3steps|--warm-up says more of --steps" "--step-at x|--step-at says more" \
		"--steps 3 --warm-up 3x|is neither a time nor steps" "--steps 3 --step-at|needs a" "--wait 1s|--wait says more of --steps" "--repeat 2|--repeat says more" \
		"--steps 3 --repeat 0|is no number of rounds" "--steps 3 --repeat 2 -o -|--repeat writes several files" "--steps 1 --wait 0steps|is neither" "--steps 3 --types kernel|steps are annotations" \
		"--steps 3 --step-at symbol:|is no name of a function" "--steps 3 --step-at symbol:f(int)|is no name of a function"; do
		# shellcheck disable=SC2086 # several options
		kprof_says 2 attach -p $$ ${words%%|*}
		refused "${words##*|}"
	done
}
