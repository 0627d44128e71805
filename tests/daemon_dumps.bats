#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# The flight recorder's dumps: what makes them, and that the moment is in them. Steps, signals that end a process, calls and what
# the kernel says are in daemon.bats. The judges: programs that count what they do, the kernel, the simulated GPU.

# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own, as is meant
# shellcheck source=tests/lib/daemon.bash
source "$BATS_TEST_DIRNAME/lib/daemon.bash"

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	comm=f$BATS_TEST_NUMBER-$$ # of what is watched: other suites' daemons do not mean it
	flight=(--no-sampling --watch "$comm" --flight-chunk 500ms --max-overhead 100%)
}

teardown() {
	harness_teardown
	[ -z "${cgroup:-}" ] || cgroups_end "$cgroup"
}

asked_for() { # TIMES: signals that the daemon knows of
	"$KPROF" ctl status --socket "$socket" --json | jq -e --argjson n "$1" '.triggers.asked == $n'
}

@test "the owner of a watched process, or root, has a dump made by a signal; nobody else has, and the process lives" {
	local target d ids
	for d in "$dir" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"; do chmod a+x "$d" "$(dirname "$d")"; done
	kprof_says 2 daemon --trigger asked:USR1 # it would end who does not handle it
	daemon_start "${flight[@]}" --trigger asked:URG+WINCH --trigger-pause 0
	wait_for "$PATIENCE" "the flight recorder" logged recording
	mkdir -m 755 "$dir/own" && cp "$driver" "$dir/own/$comm" && cp "$library" "$dir/own"
	target_start target setpriv --reuid 65533 --regid 65533 --clear-groups "$dir/own/$comm" count --n 1000 --linger
	target=${pid[target]}
	wait_for "$PATIENCE" "it to be watched" watched
	target_go target
	target_result target
	# by one who may send it any signal, and is not its owner; by its owner, to a thread of it, and one that is not meant
	setpriv --reuid 65534 --clear-groups --inh-caps +kill --ambient-caps +kill "$PYTHON" -c "import os, signal; os.kill($target, signal.SIGURG)"
	setpriv --reuid 65533 --clear-groups "$PYTHON" -c "
import ctypes, os, signal
assert ctypes.CDLL(None, use_errno=True).syscall(234, $target, $target, signal.SIGURG) == 0  # tgkill
os.kill($target, signal.SIGCONT)
os.kill($target, signal.SIGWINCH)"
	wait_for "$PATIENCE" "the dump" dump_for "^asked:URG.WINCH: user 65533 has sent process $target signal 28 .WINCH.\$"
	asked_for 1
	ids=$(cat "$dir/dump.id")
	ctl get "$ids" -o "$dir/dump.kprof"
	has_all "$dir/dump.kprof" "$dir/target.json"
	kill -URG "$target" $$
	wait_for "$PATIENCE" "the dump" dump_for "user 0 has sent process $target signal 23 .URG."
	asked_for 2
	ids+=" $(cat "$dir/dump.id")"
	"$KPROF" ctl list --socket "$socket" --json | jq -e '.recordings | length == 2 and all(.uid == 0)'
	target_end target
	daemon_stop
	# whose share of the folder each takes, for the next daemon; unit/cmd/daemon/record/quota.c is about the shares
	[ "$(for d in $ids; do jq -c '[.uid, .asked_by]' "$state/recordings/$d.json"; done)" = "[0,65533]"$'\n'"[0,null]" ]
	rm -r "$state/flight" # the dumps are enough to be read as traces
}

@test "the kernel's OOM killer: who was watched leaves a dump with its last step; a recorder is replaced" {
	memory_cgroup $((64 << 20)) || skip "no cgroup with a limit of memory may be made here"
	[ -r /dev/kmsg ] || skip "the kernel's messages cannot be read: /dev/kmsg"
	local target recorder
	daemon_start "${flight[@]}" --trigger oom --trigger-pause 0
	wait_for "$PATIENCE" "the flight recorder" logged recording
	before_stepping=(sh -c "echo \$\$ >'$cgroup/cgroup.procs'; exec \"\$@\"" in_cgroup)
	stepping 200 5 40 1 1000
	target=${pid[target]}
	wait_for "$PATIENCE" "the dump" dump_for "^oom: the kernel says: .*ut of memory: Killed process $target "
	! wait "$target" || fail "it lives"
	unset 'pid[target]'
	ctl get "$(cat "$dir/dump.id")" -o "$dir/dump.kprof"
	"$KPROF" report "$dir/dump.kprof" --by step --json --limit 0 | jq -e --argjson p "$target" '.complete and ([.rows[] | select(.pid == $p) | .step] == [range(41)])'
	# the kernel takes the recorder for the best one to end, when another process there wants memory
	recorder=$("$KPROF" ctl status --socket "$socket" --json | jq .flight.pid)
	echo "$recorder" >"$cgroup/cgroup.procs"
	echo 1000 >"/proc/$recorder/oom_score_adj"
	sh -c "echo \$\$ >'$cgroup/cgroup.procs'; head -c 1000M /dev/zero | tail -c 1000M >/dev/null" || true
	wait_for "$PATIENCE" "another one" another_flight "$recorder"
	logged recorder_ended '.signal == 9'
	wait_for "$PATIENCE" "the dump" dump_for "^oom: the kernel says: .*ut of memory: Killed process $recorder "
	daemon_stop
	rm -r "$state/flight" # the dumps are enough to be read as traces
}

looked() { # NUMBER: so many captures
	"$KPROF" ctl status --socket "$socket" --json | jq -e --argjson n "$1" '.triggers.looks >= $n'
}

looks_more() { # NUMBER: than by now
	wait_for "$PATIENCE" "$1 looks more" looked $(($("$KPROF" ctl status --socket "$socket" --json | jq .triggers.looks) + $1))
}

@test "a step that hangs leaves a dump while it does, of its begin and before, and no other one then or at its end" {
	daemon_start "${flight[@]}" --flight 8s --trigger 'step>700ms' --trigger-pause 0
	wait_for "$PATIENCE" "the flight recorder" logged recording
	stepping 60 10 30 3600000
	wait_for "$PATIENCE" "the dump" dump_for "^step>700ms: a step of process ${pid[target]} goes on after [0-9.]* ms, more than 700.0 ms"
	ctl get "$(cat "$dir/dump.id")" -o "$dir/dump.kprof"
	"$KPROF" report "$dir/dump.kprof" --by step --json --limit 0 | jq -e '[.rows[] | select(.total_ns >= 700e6) | .step] == [30] and (.rows | length) > 1'
	looks_more 20 # for longer than the recorder keeps its begin
	kill -KILL "${pid[target]}"
	! wait "${pid[target]}" || fail "it lives"
	unset 'pid[target]'
	looks_more 4
	"$KPROF" ctl list --socket "$socket" --json | jq -e '.recordings | length == 1'
	daemon_stop
	rm -r "$state/flight" # the dump is enough to be read as traces
}

@test "whom samples leave out, by name or user, is not watched either; others are" {
	local secret=s${comm:1} user name option d
	mkdir -m 755 "$dir/own" && cp "$library" "$dir/own"
	for d in "$dir" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"; do chmod a+x "$d" "$(dirname "$d")"; done
	for option in "--exclude-comm=$secret" --user=65533; do
		daemon_start "${flight[@]}" --watch "?${comm:1}" "$option"
		wait_for "$PATIENCE" "the flight recorder" logged recording
		for name in "$secret" "$comm"; do
			rm -f "$dir/own/$name" && cp "$driver" "$dir/own/$name"
			user=0
			[ "$name" != "$comm" ] || user=65533
			target_start "$name" setpriv --reuid "$user" --clear-groups "$dir/own/$name" count --n 1000 --linger
			[ "$name" = "$secret" ] || wait_for "$PATIENCE" "it to be watched" watched
			target_go "$name"
			target_result "$name"
		done
		ctl processes --json -p "${pid[$secret]}"
		[ "$option" = --user=65533 ] || jq -e '[.processes[].watched] == [false]' "$dir/stdout"
		ctl dump -o "$dir/dump.kprof"
		has_all "$dir/dump.kprof" "$dir/$comm.json"
		"$KPROF" report "$dir/dump.kprof" --by process --json | jq -e --argjson p "${pid[$comm]}" '[.rows[].pid] == [$p]'
		for name in "$secret" "$comm"; do target_end "$name"; done
		daemon_stop
		rm -r "$dir/daemon.err" "$state/flight"
	done
}

@test "a GPU that was idle, by an agent that its process has already: the dump has its kernels" {
	local cuda=$BUILD/sim/13/cudadriver
	[ -x "$cuda" ] || fail "the test programs are not built: make test-programs"
	daemon_start "${flight[@]}" --trigger 'gpu-idle>50%'
	wait_for "$PATIENCE" "the flight recorder" logged recording
	mkdir "$dir/own" && ln -s "$cuda" "$dir/own/$comm"
	may_shift || shifted=() # an agent's times are the machine's
	target_start target "${shifted[@]}" env CUDA_INJECTION64_PATH="$BUILD/libkprof_agent.so" "$dir/own/$comm" loop --n 100000 --kernel-ns 1000000 --gap-us 5000
	target_go target
	wait_for "$PATIENCE" "the dump" dump_for "^gpu-idle>50%: device 0 of process ${pid[target]} was idle "
	ctl get "$(cat "$dir/dump.id")" -o "$dir/dump.kprof"
	"$KPROF" report "$dir/dump.kprof" --by stream --json | tee "$dir/streams.json"
	jq -e '. as $all | [.rows[] | select(.calls > 0)] | length > 0 and all(.self_ns > 0 and .self_ns + .idle_ns <= $all.window_ns * 1.01)' "$dir/streams.json"
	daemon_stop
	rm -r "$state/flight" # the dumps are enough to be read as traces
}

@test "a thread that waits for a CPU, and a mark: the dumps have the waits, and the mark" {
	daemon_start "${flight[@]}" --trigger 'runnable>20%,mark:ProfilerStep#30' --trigger-pause 0
	wait_for "$PATIENCE" "the flight recorder" logged recording
	stepping 60 10 0 1
	wait_for "$PATIENCE" "the dump" dump_for "^mark:ProfilerStep#30: ProfilerStep#30 was met 1 times"
	ctl get "$(cat "$dir/dump.id")" -o "$dir/mark.kprof"
	"$KPROF" report "$dir/mark.kprof" --by step --json --limit 0 | jq -e '[.rows[].step] | contains([range(31)])'
	target_result target
	target_end target
	# two that want all of one CPU, the first that they may use
	local cpu
	cpu=$(sed -nE 's/^Cpus_allowed_list:\s*([0-9]+).*/\1/p' /proc/self/status)
	rm "$dir/own/$comm" && cp "$driver" "$dir/own/$comm"
	spawn busy taskset -c "$cpu" sh -c "while :; do :; done"
	target_start target taskset -c "$cpu" "$dir/own/$comm" count --n 100000000
	target_go target
	wait_for "$PATIENCE" "the dump" dump_for "^runnable>20%: thread [0-9]* of process ${pid[target]} waited for a CPU "
	ctl get "$(cat "$dir/dump.id")" -o "$dir/runnable.kprof"
	"$KPROF" report "$dir/runnable.kprof" --by wait --json |
		jq -e --argjson p "${pid[target]}" '[.rows[] | select(.name == "run queue" and .pid == $p) | .self_ns] | add > 100e6'
	daemon_stop
}

@test "in a time namespace, the daemon's or the process's: dumps, their times, and recordings on demand are as ever" {
	may_shift || skip "no time namespaces that exec enters: Linux 6.1 has them"
	local who shift
	for who in daemon target; do
		before_daemon=() before_stepping=() shift=0
		if [ "$who" = daemon ]; then before_daemon=("${shifted[@]}"); else before_stepping=("${shifted[@]}") shift=$time_shift; fi
		daemon_start "${flight[@]}" --trigger 'step>700ms'
		wait_for "$PATIENCE" "the flight recorder" logged recording
		stepping 60 10 30 900
		target_result target
		wait_for "$PATIENCE" "the dump" dump_for "step>700ms: a step of process ${pid[target]} took"
		ctl get "$(cat "$dir/dump.id")" -o "$dir/dump-$who.json"
		# the slow step, around what the program says itself
		jq -e --argjson shift "$shift" --argjson pid "${pid[target]}" --slurpfile t "$dir/target.json" '(.kprof.clock.start_mono_ns - (.kprof.clock.start_real_ns - .baseTimeNanoseconds)) as $add |
			($t[0].slow_begin_ns - $shift * 1e9) as $begun | ($t[0].slow_end_ns - $shift * 1e9) as $ended |
			[.traceEvents[] | select(.name == "ProfilerStep#30" and .ph == "X" and .pid == $pid)][0] | (.ts * 1000 + $add) as $from | ($from + .dur * 1000) as $until |
			[$begun - $from, $until - $ended] | debug | all(. > -1e4 and . < 60e9)' "$dir/dump-$who.json"
		ctl dump --last 600s -o "$dir/last.kprof"
		ctl start -p "${pid[target]}" --start-at +1s -d 1s
		wait_for "$PATIENCE" "its end" is_done "$(cat "$dir/stdout")"
		target_end target
		daemon_stop
		rm -r "$dir/own" "$dir/daemon.err" "$state/flight"
	done
}
