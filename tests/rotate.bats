#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# Recordings whose capture is rotated: each part is a capture by itself, and together they are what one would have been.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	own_targets
	ROTATING=$BUILD/workloads/rotating
	DUMP=$BUILD/workloads/chunk_dump
	use_kind gcc
	mkdir "$dir/parts"
}

teardown() {
	harness_teardown
	umount -l "$dir/parts" 2>/dev/null || true
}

parts() { # FOLDER…: the finished captures, in their order
	find "$@" -name '[0-9]*.kprof' -printf '%f %p\n' | sort -n | cut -d' ' -f2
}

# rotating OPTION…: the program that records, as the target rec; it ends with target_end rec
rotating() {
	target_start rec "$ROTATING" -d "$dir/parts" "$@"
}

dump() { # NAME FILE…
	local name=$1
	shift
	"$DUMP" "$@" >"$dir/$name.dump"
}

stats() { # what it says of the whole session
	grep '"rotations"' "$dir/rec.out" >"$dir/stats.json"
}

# joined NAME: all parts as $dir/NAME.kprof
joined() {
	local files
	mapfile -t files < <(parts "$dir/parts")
	"$ROTATING" -j "$dir/$1.kprof" "${files[@]}" >"$dir/$1.said"
}

check_parts() {
	local files
	mapfile -t files < <(parts "$dir/parts")
	dump parts "${files[@]}" && dump joined "$dir/joined.kprof" && stats &&
		"$PYTHON" "$LIB/check_rotated.py" "$dir/parts.dump" --stats "$dir/stats.json" --joined "$dir/joined.dump"
}

# rotated_run MODE…: records the driver while it works, rotated every 50 ms
rotated_run() {
	target_start joined "$driver" "$@" --linger && rotating -p "${pid[joined]}" -e 50 && target_go joined && target_result joined &&
		target_end rec && target_end joined && joined joined && exported joined
}

rotations() {
	[ "$(parts "$dir/parts" | wc -l)" -gt "$1" ] || fail "only $(parts "$dir/parts" | wc -l) parts: the test is too short"
}

@test "operators: each part accounts for itself, and joined they are every call, nested as it was" {
	local part
	rotated_run threads --threads 3 --n 10000 && rotations 3 && check_parts && account joined --only --complete &&
		"$PYTHON" "$LIB/check_nesting.py" "$dir/joined.trace.json" 30000 || return 1
	for part in $(parts "$dir/parts"); do
		cp "$part" "$dir/part.kprof" && exported part && cp "$dir/joined.json" "$dir/part.json" || return 1
		"$PYTHON" - "$dir/part.trace.json" <<-'END' || return 1
			import json, sys
			sources = json.load(open(sys.argv[1]))["kprof"]["sources"]
			for name, s in sources.items():
			    assert s["fired"] == s["captured"] + s["dropped"], (name, s)
			    assert s["begins"] == s["ends_exact"] + s["ends_closed"] + s["ends_window"], (name, s)
		END
	done
}

@test "spans that are open for long are begun again in each part, and are one when they are joined" {
	target_start joined "$driver" recurse --depth 60 --n 4000 --linger && rotating -p "${pid[joined]}" -e 20 || return 1
	target_go joined && target_result joined && target_end rec && target_end joined || return 1
	rotations 3 && joined joined && exported joined && account joined --only --complete || return 1
	! jq -e '[.traceEvents[] | select(.args.begun_before_ns?)] | length > 0' "$dir/joined.trace.json" ||
		fail "the joined capture says of a span that it was split"
}

@test "waits: in one part each, or split, and joined they are what the threads know of themselves" {
	target_start waiter "$BUILD/workloads/waiter" "$dir/disk" sleep futex holder pipe writer socket epoll poll child parent || return 1
	rotating -p "${pid[waiter]}" -w -H 99 -e 100 && target_go waiter && target_result waiter && target_end rec && target_end waiter || return 1
	rotations 3 && joined joined && check_parts || return 1
	"$KPROF" report --by wait --json "$dir/joined.kprof" >"$dir/rows.json" &&
		"$PYTHON" "$LIB/check_waits.py" --sums "$dir/rows.json" || return 1
	"$KPROF" export --off-cpu "$dir/joined.kprof" -o "$dir/joined.folded" >/dev/null || return 1
	"$PYTHON" "$LIB/check_waits.py" "$dir/rows.json" "$dir/waiter.json" "$dir/joined.folded"
}

@test "waits that are longer than a part, and of processes that have slept since before the recording" {
	local files sleeps=$dir/sleepers.json
	target_start sleepers "$PYTHON" "$WORKLOADS/sleepers.py" 20 60 && rotating -a -w -H 19 -e 100 && target_go sleepers || return 1
	target_result sleepers && target_end rec && target_end sleepers && rotations 6 && joined joined || return 1
	mapfile -t files < <(parts "$dir/parts") && dump parts "${files[@]}" && dump joined "$dir/joined.kprof" || return 1
	"$PYTHON" "$LIB/check_rotated.py" "$dir/parts.dump" --joined "$dir/joined.dump" --sleeps "$sleeps"
}

# given_up N: so many kinds of things are given up, by what the latest rotation says
given_up() {
	grep '"next"' "$dir/rec.out" | tail -n 1 | jq -e ".given_up == $1" >/dev/null
}

# recorded_again: after a time without waits, four rotations in a row say that nothing is given up
recorded_again() {
	grep '"given_up"' "$dir/rec.out" | jq -se 'map(.given_up) | contains([2]) and length > 4 and .[-4:] == [0, 0, 0, 0]' >/dev/null
}

@test "waits that a storm of switches made too dear come back when it is over: in a part with a gap until then, and then all are there" {
	local status
	for _ in 1 2; do
		status=0
		over_a_storm || status=$?
		[ "$status" = 2 ] || return "$status"
		rm "$dir"/parts/*
	done
	skip "other programs made waits too dear once more, twice"
}

rotated() { # N: has it been rotated so often?
	[ "$(grep -c '"polls"' "$dir/rec.out")" -ge "$1" ]
}

# over_a_storm: 2 if other programs beside this test have made waits too dear once more, so that nobody knows which are there
over_a_storm() {
	local part back files
	target_start waiter "$BUILD/workloads/waiter" "$dir/disk" sleep futex holder pipe writer socket epoll poll child parent || return 1
	rotating -p "${pid[waiter]}" -w -H 99 -e 400 -B 0.02 && target_start storm "$PYTHON" "$WORKLOADS/switching.py" || return 1
	wait_for "$PATIENCE" "waits and their stacks to be given up" given_up 2 || return 1
	kill -KILL "${pid[storm]}"
	wait_for "$PATIENCE" "both to come back" recorded_again || return 1
	target_go waiter && target_result waiter && target_end rec && target_end waiter || return 1
	back=$(jq -sr 'map(select(.next)) | .[(map(.given_up > 0) | index([true, false])) + 1].next' <(grep '"given_up"' "$dir/rec.out"))
	for part in "$dir/parts/$(($(basename "$back" .kprof) - 1)).kprof" "$back"; do
		"$KPROF" report --json "$part" | jq -c '{window_ns, gap: (.gaps[] | select(.what == "waits")), step: (.overhead.steps[] | select(.step == "waits"))}'
	done >"$dir/gaps.json"
	# all of the one before, and of the other one the begin
	jq -se '(.[0].gap | .end_mono_ns - .start_mono_ns) == .[0].window_ns and .[0].step.back_ns == null and
		(.[1].gap | .start_mono_ns) == .[0].gap.end_mono_ns and
		(.[1].gap | .end_mono_ns - .start_mono_ns) < .[1].window_ns and .[1].step.back_ns > 0' "$dir/gaps.json" || fail "$(cat "$dir/gaps.json")" || return 1
	given_up 0 || return 2
	back=$(jq -sr 'map(select(.next)) | .[(map(.given_up > 0) | indices([true, false]) | last) + 1].next' <(grep '"given_up"' "$dir/rec.out"))
	# from then on all is as in a recording by itself; each thread has waited in each of its rounds
	mapfile -t files < <(parts "$dir/parts" | sed -n "\\|/${back##*/}\$|,\$p")
	"$ROTATING" -j "$dir/after.kprof" "${files[@]}" && dump parts "${files[@]}" && dump joined "$dir/after.kprof" &&
		"$PYTHON" "$LIB/check_rotated.py" "$dir/parts.dump" --joined "$dir/joined.dump" || return 1
	jq -se '(map(select(.type == "wait")) | group_by(.tid) | map({key: (.[0].tid | tostring), value: length}) | from_entries) as $waits |
		$knows[0].threads | length > 5 and all(.waits <= ($waits[.tid | tostring] // 0))' --slurpfile knows "$dir/waiter.json" "$dir/joined.dump"
}

@test "all processes: each sample is in one part, with the process and the stack that it needs" {
	local part
	target_start joined "$driver" threads --threads 2 --n 12000000 --linger || return 1
	rotating -a -H 199 -e 100 && target_go joined && target_result joined && target_end rec && target_end joined || return 1
	rotations 3 && joined joined && check_parts || return 1
	"$KPROF" report --by process --json "$dir/joined.kprof" | jq -e --argjson pid "$(jq .pid "$dir/joined.json")" \
		'[.rows[] | select(.pid == $pid)] | length == 1' || return 1
	for part in $(parts "$dir/parts"); do
		"$KPROF" report --by function --json "$part" >"$dir/part.json" || return 1
	done
	"$KPROF" report --by function --json "$dir/joined.kprof" --limit 0 | grep -q fake_add || fail "no function of the driver"
}

@test "who polls until a time sleeps until then, and does not spin through its last millisecond" {
	rotating -a -H 19 -B 0.05 -e 300 && wait_for "$PATIENCE" "six rotations" rotated 6 && target_end rec || return 1
	grep '"polls"' "$dir/rec.out" | jq -se 'map(.polls) | length >= 6 and max <= 8' || fail "$(cat "$dir/rec.out")"
}

@test "a device's activities: those that an agent hands over late are in the part that is written then" {
	local cuda=$BUILD/sim/13/cudadriver
	[ -x "$cuda" ] || fail "the test programs are not built: make test-programs"
	export KPROF_SIM_TRUTH=$dir/truth
	target_start joined "$cuda" spin && target_go joined && rotating -p "${pid[joined]}" -A "$BUILD/libkprof_agent.so" -e 200 || return 1
	wait_for "$PATIENCE" "some parts" [ -e "$dir/parts/6.kprof" ] || return 1
	kill -TERM "${pid[joined]}" && target_result joined && target_end rec && target_end joined && joined joined && exported joined || return 1
	jq -e '[.traceEvents[] | select(.cat == "kernel")] | length > 100' "$dir/joined.trace.json" || return 1
	check_parts && "$PYTHON" "$LIB/compare_device.py" "$dir/joined.trace.json" "$dir/truth" "$(jq .pid "$dir/joined.json")" --window
}

# Stopped, so that it stays so.
between_rotations() {
	pause_process "${pid[rec]}" || exit 1
	[ "$(find "$dir/parts" -name '.*.tmp' | wc -l)" = 1 ] || { kill -CONT "${pid[rec]}" && return 1; }
}

@test "kill -9: what was finished is whole, and of the rest what was flushed" {
	local files last
	target_start joined "$driver" threads --threads 2 --n 100000 --linger && rotating -p "${pid[joined]}" -e 300 && target_go joined || return 1
	wait_for "$PATIENCE" "three parts" [ -e "$dir/parts/3.kprof" ] || return 1
	wait_for "$PATIENCE" "one to be begun, and no other" between_rotations || return 1
	kill -KILL "${pid[rec]}" && wait_for "$PATIENCE" "it to be gone" ended "${pid[rec]}" || return 1
	wait "${pid[rec]}" || true
	unset "pid[rec]"
	mapfile -t files < <(parts "$dir/parts")
	dump parts "${files[@]}" && "$PYTHON" "$LIB/check_rotated.py" "$dir/parts.dump" || return 1
	last=$(find "$dir/parts" -name '.*.tmp')
	"$DUMP" "$last" | grep -q '"complete":false' || return 1
	"$ROTATING" -j "$dir/joined.kprof" "${files[@]}" "$last" | jq -e '.incomplete == 1' && "$KPROF" report "$dir/joined.kprof" >/dev/null || return 1
	target_result joined && target_end joined
}

@test "a full disk: the recording goes on, says what it could not store, and stores again where there is room" {
	local files
	mkdir "$dir/elsewhere"
	mount -t tmpfs -o size=256k none "$dir/parts" 2>/dev/null || skip "may not mount"
	target_start joined "$driver" threads --threads 2 --n 60000 --linger && rotating -p "${pid[joined]}" -e 100 -t "$dir/elsewhere" || return 1
	head -c 240K /dev/zero >"$dir/parts/full" 2>/dev/null || true
	target_go joined || return 1
	wait_for "$PATIENCE" "a rotation to fail" grep -q '"result":-28' "$dir/rec.out" || return 1
	wait_for "$PATIENCE" "an error of writing" grep -q 'nothing is stored from now on' "$dir/rec.err" || return 1
	touch "$dir/elsewhere/elsewhere"
	target_result joined && target_end rec && target_end joined && stats || return 1
	jq -e '.unstored > 0' "$dir/stats.json" || return 1
	mapfile -t files < <(parts "$dir/parts" "$dir/elsewhere")
	dump parts "${files[@]}" && "$PYTHON" "$LIB/check_rotated.py" "$dir/parts.dump" --gaps || return 1
	"$ROTATING" -j "$dir/joined.kprof" "${files[@]}" && exported joined || return 1
	jq -e --slurpfile made "$dir/joined.json" '[.traceEvents[] | select(.ph == "X" and .cat == "cpu_op")] | length | . > 0 and . < ($made[-1].counts | add)' \
		"$dir/joined.trace.json"
}

@test "prepared: nothing is recorded before start(), and everything after it" {
	target_start joined "$driver" count --n 3000 --linger && target_start early "$driver" count --n 2000 --linger || return 1
	# the first one works while it is prepared, the second one afterwards
	rm -f "$dir/rec.in"
	mkfifo "$dir/rec.in"
	spawn rec "$ROTATING" -d "$dir/parts" -p "${pid[joined]}" -p "${pid[early]}" -g -e 100 || return 1
	exec {new}>"$dir/rec.in"
	fd[rec]=$new
	wait_for "$PATIENCE" "it to be prepared" grep -q prepared "$dir/rec.out" || return 1
	target_go early && target_result early || return 1
	! grep -q READY "$dir/rec.out" || fail "it has started" || return 1
	target_go rec
	wait_for "$PATIENCE" "it to start" grep -q READY "$dir/rec.out" || return 1
	target_go joined && target_result joined && target_end rec && target_end joined && target_end early || return 1
	joined joined && exported joined || return 1
	[ "$(jq "[.traceEvents[] | select(.ph == \"X\" and .pid == ${hosted[early]:-0}$(jq .pid "$dir/early.json"))] | length" "$dir/joined.trace.json")" = 0 ] ||
		fail "calls of before are in it"
	account joined --only --exact
}

@test "prepared and never started: nothing is left behind" {
	target_start joined "$driver" count --n 10 --linger || return 1
	"$ROTATING" -d "$dir/parts" -p "${pid[joined]}" -P -2 || return 1
	[ -z "$(find "$dir/parts" -type f)" ] || fail "a file is left"
	wait_for "$PATIENCE" "the probes to go" text_is_clean "${pid[joined]}" "$library" || return 1
	target_go joined && target_result joined && target_end joined
}

@test "a process that ends before anything is read of its memory: the recording begins, and is over" {
	spawn joined sleep 600
	"$ROTATING" -d "$dir/parts" -p "${pid[joined]}" -k >"$dir/rec.out" || return 1
	spawn prepared sleep 600
	"$ROTATING" -d "$dir/parts" -p "${pid[prepared]}" -k -P 100 >>"$dir/rec.out" || return 1
	[ "$(grep -c READY "$dir/rec.out")" = 2 ] || fail "$(cat "$dir/rec.out")"
}
