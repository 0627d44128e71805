# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # load, hot: the suites; dir, fd, pid: harness.bash
# Helpers for the suites of kprof top, on top of harness.bash: a terminal of tmux's. Call top_setup and top_teardown.

top_setup() {
	harness_setup
	command -v tmux >/dev/null || skip "no tmux here: scripts/setup check installs it"
	load=$WORKLOADS/top_load.py
	hot=$(grep -n 'the hot line' "$load" | cut -d: -f1)
	mine=mine$$.$BATS_TEST_NUMBER # in the command of the processes that are looked for, and of no others
	tmp=$dir/tmp
	mkdir "$tmp"
}

top_teardown() {
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

top_pid() {
	pgrep -P "$(terminal display -p '#{pane_pid}')"
}

ticks() { # PID: of CPU time
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

recording() { # [PID]: the name that the file that it records to has had; an inode's number may come again
	find "/proc/${1:-$(top_pid)}/fd" -lname '*/kprof-top.*(deleted)' -printf '%l\n' | head -n 1 | grep .
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
