#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# The library's server for Kineto and dyno: the real libkineto in PyTorch polls it, and a dyno that was written to the
# protocol asks it. Each test has a network namespace of its own: the abstract socket's name and the port are one a namespace.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
bats_require_minimum_version 1.5.0

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root, for a network namespace"
	[ -x "$BUILD/workloads/dynologd" ] || fail "the test programs are not built: make workloads"
	out=/tmp/kprof-dynolog-$$-$BATS_TEST_NUMBER # Kineto writes to no folder but /tmp
	mkdir "$out" && chmod 1777 "$out"
}

teardown() {
	touch "$dir/stop" # what runs in a namespace of its own
	harness_teardown
	[ -z "${out:-}" ] || rm -rf "$out"
}

# daemon ARGUMENT…: the server; what is to reach it runs with "${inside[@]}"
daemon() {
	target_start daemon unshare --net "$BUILD/workloads/dynologd" "$@"
	inside=(nsenter "--net=/proc/${pid[daemon]}/ns/net")
}

dyno() {
	"${inside[@]}" "$LIB/dyno.py" "$@"
}

# kinetos: the Pythons whose PyTorch has Kineto's client (Debian's has not)
kinetos() {
	local python
	for python in $(pythons); do
		! grep -qs dynoconfigclient "$(torch_folder "$python")/lib/libtorch_cpu.so" || echo "$python"
	done
}

needs_kineto() {
	[ -n "$(kinetos)" ] || skip "no PyTorch with Kineto's client here: scripts/setup check installs it"
}

# trains NAME PYTHON [COMMAND…]: operators until $dir/stop is there; returns when Kineto has registered
trains() {
	target_start "$1" "${inside[@]}" "${@:3}" env KINETO_USE_DAEMON=1 "$2" "$WORKLOADS/oploop.py" --iters 1000000000 --calls 20 \
		--pause 0.01 --until-file "$dir/stop"
	target_go "$1"
}

# PyTorch 2.3 now and then crashes when it ends soon after a recording of Kineto's (its thread outlives what it uses).
cut_off() { # NAME
	kill -KILL "${pid[$1]}"
	wait "${pid[$1]}" || :
	unset "pid[$1]"
}

registers() { # NAME
	wait_for "$PATIENCE" "$1 to register" target_said daemon "^registered ${pid[$1]} "
}

# gputrace ARGUMENT…: dyno's; the files that it prints are then in the array files. The warm-up is short, for the test's sake.
gputrace() {
	dyno gputrace --log-file "$out/trace.json" --config ACTIVITIES_WARMUP_PERIOD_SECS=1 "$@" >"$dir/dyno" || return
	cat "$dir/dyno"
	grep -q '^response length = [0-9]*$' "$dir/dyno"
	mapfile -t files < <(sed -n 's/^ \{4\}//p' "$dir/dyno")
}

# A trace of Kineto's that is all there: JSON, in which each aten::sinh is beside twenty aten::add, but for those at the ends.
is_trace() { # FILE
	jq -e '[.traceEvents[] | select(.ph == "X") | .name] | [map(select(. == "aten::sinh")), map(select(. == "aten::add"))] |
		map(length) as [$sinh, $add] | $sinh > 2 and $add >= 20 * ($sinh - 1) and $add <= 20 * ($sinh + 1)' "$1" 2>/dev/null
}

appears() { # FILE
	wait_for "$PATIENCE" "$1" is_trace "$1" || { ls -l "$out"; fail "$(tail -n 5 "$dir"/*.err)"; }
}

@test "Kineto inside: it registers, obeys, and its file has the name that dyno prints" {
	local python release
	needs_kineto
	daemon
	for python in $(kinetos); do
		release=$(torch_release "$python")
		rm -f "$dir/stop"
		trains "$release" "$python"
		registers "$release"
		gputrace --pids "${pid[$release]}" --fail-on-no-process
		[ "${files[*]}" = "$out/trace_${pid[$release]}.json" ]
		grep -q '^Matched 1 processes$' "$dir/dyno"
		appears "${files[0]}"
		touch "$dir/stop"
		target_result "$release" # the program went on
		cut_off "$release"
	done
	# they are gone, and dyno is told so
	run -1 dyno gputrace --log-file "$out/trace.json" --fail-on-no-process
	[[ $output == *'No processes were matched'* ]]
	target_go daemon
	target_result daemon
	jq -e '.malformed == 0 and .unnamed == 0 and .forged == 0 and .unknown == 0 and .undelivered == 0 and .answered > 0' "$dir/daemon.json"
	target_end daemon
}

@test "a folder's socket, across a PID namespace, and the abstract one at the same time" {
	local python host
	needs_kineto
	python=$(kinetos | tail -n 1)
	daemon --folder "$out"
	trains abstract "$(kinetos | head -n 1)"
	trains contained "$python" unshare --pid --fork --kill-child env KINETO_IPC_SOCKET_DIR="$out"
	registers abstract
	# its own number is 1, and so its file is called
	wait_for "$PATIENCE" "the contained one to register" target_said daemon '^registered [0-9]* 1$'
	host=$(sed -n 's/^registered \([0-9]*\) 1$/\1/p' "$dir/daemon.out")
	[ "$(ps -o ppid= -p "$host" | tr -d ' ')" = "${pid[contained]}" ]
	gputrace --pids "$host,${pid[abstract]}"
	printf '%s\n' "${files[@]}" | sort >"$dir/files"
	printf '%s\n' "$out/trace_1.json" "$out/trace_${pid[abstract]}.json" | sort | diff - "$dir/files"
	appears "$out/trace_1.json"
	appears "$out/trace_${pid[abstract]}.json"
	touch "$dir/stop"
	target_result abstract
	target_result contained
	cut_off abstract
	cut_off contained
	target_go daemon
	target_end daemon
	[ ! -e "$out/dynolog" ]
}

@test "eight ranks, one request: all are told, and begin at the time that it says" {
	local python start file
	needs_kineto
	python=$(kinetos | tail -n 1)
	daemon
	target_start ranks "${inside[@]}" env KINETO_USE_DAEMON=1 "$python" "$WORKLOADS/kineto_ranks.py" 8 "$dir"
	for file in $(pgrep -P "${pid[ranks]}"); do
		wait_for "$PATIENCE" "rank $file to register" target_said daemon "^registered $file "
	done
	start=$(($(date +%s%3N) + 15000)) # each asks every five seconds, and Kineto warms up before
	# by their parent's number
	gputrace --pids "${pid[ranks]}" --process-limit 8 --profile-start-time "$start" --duration-ms 1500
	[ ${#files[@]} = 8 ]
	file_says "$dir/daemon.out" '^done 8 8 0$'
	for file in "${files[@]}"; do
		wait_for "$PATIENCE" "$file" jq -e . "$file" 2>"$dir/jq" >"$dir/jq"
		jq -e --argjson start "$start" '(.baseTimeNanoseconds // 0) as $base | [.traceEvents[] | select(.ph == "X" and (.cat == "cpu_op"))] as $ops |
			($ops | map(.name) | contains(["aten::mm", "aten::tanh", "c10d::allreduce_"])) and
			($ops | map(.ts) | min) * 1000 + $base >= ($start - 5) * 1000000' "$file"
	done
	# each is of another process
	[ "$(jq -s '[.[] | [.traceEvents[] | select(.cat == "cpu_op") | .pid] | unique | .[]] | unique | length' "${files[@]}")" = 8 ]
	touch "$dir/stop"
	target_end ranks
}

@test "from outside: who has no Kineto is recorded by the daemon, whose file dyno prints and the process's user owns" {
	spawn nobodys setpriv --reuid 65534 --regid 65534 --clear-groups sleep 1000
	spawn of_job env SLURM_JOB_ID=77 sleep 1000
	wait_for "$PATIENCE" "another user" is_of 65534 "${pid[nobodys]}"
	daemon --outside "${pid[nobodys]}" --outside "${pid[of_job]}"
	gputrace --pids "${pid[nobodys]}" --profile-start-time 1700000000123
	[ "${files[*]}" = "$out/trace_${pid[nobodys]}.json" ]
	[ "$(stat -c '%u %g %a' "${files[0]}")" = '65534 65534 600' ]
	file_says "$dir/daemon.out" "^begun ${pid[nobodys]} ${files[0]} 1700000000123\$"
	# never in the place of a file that is there
	gputrace --pids "${pid[nobodys]}"
	[[ $(cat "$dir/dyno") == *'"activityProfilersTriggered":[]'* ]]
	# by its job's number only
	gputrace --pids "${pid[of_job]}"
	[ ${#files[@]} = 0 ]
	gputrace --job-id 77
	[ "${files[*]}" = "$out/trace_${pid[of_job]}.json" ]
	# to no other folder
	dyno gputrace --log-file /etc/trace.json --pids "${pid[nobodys]}" | grep -F 'does not lie below /tmp'
	dyno gputrace --log-file "$out/../../etc/trace.json" --pids "${pid[nobodys]}" | grep -F 'does not lie below /tmp'
	[ -z "$(find /etc -maxdepth 1 -name 'trace*.json')" ]
}

@test "dyno's other commands" {
	daemon
	dyno status | grep -xF 'response = {"status":1}'
	dyno version | grep -xF "response = {\"version\":\"$("$KPROF" --version)\"}"
	dyno dcgm-pause | grep -xF 'response = {"status":false}'
	dyno dcgm-resume | grep -xF 'response = {"status":false}'
	run -1 dyno raw '{"fn":"setKinetOnDemandRequests"}'
	[[ $output == *'closed without an answer'* ]]
}

@test "hostile datagrams and connections: all counted, and honest ones answered meanwhile" {
	local files_before
	daemon
	files_before=$(find "/proc/${pid[daemon]}/fd" -type l | wc -l)
	target_start hostile "${inside[@]}" "$PYTHON" "$WORKLOADS/dynolog_hostile.py"
	target_go hostile
	target_result hostile
	target_end hostile
	dyno status
	[ "$(find "/proc/${pid[daemon]}/fd" -type l | wc -l)" = "$files_before" ]
	awk '/^VmHWM/ { exit $2 > 40000 }' "/proc/${pid[daemon]}/status"
	target_go daemon
	target_result daemon
	jq -e --slurpfile h "$dir/hostile.json" '$h[0] as $h | $h.honest == 40 and .malformed == $h.malformed and .forged == $h.forged and
		.unnamed == $h.unnamed and .bad_requests >= $h.bad_requests and .slow > 50' "$dir/daemon.json"
	target_end daemon
}

is_of() { # UID PID
	[ "$(stat -c %u "/proc/$2")" = "$1" ]
}
