#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# kprof merge: the captures of ranks as one. The judge is one recording of all of them, with one clock.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup_file() {
	hosts_of=newest_python torch_hosts
}

teardown_file() {
	torch_hosts_end
}

setup() {
	harness_setup
	shift_capture=$BUILD/workloads/shift_capture
}

teardown() {
	harness_teardown
}

# One recording of two ranks, and each rank's part of it: rank-0.kprof, rank-1.kprof; once for the suite.
two_ranks() {
	local python rank
	needs_torch
	ranks=$BATS_FILE_TMPDIR/ranks
	[ ! -e "$ranks" ] || return 0
	python=$(newest_python)
	profiled both '' "$python" -W ignore "$WORKLOADS/collectives.py" --iters 30 --settle 2 --late 1 --late-ms 20
	mkdir "$ranks"
	for rank in 0 1; do
		"$KPROF" export "$dir/both.kprof" -p "$(jq ".pids[$rank]" "$dir/both.json")" -o "$ranks/rank-$rank.kprof"
	done
	"$KPROF" report "$dir/both.kprof" --by collective --json >"$ranks/collectives.json"
	cp "$dir/both.trace.json" "$ranks/both.trace.json"
}

# same_as_one NAME: NAME.kprof is what was recorded, with the error that NAME.json tells of
same_as_one() {
	exported "$1"
	"$KPROF" report "$dir/$1.kprof" --by collective --json >"$dir/$1.collectives.json"
	"$PYTHON" "$LIB/check_merged.py" "$ranks/both.trace.json" "$dir/$1.trace.json" "$dir/$1.json" "$ranks/collectives.json" \
		"$dir/$1.collectives.json" || fail "$1: see above" "$(cat "$dir/$1.json")"
}

@test "merge: ranks of machines whose clocks differ in time and speed" {
	local at
	two_ranks
	# Booted later, and earlier: then the merged clock is the other machine's. Unix time is wrong, which does not matter.
	for at in '-3000000000 40 70000000' '7200123456789 -85.5 -2000000000' '-1 0 0'; do
		echo "-- $at"
		# shellcheck disable=SC2086 # three words
		"$shift_capture" "$ranks/rank-1.kprof" "$dir/other.kprof" node-b $at
		"$KPROF" merge "$ranks/rank-0.kprof" "$dir/other.kprof" -o "$dir/merged.kprof" --json >"$dir/merged.json"
		jq -e '.machines | length == 2 and .[1].host == "node-b" and .[1].first_pid == 10000000 and
			([.[].clock] | sort) == ["collectives", "its own"] and all(.error_ns < 10000000)' "$dir/merged.json" ||
			fail "$(cat "$dir/merged.json")"
		same_as_one merged
		"$KPROF" report "$dir/merged.kprof" --by collective >"$dir/merged.txt"
		grep -qE '^Times of different machines are exact to [0-9.]+(us|ms)$' "$dir/merged.txt" || fail "$(cat "$dir/merged.txt")"
		jq -e '[.traceEvents[] | select(.name == "process_name") | .args] | any(.name | test("^python.* on node-b$")) and
			any(."pid on its machine" != null)' "$dir/merged.trace.json"
	done
}

@test "merge: in words; a folder of captures; by Unix time, where nothing ties the machines together" {
	two_ranks
	mkdir "$dir/all"
	cp "$ranks/rank-0.kprof" "$dir/all/a.kprof"
	"$shift_capture" "$ranks/rank-1.kprof" "$dir/all/b.kprof" $'node\e[31m' -3000000000 40 0
	"$KPROF" merge "$dir/all" -o "$dir/words.kprof" >"$dir/words.out" 2>"$dir/words.err"
	[ "$(cat "$dir/words.out")" = "$dir/words.kprof" ]
	grep -qE '^kprof: node\\x1b\[31m: clock \+(3\.0|2\.99)[0-9]+ s and [-+][0-9]+\.[0-9]+ ppm, known to [0-9.]+[um]s from [0-9]+ collectives; PIDs \+ 10000000$' \
		"$dir/words.err" || fail "$(cat -v "$dir/words.err")"
	# Operators alone, and Unix time that is 50 ms wrong.
	profiled alone '--no-children' "$(newest_python)" -W ignore "$WORKLOADS/annotate.py" --iters 1
	"$shift_capture" "$dir/alone.kprof" "$dir/away.kprof" node-c -1000000000 0 50000000
	"$KPROF" merge "$ranks/rank-0.kprof" "$dir/away.kprof" -o "$dir/unix.kprof" --json >"$dir/unix.json" 2>"$dir/unix.err"
	jq -e '.machines[1] | .clock == "unix" and .error_ns == null and ((.offset_ns - 1050000000) | fabs) < 1000000' "$dir/unix.json"
	grep -q '^kprof: Unix time tells clocks apart' "$dir/unix.err"
	grep -q '^hint: record ranks on all machines while they communicate' "$dir/unix.err"
	"$KPROF" report "$dir/unix.kprof" --by collective 2>&1 | grep -q 'has no collective with the work of all of its ranks'
}

@test "merge: two kprofs on one machine, one for each rank" {
	local child
	needs_torch
	target_start pair "$(newest_python)" -W ignore "$WORKLOADS/collectives.py" --iters 10 --settle 2 --linger
	child=$(pgrep -P "${pid[pair]}")
	kprof_start first attach --no-children -p "${pid[pair]}" -o "$dir/first.kprof"
	kprof_start second attach -p "$child" -o "$dir/second.kprof"
	target_go pair
	target_result pair
	kprof_stop second
	kprof_stop first
	"$KPROF" merge "$dir/first.kprof" "$dir/second.kprof" -o "$dir/pair.kprof" --json >"$dir/pair-merge.json"
	jq -e '.machines | length == 1 and .[0].captures == 2 and .[0].clock == "its own"' "$dir/pair-merge.json"
	exported pair
	# The second one's rank was recorded for a shorter time, and its spans begin and end with it.
	jq -e --argjson child "$child" '[.traceEvents[] | select(.pid == $child and .ph == "X" and .cat == "collective_comm")] | length >= 90' \
		"$dir/pair.trace.json"
	"$KPROF" report "$dir/pair.kprof" --by collective --json >"$dir/pair.collectives.json"
	jq -e '.clock_error_ns == 0 and ([.rows[] | select(.ranks == 2) | .calls] | add >= 90)' "$dir/pair.collectives.json"
	# Each of its processes is one that was recorded once.
	run "$KPROF" merge "$dir/first.kprof" "$dir/first.kprof" -o "$dir/no.kprof"
	[ "$status" = 2 ]
	[[ $output == *"are the same file"*$'\n'"hint: name it once"* ]]
	cp "$dir/first.kprof" "$dir/copy.kprof"
	run "$KPROF" merge "$dir/first.kprof" "$dir/copy.kprof" -o "$dir/no.kprof"
	[ "$status" = 1 ]
	[[ $output == *"both have process ${pid[pair]} at the same time"*$'\n'"hint: take one of the two"* ]]
	run "$KPROF" merge "$dir/pair.kprof" "$dir/first.kprof" -o "$dir/no.kprof"
	[ "$status" = 1 ]
	[[ $output == *"has been merged from others"* ]]
	[ -z "$(find "$dir" -name '*no.kprof*')" ]
	target_end pair
}

@test "merge: what cannot be merged is said, and leaves nothing" {
	use_kind gcc
	sample_capture
	run "$KPROF" merge -o "$dir/x.kprof"
	[ "$status" = 2 ]
	[[ $output == *"no captures are given"* ]]
	run "$KPROF" merge "$sample"
	[ "$status" = 2 ]
	[[ $output == *"no output is given"* ]]
	run "$KPROF" merge "$sample" -o "$dir/x.json"
	[ "$status" = 2 ]
	[[ $output == *"is no .kprof"* ]]
	run "$KPROF" merge "$sample" "$dir/none.kprof" -o "$dir/x.kprof"
	[ "$status" = 1 ]
	[[ $output == *"cannot open $dir/none.kprof"* ]]
	head -c 100000 /dev/urandom >"$dir/noise.kprof"
	run "$KPROF" merge "$sample" "$dir/noise.kprof" -o "$dir/x.kprof"
	[ "$status" = 1 ]
	[[ $output == *"noise.kprof"* ]]
	mkdir "$dir/empty"
	run "$KPROF" merge "$dir/empty" -o "$dir/x.kprof"
	[ "$status" = 1 ]
	[[ $output == *"no captures in $dir/empty"* ]]
	[ -z "$(find "$dir" -name '*x.kprof*')" ]
	# One that was cut short is merged up to there.
	head -c "$(($(stat -c %s "$sample") * 3 / 4))" "$sample" >"$dir/cut.kprof"
	"$KPROF" merge "$dir/cut.kprof" -o "$dir/whole.kprof"
	"$KPROF" report "$dir/whole.kprof" >"$dir/whole.txt"
}
