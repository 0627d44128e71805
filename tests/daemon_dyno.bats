#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# kprof daemon in dynolog's place: dyno asks, and what it means is recorded by its own Kineto, or by kprof from outside. Each
# test has a network namespace of its own.

# shellcheck disable=SC2030,SC2031,SC2034 # bats runs each test in a shell of its own, as is meant; daemon.bash reads daemon_web
# shellcheck source=tests/lib/daemon.bash
source "$BATS_TEST_DIRNAME/lib/daemon.bash"

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	out=/tmp/kprof-dyno-$$-$BATS_TEST_NUMBER # Kineto writes to no folder but /tmp
	mkdir "$out" && chmod 1777 "$out"
	before_daemon=(unshare --net sh -c 'ip link set lo up; exec "$@"' sh)
}

teardown() {
	touch "$dir/stop"
	harness_teardown
	[ -z "${out:-}" ] || rm -rf "$out"
	[ -z "${snapshot:-}" ] || rm -f "$snapshot"
}

serving() {
	daemon_start --no-sampling --dynolog "$@"
	inside=(nsenter "--net=/proc/${pid[daemon]}/ns/net")
}

dyno() {
	"${inside[@]}" "$LIB/dyno.py" "$@"
}

@test "dyno without Kineto: kprof records from outside, and writes where dyno says, for the process's user" {
	serving
	mkdir "$dir/own" && cp "$driver" "$library" "$dir/own" && chmod -R a+rX "$dir"
	target_start target setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/own/opdriver" count --n 2000 --linger
	dyno gputrace --pids "${pid[target]}" --duration-ms 300000 --record-shapes --log-file "$out/trace.json" >"$dir/said"
	grep -q "Matched 1 processes" "$dir/said"
	grep -qF "$out/trace_${pid[target]}.json" "$dir/said"
	# a second one is busy meanwhile
	dyno gputrace --pids "${pid[target]}" --log-file "$out/other.json" >"$dir/busy"
	grep -q '"activityProfilersBusy": *1' "$dir/busy"
	wait_for "$PATIENCE" "its begin" logged recording '.state == "recording"'
	target_go target
	target_result target
	ctl stop -p "${pid[target]}"
	wait_for "$PATIENCE" "the trace" [ -s "$out/trace_${pid[target]}.json" ]
	"$PYTHON" "$LIB/validate_trace.py" "$out/trace_${pid[target]}.json"
	jq -e --argjson n "$(jq '[.counts[]] | add' "$dir/target.json")" '[.traceEvents[] | select(.cat == "cpu_op")] | length == $n' \
		"$out/trace_${pid[target]}.json"
	[ "$(stat -c '%u %a' "$out/trace_${pid[target]}.json")" = "65534 600" ]
	[ ! -e "$out/other_${pid[target]}.json" ]
	# nothing but the trace is there, and the capture can be had
	only_files "$out" "trace_${pid[target]}.json"
	ctl list
	grep -q "done  *${pid[target]}" "$dir/stdout"
	target_end target
	daemon_stop
}

@test "what dyno asks for is on its own account: the processes' user may begin as many as before" {
	serving --allow-owner
	local n pids=() id user=(setpriv --reuid 20001 --regid 20001 --clear-groups)
	mkdir "$dir/bin" && cp "$KPROF" "$dir/bin" && chmod 755 "$dir/bin" "$dir/bin/kprof"
	for n in {1..9}; do # of a user, eight may go on
		spawn "theirs$n" "${user[@]}" sleep 1000
		pids+=("${pid[theirs$n]}")
	done
	for n in {1..9}; do wait_for "$PATIENCE" "process $n" sleeps_as 20001 "${pid[theirs$n]}"; done
	dyno gputrace --pids "$(IFS=, && echo "${pids[*]}")" --process-limit 9 --duration-ms 300000 --log-file "$out/trace.json" >"$dir/said"
	answer '.activityProfilersTriggered | length == 9'
	id=$("${user[@]}" "$dir/bin/kprof" ctl start --socket "$socket" -p "${pids[0]}" -d 100ms)
	wait_for "$PATIENCE" "the end of what the user has begun" is_done "$id"
	# all of it is that user's
	"$KPROF" ctl list --socket "$socket" --json | jq -e '.recordings | length == 10 and all(.uid == 20001)'
	kill "${pids[@]}"
	daemon_stop
}

sleeps_as() { # UID PID
	[ "$(stat -c %u "/proc/$2")" = "$1" ] && [ "$(cat "/proc/$2/comm")" = sleep ]
}

# answer JQ: of what the daemon answered dyno, which shows it, for $dir/said
answer() {
	sed -n 's/^response = //p' "$dir/said" | jq -e "$1" >/dev/null || fail "not $1" "$(cat "$dir/said")"
}

@test "dyno's iterations: kprof begins with a multiple, as asked for; what it does otherwise is said by name" {
	serving
	local rank key
	for rank in 0 1; do
		target_start "rank$rank" "$BUILD/workloads/stepper" "$library" 1000000 5 -1 0
		target_go "rank$rank"
	done
	dyno gputrace --pids "${pid[rank0]},${pid[rank1]}" --iterations 3 --profile-start-iteration-roundup 40 --log-file "$out/steps.json" \
		--config VERBOSE_LOG_LEVEL=1 >"$dir/said"
	for key in PROFILE_START_ITERATION_ROUNDUP VERBOSE_LOG_LEVEL; do
		answer ".notes | map(select(test(\"$key\"))) | length == 1"
		logged dyno ".level == \"warning\" and (.notes | test(\"$key\"))"
	done
	for rank in 0 1; do
		wait_for "$PATIENCE" "the trace" [ -s "$out/steps_${pid[rank$rank]}.json" ]
		jq -ce '[.traceEvents[].name | strings | select(startswith("ProfilerStep#")) | ltrimstr("ProfilerStep#") | tonumber] | unique |
			length == 3 and .[0] % 40 == 0 and .[2] == .[0] + 2' "$out/steps_${pid[rank$rank]}.json"
	done
	# Kineto's warm-up puts the begin off; an agent is put into no process
	dyno gputrace --pids "${pid[rank0]}" --duration-ms 100 --log-file "$out/types.json" --config ACTIVITIES_WARMUP_PERIOD_SECS=1 \
		--config ACTIVITY_TYPES=user_annotation,kernel >"$dir/said"
	answer '.notes == ["ACTIVITY_TYPES: not recorded, since nothing is put into a process: kernel"]'
	wait_for "$PATIENCE" "the trace" [ -s "$out/types_${pid[rank0]}.json" ]
	"$KPROF" ctl list --socket "$socket" --json | jq -e '.recordings[0] | .started_ms - .begun_ms >= 1000'
	! grep -q libkprof_agent "/proc/${pid[rank0]}/maps" || false
	kill "${pid[rank0]}" "${pid[rank1]}"
	daemon_stop
}

@test "dyno's memory request: kprof writes the snapshot, too, where dyno says that it is" {
	local python id
	needs_torch
	python=$(newest_python)
	serving
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	snapshot=/tmp/memory_snapshot_${pid[t]}.pickle
	rm -f "$snapshot"
	dyno gputrace --pids "${pid[t]}" --duration-ms 300000 --profile-memory --log-file "$out/trace.json" >"$dir/said"
	grep -qF "$snapshot" "$dir/said"
	answer '(.activityProfilersTriggered | length == 1) and (has("notes") | not)'
	wait_for "$PATIENCE" "both recordings" both_record
	wait_for "$PATIENCE" "whole stacks" stacks_whole
	echo "mix 100" >&"${fd[t]}"
	wait_for "$PATIENCE" "its books" grep -q '^{.*}$' "$dir/t.out"
	grep '^{' "$dir/t.out" >"$dir/books.json"
	for id in $("$KPROF" ctl list --socket "$socket" --json | jq -r '.recordings[].id'); do ctl stop "$id"; done
	"$PYTHON" "$LIB/check_alive.py" few-stacks "$dir/books.json" "$snapshot"
	[ "$(stat -c %a "$snapshot")" = 600 ]
	# the trace has what was allocated, too
	jq -e '[.traceEvents[] | select(.name == "[memory]")] | length > 100' "$out/trace_${pid[t]}.json"
	target_end t
	daemon_stop
}

# Until the tables are built, stacks end early.
stacks_whole() {
	! logged recording '.error // "" | test("unwind tables are still being built")' || logged recorder '.message == "the unwind tables are ready"'
}

both_record() {
	"$KPROF" ctl list --socket "$socket" --json | jq -e '.recordings | length == 2 and all(.state == "recording")'
}

@test "dyno can't have files written elsewhere, over others, or through links" {
	serving
	spawn target sleep 1000
	local path
	ln -s /etc "$out/link"
	echo precious >"$out/there_${pid[target]}.json"
	for path in /etc/x.json "$out/../../etc/x.json" /root/x.json; do
		dyno gputrace --pids "${pid[target]}" --duration-ms 100 --log-file "$path" >"$dir/said" 2>&1 || true
		! grep -q "Matched 1" "$dir/said" || fail "$path: $(cat "$dir/said")"
	done
	for path in "$out/link/x.json" "$out/there.json"; do
		dyno gputrace --pids "${pid[target]}" --duration-ms 100 --log-file "$path" >"$dir/said"
		wait_for "$PATIENCE" "the end" nothing_recorded
	done
	[ ! -e "/etc/x_${pid[target]}.json" ]
	[ "$(cat "$out/there_${pid[target]}.json")" = precious ]
	logged recorder '.message | test("cannot write")'
	[ -z "$(find "$state/recordings" -name '*.making')" ]
	kill "${pid[target]}"
	daemon_stop
}

nothing_recorded() {
	"$KPROF" ctl status --socket "$socket" --json | jq -e '.recordings == 0'
}

@test "Kineto inside where it asks for configs: its trace is at the name that dyno prints; /metrics counts both" {
	local python any=
	daemon_web=(--listen 127.0.0.1:0)
	serving
	for python in $(pythons); do
		grep -qs dynoconfigclient "$(torch_folder "$python")/lib/libtorch_cpu.so" || continue
		any=$((any + 1))
		rm -f "$dir/stop"
		target_start train "${inside[@]}" env KINETO_USE_DAEMON=1 "$python" "$WORKLOADS/oploop.py" --iters 1000000000 --calls 20 \
			--pause 0.01 --until-file "$dir/stop"
		target_go train
		wait_for "$PATIENCE" "Kineto to ask" asks "${pid[train]}"
		ctl processes --json
		jq -e --argjson p "${pid[train]}" --arg torch "pytorch $("$python" -c 'import torch; print(torch.__version__)')" '.processes[] |
			select(.pid == $p) | .kineto and (.frameworks | split(", ") | any(. == $torch))' "$dir/stdout"
		dyno gputrace --pids "${pid[train]}" --duration-ms 500 --log-file "$out/kineto.json" >"$dir/said"
		grep -q "Matched 1 processes" "$dir/said"
		wait_for "$PATIENCE" "the trace" whole_json "$out/kineto_${pid[train]}.json"
		jq -e '[.traceEvents[] | select(.cat == "cpu_op")] | length > 10' "$out/kineto_${pid[train]}.json"
		has "^kprof_processes\\{state=\"kineto\"\\} [1-$any]\$" # one that was killed is remembered for a while
		has "^kprof_requests_total\\{request=\"dyno\",result=\"ok\"\\} $any\$"
		has '^kprof_requests_total\{request="kineto",result="ok"\} [1-9]'
		# it was not kprof
		"$KPROF" ctl list --socket "$socket" --json | jq -e '.recordings == []'
		kill -KILL "${pid[train]}"
		wait "${pid[train]}" || :
		unset 'pid[train]'
	done
	[ -n "$any" ] || skip "no PyTorch with Kineto's client here: scripts/setup check installs it"
	daemon_stop
}

asks() { # PID
	"$KPROF" ctl status --socket "$socket" --json | jq -e --argjson p "$1" '.kineto.processes | any(.pid == $p)'
}

whole_json() {
	jq -e . "$1" >/dev/null 2>&1
}
