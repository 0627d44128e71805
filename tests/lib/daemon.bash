# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # dir, pid: harness.bash
# Helpers for suites that have a daemon of their own, on top of harness.bash and cli.bash, which come with it.

# shellcheck source=tests/lib/harness.bash
source "${BASH_SOURCE[0]%/*}/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "${BASH_SOURCE[0]%/*}/cli.bash"

before_daemon=() # a command that executes it: unshare …
daemon_web=(--no-listen) # what it serves by HTTP: many daemons run at once, and the port is one
inside=() # what it takes to be where it is, if that is elsewhere: nsenter …

# daemon_start ARGUMENT…: with its own state and socket; returns once it answers. Its log is $dir/daemon.err.
daemon_start() {
	state=$dir/state socket=$dir/run/socket
	chmod 755 "$dir"
	spawn daemon "${before_daemon[@]}" "$KPROF" daemon --state "$state" --socket "$socket" --config "${config:-/dev/null}" --min-free 1M \
		"${daemon_web[@]}" "$@"
	wait_for "$PATIENCE" "the daemon to listen" daemon_listens
}

daemon_listens() {
	! ended "${pid[daemon]}" || { fail "the daemon ended: $(cat "$dir/daemon.err")"; exit 1; }
	logged begun
}

# daemon_stop: SIGTERM, and the exit status
daemon_stop() {
	local status=0
	kill -TERM "${pid[daemon]}"
	wait_for "$PATIENCE" "the daemon to end" ended "${pid[daemon]}" || return 1
	wait "${pid[daemon]}" || status=$?
	unset 'pid[daemon]'
	[ "$status" = 0 ] || fail "the daemon: exit status $status" "$(tail -n 5 "$dir/daemon.err")"
}

# logged EVENT [JQ]: there is such a line in its log, for which the filter is true
logged() {
	jq -es --arg event "$1" "map(select(.event == \$event and (${2:-true}))) | length > 0" "$dir/daemon.err" >/dev/null 2>&1
}

# ctl VERB ARGUMENT…: succeeds; $dir/stdout
ctl() {
	local verb=$1
	shift
	kprof_says 0 ctl "$verb" --socket "$socket" "$@"
}

# ctl_refused REGEX VERB ARGUMENT…: by the daemon, with a cause and a hint
ctl_refused() {
	local cause=$1 verb=$2
	shift 2
	{ kprof_says 1 ctl "$verb" --socket "$socket" "$@" && grep -qE "^kprof: .*$cause" "$dir/stderr"; } ||
		fail "in: ctl $verb $*" "$(cat "$dir/stderr")"
}

# The state of a recording.
state_of() { # ID
	"$KPROF" ctl status --socket "$socket" --json "$1" | jq -r .state
}

is_done() {
	[ "$(state_of "$1")" = "done" ]
}

# What is stored in one of its folders.
stored_names() { # FOLDER
	find "$state/$1" -maxdepth 1 -name '[0-9]*.kprof' -printf '%f\n' | sort
}

stored() { # FOLDER NUMBER
	[ "$(stored_names "$1" | wc -l)" -ge "$2" ]
}

# ---- the flight recorder, of a program with the name $comm ----

watched() { # [NUMBER]: so many processes
	"$KPROF" ctl status --socket "$socket" --json | jq -e --argjson n "${1:-1}" '.flight.now.processes >= $n'
}

another_flight() { # PID
	"$KPROF" ctl status --socket "$socket" --json | jq -e --argjson p "$1" '.flight.pid != $p and .flight.state == "recording"'
}

before_stepping=() # a command that executes it

# stepping STEPS MS SLOW_STEP SLOW_MS [MIB]: a target that has the flight recorder's attention
stepping() {
	mkdir -p "$dir/own" && cp "$BUILD/workloads/stepper" "$dir/own/$comm" && cp "$library" "$dir/own" || return 1
	target_start target "${before_stepping[@]}" "$dir/own/$comm" "$dir/own/libtorch_cpu.so" "$@"
	wait_for "$PATIENCE" "it to be watched" watched
	target_go target
}

dump_for() { # REGEX: the id of a dump that was made because of that
	"$KPROF" ctl list --socket "$socket" --json |
		jq -er --arg r "$1" '[.recordings[] | select(.state == "done" and (.why // "" | test($r)))][0].id' >"$dir/dump.id"
}

has_all() { # CAPTURE COUNTS: every call that the program counted
	[ "$(calls_of "$1")" = "$(jq '[.counts[]] | add' "$2")" ] ||
		fail "$(calls_of "$1") calls of $(jq '[.counts[]] | add' "$2")" "$("$KPROF" report "$1" --json --limit 0 | jq -c '.sources, .gaps, .overhead')"
}

calls_of() { # CAPTURE: how many calls of operators it has
	"$KPROF" report "$1" --json --limit 0 | jq '[.rows[].calls] | add // 0'
}

# memory_cgroup LIMIT: $cgroup, a cgroup of its own with so much memory. Fails where the kernel has none that may be made.
memory_cgroup() {
	local top
	while read -r top; do
		cgroup=$top/kprof-$$-$BATS_TEST_NUMBER
		mkdir "$cgroup" 2>/dev/null || continue
		# with swap, what wants more would get it; version 1 has it by another name
		echo 0 >"$cgroup/memory.swap.max" || echo 0 >"$cgroup/memory.swappiness" || true
		if echo "$1" >"$cgroup/memory.max" || echo "$1" >"$cgroup/memory.limit_in_bytes"; then return 0; fi
		rmdir "$cgroup"
	done < <(awk '$3 == "cgroup2" || ($3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/) { print $2 }' /proc/self/mounts) 2>/dev/null
	unset cgroup
	return 1
}

# ---- its HTTP ----

daemon_web() { # JQ: of what the daemon says of what it serves
	"$KPROF" ctl status --socket "$socket" --json | jq -r ".web.$1"
}

daemon_ask() { # PATH FILE [HEADER…]: prints the status
	"${inside[@]}" "$PYTHON" "$LIB/http_ask.py" "http://127.0.0.1:$(daemon_web 'ports[0]')$1" "$dir/$2" "${@:3}"
}

has() { # REGEX: a line of /metrics matches
	[ "$(daemon_ask /metrics metrics 2>/dev/null)" = 200 ] && grep -qE "$1" "$dir/metrics"
}

figure() { # NAME{LABELS}: of the metrics that were asked for last
	grep -v '^#' "$dir/metrics" | grep -F "$1 " | cut -d ' ' -f 2
}
