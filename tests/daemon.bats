#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# kprof daemon: its recordings on demand (kprof ctl), what it records always, its end, its limits. The judges: programs that
# count what they do, the clocks, other users.

# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own, as is meant
# shellcheck source=tests/lib/daemon.bash
source "$BATS_TEST_DIRNAME/lib/daemon.bash"

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	comm=w$BATS_TEST_NUMBER-$$ # of what is watched: other suites' daemons do not mean it
}

teardown() {
	harness_teardown
	[ -z "${full:-}" ] || umount -l "$full" 2>/dev/null || true
}

@test "a request is prepared, started, stopped and fetched; nothing is recorded before and after" {
	daemon_start --no-sampling
	target_start target "$driver" count --n 3000 --linger
	ctl prepare -p "${pid[target]}"
	local id
	id=$(cat "$dir/stdout")
	[ "$(state_of "$id")" = prepared ]
	ctl start "$id"
	target_go target
	target_result target
	ctl stop "$id"
	ctl get "$id" -o "$dir/got.kprof"
	has_all "$dir/got.kprof" "$dir/target.json"
	# the same by one command, in another format
	ctl get "$id" -o "$dir/got.json.gz"
	"$PYTHON" "$LIB/validate_trace.py" "$dir/got.json.gz"
	target_end target
	daemon_stop
}

@test "each wrong order is refused by name, and a second stop does no harm" {
	daemon_start --no-sampling
	spawn target sleep 1000
	ctl prepare -p "${pid[target]}"
	local id
	id=$(cat "$dir/stdout")
	ctl_refused "has not been started" stop "$id"
	ctl_refused "still goes on" get "$id" -o "$dir/x.kprof"
	ctl start "$id"
	ctl_refused "started already" start "$id"
	ctl stop "$id"
	ctl stop "$id"
	grep -q "nothing is recorded" "$dir/stderr"
	ctl stop -p "${pid[target]}"
	grep -q "nothing is recorded" "$dir/stderr"
	ctl_refused "has ended: it is done" start "$id"
	ctl_refused "has ended: it is done" cancel "$id"
	ctl_refused "no recording nonsense" stop nonsense
	ctl_refused "no recording ../x" get ../x -o "$dir/x.kprof"
	ctl_refused "has exited|no process" start -p 999999
	ctl prepare -p "${pid[target]}"
	id=$(cat "$dir/stdout")
	ctl cancel "$id"
	[ "$(state_of "$id")" = cancelled ]
	ctl_refused "was given up" get "$id" -o "$dir/x.kprof"
	[ ! -e "$dir/x.kprof" ]
	[ "$(find "$state/recordings" -name "*.kprof" | wc -l)" = 1 ]
	kill "${pid[target]}"
	daemon_stop
}

@test "recordings end by themselves: after a time, after steps, with the process, when the daemon ends" {
	daemon_start --no-sampling
	target_start target "$driver" count --n 10 --linger
	ctl start -p "${pid[target]}" -d 1s
	local timed ended by_daemon
	timed=$(cat "$dir/stdout")
	wait_for "$PATIENCE" "its end" is_done "$timed"
	"$KPROF" ctl status --socket "$socket" --json "$timed" | jq -e '.elapsed_ns >= 1e9 and .elapsed_ns < 60e9'
	ctl start -p "${pid[target]}"
	ended=$(cat "$dir/stdout")
	target_go target
	target_result target
	target_end target
	wait_for "$PATIENCE" "its end" is_done "$ended"
	ctl get "$ended" -o "$dir/ended.kprof"
	has_all "$dir/ended.kprof" "$dir/target.json"
	target_start steps "$BUILD/workloads/stepper" "$library" 1000000 5 -1 0
	target_go steps
	ctl start -p "${pid[steps]}" --steps 3
	ended=$(cat "$dir/stdout")
	wait_for "$PATIENCE" "its end" is_done "$ended"
	ctl get "$ended" -o "$dir/steps.kprof"
	"$KPROF" report "$dir/steps.kprof" --by step --json | jq -e '(.rows | length) == 3 and ([.rows[].inexact] | add) == 0'
	kill "${pid[steps]}"
	target_start target "$driver" count --n 10 --linger
	ctl start -p "${pid[target]}"
	by_daemon=$(cat "$dir/stdout")
	target_go target
	target_result target
	daemon_stop
	has_all "$state/recordings/$by_daemon.kprof" "$dir/target.json"
	# a daemon that begins later knows what the one before has recorded
	daemon_start --no-sampling
	ctl list
	grep -q "^$timed  *done" "$dir/stdout"
	grep -q "^$by_daemon  *done" "$dir/stdout"
	ctl get "$by_daemon" -o "$dir/later.kprof"
	has_all "$dir/later.kprof" "$dir/target.json"
	target_end target
	daemon_stop
}

# On a machine that does nothing else it is less than 5 ms (docs/daemon.md); here others run beside it.
@test "at a time of the clock: several recordings begin at it, and not before" {
	daemon_start --no-sampling
	local n at ids=() before
	for n in 1 2 3 4; do spawn "t$n" sleep 1000; done
	# four must be prepared until then, however long one takes here
	before=$SECONDS
	ctl prepare -p "${pid[t1]}"
	ctl cancel "$(cat "$dir/stdout")"
	at=$(($(date +%s) + 4 + (SECONDS - before) * 8))
	for n in 1 2 3 4; do
		ctl start -p "${pid[t$n]}" --start-at "$at"
		ids+=("$(cat "$dir/stdout")")
	done
	for n in "${ids[@]}"; do wait_for "$PATIENCE" "its begin" is_recording "$n"; done
	for n in "${ids[@]}"; do
		ctl stop "$n"
		ctl get "$n" -o "$dir/$n.json"
		jq -r '.kprof.clock.start_real_ns // empty' "$dir/$n.json" >>"$dir/starts"
	done
	[ "$(wc -l <"$dir/starts")" = 4 ]
	jq -es --argjson at "$at" 'all(. - $at * 1e9 | . > -1e6 and . < 10e9)' "$dir/starts" || { cat "$dir/starts"; false; }
	for n in 1 2 3 4; do kill "${pid[t$n]}"; done
	daemon_stop
}

is_recording() {
	[ "$(state_of "$1")" = recording ]
}

@test "what is prepared takes its start's time and length, and refuses by name what comes too late" {
	daemon_start --no-sampling
	spawn target sleep 1000
	local id at option
	ctl prepare -p "${pid[target]}"
	id=$(cat "$dir/stdout")
	for option in --shapes --steps=5 --repeat=2 --tid=1; do
		kprof_says 2 ctl start --socket "$socket" "$id" "$option"
		grep -q "^kprof: ${option%=*} comes too late: recording $id is prepared" "$dir/stderr" || fail "$option" "$(cat "$dir/stderr")"
		grep -q "^hint: .*kprof ctl prepare" "$dir/stderr"
	done
	ctl_refused "start in more than a day" start "$id" --start-at 4000000000
	[ "$(state_of "$id")" = prepared ]
	at=$(($(date +%s) + 3))
	ctl start "$id" --start-at "$at" -d 1s
	[ "$(cat "$dir/stdout")" = "$id" ]
	ctl_refused "started already" start "$id"
	wait_for "$PATIENCE" "its end" is_done "$id"
	"$KPROF" ctl status --socket "$socket" --json "$id" | jq -e --argjson at "$at" '.started_ms >= $at * 1000 and .elapsed_ns >= 1e9'
	kill "${pid[target]}"
	daemon_stop
}

@test "two daemons refuse each other; one that was killed leaves nothing in the way, and what it recorded" {
	daemon_start --no-sampling
	kprof_says 1 daemon --state "$state" --socket "$socket" --config /dev/null
	grep -q "^kprof: a daemon listens at" "$dir/stderr"
	# by what they store, too, wherever they listen
	kprof_says 1 daemon --state "$state" --socket "$dir/run2/socket" --config /dev/null
	grep -q "^kprof: another daemon, with another socket, stores in $state" "$dir/stderr"
	grep -q "^hint: --state names another folder" "$dir/stderr"
	[ ! -e "$dir/run2/socket" ]
	target_start target "$driver" count --n 10 --linger
	ctl start -p "${pid[target]}"
	local id
	id=$(cat "$dir/stdout")
	target_go target
	target_result target
	kill -KILL "${pid[daemon]}"
	wait "${pid[daemon]}" || true
	unset 'pid[daemon]'
	# its recorder notices, and finishes the capture
	wait_for "$PATIENCE" "the capture" [ -s "$state/recordings/$id.kprof" ]
	has_all "$state/recordings/$id.kprof" "$dir/target.json"
	daemon_start --no-sampling
	ctl status
	target_end target
	daemon_stop
}

@test "who may: root, a group, owners of processes if the daemon is told so; nobody sees what others record" {
	local copy=$dir/bin id n
	chmod 755 "$dir" && mkdir "$copy" && cp "$KPROF" "$copy" && chmod 755 "$copy" "$copy/kprof"
	daemon_start --no-sampling --group "#none"
	# a process of nobody's
	spawn sleeper setpriv --reuid 65534 --regid 65534 --clear-groups sleep 1000
	nobody_fails "you may not have processes recorded" start -p "${pid[sleeper]}"
	daemon_stop
	daemon_start --no-sampling --allow-owner
	nobody "$copy/kprof" ctl start --socket "$socket" -p "${pid[sleeper]}" -d 100s >"$dir/id"
	id=$(cat "$dir/id")
	nobody_fails "is not yours to record" start -p $$
	nobody_fails "is not for requests of a process's owner" start -p "${pid[sleeper]}" --stacks
	nobody_fails "is not for requests of a process's owner" start -p "${pid[sleeper]}" --trust-files
	nobody_fails "is not for requests of a process's owner" start -p "${pid[sleeper]}" --trust
	ctl start -p "${pid[sleeper]}" -d 100s
	n=$(cat "$dir/stdout")
	nobody_fails "there is no recording $n" stop "$n"
	nobody "$copy/kprof" ctl list --socket "$socket" | grep -q "$id"
	! nobody "$copy/kprof" ctl list --socket "$socket" | grep -q "$n" || false
	nobody "$copy/kprof" ctl stop --socket "$socket" "$id"
	[ "$(stat -c '%u %a' "$state/recordings/$id.kprof")" = "65534 600" ]
	mkdir -m 777 "$dir/theirs"
	nobody "$copy/kprof" ctl get --socket "$socket" "$id" -o "$dir/theirs/a.kprof"
	[ "$(stat -c %u "$dir/theirs/a.kprof")" = 65534 ]
	ctl stop "$n"
	[ "$(stat -c '%u %a' "$state/recordings/$n.kprof")" = "0 600" ]
	daemon_stop
	kill "${pid[sleeper]}"
}

nobody_fails() { # REGEX VERB ARGUMENT…
	local cause=$1 verb=$2 status=0
	shift 2
	nobody "$dir/bin/kprof" ctl "$verb" --socket "$socket" "$@" >"$dir/stdout" 2>"$dir/stderr" || status=$?
	{ [ "$status" != 0 ] && grep -q "^kprof: .*$cause" "$dir/stderr"; } || fail "ctl $verb $*: $status" "$(cat "$dir/stderr")"
}

of_log() { # JQ: true for a list of some of its lines
	jq -Rs 'split("\n") | map(fromjson?)' "$dir/daemon.err" | jq -e "$1" >/dev/null || fail "not: $1" "$(tail -n 40 "$dir/daemon.err")"
}

@test "the log says who asked for what, and what was refused; no client fills it, or writes a line of its own" {
	local id copy=$dir/bin lines
	chmod 755 "$dir" && mkdir "$copy" && cp "$KPROF" "$copy" && chmod 755 "$copy" "$copy/kprof"
	daemon_start --no-sampling --group "#none"
	spawn target sleep 1000
	ctl prepare -p "${pid[target]}"
	id=$(cat "$dir/stdout")
	ctl start "$id"
	ctl stop "$id"
	ctl get "$id" -o "$dir/x.kprof"
	nobody_fails "there is no recording" stop $'x"}\n{"event":"forged"}'
	nobody_fails "you may not have processes recorded" start -p "${pid[target]}"
	of_log "map(select(.event == \"asked\" and .id == \"$id\" and .uid == 0 and .asker > 0) | .verb) == [\"start\", \"stop\", \"get\"]"
	of_log 'map(select(.event == "refusal" and .uid == 65534 and .asker > 0) | .verb) == ["stop", "start"]'
	of_log 'map(select(.event == "refusal"))[0].message | startswith("there is no recording x\"}?{\"event\"")'
	of_log 'map(select(.event == "forged")) == []'
	# a flood: what is left out is counted
	nobody "$PYTHON" - "$socket" <<-'END'
		import socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.connect(sys.argv[1])
		f = s.makefile("rw")
		for _ in range(150):
		    f.write('{"do": "dump"}\n'), f.flush()
		    assert '"ok":false' in f.readline()
	END
	lines=$(jq -Rs 'split("\n") | map(fromjson?) | map(select(.event == "refusal" and .verb == "dump")) | length' "$dir/daemon.err")
	[ "$lines" -ge 20 ] && [ "$lines" -le 60 ] || fail "$lines of 150 refusals are in the log"
	kill "${pid[target]}"
	daemon_stop
	# by the end at the latest
	of_log "map(select(.event == \"unlogged\").lines) | add == 150 - $lines"
}

samples_nothing() {
	"$KPROF" ctl status --socket "$socket" --json | jq -e '.sampler == null'
}

@test "SIGHUP reads the options anew; with wrong ones nothing changes" {
	config=$dir/kprof.conf
	printf '%s\n' "ring = 64M # of attach" "[daemon]" "no-sampling" "longest = 1h" >"$config"
	daemon_start
	samples_nothing
	printf '%s\n' "[daemon]" "frequency = 0" >"$config"
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "the refusal" logged reload '.level == "error"'
	samples_nothing
	printf '%s\n' "[daemon]" "frequency = 7" "max-overhead = 2%" >"$config"
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "the change" logged reload '.level == "info"'
	wait_for "$PATIENCE" "the sampler" logged recording '.recorder == "kprof-sampler"'
	"$KPROF" ctl status --socket "$socket" --json | jq -e '.max_overhead == 0.02 and .sampler.state == "recording"'
	echo no-sampling >>"$config"
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "its end" samples_nothing
	daemon_stop
}

@test "what it samples always: captures of all processes in a row, each whole, without a break; the oldest go" {
	daemon_start --chunk 1s --frequency 49 --min-wait 0 --max-overhead 50%
	spawn busy sh -c "while :; do :; done"
	wait_for "$PATIENCE" "five captures" stored samples 5
	local before
	before=$(stored_names samples | head -n 1)
	kill "${pid[busy]}"
	daemon_stop
	stored_names samples >"$dir/names"
	[ "$(head -n 1 "$dir/names")" = "$before" ]
	while read -r name; do
		"$KPROF" report "$state/samples/$name" --json --by process >"$dir/$name.json"
		jq -e .complete "$dir/$name.json" || fail "$name is cut short"
	done <"$dir/names"
	# all but those at the edges have the program that computes all the time, by its share of each
	sed -e 1d -e '$d' "$dir/names" >"$dir/inner"
	[ "$(wc -l <"$dir/inner")" -ge 3 ]
	while read -r name; do
		jq -e '[.rows[] | select(.name | test("^[0-9]+ sh$")) | .self_ns] | add > 0' "$dir/$name.json" || fail "$name has no sample of it" || return 1
	done <"$dir/inner"
	# each begins when the one before has ended, to the nanosecond
	while read -r name; do
		"$KPROF" export "$state/samples/$name" -o "$dir/$name.trace.json" >/dev/null
		jq -c --argjson ns "$(jq .window_ns "$dir/$name.json")" '[.kprof.clock.start_real_ns, $ns]' "$dir/$name.trace.json"
	done <"$dir/names" >"$dir/windows"
	jq -es '[.[:-1], .[1:]] | transpose | all((.[1][0] - .[0][0] - .[0][1]) | fabs < 1e5)' "$dir/windows" || { cat "$dir/windows"; false; }
	# with a limit for what is kept, the oldest go
	daemon_start --chunk 1s --keep 1s
	wait_for "$PATIENCE" "the oldest to go" gone "$state/samples/$before"
	daemon_stop
}

@test "what a recorder has left that is not configured any more since a restart is removed by its limits, too" {
	mkdir -p "$dir/state"/{samples,flight,device}
	local name new="0000000000002-1-1.kprof"
	for name in samples flight device; do
		touch -d "2 hours ago" "$dir/state/$name/0000000000001-1-1.kprof"
		touch -d "2 minutes ago" "$dir/state/$name/$new"
	done
	daemon_start --no-sampling --keep 1h --flight 60s
	for name in samples flight device; do
		wait_for "$PATIENCE" "what is old to go" gone "$dir/state/$name/0000000000001-1-1.kprof"
	done
	wait_for "$PATIENCE" "what is old to go" gone "$dir/state/flight/$new"
	[ "$(cd "$dir/state" && echo */"$new")" = "device/$new samples/$new" ]
	daemon_stop
	rm "$dir/state"/*/"$new" # they are empty
}

sampler_is() { # JQ
	"$KPROF" ctl status --socket "$socket" --json | jq -e ".sampler.now | $1" >/dev/null
}

@test "where the bound leaves less than a sample a second, there is that, and not none" {
	local cpu before
	daemon_start --chunk 1s --max-overhead 0.1%
	for ((cpu = 0; cpu < $(nproc); cpu++)); do spawn "busy$cpu" sh -c "while :; do :; done"; done
	wait_for "$PATIENCE" "the rate to be lowered" sampler_is '.sample_hz > 0 and .sample_hz < 1'
	before=$("$KPROF" ctl status --socket "$socket" --json | jq .sampler.now.samples)
	wait_for "$PATIENCE" "a few samples more" sampler_is ".sample_hz < 1 and .samples > $before + 3"
	daemon_stop
}

gone() {
	[ ! -e "$1" ]
}

@test "a recorder that is killed is begun anew; at most what it had not stored yet is lost" {
	daemon_start --chunk 1s
	local recorder before
	wait_for "$PATIENCE" "two captures" stored samples 2
	recorder=$("$KPROF" ctl status --socket "$socket" --json | jq .sampler.pid)
	before=$(stored_names samples | wc -l)
	kill -KILL "$recorder"
	wait_for "$PATIENCE" "another one" another_sampler "$recorder"
	logged recorder_ended '.signal == 9'
	wait_for "$PATIENCE" "another capture" stored samples $((before + 1))
	local name
	for name in $(stored_names samples); do
		"$KPROF" report "$state/samples/$name" --json --by process | jq -e .complete
	done
	daemon_stop
}

@test "a full disk stops what is stored, not the daemon; what is oldest goes first" {
	mkdir "$dir/state"
	mount -t tmpfs -o size=3m,mode=755 none "$dir/state"
	full=$dir/state
	daemon_start --chunk 1s
	wait_for "$PATIENCE" "four captures" stored samples 4
	# with the recorder stopped, a quarter of what is stored is in the way of what is to stay free
	local before left recorder
	recorder=$("$KPROF" ctl status --socket "$socket" --json | jq .sampler.pid)
	kill -STOP "$recorder"
	before=$(stored_names samples)
	head -c $(($(df --output=avail -B 1 "$full" | tail -n 1) - (1 << 20) + $(du -s -B 1 "$full/samples" | cut -f 1) / 4)) /dev/zero >"$full/part"
	wait_for "$PATIENCE" "the oldest to go" gone "$full/samples/$(head -n 1 <<<"$before")"
	wait_for "$PATIENCE" "it to be said" logged disk ".folder == \"$full/samples\" and .files > 0 and .bytes > 0"
	left=$(stored_names samples)
	[ -n "$left" ] && [ "$left" = "$(tail -n "$(wc -l <<<"$left")" <<<"$before")" ]
	kill -CONT "$recorder"
	rm "$full/part"
	head -c 100M /dev/zero >"$dir/state/filler" || true
	wait_for "$PATIENCE" "it to notice" logged recorder '.message | test("No space")'
	"$KPROF" ctl status --socket "$socket" --json | jq -e '.sampler.state == "recording"'
	rm "$dir/state/filler"
	before=$(stored_names samples | tail -n 1)
	wait_for "$PATIENCE" "it to store again" stored_after "$before"
	daemon_stop
	# no restart was needed
	! logged recorder_ended || false
	umount "$full"
}

stored_after() { # NAME
	[[ $(stored_names samples | tail -n 1) > $1 ]]
}

another_sampler() { # PID
	"$KPROF" ctl status --socket "$socket" --json | jq -e --argjson p "$1" '.sampler.pid != $p and .sampler.state == "recording"'
}

@test "hostile clients: garbage, long lines, slow ones, hundreds at once; others are answered meanwhile" {
	daemon_start --no-sampling
	"$PYTHON" "$LIB/hostile_clients.py" "$socket"
	ctl status
	"$PYTHON" -c 'import json, sys; assert not any(json.loads(line)["event"] == "forged" for line in open(sys.argv[1], "rb"))' "$dir/daemon.err"
	ctl list
	grep -q "no option --" "$dir/stdout" && ! LC_ALL=C grep -q "[^ -~]" "$dir/stdout" || false
	[ "$(find "/proc/${pid[daemon]}/fd" -mindepth 1 | wc -l)" -lt 30 ]
	daemon_stop
}

@test "the flight recorder: what watched processes did last, in one capture, and recording goes on" {
	mkdir "$dir/own"
	cp "$driver" "$dir/own/$comm" && cp "$library" "$dir/own"
	daemon_start --no-sampling --watch "${comm%?}*" --flight 1h --flight-chunk 500ms --max-overhead 100%
	wait_for "$PATIENCE" "the flight recorder" logged recording
	target_start target "$dir/own/$comm" count --n 20000 --until-file "$dir/half" --linger
	wait_for "$PATIENCE" "it to be watched" watched
	target_go target
	# of what is called while one is written, too, nothing is missing later
	spawn dumps sh -c "for n in 1 2 3; do '$KPROF' ctl dump --socket '$socket' || exit 1; echo one; done"
	wait_for "$PATIENCE" "a dump" file_says "$dir/dumps.out" one
	touch "$dir/half"
	target_result target
	wait "${pid[dumps]}"
	unset 'pid[dumps]'
	ctl dump -o "$dir/dump.kprof"
	has_all "$dir/dump.kprof" "$dir/target.json"
	"$KPROF" report "$dir/dump.kprof" --json | jq -e .complete
	# it goes on
	local before
	before=$(stored_names flight | tail -n 1)
	wait_for "$PATIENCE" "more" flight_after "$before"
	ctl dump --last 1s
	local id
	id=$(cat "$dir/stdout")
	ctl get "$id" -o "$dir/last.kprof"
	"$KPROF" report "$dir/last.kprof" --json | jq -e '.complete and .window_ns < 60e9'
	target_end target
	# nobody else gets what many users did
	mkdir "$dir/bin" && cp "$KPROF" "$dir/bin" && chmod 755 "$dir" "$dir/bin" "$dir/bin/kprof"
	nobody_fails "it is root's" dump -o "$dir/x.kprof"
	daemon_stop
}

flight_after() { # NAME
	[[ $(stored_names flight | tail -n 1) > $1 ]]
}

@test "a step that is slow leaves a dump that has that step, across borders of captures, and only one dump" {
	daemon_start --no-sampling --watch "$comm" --flight-chunk 500ms --max-overhead 100% --trigger 'step>700ms'
	wait_for "$PATIENCE" "the flight recorder" logged recording
	stepping 200 10 100 900
	target_result target
	wait_for "$PATIENCE" "the dump" dump_for 'step>700ms'
	ctl get "$(cat "$dir/dump.id")" -o "$dir/dump.kprof"
	"$KPROF" report "$dir/dump.kprof" --by step --json --limit 0 | jq -e --slurpfile t "$dir/target.json" \
		'[.rows[] | select(.total_ns >= $t[0].slow_end_ns - $t[0].slow_begin_ns) | .step] == [100]'
	target_end target
	sleep 2
	"$KPROF" ctl list --socket "$socket" --json | jq -e '.recordings | length == 1'
	daemon_stop
}

@test "a step above a percentile of those before, an annotation, a message of the kernel: each leaves a dump" {
	daemon_start --no-sampling --watch "$comm" --flight-chunk 500ms --max-overhead 100% --trigger-pause 0 \
		--trigger 'step>p50*5,kmsg:*kprof test message*'
	wait_for "$PATIENCE" "the flight recorder" logged recording
	stepping 150 10 100 1500
	target_result target
	wait_for "$PATIENCE" "the dump" dump_for 'p50'
	target_end target
	if echo "kprof test message" >/dev/kmsg 2>/dev/null; then
		wait_for "$PATIENCE" "the dump" dump_for 'the kernel says: kprof test message'
	fi
	daemon_stop
	daemon_start --no-sampling --watch "$comm" --flight-chunk 500ms --max-overhead 100% --trigger 'call:aten::*'
	wait_for "$PATIENCE" "the flight recorder" logged recording
	# another file, not the same one with other bytes: probes are where they are in a file
	rm "$dir/own/$comm" && cp "$driver" "$dir/own/$comm"
	target_start target "$dir/own/$comm" count --n 100 --linger
	wait_for "$PATIENCE" "it to be watched" watched
	target_go target
	wait_for "$PATIENCE" "the dump" dump_for 'call:aten::'
	target_result target
	target_end target
	daemon_stop
}

@test "a watched process that a signal ends leaves a dump with its last operators; one that is asked to end does not" {
	mkdir "$dir/own" && cp "$driver" "$dir/own/$comm" && cp "$library" "$dir/own"
	daemon_start --no-sampling --watch "$comm" --flight-chunk 500ms --max-overhead 100% --trigger-pause 0 --trigger signal
	wait_for "$PATIENCE" "the flight recorder" logged recording
	local signal
	for signal in HUP SEGV KILL; do
		target_start target "$dir/own/$comm" count --n 1000 --linger
		wait_for "$PATIENCE" "it to be watched" watched
		target_go target
		target_result target
		kill -"$signal" "${pid[target]}"
		wait "${pid[target]}" || true
		[ "$signal" = HUP ] || wait_for "$PATIENCE" "the dump" dump_for "process ${pid[target]} .* was ended by signal .*$signal"
		if [ "$signal" != HUP ]; then
			ctl get "$(cat "$dir/dump.id")" -o "$dir/$signal.kprof"
			"$KPROF" report "$dir/$signal.kprof" --json --limit 0 >"$dir/$signal.json"
			jq -e --slurpfile t "$dir/target.json" '[.rows[].calls] | add >= ($t[0].counts | add)' "$dir/$signal.json"
			"$KPROF" report "$dir/$signal.kprof" --by process --json >"$dir/$signal.json"
			jq -e --argjson p "${pid[target]}" --argjson s "$(kill -l "$signal")" '.rows[] | select(.pid == $p) | .exit_signal == $s' "$dir/$signal.json"
		fi
		unset 'pid[target]'
	done
	"$KPROF" ctl list --socket "$socket" --json | jq -e '[.recordings[] | select(.why | test("HUP"))] == []'
	daemon_stop
}
