#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Recordings in rough surroundings: in a script's background, under sudo, killed, of processes that do nothing.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup() {
	harness_setup
	use_kind gcc
	cd "$dir" || exit 1
}

teardown() {
	harness_teardown
}

# As a shell without job control starts what is in the background: SIGINT ignored.
ignoring() { # SIGNALS COMMAND…
	bash -c "trap '' $1"'; shift; exec "$@"' bash "$@"
}

@test "kill -INT ends a recording that a script has put into the background; its command ignores what kprof was to ignore" {
	target_start target "$driver" count --n 10 --linger
	spawn background bash -c "trap '' INT HUP; exec \"\$@\"" bash "$KPROF" attach -v -p "${pid[target]}" -o "$dir/b.kprof"
	wait_for "$PATIENCE" "kprof to record" kprof_recording background
	[ $((0x$(awk '/^SigIgn/ { print $2 }' "/proc/${pid[background]}/status") & 3)) = 1 ] # SIGHUP alone, as nohup has it
	kill -INT "${pid[background]}"
	wait_for "$PATIENCE" "kprof to stop" ended "${pid[background]}"
	wait "${pid[background]}"
	unset 'pid[background]'
	[ -s "$dir/b.kprof" ]
	local signals
	for signals in INT "INT HUP" "PIPE CHLD" "TERM USR1"; do
		ignoring "$signals" grep SigIgn /proc/self/status >"$dir/expected"
		ignoring "$signals" "$KPROF" run -q -o "$dir/r.kprof" -- grep SigIgn /proc/self/status >"$dir/seen"
		diff "$dir/expected" <(head -n 1 "$dir/seen")
	done
}

@test "under sudo a command finds the environment of the user it runs as, and what was chosen" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	local name home shell
	IFS=: read -r name _ _ _ _ home shell < <(getent passwd 65534)
	export SUDO_UID=65534 SUDO_GID=65534
	# As sudo leaves it.
	HOME=/root SHELL=$(getent passwd 0 | cut -d: -f7) USER=root LOGNAME=root MAIL=/var/mail/root XDG_RUNTIME_DIR=/run/user/0 \
		kprof_says 0 run -q -o ran.kprof -- env
	grep -xE '(HOME|SHELL|USER|LOGNAME|MAIL|XDG_RUNTIME_DIR)=.*' "$dir/stdout" | sort >"$dir/theirs"
	printf '%s\n' "HOME=$home" "LOGNAME=$name" "MAIL=/var/mail/$name" "SHELL=$shell" "USER=$name" | diff - "$dir/theirs"
	# sudo -E, sudo HOME=…
	HOME=/elsewhere USER=somebody kprof_says 0 run -q -o ran.kprof -- env
	grep -qx HOME=/elsewhere "$dir/stdout"
	grep -qx USER=somebody "$dir/stdout"
	unset SUDO_UID SUDO_GID
	HOME=/root USER=root kprof_says 0 run -q -o ran.kprof -- env
	grep -qx HOME=/root "$dir/stdout"
}

# A recording that still goes on has written events to the file.
has_events() { # FILE
	[ "$("$KPROF" report "$1" --json 2>/dev/null | jq '[.rows[].calls] | add // 0')" -gt 0 ]
}

recorded_nothing() { # REGEX OF THE CAUSE, REGEX OF THE HINT
	grep -A1 '^kprof: nothing was recorded: ' "$dir/stderr" >"$dir/why" || fail "no reason in:" "$(cat "$dir/stderr")" || return 1
	grep -qE "^kprof: nothing was recorded: $1" "$dir/why" || fail "$(cat "$dir/why")" || return 1
	grep -qE "^hint: .*$2" "$dir/why" || fail "$(cat "$dir/why")"
}

@test "where nothing was recorded it is said why: no framework, an import, nothing to do, nothing that was chosen" {
	target_start idle "$driver" count --n 10
	kprof_says 0 attach -d 10ms -p "${pid[idle]}" -o x.kprof
	recorded_nothing "process ${pid[idle]} waits and has called no operator; its first thread is in .*read" \
		"is short, -d .*kprof dump -p ${pid[idle]} "
	printf 'import sys\nprint("READY 1", flush=True)\nsys.stdin.readline()\n' >"$dir/slow.py"
	PYTHONPATH=$dir target_start importer "$PYTHON" -c "import ctypes; ctypes.CDLL('$BUILD/workloads/gcc/libtorch_cpu.so'); import slow"
	kprof_says 0 attach -d 10ms -p "${pid[importer]}" -o x.kprof
	recorded_nothing "process ${pid[importer]} is still importing modules, at slow.py:3, in <module>" "kprof run"
	kprof_says 0 attach -d 10ms -p $$ --no-children -o x.kprof
	recorded_nothing "process $$ has loaded no framework" "kprof sample -p $$ "
	kprof_says 0 run -o x.kprof --ops aten::nothing -- true
	recorded_nothing "nothing of what --ops" "without these options"
	kprof_says 0 run -o x.kprof -- true
	recorded_nothing "true called no operator" "kprof sample -- COMMAND"
}

@test "what a killed recording has left is named by the next one there, with how to read it; nothing else is" {
	local left i
	mkdir "$dir/out dir"
	cd "$dir/out dir"
	target_start target "$driver" count --n 1000 --linger
	kprof_start killed attach -p "${pid[target]}" -o a.json
	kprof_start alive attach -p "${pid[target]}" -o b.kprof
	target_go target
	target_result target
	left=$(compgen -G '.*a.json*.tmp')
	wait_for "$PATIENCE" "events in $left" has_events "$left"
	kill -KILL "${pid[killed]}"
	wait "${pid[killed]}" || true
	unset 'pid[killed]'
	# Nobody's business: other users' files, links, pipes, and names alone.
	touch .empty.kprof.abcdef.tmp
	echo 1 | tee .other.kprof.abcdef.tmp x.kprof.abcdef.tmp .a.json.abcdef.tmp >.kprof.abcdef.tmp
	chown 65534 .other.kprof.abcdef.tmp
	ln -s "$dir/target.out" .link.kprof.abcdef.tmp
	mkfifo .pipe.kprof.abcdef.tmp
	kprof_says 0 run -o c.kprof -- true
	[ "$(grep -c 'a recording that was killed' "$dir/stderr")" = 1 ]
	grep -qF "kprof: a recording that was killed has left $left (" "$dir/stderr"
	[ -f "$left" ]
	# The command is one for a shell.
	eval "$(sed -n 's/^hint: kprof \(report .*\) shows what it has.*/"$KPROF" \1 --json/p' "$dir/stderr")" >report.json 2>report.err
	[ "$(jq '[.rows[].calls] | add' report.json)" -gt 0 ]
	grep -q 'is cut short' report.err
	# From elsewhere, with a path that a shell would split; many of them are not a flood.
	cd "$dir"
	for i in {1..200}; do cp "out dir/$left" "out dir/.$i.kprof.abcdef.tmp"; done
	kprof_says 0 run -o "$dir/out dir/c.kprof" -- true
	grep -q "^hint: kprof report '$dir/out dir/.*\.tmp' shows" "$dir/stderr"
	[ "$(grep -c 'a recording that was killed' "$dir/stderr")" = 3 ]
	grep -q 'and [0-9]* more such files' "$dir/stderr"
	kprof_stop alive
}
