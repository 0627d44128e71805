#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# kprof top, in a terminal of tmux's and without one. The judges: what the terminal shows, programs that know what they do
# and how much CPU time they had, /proc, and the validator of traces.

# shellcheck disable=SC2154 # stderr is set by run
# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

bats_require_minimum_version 1.5.0

setup() {
	harness_setup
	command -v tmux >/dev/null || fail "there is no tmux: scripts/setup check installs it"
	load=$WORKLOADS/top_load.py
	hot=$(grep -n 'the hot line' "$load" | cut -d: -f1)
	mine=mine$$.$BATS_TEST_NUMBER # in the command of the processes that are looked for, and of no others
	tmp=$dir/tmp
	mkdir "$tmp"
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED:-}" ] || terminal capture-pane -p 2>/dev/null
	terminal kill-server 2>/dev/null
	harness_teardown
}

# ---- the terminal ----

# Without the descriptors of targets: tmux would keep them open, and the targets wait for their end.
terminal() {
	(
		for f in "${fd[@]}" 3; do eval "exec $f>&-"; done
		exec tmux -S "$dir/tmux" -f /dev/null "$@"
	)
}

# top_starts: in a shell in a terminal of 300 by 40, which says what it was, and is, before and after.
top_starts() {
	printf '%s\n' 'cd "$1" && shift' 'stty -g >before' 'env TMPDIR=tmp "$@"' 'echo "status $?"' 'stty -g >after' \
		'echo is over' 'exec cat' >"$dir/shell"
	LANG=C.UTF-8 terminal new-session -d -x 300 -y 40 bash "$dir/shell" "$dir" "$KPROF" top -d 0.5s
	wait_for "$PATIENCE" "the screen" screen_says 'kprof top .* CPUs'
}

screen() {
	terminal capture-pane -p
}

screen_says() { # REGEX
	screen | grep -qE -- "$1"
}

shows() { # REGEX…: each of them, some time
	local regex
	for regex; do wait_for "$PATIENCE" "'$regex' on the screen" screen_says "$regex" || return 1; done
}

keys() {
	terminal send-keys "$@"
}

# filter TEXT: types it, and keeps it
filter() {
	keys / && shows 'filter: _' && keys -l "$1" && shows "filter: $1" && keys Enter && shows "filter: $1( |\$)"
}

# chooses NAME: the only row is that process's; looks at it
chooses() {
	filter "$mine" && shows "^ *${pid[$1]} " && keys Enter && shows "^process ${pid[$1]}:" 'samples, '
}

# The terminal is as it was, and nothing is left of kprof's files.
is_over() { # STATUS
	shows '^is over' "^status $1"
	cmp "$dir/before" "$dir/after"
	[ "$(terminal display -p '#{alternate_on} #{cursor_flag}')" = "0 1" ]
	[ -z "$(ls -A "$tmp")" ]
}

quits() {
	keys q && is_over 0
}

answer() { # NAME FIELDS: what it knows now
	local had
	had=$(wc -l <"$dir/$1.out")
	echo now >&"${fd[$1]}"
	wait_for "$PATIENCE" "$1's answer" eval "[ \$(wc -l <'$dir/$1.out') -gt $had ]" || return 1
	tail -n 1 "$dir/$1.out" | jq "$2"
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
	TERM=dumb timeout 60 script -qec "timeout -s INT 3 $KPROF top -d 0.2s --limit 2" /dev/null >"$dir/dumb" || true
	grep -q 'kprof top' "$dir/dumb"
	run ! grep -q $'\e' "$dir/dumb"
	run -2 --separate-stderr "$KPROF" top -d 1ms
	[[ $stderr == *"too short"* ]]
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
	keys P && shows 'sorted by cpu' && keys '<' && shows 'sorted by pid' && keys '>' && shows 'sorted by cpu'
	# Paused, a process that comes is not seen; afterwards it is, and is gone when it ends.
	keys Space && shows 'PAUSED'
	target_start late "$PYTHON" "$load" sleep --text "$mine"
	local when
	when=$(screen | head -n 1)
	sleep 2
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
	keys F && shows 'the flame graph is in kprof-top_'
	grep -q spin_here "$dir"/kprof-top_*.svg
	[ -z "$(ls -A "$tmp")" ]
	keys t && shows 'THREAD .*NOW'
	target_end burn
	shows 'THE PROCESS HAS ENDED' 'spin_here'
	keys Escape && shows 'sorted by cpu'
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

@test "a training: its framework, its operators where that is asked for, its steps beside its own count" {
	target_start train "$(pythons | head -n 1)" "$load" steps --text "$mine"
	top_starts
	chooses train
	keys o && shows 'operators are recorded: probes are placed' '^ +[0-9.]+ +[0-9.]+ +[0-9.]+us +aten::add_ '
	keys Escape && shows "^ *${pid[train]} .* pytorch [0-9.]+"
	quits
	# Of the last ten seconds; the program counts, and looks at the clock, before and after them.
	local before after
	before=$(answer train .steps,.now_ns)
	"$KPROF" top --steps -n 1 -d 10s --json >"$dir/steps"
	after=$(answer train .steps,.now_ns)
	printf '%s\n' "$before" "$after" | jq -se --slurpfile seen "$dir/steps" --argjson pid "${pid[train]}" '((.[2] - .[0]) * 1e9 / (.[3] - .[1])) as $rate
		| $seen[0].processes[] | select(.pid == $pid) | .steps_per_s > $rate / 2 and .steps_per_s < $rate * 2 and (.frameworks | test("^pytorch"))' ||
		fail "$before $after $(jq -c ".processes[] | select(.pid == ${pid[train]})" "$dir/steps")"
}

@test "names and arguments can't harm the terminal" {
	target_start evil "$PYTHON" "$load" sleep --text "$mine"$'\e]0;worse\a\e[2J\e[31mtext\xff\u202e' --comm $'\e]0;bad\a\e[2Jx'
	top_starts
	terminal select-pane -T 'as it was'
	filter "$mine"
	shows "^ *${pid[evil]} .*\\\\x1b]0;worse\\\\x07\\\\x1b\[2J"
	keys Enter
	shows "^process ${pid[evil]}:" '\?\]0;bad\?'
	[ "$(terminal display -p '#{pane_title}')" = 'as it was' ]
	quits
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
	local signal top
	for signal in TERM INT HUP; do
		top_starts
		chooses burn
		top=$(pgrep -P "$(terminal display -p '#{pane_pid}')")
		[ -n "$top" ]
		kill "-$signal" "$top"
		is_over 0
		terminal kill-server
		wait_for "$PATIENCE" "tmux to end" eval "! terminal list-sessions 2>/dev/null"
	done
	# It can't do anything then; but no file is left.
	top_starts
	chooses burn
	kill -KILL "$(pgrep -P "$(terminal display -p '#{pane_pid}')")"
	shows 'status 137'
	[ -z "$(ls -A "$tmp")" ]
}
