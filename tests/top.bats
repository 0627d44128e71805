#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# kprof top, in a terminal of tmux's and without one. The judges: what the terminal shows, programs that know what they do
# and how much CPU time they had, /proc, and the validator of traces.

# shellcheck disable=SC2154 # stderr is set by run
# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/top.bash
source "$BATS_TEST_DIRNAME/lib/top.bash"

bats_require_minimum_version 1.5.0

setup() {
	top_setup
}

teardown() {
	top_teardown
}

# ---- without a terminal ----

@test "an object for each interval: CPU time between two readings of the process's own clock" {
	target_start burn "$PYTHON" "$load" burn --text "$mine"
	target_start sleep "$PYTHON" "$load" sleep --megabytes 200
	local before after
	before=$(answer burn .cpu_ns)
	"$KPROF" top -n 4 -d 0.5s --json >"$dir/looks"
	after=$(answer burn .cpu_ns)
	[ "$(wc -l <"$dir/looks")" = 4 ]
	# Of the burning one: the sum of shares is what its CPU time grew by, and that lies between the two readings. The kernel's
	# counts of ticks may be one behind.
	jq -se --argjson pid "${pid[burn]}" --argjson before "$before" --argjson after "$after" '
		[.[] | .interval_ns as $ns | .processes[] | select(.pid == $pid) | {cpu_ns, share: .cpu, used: (.cpu * $ns)}] as $looks
		| ($looks | length) == 4 and ($looks[1:] | map(.used) | add) as $sum
		| ($looks[3].cpu_ns - $looks[0].cpu_ns) as $grown
		| $sum > $grown * 0.9 - 2e7 and $sum < $grown * 1.1 + 2e7 and $grown > 0
		and $looks[0].cpu_ns >= $before - 2e7 and $looks[3].cpu_ns <= $after + 2e7' "$dir/looks" ||
		fail "$before $after $(jq -c "[.interval_ns, (.processes[] | select(.pid == ${pid[burn]}))]" "$dir/looks")"
	# The other sleeps, and has memory. What both are is known.
	jq -se --argjson pid "${pid[sleep]}" 'map(.processes[] | select(.pid == $pid)) | length == 4 and all(.cpu < 0.1
		and .blocked > 0.8 and .rss_bytes > 200e6 and .threads == 3 and .python != "" and .frameworks == ""
		and (.command | test("top_load.py sleep")))' "$dir/looks"
	jq -se 'all(.cpus > 0 and .cpu > 0 and .nr_processes >= 2 and (.processes | map(.cpu) | . == (sort | reverse)))' "$dir/looks"
	[ "$(jq -s '.[0].processes | length' "$dir/looks")" -le "$(($(find /proc -maxdepth 1 -name '[0-9]*' | wc -l) + 50))" ]
}

@test "tables: order, filter and limit; without a terminal, or one that can do nothing" {
	target_start burn "$PYTHON" "$load" burn --text "$mine"
	target_start sleep "$PYTHON" "$load" sleep --megabytes 200 --text "$mine"
	"$KPROF" top --once -d 0.5s --filter "$mine" >"$dir/cpu"
	[ "$(awk 'NR > 2 && !/kprof top/ { print $1 }' "$dir/cpu" | paste -sd ' ')" = "${pid[burn]} ${pid[sleep]}" ]
	grep -qE '^ *PID  USER +CPU%  RUNQ%  WAIT%  +RSS  THREADS  PYTHON  FRAMEWORK  COMMAND' "$dir/cpu"
	"$KPROF" top -n 2 -d 0.2s --filter "$mine" --sort rss --limit 1 >"$dir/rss"
	[ "$(awk '$1 ~ /^[0-9]/ { print $1 }' "$dir/rss" | paste -sd ' ')" = "${pid[sleep]} ${pid[sleep]}" ]
	# A reader that goes away, and a terminal that can't move its cursor.
	"$KPROF" top -d 0.2s | head -n 1 | grep -q '^kprof top'
	spawn dumb env TERM=dumb script -qec "exec $KPROF top -d 0.2s --limit 2" /dev/null
	wait_for "$PATIENCE" "a table" grep -q 'kprof top' "$dir/dumb.out"
	pkill -INT -P "${pid[dumb]}"
	wait_for "$PATIENCE" "its end" ended "${pid[dumb]}"
	run ! grep -q $'\e' "$dir/dumb.out"
	run -2 --separate-stderr "$KPROF" top -d 1ms
	[[ $stderr == *"too short"* ]]
}

@test "an idle process that executes another program is known as that" {
	target_start shell bash -c 'echo READY $$; read -r _; exec sleep 98765'
	spawn top "$KPROF" top -d 0.2s --json
	command_is() { tail -n 1 "$dir/top.out" | jq --arg is "$1" "any(.processes[]; .pid == ${pid[shell]} and (.command | startswith(\$is)))" | grep -q true; }
	wait_for "$PATIENCE" "the shell" command_is 'bash -c'
	wait_for "$PATIENCE" "some looks" eval '[ "$(wc -l <"$dir/top.out")" -ge 4 ]'
	target_go shell
	wait_for "$PATIENCE" "the other program" command_is 'sleep 98765'
	kill -INT "${pid[top]}"
	wait "${pid[top]}"
	unset "pid[top]"
}

@test "shares of GPUs, as NVIDIA's library tells them: the sum over devices; without it there is no column" {
	[ -e "$BUILD/sim/nvml/libnvidia-ml.so.1" ] || fail "the test programs are not built: make test-programs"
	target_start one "$PYTHON" "$load" sleep
	target_start two "$PYTHON" "$load" sleep
	told() { env LD_LIBRARY_PATH="$BUILD/sim/nvml" NVML_SAMPLES="0:${pid[one]}:40 1:${pid[one]}:30 1:${pid[one]}:50 0:${pid[two]}:7" "$@"; }
	told "$KPROF" top -n 2 -d 0.2s --json >"$dir/gpu"
	jq -se --argjson one "${pid[one]}" --argjson two "${pid[two]}" 'def near($x): . > $x - 1e-6 and . < $x + 1e-6;
		length == 2 and all([.processes[] | {key: "\(.pid)", value: .gpu}] | from_entries
		| (.["\($one)"] | near(0.8)) and (.["\($two)"] | near(0.07)) and .["1"] == 0)' "$dir/gpu"
	told "$KPROF" top --once -d 0.2s --sort gpu --limit 2 >"$dir/table"
	[ "$(awk 'NR > 2 { print $1, $6 }' "$dir/table" | paste -sd ' ')" = "${pid[one]} 80.0 ${pid[two]} 7.0" ]
	if ldconfig -p | grep -q libnvidia-ml.so.1; then return; fi
	"$KPROF" top --once -d 0.2s >"$dir/table"
	run ! grep -q 'GPU%' "$dir/table"
	"$KPROF" top --once -d 0.2s --json | jq -e 'all(.processes[]; .gpu == null)'
}

@test "another user's: what is possible is shown" {
	setpriv --reuid 65534 --clear-groups "$KPROF" top --once -d 0.2s --json >"$dir/nobody"
	jq -e '.nr_processes > 0 and .unreadable > 0 and ([.processes[] | select(.pid == 1)] | length == 1)' "$dir/nobody"
}

# ---- the screen ----

@test "all processes: order, filter, pause; those that appear and end" {
	target_start burn "$PYTHON" "$load" burn --text "$mine"
	target_start sleep "$PYTHON" "$load" sleep --megabytes 200 --text "$mine"
	top_starts
	filter "$mine"
	order() { [ "$(screen | awk -v mine="$mine" '$1 ~ /^[0-9]/ && $NF == mine { print $1 }' | paste -sd ' ')" = "$1" ]; }
	wait_for "$PATIENCE" "the order by CPU" order "${pid[burn]} ${pid[sleep]}"
	keys M
	shows 'sorted by rss'
	wait_for "$PATIENCE" "the order by memory" order "${pid[sleep]} ${pid[burn]}"
	local key
	for key in W=wait T=threads N=pid G=gpu S=step; do keys "${key%=*}" && shows "sorted by ${key#*=}"; done
	keys N
	wait_for "$PATIENCE" "the order by number" order "$(printf '%s\n' "${pid[burn]}" "${pid[sleep]}" | sort -n | paste -sd ' ')"
	keys P && shows 'sorted by cpu' && keys '<' && shows 'sorted by pid' && keys '>' && shows 'sorted by cpu'
	# Paused, a process that comes is not seen; afterwards it is, and is gone when it ends.
	keys Space && shows 'PAUSED'
	target_start late "$PYTHON" "$load" sleep --text "$mine"
	local when
	when=$(screen | head -n 1)
	"$KPROF" top -n 4 -d 0.5s >"$dir/others" # of another kprof, as many as this one would have had
	grep -q "^ *${pid[late]} " "$dir/others"
	[ "$(screen | head -n 1)" = "$when" ]
	run ! screen_says "^ *${pid[late]} "
	keys Space && shows "^ *${pid[late]} "
	local gone=${pid[late]}
	target_end late
	wait_for "$PATIENCE" "it to go" eval "! screen_says '^ *$gone '"
	keys '?' && shows 'RUNQ%     of the time that its first thread' && keys Escape && shows 'sorted by cpu'
	quits
}

@test "one process: threads with the line that they execute, functions, lines, stacks; what it was when it has ended" {
	target_start burn "$PYTHON" "$load" burn --text "$mine"
	top_starts
	chooses burn
	shows "^ *${pid[burn]} .* spin_here \(top_load.py:($hot|$((hot - 1)))\)" " S  .* -$"
	keys u && shows 'FUNCTION' '^ +[0-9.]+ +[0-9.]+ +[0-9]+  spin_here .*top_load.py'
	keys l && shows "top_load.py:$hot spin_here"
	keys f && shows '\|spin_here' '\|main'
	# The end of what does not fit, and not beyond it: spin_here, or what a sample has met of the interpreter below it.
	local end='\|(spin_here|_?Py|python3)'
	terminal resize-window -x 300 -y 8 && shows '\|main|<module>' && keys End && shows "$end"
	keys NPage NPage && shows "$end" && terminal resize-window -x 300 -y 40 && keys Home
	keys F && shows 'the flame graph is in kprof-top_'
	grep -q spin_here "$dir"/kprof-top_*.svg
	[ -z "$(ls -A "$tmp")" ]
	keys t && shows 'THREAD .*NOW'
	target_end burn
	shows 'THE PROCESS HAS ENDED' 'spin_here'
	# Then it waits: another that does not has more CPU time by far.
	target_start other "$PYTHON" "$load" burn
	local running before
	running=$(top_pid)
	before=$(ticks "$running")
	wait_for "$PATIENCE" "a second of the other's" eval '[ "$(ticks "${pid[other]}")" -ge 100 ]'
	[ $(($(ticks "$running") - before)) -lt 40 ]
	keys Escape && shows 'sorted by cpu'
	quits
}

@test "leaving a process ends its recording; d, Esc and ? show help, whatever the dump says afterwards" {
	target_start burn "$PYTHON" "$load" burn --text "$mine"
	top_starts
	local running
	running=$(top_pid)
	counters() { find "/proc/$running/fd" -lname 'anon_inode:\[perf_event\]' -o -lname '*/kprof-top.*(deleted)' -o -lname 'anon_inode:bpf*' | wc -l; }
	[ "$(counters)" = 0 ]
	chooses burn
	[ "$(counters)" -gt 0 ]
	keys Escape && shows 'sorted by cpu'
	wait_for "$PATIENCE" "the recording to end" eval '[ "$(counters)" = 0 ]'
	keys d Escape '?' && shows 'RUNQ%     of the time'
	wait_for "$PATIENCE" "the dump to end" eval '! pgrep -P "$running" -f " dump -p "'
	terminal resize-window -x 30 -y 5 && shows 'too small' && terminal resize-window -x 300 -y 40 && shows 'RUNQ%     of the time'
	keys Escape
	quits
}

@test "the kernel's functions by name, and compiled code whose names come later" {
	target_start jit "$PYTHON" "$load" jit --text "$mine"
	top_starts
	chooses jit
	keys u && shows '\[jit\]'
	local file
	file=$(recording "$(top_pid)")
	echo name >&"${fd[jit]}"
	shows '^ +[0-9.]+ +[0-9.]+ +[0-9]+  late_name '
	rm "/tmp/perf-${pid[jit]}.map"
	[ "$(recording "$(top_pid)")" = "$file" ] # not because it began anew
	keys Escape && shows 'sorted by cpu'
	target_end jit
	cp "$(command -v dd)" "$dir/$mine"
	spawn copy "$dir/$mine" if=/dev/zero of=/dev/null bs=1
	shows "^ *${pid[copy]} .*$mine"
	keys Enter && shows "^process ${pid[copy]}:"
	keys u && shows '  (vfs|ksys)_(read|write) '
	quits
}

@test "a native program: names while it is recorded; d shows the stacks, r records a trace" {
	cp -r "$BUILD/workloads/gcc" "$dir/$mine"
	target_start ops "$dir/$mine/opdriver" spin
	target_go ops
	top_starts
	chooses ops
	keys u && shows '^ +[0-9.]+ +[0-9.]+ +[0-9]+  mode_spin ' '  at::_ops::fake_linear::call '
	keys f && shows '\|main( |$)' '\|mode_spin( |$)'
	keys d && shows 'what each thread does now' "^Process ${pid[ops]}:" '^Thread|^    main' && keys Escape && shows "^process ${pid[ops]}:"
	keys r && shows 'recording for five seconds' && shows 'the trace is in kprof-top_'
	"$PYTHON" "$LIB/validate_trace.py" "$dir"/kprof-top_*.json.gz
	gzip -dc "$dir"/kprof-top_*.json.gz | jq -e '[.traceEvents[] | select(.cat == "cpu_op")] | length > 0'
	quits
}

@test "device calls of one process: as many of each as it makes in a round, by the second and on average; another has no runtime" {
	mkdir -p "$dir/$mine/workloads" && cp "$BUILD/workloads/cudacalls-12" "$dir/$mine/workloads" && cp -r "$BUILD/sim" "$dir/$mine"
	target_start calls "$dir/$mine/workloads/cudacalls-12" runtime --rounds 1000000000
	target_go calls
	top_starts
	chooses calls
	keys c && shows 'operators and device calls are recorded: probes are placed' ' cudaMalloc  +[0-9]{3,}'
	keys Space && shows 'PAUSED'
	screen >"$dir/screen"
	# A round calls cudaMalloc once, cudaStreamSynchronize twice and cudaLaunchKernel five times. The part that is shown begins
	# and ends within a round.
	awk '
		/ CPU time in the last / { for (i = 1; i < NF; i++) if ($i == "last") window = $(i + 1) }
		function seconds(text) { return text * (text ~ /ms$/ ? 1e-3 : text ~ /us$/ ? 1e-6 : text ~ /ns$/ ? 1e-9 : 1) }
		$4 ~ /^cuda/ { calls[$4] = $5; share[$4] = $1; rate[$4] = $2; average[$4] = seconds($3) }
		function near(a, b, by) { return a > b - by && a < b + by }
		function fits(name, each) {
			return near(calls[name], each * calls["cudaMalloc"], each + 1) &&
				near(rate[name] * window, calls[name], calls[name] / 4 + 1) &&
				near(average[name] * rate[name] * 100, share[name], share[name] / 5 + 0.2)
		}
		END { exit !(fits("cudaMalloc", 1) && fits("cudaStreamSynchronize", 2) && fits("cudaLaunchKernel", 5)) }' "$dir/screen" ||
		fail "$(cat "$dir/screen")"
	keys Space Escape && shows 'sorted by cpu'
	kill "${pid[calls]}"
	wait_for "$PATIENCE" "its end" ended "${pid[calls]}"
	unset "pid[calls]" "fd[calls]"
	target_start burn "$PYTHON" "$load" burn --text "$mine"
	shows "^ *${pid[burn]} .*$mine"
	keys Enter && shows "^process ${pid[burn]}:"
	keys c && shows 'the process has no device runtime'
	keys o && shows 'nothing in the last ten seconds'
	quits
}

@test "names and arguments can't harm the terminal" {
	target_start evil "$PYTHON" "$load" sleep --text "$mine"$'\e]0;worse\a\e[2J\e[31mtext\xff\u202e' --comm $'\e]0;b\x7f\xc2\x9b2J\xff'
	top_starts
	terminal select-pane -T 'as it was'
	filter "$mine"
	shows "^ *${pid[evil]} .*\\\\x1b]0;worse\\\\x07\\\\x1b\[2J.*text\\\\xff\\?"
	keys Enter
	shows "^process ${pid[evil]}:" '\?\]0;b\?\?2J\?'
	[ "$(terminal display -p '#{pane_title}')" = 'as it was' ]
	quits
	# Nor is there any control character in what is printed.
	"$KPROF" top --once -d 0.2s --filter "$mine" >"$dir/table"
	"$KPROF" top --once -d 0.2s --filter "$mine" --json >"$dir/json"
	grep -q "^ *${pid[evil]} .*\\\\x1b]0;worse" "$dir/table"
	jq -e --argjson pid "${pid[evil]}" '.processes[] | select(.pid == $pid) | .comm == "\u001b]0;b\u007f\u009b2J\ufffd"' "$dir/json"
	run ! env LC_ALL=C grep -qP '[\x00-\x1f\x7f]|\xc2[\x80-\x9f]' "$dir/table" "$dir/json"
}

@test "the terminal's size changes, to one that is too small, and back" {
	target_start burn "$PYTHON" "$load" burn --text "$mine"
	top_starts
	terminal resize-window -x 30 -y 5 && shows 'too small'
	terminal resize-window -x 60 -y 20 && shows 'sorted by cpu'
	terminal resize-window -x 220 -y 50 && shows 'COMMAND'
	chooses burn
	terminal resize-window -x 41 -y 9 && shows 'CPU% .*THRE'
	terminal resize-window -x 250 -y 40 && shows 'spin_here'
	quits
}

@test "signals: the terminal is as it was, and nothing is left" {
	target_start burn "$PYTHON" "$load" burn --text "$mine"
	local signal running
	for signal in TERM INT HUP QUIT; do
		top_starts
		chooses burn
		running=$(top_pid)
		[ -n "$running" ]
		kill "-$signal" "$running"
		is_over 0
		terminal kill-server
		wait_for "$PATIENCE" "tmux to end" eval "! terminal list-sessions 2>/dev/null"
	done
	# It can't do anything then; but no file is left.
	top_starts
	chooses burn
	kill -KILL "$(top_pid)"
	shows 'status 137'
	[ -z "$(ls -A "$tmp")" ]
}

@test "a terminal that goes away without a signal ends it" {
	# one that does not control it, as after nohup
	timeout "$PATIENCE" "$PYTHON" - "$KPROF" top <<-'END'
		import os, pty, subprocess, sys
		ours, its = pty.openpty()
		top = subprocess.Popen(sys.argv[1:], stdin=its, stdout=its, stderr=its, start_new_session=True, env={**os.environ, "TERM": "xterm"})
		os.close(its)
		seen = b""
		while b"sorted by cpu" not in seen:
		    seen += os.read(ours, 4096)
		os.close(ours)
		try:
		    top.wait(60)
		finally:
		    top.kill()
	END
}

@test "q while a trace is recorded: it is written, and kprof says so" {
	target_start burn "$PYTHON" "$load" burn --text "$mine"
	top_starts
	chooses burn
	keys r && shows 'recording for five seconds'
	wait_for "$PATIENCE" "kprof attach to record" eval '[ -n "$(find "$dir" -maxdepth 1 -name "..kprof-top_*.tmp")" ]'
	local attach
	attach=$(pgrep -P "$(top_pid)" -f ' attach ')
	pause_process "$attach" # it takes its time
	keys q && shows 'the trace is being written to kprof-top_'
	kill -CONT "$attach"
	is_over 0
	"$PYTHON" "$LIB/validate_trace.py" "$dir"/kprof-top_*.json.gz
}
