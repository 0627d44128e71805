#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# What targets do to stacks, on purpose or not: other programs in their place, code in more places than kprof keeps.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
}

teardown() {
	harness_teardown
}

ran_for() { # PID TICKS: of CPU time
	local fields
	read -r -a fields <"/proc/$1/stat"
	[ "${fields[13]}" -ge "$2" ]
}

is_program() { # PID NAME
	[ "$(cat "/proc/$1/comm")" = "$2" ]
}

read_bytes() { # PID: so many has it read
	sed -n 's/^rchar: //p' "/proc/$1/io"
}

has_read() { # PID BYTES
	[ "$(read_bytes "$1")" -gt "$2" ]
}

# kprof has read the mappings of a process that has 16,000 of them, twice: all of what was there when this was called.
looked() { # PID
	local now
	now=$(read_bytes "$1")
	wait_for "$PATIENCE" "kprof to look" has_read "$1" $((now + 2 * 16000 * 60))
}

@test "another program in its place is not walked by the tables of the one before" {
	local before process
	gcc -O2 -no-pie -static -DWORDS=256 -o "$dir/first" "$ROOT/tests/stacks/execs.c"
	gcc -O2 -no-pie -static -DWORDS=32 -o "$dir/second" "$ROOT/tests/stacks/execs.c"
	target_start target "$dir/first" "$dir/second"
	process=${pid[target]}
	kprof_start kprof sample -p "$process" -F 997 -o "$dir/all.kprof"
	read -r -a before <"/proc/$process/stat"
	wait_for "$PATIENCE" "the first program to be sampled" ran_for "$process" $((before[13] + 30))
	# kprof cannot hear of it now: samples are walked all the same.
	pause_process "${pid[kprof]}"
	kill -USR1 "$process"
	wait_for "$PATIENCE" "the second program" is_program "$process" second
	read -r -a before <"/proc/$process/stat"
	wait_for "$PATIENCE" "the second program to run" ran_for "$process" $((before[13] + 30))
	kill -CONT "${pid[kprof]}"
	read -r -a before <"/proc/$process/stat"
	wait_for "$PATIENCE" "the second program to be sampled" ran_for "$process" $((before[13] + 60))
	kprof_stop kprof
	kill -TERM "$process"
	target_result target
	target_end target
	"$KPROF" export "$dir/all.kprof" -o "$dir/all.folded"
	"$KPROF" report "$dir/all.kprof" | tee "$dir/report"
	cut -c 1-300 "$dir/all.folded" | sort | uniq -c | sort -rn | head -n 20
	# Both were seen, and before the second's tables were there its stacks said so.
	grep -q 'main.*down.*spin' "$dir/all.folded"
	grep -q "no code at the address" "$dir/report"
	run ! grep decoy "$dir/all.folded"
}

@test "code in more places than are kept: said once, however often there is more" {
	target_start target "$PYTHON" "$WORKLOADS/many_places.py"
	kprof_start kprof sample -p "${pid[target]}" -o "$dir/all.kprof"
	# Each time kprof looks again, it has something to say: it has looked when it has read the mappings since.
	for i in 2 3 4; do
		target_go target
		wait_for "$PATIENCE" "more code" target_said target "^MORE $i\$"
		looked "${pid[kprof]}"
	done
	kprof_stop kprof
	cat "$dir/kprof.err"
	[ "$(grep -c 'code in .* places' "$dir/kprof.err")" = 1 ]
	target_end target
}
