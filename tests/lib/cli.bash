# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # dir, driver, pid: harness.bash
# Helpers for tests/cli.bats, on top of harness.bash.

# kprof_says STATUS ARGUMENT…: runs it; $dir/stdout, $dir/stderr. Fails on another exit status.
kprof_says() {
	local expected=$1 status=0
	shift
	"$KPROF" "$@" >"$dir/stdout" 2>"$dir/stderr" </dev/null || status=$?
	[ "$status" = "$expected" ] ||
		fail "kprof $*: exit status $status, not $expected" "$(cat "$dir/stderr")"
}

# The message has a cause that matches, and a hint, and nothing went to stdout.
refused() { # REGEX
	grep -qE "^kprof: .*$1" "$dir/stderr" || fail "no cause like '$1' in:" "$(cat "$dir/stderr")" || return 1
	grep -q '^hint: .' "$dir/stderr" || fail "no hint in:" "$(cat "$dir/stderr")" || return 1
	[ ! -s "$dir/stdout" ] || fail "stdout is not empty: $(cat "$dir/stdout")"
}

# refuses REGEX ARGUMENT…: a wrong command line
refuses() {
	local cause=$1
	shift
	{ kprof_says 2 "$@" && refused "$cause"; } || fail "in: kprof $*"
}

# Nothing but the named files is in the directory, hidden ones counted.
only_files() { # DIRECTORY NAME…
	local in=$1
	shift
	diff <(find "$in" -mindepth 1 -printf '%f\n' | sort) <(printf '%s\n' "$@" | sort) || fail "other files in $in"
}

# A capture of 1,000 calls, once per file.
sample_capture() {
	sample=$BATS_FILE_TMPDIR/sample.kprof
	[ ! -e "$sample" ] || return 0
	target_start sample-target "$driver" count --n 1000 --linger &&
		kprof_start sampler attach -q -p "${pid[sample-target]}" -o "$sample" &&
		target_go sample-target && target_result sample-target &&
		kprof_stop sampler && target_end sample-target
}

# A copy of kprof that another user may execute; $public, removed by teardown.
public_copy() {
	public=$(mktemp -d /tmp/kprof-cli.XXXXXX) && chmod 755 "$public" && cp "$KPROF" "$public/kprof"
}

nobody() { # COMMAND…
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# on_terminal TEXT ARGUMENT…: kprof on a terminal of its own, Ctrl-C once it has shown the text; all it showed is $dir/screen
on_terminal() {
	local text=$1 command
	shift
	# exec: a shell that stayed would take the Ctrl-C too, and end with 130.
	printf -v command 'echo $$ >%q; exec %s' "$dir/screen.pid" "$(printf '%q ' "$KPROF" "$@")"
	: >"$dir/screen"
	# shellcheck disable=SC2094 # what has been written so far is what is looked for
	{
		wait_for "$PATIENCE" "$text on the terminal" grep -q "$text" "$dir/screen"
		printf '\003'
		# script(1) ends the session where its own input ends.
		wait_for "$PATIENCE" "kprof to end" ended "$(cat "$dir/screen.pid")"
	} | env --default-signal=HUP,INT,QUIT,TERM script -qefc "$command" /dev/null >"$dir/screen" 2>&1
}
