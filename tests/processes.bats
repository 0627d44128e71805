#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Descendants at the attach, children forked while recording, exec, exit, run.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup_file() {
	hosts_of=newest_python torch_hosts
}

teardown_file() {
	torch_hosts_end
}

setup() {
	harness_setup
	own_targets
	use_kind gcc
}

teardown() {
	harness_teardown
}

# The processes that have operators in the trace.
pids_seen() { # NAME
	jq '[.traceEvents[] | select(.ph == "X" and .cat == "cpu_op").pid] | unique | length' "$dir/$1.trace.json"
}

gaps_of() { # NAME PID
	jq "[.kprof.gaps[] | select(.pid == $2)] | length" "$dir/$1.trace.json"
}

# The calls of a process in the trace, and by its own count.
seen_of() { # NAME PID
	jq "[.traceEvents[] | select(.ph == \"X\" and .cat == \"cpu_op\" and .pid == $2)] | length" "$dir/$1.trace.json"
}

# run_and_go_on NAME COMMAND…: under kprof run; the second half of its calls come when its probes stand
run_and_go_on() {
	local name=$1
	shift
	spawn "$name-kprof" "$KPROF" run -v -o "$dir/$name.kprof" -- "$@" --until-file "$dir/$name.probed" --now
	go_on "$name" 1
	wait_for "$PATIENCE" "$name to end" ended "${pid[$name-kprof]}"
	wait "${pid[$name-kprof]}"
	unset "pid[$name-kprof]"
	grep '^{' "$dir/$name-kprof.out" >"$dir/$name.json"
}

@test "children and grandchildren that are there at the attach are complete" {
	profiled here "" "$driver" family --children 3 --n 2000
	account here --only --complete
	[ "$(pids_seen here)" = 7 ]
}

@test "--no-children: the process alone" {
	profiled family "--no-children" "$driver" family --children 2 --n 500
	account family --ignore-children --complete
	[ "$(pids_seen family)" = 1 ]
	profiled forked "--no-children" "$driver" children --children 3 --n 500
	account forked --ignore-children --complete
	[ "$(pids_seen forked)" = 1 ]
}

@test "--children follow: complete, or with a declared gap" {
	meanwhile="go_on here 4" profiled here "--children follow" "$driver" children --children 4 --n 5000 --until-file "$dir/here.probed"
	account here --only
	[ "$(pids_seen here)" = 5 ]
	# The parent has no gap.
	[ "$(seen_of here "$(jq .pid "$dir/here.json")")" = "$(jq '.counts | add' "$dir/here.json")" ]
}

@test "--children exact: complete from the first instruction" {
	profiled here "--children exact" "$driver" children --children 4 --n 2000
	account here --only --complete
	profiled inside "--children exact" "$driver" fork --children 4 --n 500
	account inside --only --complete
}

@test "--children exact: a program that a child becomes is complete, too" {
	# They live long enough to be looked at: had one ended before, what else it mapped would not be known.
	profiled here "--children exact" "$driver" children --exec --children 3 --n 2000 --pace 20
	account here --only --complete
	[ "$(pids_seen here)" = 4 ]
}

@test "--children exact: another process that uses the same library is not recorded" {
	target_start bystander "$driver" count --n 5000 --linger
	target_start target "$driver" count --n 3000 --linger
	kprof_start k attach -p "${pid[target]}" --children exact -o "$dir/target.kprof"
	target_go bystander && target_result bystander
	target_go target && target_result target
	kprof_stop k
	clean_text "${pid[bystander]}" "$library"
	target_end bystander
	target_end target
	exported target
	account target --complete
	[ "$(pids_seen target)" = 1 ]
}

@test "a process without --children exact costs others nothing: no probe stands in them" {
	target_start bystander "$driver" count --n 10 --linger
	target_start target "$driver" count --n 10 --linger
	kprof_start k attach -p "${pid[target]}" -o "$dir/target.kprof"
	probed "${pid[target]}" "$library"
	clean_text "${pid[bystander]}" "$library"
	kprof_stop k
	clean_text "${pid[target]}" "$library"
}

@test "exec in the middle of an operator" {
	profiled here "" "$driver" exec --n 5000 --pace 5
	account here --only
	# What was open when the old program went is not open in the new one.
	jq -e '[.traceEvents[] | select(.ph == "X" and .name == "aten::fake_apply")] | length == 1' "$dir/here.trace.json"
	profiled exact "--children exact" "$driver" exec --n 5000
	account exact --only --complete
}

@test "the target ends while recording, inside an operator: kprof ends too" {
	target_start here "$driver" exit --n 3000
	kprof_start k attach -p "${pid[here]}" -o "$dir/here.kprof"
	target_go here && target_result here && target_end here
	wait_for "$PATIENCE" "kprof to notice" ended "${pid[k]}"
	wait "${pid[k]}"
	unset "pid[k]"
	exported here
	account here --only --complete
}

@test "the target is killed while recording" {
	target_start here "$driver" spin
	kprof_start k attach -p "${pid[here]}" -o "$dir/here.kprof"
	target_go here
	kill -KILL "${pid[here]}"
	wait_for "$PATIENCE" "kprof to notice" ended "${pid[k]}"
	wait "${pid[k]}"
	unset "pid[k]" "pid[here]"
	exported here
}

@test "a target that ends during the attach, at many moments" {
	local i status step=2
	[ -z "${KPROF_SOAK:-}" ] || step=1
	for ((i = 1; i <= 20; i += step)); do
		target_start "t$i" "$driver" exit --n "$((i * 1000))"
		spawn "k$i" "$KPROF" attach -p "${pid[t$i]}" -o "$dir/k$i.kprof"
		target_go "t$i"
		target_end "t$i"
		wait_for "$PATIENCE" "kprof to end" ended "${pid[k$i]}"
		status=0
		wait "${pid[k$i]}" || status=$?
		unset "pid[k$i]"
		# Recorded what there was, or says that the process is gone; no crash, no file half made.
		case $status in
		0) "$KPROF" report "$dir/k$i.kprof" >/dev/null ;;
		1) grep -qE "(no process|ended|exited|gone)" "$dir/k$i.err" && [ ! -e "$dir/k$i.kprof" ] ;;
		*) fail "exit status $status: $(cat "$dir/k$i.err")" ;;
		esac
	done
}

@test "a process that is gone" {
	sleep 0 &
	local gone=$! status=0
	wait "$gone"
	"$KPROF" attach -p "$gone" -d 1s -o "$dir/x.kprof" 2>"$dir/err" || status=$?
	[ "$status" = 1 ]
	grep -q "$gone" "$dir/err"
	grep -q '^hint:' "$dir/err"
	[ ! -e "$dir/x.kprof" ]
}

@test "another process that gets the number of a target that ended is not recorded" {
	target_start first "$driver" exit --n 100
	target_start second "$driver" count --n 100 --linger
	local number=${pid[first]} status=0
	kprof_start k attach --children exact -p "$number" -p "${pid[second]}" -o "$dir/second.kprof"
	target_go first && target_end first
	"$PYTHON" "$WORKLOADS/with_number.py" "$number" "$driver" count --n 700 --now >"$dir/again.out" || status=$?
	target_go second && target_result second
	kprof_stop k
	target_end second
	[ "$status" != 77 ] || skip "may not choose a process number here"
	[ "$status" = 0 ] && [ "$(grep '^{' "$dir/again.out" | jq .pid)" = "$number" ]
	exported second
	[ "$(seen_of second "$number")" = 401 ] # of the first: 4 × 100, and the operator it ended in
}

@test "run: complete, or with a declared gap while the probes are placed" {
	run_and_go_on here "$driver" count --n 3000
	exported here
	account here --only
	[ "$(seen_of here "$(jq .pid "$dir/here.json")")" -gt 0 ]
}

@test "run: the program's output and exit status are its own" {
	local status=0
	"$KPROF" run -o "$dir/x.kprof" -- sh -c 'echo out; echo err >&2; exit 7' >"$dir/out" 2>"$dir/err" || status=$?
	[ "$status" = 7 ]
	[ "$(cat "$dir/out")" = "out
$dir/x.kprof" ] # and then kprof's result: the file written
	grep -q '^err$' "$dir/err"
}

@test "run: a library opened later" {
	run_and_go_on here "$driver_dl" count --lib "$library" --n 5000
	exported here
	account here --only
	[ "$(seen_of here "$(jq .pid "$dir/here.json")")" -gt 0 ]
}

@test "run: PyTorch from its import on" {
	needs_torch
	local python
	python=$(pythons | head -n 1)
	target_start out "$KPROF" run -v -o "$dir/out.kprof" -- "$python" "$WORKLOADS/oploop.py" --iters 20
	wait_for "$PATIENCE" "the probes" has_placed out 1 # all of them: that takes a while
	target_go out && target_result out && target_end out
	exported out
	account out --exact # the loop began when all was imported and the probes stood
}

# PyTorch is imported, and all probes stand in it.
goes_on_imported() { # NAME
	wait_for "$PATIENCE" "the import" target_said "$1" '^IMPORTED ' || return 1
	wait_for "$PATIENCE" "the probes" has_placed "$1-kprof" 1 && target_go "$1"
}

@test "PyTorch: attached before the import" {
	needs_torch
	local python
	python=$(newest_python)
	# env: not one that has imported it
	library='' meanwhile="goes_on_imported here" profiled here "" env "$python" "$WORKLOADS/oploop.py" --iters 100 --import-late
	account here --exact # as in the test above
	[ "$(seen_of here "$(jq .pid "$dir/here.json")")" -gt 1000 ]
}

# tids FIRST LAST: of the target's threads, in the order in which it tells them
tids() {
	sed -n 's/^TIDS //p' "$dir/t.out" | cut -d' ' -f"$1-$2" | tr ' ' ,
}

@test "--tid: only these threads, of which nothing is missing" {
	local python
	needs_torch
	python=$(newest_python)
	target_start t "$python" -W ignore "$WORKLOADS/three_threads.py" --iters 300 --linger
	# Two of the threads; all of them that can be chosen.
	kprof_start two attach -p "${pid[t]}" --tid "$(tids 1 2)" --sched --stacks -o "$dir/two.kprof"
	kprof_start all attach -p "${pid[t]}" --tid "$(tids 1 64)" --sched --stacks --shapes --with-stack -o "$dir/all.kprof"
	target_go t
	target_result t
	kprof_stop two
	kprof_stop all
	for name in two all; do "$KPROF" report "$dir/$name.kprof" --json >"$dir/$name.ops"; done
	jq -e --slurpfile truth "$dir/t.json" '[.rows[] | {(.name): .calls}] | add ==
		($truth[0].called | del(.["aten::mm"]))' "$dir/two.ops" || fail "$(jq -c '.rows[]' "$dir/two.ops")"
	jq -e --slurpfile truth "$dir/t.json" '[.rows[] | {(.name): .calls}] | add as $seen |
		all($truth[0].called | to_entries[]; $seen[.key] == .value)' "$dir/all.ops" || fail "$(jq -c '.rows[]' "$dir/all.ops")"
	[ "$("$KPROF" report "$dir/two.kprof" --by thread --json | jq -r '[.rows[].tid] | sort | map(tostring) | join(",")')" = "$(tids 1 2 | tr , '\n' | sort -n | paste -sd ,)" ]
	# Neither waits nor samples of others.
	"$KPROF" report "$dir/two.kprof" --json | jq -r '.threads[].tid' | sort -u >"$dir/waited"
	tids 1 2 | tr , '\n' | sort | diff - "$dir/waited"
	kprof_says 2 attach -p "${pid[t]}" --tid 1 -o "$dir/none.kprof"
	refused "no process that is to be recorded has a thread 1"
	target_end t
}
