#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# kprof daemon for long, and in trouble: storms of programs, many clients, kill -9, disks and memory that fail, a clock that steps.
# In make check for a minute and a half; with KPROF_SOAK, which `make soak` sets, for half an hour. The judges: every capture is
# read again; programs that count what they do; /proc.

# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own, as is meant
# shellcheck source=tests/lib/daemon.bash
source "$BATS_TEST_DIRNAME/lib/daemon.bash"

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	chmod 755 "$dir"
}

teardown() {
	harness_teardown
	[ -z "${cgroup:-}" ] || cgroups_end "$cgroup"
}

# seconds IN_CHECK IN_SOAK
seconds() {
	echo "${KPROF_SOAK_SECONDS:-$([ -n "${KPROF_SOAK:-}" ] && echo "$2" || echo "$1")}"
}

# every_capture_is_whole: each that has its name can be read, and is complete. Of the parts of a recording none is missing between
# others, and none is there twice. In a long storm of programs a PID comes again: of another recording, whose parts come later and
# begin with the first. (By when the kernel last changed their files, for the daemon's own clock may have been made to step.)
# LEAST: so many captures, at least. CUT: so many of them may be cut short, since it was said that nothing is stored any more.
# GAPS: numbers may be missing, of captures that could not be begun: what was to be in them is in the one before.
every_capture_is_whole() { # [LEAST] [CUT] [GAPS]
	local path changed
	: >"$dir/parts"
	: >"$dir/cut"
	while read -r changed path; do
		"$KPROF" report "$path" --json --limit 1 >"$dir/report.json" 2>"$dir/report.err" || fail "$path: $(cat "$dir/report.err")" || return 1
		jq -e .complete "$dir/report.json" >/dev/null || is_unfinished_recording "$path" || echo "$path" >>"$dir/cut"
		if [[ $path == */recordings/* || ! $path =~ ([0-9]+)-([0-9]+)\.kprof$ ]]; then continue; fi
		echo "${path%/*} ${BASH_REMATCH[1]} $changed ${BASH_REMATCH[2]}" >>"$dir/parts"
	done < <(find "$state" -name '[0-9]*.kprof' -printf '%C@ %p\n')
	[ "$(wc -l <"$dir/cut")" -le "${2:-0}" ] || fail "cut short: $(cat "$dir/cut")" || return 1
	[ "$(wc -l <"$dir/parts")" -ge "${1:-1}" ] || fail "only $(wc -l <"$dir/parts") captures" || return 1
	sort -k1,2 -k3,3n "$dir/parts" | awk -v gaps="${3:-}" '
		$1 " " $2 == of && $4 != 1 && (gaps ? $4 <= number : $4 != number + 1) { print "after " of " " number ": " $0; bad = 1 }
		{ of = $1 " " $2; number = $4 } END { exit bad }'
}

# One that failed, or was killed, has what there was until then, and is not said to be done.
is_unfinished_recording() {
	[[ $1 == */recordings/* ]] && [ ! -e "${1%.kprof}.json" ]
}

no_temporary_file() {
	[ -z "$(find "$state" -name '.*.tmp*' ! -path '*/recordings/*')" ]
}

@test "storms of programs, 64 clients, kill -9 of any of its processes at any moment: nothing finished is damaged, nothing is left" {
	local state=$dir/state
	cp /bin/sleep "$dir/kprof-soaked"
	"$PYTHON" "$LIB/soak_daemon.py" "$KPROF" "$state" "$dir/sock" "$(seconds 20 1200)" "${KPROF_SEED:-$RANDOM}" "$dir/daemon.err" kill \
		>"$dir/did.json" || fail "$(cat "$dir/did.json")"
	cat "$dir/did.json"
	every_capture_is_whole 10
	# most of it was done, on any machine
	jq -e '.asked > 200 and .programs > 500 and .killed > 1 and .recordings > 5 and .begun >= 1' "$dir/did.json"
	# what was begun before a kill -9 goes with the next daemon
	daemon_start --no-sampling
	daemon_stop
	daemon_start --chunk 1s --watch nothing --flight-chunk 1s
	wait_for "$PATIENCE" "what the killed ones left to go" no_temporary_file_of_dead
	daemon_stop
	no_temporary_file || fail "$(find "$state" -name '.*')"
}

no_temporary_file_of_dead() {
	local path
	while read -r path; do
		[[ $path =~ -([0-9]+)-[0-9]+\.kprof ]] && [ -d "/proc/${BASH_REMATCH[1]}" ] || return 1
	done < <(find "$state" -name '.*.tmp*' ! -path '*/recordings/*')
}

@test "its memory is within the limit and stays what it was while programs come and go" {
	local state=$dir/state
	cp /bin/sleep "$dir/kprof-soaked"
	"$PYTHON" "$LIB/soak_daemon.py" "$KPROF" "$state" "$dir/sock" "$(seconds 10 300)" 1 "$dir/daemon.err" >"$dir/did.json" || fail "$(cat "$dir/did.json")"
	cat "$dir/did.json"
	# beside the 16 MiB of what it may have read anew
	jq -e '.pss_after < 250e6 and .pss_after < .pss_before * 1.5 + 16e6' "$dir/did.json"
	every_capture_is_whole 3
}

# costs_little BEGIN: of busy CPU time, or of one CPU; but for the most without those seconds in which it begins
costs_little() {
	jq -s "map((.cpu_ns + .bpf_ns) / ([.busy_ns, .ns] | max)) | {most: max} + (.[$1:] | {mean: (add / length), seconds: length,
		within: (map(select(. < 0.012)) | length), dearest: max})" "$dir/cost" | tee "$dir/shares"
	# of a few seconds, one in which others took the CPU away is many
	jq -e ".seconds > 10 and .mean < $(seconds 0.012 0.009) and .within > .seconds * $(seconds 0.85 0.98) and .dearest < $(seconds 0.08 0.02) and .most < 0.25" \
		"$dir/shares"
}

@test "what it costs, from outside: its processes and its programs in the kernel, within the bound and a fifth of it" {
	local begin=8 seconds
	spawn busy sh -c "while :; do i=0; while [ \$i -lt 20000 ]; do i=\$((i + 1)); done; /bin/true; done"
	cgroup=$("$PYTHON" "$LIB/daemon_cost.py" new) || true # else /proc says it
	state=$dir/state socket=$dir/run/socket
	spawn daemon sh -c "[ -z '$cgroup' ] || echo \$\$ >'$cgroup/cgroup.procs'; exec '$KPROF' daemon --state '$state' --socket '$socket' \
		--config /dev/null --min-free 1M --chunk 10s"
	wait_for "$PATIENCE" "the daemon to listen" daemon_listens
	# A capture's end costs most, and is paid for by what follows: where a machine is slow, that takes longer.
	for seconds in "$((begin + $(seconds 17 900)))" 30 60; do
		"$PYTHON" "$LIB/daemon_cost.py" "${pid[daemon]}" "$seconds" "$cgroup" >>"$dir/cost" || fail "$(tail -n 3 "$dir/cost")"
		"$KPROF" ctl status --socket "$socket" --json >"$dir/status.json"
		! costs_little "$begin" || break
	done
	daemon_stop
	kill "${pid[busy]}"
	costs_little "$begin"
	jq -es 'map(.pss + .kernel) | max < 250e6' "$dir/cost"
	# what it says of itself is about that: pages of files are not in it, and those of maps once
	jq -e --slurpfile s "$dir/status.json" -s 'last | .kernel + .pss > $s[0].memory_bytes / 2 and $s[0].memory_bytes > .kernel / 2' "$dir/cost"
}

# ---- exactly what was called ----

# Calls that went on where one capture ended and the next began are in both.
flight_calls() {
	local path
	for path in "$state"/flight/[0-9]*.kprof; do
		"$KPROF" export "$path" -o "$dir/part.json" >/dev/null 2>&1 &&
			jq '[.traceEvents[] | select(.ph == "X" and .cat == "cpu_op" and (.args.begun_before_ns? | not))] | length' "$dir/part.json"
	done | jq -s add
}

@test "over restarts, by signal and by kill -9, all calls are there once; what is lost was not stored yet" {
	local flight=(--no-sampling --watch watched --flight 1h --flight-chunk 500ms --max-overhead 100%) round recorder expected=0
	mkdir "$dir/own" && cp "$driver" "$dir/own/watched" && cp "$library" "$dir/own"
	daemon_start "${flight[@]}"
	for round in term kill recorder last; do
		wait_for "$PATIENCE" "the flight recorder" logged recording
		target_start "$round" "$dir/own/watched" count --n 3000 --linger
		wait_for "$PATIENCE" "it to be watched" watched
		target_go "$round"
		target_result "$round"
		expected=$((expected + $(jq '[.counts[]] | add' "$dir/$round.json")))
		ctl dump -o "$dir/$round.kprof" # all until now is stored then
		target_end "$round"
		recorder=$("$KPROF" ctl status --socket "$socket" --json | jq .flight.pid)
		case $round in
		term)
			daemon_stop
			daemon_start "${flight[@]}"
			;;
		kill)
			kill -KILL "$recorder" "${pid[daemon]}"
			wait "${pid[daemon]}" || true
			unset 'pid[daemon]'
			daemon_start "${flight[@]}"
			;;
		recorder)
			kill -KILL "$recorder"
			wait_for "$PATIENCE" "another one" logged recorder_ended
			wait_for "$PATIENCE" "another one to record" another_flight "$recorder"
			;;
		esac
	done
	daemon_stop
	every_capture_is_whole 4
	[ "$(flight_calls)" = "$expected" ] || fail "$(flight_calls) of $expected calls"
}

# ---- trouble ----

# faults WRITES RENAMES ALLOCATIONS CLOCK_NS SUSPENDED_NS: of how many one fails, from now on (workloads/faulty.c)
faults() {
	"$PYTHON" -c 'import struct, sys
with open(sys.argv[1], "r+b" if len(sys.argv) > 7 else "wb") as f: f.write(struct.pack("<QQQqq", *map(int, sys.argv[2:7])))' "$dir/faults" "$@" ${faulty:+again}
	faulty=1
}

# faulty_start ARGUMENT…: a daemon in trouble
faulty_start() {
	faults 0 0 0 0 0
	state=$dir/state socket=$dir/run/socket
	spawn daemon env KPROF_FAULTS="$dir/faults" LD_PRELOAD="$BUILD/workloads/faulty.so" "$KPROF" daemon --state "$state" --socket "$socket" \
		--config /dev/null --min-free 1M "$@"
	wait_for "$PATIENCE" "the daemon to listen" daemon_listens
}

chunks() { # of the sampler's
	find "$state/samples" -name '[0-9]*.kprof' | wc -l
}

more_chunks() { # THAN
	[ "$(chunks)" -gt "$1" ]
}

# chunks_again: now that nothing fails any more, three more; the last of them, and what the daemon's end makes of the one after it,
# were begun when nothing failed
chunks_again() {
	local before
	before=$(chunks)
	wait_for "$PATIENCE" "it to store again" more_chunks "$((before + 2))"
	daemon_stop
}

# the_last_is_whole: what trouble there was is over with the captures of that time
the_last_is_whole() {
	local last
	last=$(find "$state/samples" -name '[0-9]*.kprof' | sort | tail -n 1) # a name begins with the time
	"$KPROF" report "$last" --json --limit 1 | jq -e .complete >/dev/null || fail "cut short: $last, of $(chunks)"
}

none_crashed() {
	# no jq: under faults, lines of the log may be cut
	! grep -q '"event":"recorder_ended".*"signal":' "$dir/daemon.err" || fail "$(grep recorder_ended "$dir/daemon.err")"
}

@test "EIO and ENOSPC, in the middle of anything: it goes on, and what has its name is whole" {
	spawn busy sh -c "while :; do /bin/true; sleep 0.05; done"
	faulty_start --chunk 1s --frequency 49 --max-overhead 50%
	wait_for "$PATIENCE" "captures" more_chunks 1
	faults 3 3 0 0 0
	local end=$((SECONDS + $(seconds 6 120)))
	while [ "$SECONDS" -lt "$end" ]; do
		"$KPROF" ctl status --socket "$socket" >/dev/null
		ctl start -p "${pid[busy]}" -d 1s || true
		sleep 0.3
	done
	faults 0 0 0 0 0
	chunks_again
	none_crashed
	kill "${pid[busy]}"
	# that nothing is stored is said once, until it works again: each capture of in between may be cut short
	every_capture_is_whole 3 1000 gaps
	the_last_is_whole
	no_temporary_file
}

removed() { # AT LEAST
	"$KPROF" ctl status --socket "$socket" --json | jq -e --argjson n "$1" '.sampler.chunks_removed >= $n and .sampler.restarts == 0'
}

@test "the clock steps by an hour, back by two, and by years: captures are in a row, and none is lost; after a suspend old ones go" {
	faulty_start --chunk 1s --frequency 49 --max-overhead 50% --keep 30m
	local step before
	for step in 3600 -7200 315360000 0; do
		before=$(chunks)
		faults 0 0 0 "${step}000000000" 0
		wait_for "$PATIENCE" "captures after a step of $step s" more_chunks "$((before + 1))"
	done
	"$KPROF" ctl status --socket "$socket" --json |
		jq -e '.sampler | .restarts == 0 and .chunks_not_stored == 0 and .chunks_removed == 0'
	every_capture_is_whole 8
	# CLOCK_BOOTTIME goes on while the machine is suspended, and what was to begin meanwhile begins
	spawn target sleep 1000
	ctl start -p "${pid[target]}" --start-at "$(($(date +%s) + 3600))" -d 1s
	cp "$dir/stdout" "$dir/id"
	before=$(chunks)
	faults 0 0 0 0 7200000000000
	wait_for "$PATIENCE" "the recording's end" is_done "$(cat "$dir/id")"
	wait_for "$PATIENCE" "the old captures to go" removed "$((before / 2))"
	before=$(chunks)
	wait_for "$PATIENCE" "captures after it" more_chunks "$((before + 1))"
	daemon_stop
	none_crashed
	every_capture_is_whole 2
	no_temporary_file
}

@test "memory that is not there: a process of the daemon's may end, none crashes, and the next one goes on" {
	spawn busy sh -c "while :; do /bin/true; sleep 0.05; done"
	faulty_start --chunk 1s --frequency 49 --max-overhead 50%
	wait_for "$PATIENCE" "captures" more_chunks 1
	faults 0 0 20000 0 0
	local end=$((SECONDS + $(seconds 6 120)))
	while [ "$SECONDS" -lt "$end" ]; do
		timeout 20 "$KPROF" ctl status --socket "$socket" >/dev/null 2>&1 || true
		timeout 20 "$KPROF" ctl start --socket "$socket" -p "${pid[busy]}" -d 1s >/dev/null 2>&1 || true
		sleep 0.3
	done
	faults 0 0 0 0 0
	chunks_again
	none_crashed
	kill "${pid[busy]}"
	every_capture_is_whole 2 1000 gaps
	the_last_is_whole
}
