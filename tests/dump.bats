#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# kprof dump: stacks of threads that nobody stops. The judges are the targets, which know where their threads stand.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

bats_require_minimum_version 1.5.0

setup() {
	harness_setup
	driver=$BUILD/workloads/dumpdriver
}

teardown() {
	harness_teardown
}

# dumped NAME ARGUMENT…: $dir/NAME.dump. Threads that run are waited for, however long it takes until they get a CPU.
dumped() {
	local name=$1
	shift
	"$KPROF" dump --json --wait "${PATIENCE}s" "$@" -p "${pid[$name]}" >"$dir/$name.dump"
}

# A target whose threads stand, and what it says of them: $dir/NAME.json. They say so just before they stand.
standing() { # NAME COMMAND…
	target_start "$@" && target_go "$1" && target_result "$1" && wait_for "$PATIENCE" "$1 to stand" stands "${pid[$1]}"
}

# Every thread sleeps, but dumpdriver's that never do.
stands() { # PID
	local task name state
	for task in /proc/"$1"/task/*; do
		name=$(cat "$task/comm")
		[[ $name != @(spin|clock|churn|wander) ]] || continue
		read -r state <"$task/stat"
		state=${state##*) }
		[ "${state%% *}" = S ] || return 1
	done
}

judge() { # native|python NAME
	"$PYTHON" "$LIB/check_dump.py" "$1" "$dir/$2.dump" "$dir/$2.json"
}

each_place() { # BUILD OF THE DRIVER
	standing t "$driver-$1"
	dumped t
	judge native t
	target_end t
}

@test "every place, frame by frame: gcc -O2" {
	each_place gcc
}

@test "every place, frame by frame: gcc -O0" {
	each_place gcc-O0
}

@test "every place, frame by frame: gcc -O3" {
	each_place gcc-O3
}

@test "every place, frame by frame: clang -O2" {
	each_place clang
}

@test "a program linked statically" {
	each_place static
}

@test "220 threads, 30 of which are never still" {
	standing t "$driver-gcc" futex:150 churn:20 spin:10 poll:20 deep:20
	dumped t
	judge native t
	target_end t
}

@test "stacks that never stop changing are of one moment" {
	standing t "$driver-gcc" wander:12
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		dumped t
		judge native t
	done
	target_end t
}

@test "states, and the calls that threads wait in" {
	standing t "$driver-gcc"
	dumped t
	of() { jq -r ".processes[0].threads[] | select(.name == \"$1\") | $2" "$dir/t.dump"; }
	[ "$(of futex .state)" = sleeping ]
	[ "$(of futex .call)" = futex ]
	[ "$(of poll .call)" = poll ]
	[ "$(of read .call)" = read ]
	[[ $(of read .doing) =~ ^"in read("[0-9]+")"$ ]]
	[ "$(of deep .call)" = pause ]
	[[ $(of spin .state) =~ ^(running|waiting for a CPU)$ ]]
	[ "$(of spin .call)" = "" ]
	target_end t
}

@test "the kernel's functions on top" {
	standing t "$driver-gcc" futex
	dumped t --kernel
	jq -e '.processes[0].threads[] | select(.name == "futex") | .frames[0].kind == "kernel"' "$dir/t.dump"
	[ "$(id -u)" = 0 ] && grep -qE '^[1-9a-f][0-9a-f]* ' /proc/kallsyms || skip "this kernel shows no addresses"
	jq -e '[.processes[0].threads[] | select(.name == "futex").frames[] | select(.kind == "kernel").function] |
		any(test("futex"))' "$dir/t.dump"
	target_end t
}

# As /proc counts them, of all threads: each stop and each wake-up would add one.
switches() { # PID
	cat /proc/"$1"/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }'
}

# Who says that it sleeps may not have left its CPU yet, and be counted only then.
settled() { # PID
	before=$(switches "$1")
	sleep 0.1
	[ "$(switches "$1")" = "$before" ]
}

@test "the target is not held: no thread that sleeps is ever woken" {
	standing t "$driver-gcc" futex:10 poll:10 deep:10 signal:2
	wait_for "$PATIENCE" "all threads to have left their CPUs" settled "${pid[t]}"
	for _ in 1 2 3 4 5; do dumped t; done
	judge native t
	[ "$(switches "${pid[t]}")" = "$before" ]
	target_end t
}

@test "no ptrace, no signal" {
	command -v strace >/dev/null || skip "no strace here: scripts/setup check installs it"
	standing t "$driver-gcc"
	strace -f -o "$dir/trace" -e trace=ptrace,kill,tgkill,tkill,pidfd_send_signal "$KPROF" dump -p "${pid[t]}" >/dev/null
	run ! grep -E '(ptrace|kill|signal)\(' "$dir/trace"
	target_end t
}

# ---- Python -----------------------------------------------------------------------------------------

every_python() {
	local p
	for p in /usr/bin/python3 "$HOME"/.pyenv/versions/*/bin/python; do
		"$p" -c 'import sys, ctypes; sys.exit(sys.version_info < (3, 8))' 2>/dev/null && echo "$p"
	done
	true
}

@test "Python: functions, files and lines as sys._current_frames() has them, on every CPython here" {
	local p n=0
	for p in $(every_python); do
		standing "p$n" "$p" "$WORKLOADS/dump_python.py"
		dumped "p$n"
		"$p" -V
		judge python "p$n"
		# Among native ones: of the interpreter's loop nothing is left.
		jq -e '[.processes[0].threads[].frames[].function] | any(test("^_PyEval_EvalFrameDefault")) | not' "$dir/p$n.dump"
		jq -e '[.processes[0].threads[].cut] | all(. == "")' "$dir/p$n.dump"
		target_end "p$n"
		n=$((n + 1))
	done
	[ "$n" -ge 1 ]
}

@test "Python: who holds the interpreter's lock, and who waits for it" {
	local p n=0
	for p in $(every_python); do
		target_start "g$n" "$p" "$WORKLOADS/dump_python.py" gil
		target_result "g$n"
		"$p" -V
		# Until the one has come to where it keeps the lock they take it in turn.
		wait_for "$PATIENCE" "the lock to be held, and wanted" one_holds_one_waits "g$n"
		kill -KILL "${pid[g$n]}"
		n=$((n + 1))
	done
}

one_holds_one_waits() { # NAME
	dumped "$1"
	[ "$(jq -c '[.processes[0].threads[] | select(.waits_gil).tid]' "$dir/$1.dump")" = "[$(jq .waits "$dir/$1.json")]" ] &&
		[ "$(jq -c '[.processes[0].threads[] | select(.holds_gil).tid]' "$dir/$1.dump")" = "[$(jq .holds "$dir/$1.json")]" ]
}

@test "--python-only, --native-only and --interpreter" {
	standing t "$PYTHON" "$WORKLOADS/dump_python.py"
	# Between two frames of which one is Python's nothing is left of the interpreter's file.
	local inside='[.processes[0].threads[].frames | (map(.kind == "python") | rindex(true)) as $last | .[1:$last // 0][]
		| select(.kind == "native" and (.module | test("/(lib)?python[0-9][^/]*$"))).function]'
	dumped t
	jq -e "$inside == []" "$dir/t.dump"
	judge python t
	dumped t --interpreter
	jq -e "$inside | any(test(\"vectorcall|_call\"; \"i\"))" "$dir/t.dump"
	judge python t
	dumped t --python-only
	judge python t
	[ "$(jq -c '[.processes[0].threads[].frames[].kind] | unique' "$dir/t.dump")" = '["python"]' ]
	dumped t --native-only
	[ "$(jq -c '[.processes[0].threads[].frames[].kind] | unique' "$dir/t.dump")" = '["native"]' ]
	jq -e '[.processes[0].threads[].frames[].function] | any(test("_PyEval_EvalFrameDefault"))' "$dir/t.dump"
	target_end t
}

@test "Python that runs is caught running" {
	local n=0
	target_start t "$PYTHON" "$WORKLOADS/dump_running.py"
	for _ in 1 2 3 4 5; do
		dumped t
		[ "$(jq -c '[.processes[0].threads[0].frames[] | select(.kind == "python").function]' "$dir/t.dump")" = \
			'["innermost","outer","<module>"]' ]
		[ "$(jq -r '.processes[0].threads[0].cut' "$dir/t.dump")" = "" ]
		jq -e '.processes[0].threads[0].holds_gil' "$dir/t.dump"
	done
	kill -KILL "${pid[t]}"
}

@test "JIT code: CPython's trampolines for perf, whole and by name" {
	local p n=0
	for p in $(every_python); do
		"$p" -c 'import sys; sys.exit(not getattr(sys, "activate_stack_trampoline", None))' || continue
		target_start "j$n" "$p" -X perf -c "$(cat "$WORKLOADS/dump_waits.py")" # as <string>, so it has no name of a file
		wait_for "$PATIENCE" "the call to be entered" reads_line "j$n"
		rm -f "/tmp/perf-${pid[j$n]}.map"
		"$p" -V
		[ "$(jq -r '.processes[0].threads[0].cut' "$dir/j$n.dump")" = "" ]
		[ "$(jq -c '[.processes[0].threads[0].frames[].function | select(startswith("py::"))]' "$dir/j$n.dump")" = \
			'["py::inner:<string>","py::outer:<string>","py::<module>:<string>"]' ]
		target_end "j$n"
		n=$((n + 1))
	done
	[ "$n" -gt 0 ] || skip "no CPython 3.12 or later here"
}

reads_line() { # NAME
	dumped "$1" --native-only
	jq -e '.processes[0].threads[0].call == "read"' "$dir/$1.dump" >/dev/null
}

# ---- odd targets ------------------------------------------------------------------------------------

@test "a program whose file is gone" {
	cp "$driver-gcc" "$dir/here"
	standing t "$dir/here"
	rm "$dir/here"
	dumped t
	judge native t
	target_end t
}

@test "a program in a mount namespace of its own" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	mkdir "$dir/m"
	# shellcheck disable=SC2154 # harness.bash has it
	standing t "${own_mounts[@]}" sh -c "mount -t tmpfs none '$dir/m' && cp '$driver-gcc' '$dir/m/there' && exec '$dir/m/there'"
	[ ! -e "$dir/m/there" ]
	dumped t
	judge native t
	target_end t
}

@test "a first thread that has ended before the others; a stopped process" {
	printf '%s\n' '#include <pthread.h>' '#include <unistd.h>' 'static void *f(void *a) { pause(); return a; }' \
		'int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_exit(0); }' >"$dir/first.c"
	gcc -pthread -o "$dir/first" "$dir/first.c"
	spawn t "$dir/first"
	# Who has ended is Z, who pauses S; before it does so it is neither.
	first_ended() { [ "$(sed 's/.*) //; s/ .*//' "/proc/${pid[t]}/task"/*/stat | sort | xargs)" = "S Z" ]; }
	wait_for "$PATIENCE" "the first thread to end" first_ended
	dumped t
	# in the order of their numbers, which may have begun anew in between
	[ "$(jq -c '[.processes[0].threads[].state] | sort' "$dir/t.dump")" = '["exited","sleeping"]' ]
	jq -e '[.processes[0].threads[] | select(.state == "sleeping").frames[].function] | index("pause") and index("f")' "$dir/t.dump"
	kill -STOP "${pid[t]}"
	stopped() { dumped t && [ "$(jq -c '[.processes[0].threads[].state] | sort' "$dir/t.dump")" = '["exited","stopped"]' ]; }
	wait_for "$PATIENCE" "the process to stop" stopped
	kill -KILL "${pid[t]}"
}

@test "for people: the most recent call first, states, why a stack ends early" {
	standing t "$driver-gcc" futex
	"$KPROF" dump -p "${pid[t]}" >"$dir/text"
	grep -qE '^Process [0-9]+: .*dumpdriver-gcc futex$' "$dir/text"
	grep -qE '^2 threads; the most recent call comes first$' "$dir/text"
	grep -qE '^Thread [0-9]+ "futex": sleeping in futex\(0x[0-9a-f]+\)$' "$dir/text"
	grep -A9 '"futex"' "$dir/text" | grep -nE 'in_futex|do_futex|thread_main' | sed 's/:.*[^a-z_]\([a-z_]*\) .*/ \1/' >"$dir/order"
	[ "$(sed 's/^[0-9]* //' "$dir/order" | xargs)" = "in_futex do_futex thread_main" ]
	target_end t
}

# The TIDs in the text's heads of groups, one a line, with the group's number: "40 threads 12-50, 52 \"futex\": …".
groups_of() { # TEXT
	awk '/^(Thread [0-9]|[0-9]+ threads )/ {
		n++
		sub(/^(Thread|[0-9]+ threads) /, "")
		while (match($0, /^[0-9]+(-[0-9]+)?/)) {
			split(substr($0, 1, RLENGTH), range, "-")
			for (tid = range[1]; tid <= (2 in range ? range[2] : range[1]); tid++) print n, tid
			delete range
			$0 = substr($0, RLENGTH + 1)
			sub(/^ "[^"]*"( \([^)]*\))?/, "")
			sub(/^, /, "")
		}
	}' "$1"
}

@test "for people: the main thread first, threads with equal stacks once, each of them named" {
	standing t "$driver-gcc" futex:40 poll:5 deep
	"$KPROF" dump -p "${pid[t]}" >"$dir/text"
	groups_of "$dir/text" >"$dir/groups"
	# Every thread is in one group: those of one kind are in one, and nothing else is.
	diff <(cut -d' ' -f2 "$dir/groups" | sort) <(find "/proc/${pid[t]}/task" -mindepth 1 -maxdepth 1 -printf "%f\n" | sort)
	[ "$(head -n 1 "$dir/groups")" = "1 ${pid[t]}" ]
	jq -r '.threads[] | "\(.tid) \(.kind)"' "$dir/t.json" | sort >"$dir/kinds"
	join -1 2 -2 1 <(sort -k2 "$dir/groups") "$dir/kinds" | cut -d' ' -f2,3 | sort | uniq -c | awk '{ print $3, $1 }' |
		sort >"$dir/got"
	printf '%s\n' "deep 1" "futex 40" "poll 5" | diff - "$dir/got"
	grep -qE '^40 threads [0-9, -]+ "futex": sleeping in futex(\(0x[0-9a-f]+\))?$' "$dir/text"
	[ "$(grep -c ' do_futex ' "$dir/text")" = 1 ]
	# Each by itself, and programs get all of them as before.
	"$KPROF" dump --all -p "${pid[t]}" >"$dir/all"
	[ "$(grep -c '^Thread ' "$dir/all")" = 47 ]
	[ "$(grep -c ' do_futex ' "$dir/all")" = 40 ]
	[ "$(groups_of "$dir/all" | head -n 1)" = "1 ${pid[t]}" ]
	dumped t
	[ "$(jq '.processes[0].threads | length' "$dir/t.dump")" = 47 ]
	target_end t
}

@test "targets that exit while they are looked at" {
	local i status
	for ((i = 0; i < 30; i++)); do
		"$driver-gcc" futex:20 churn:5 >/dev/null </dev/null &
		status=0
		"$KPROF" dump --json -p $! >"$dir/out" 2>"$dir/err" || status=$?
		wait $! || true
		[ "$status" = 0 ] || [ "$status" = 1 ] || fail "exit status $status" "$(cat "$dir/err")"
		jq -e . "$dir/out" >/dev/null
		[ "$status" = 0 ] || grep -qE '^kprof: (no process|process .* has exited|.*process .*)' "$dir/err"
	done
}

@test "mistakes, and what to do instead" {
	run -1 --separate-stderr "$KPROF" dump -p 4194300
	# shellcheck disable=SC2154 # run sets it
	[[ $stderr == "kprof: no process 4194300"*hint:* ]]
	run -2 "$KPROF" dump
	run -2 "$KPROF" dump -p none
	run -2 "$KPROF" dump -p 1 --native-only --python-only
	standing t "$driver-gcc" futex
	tid=$(jq .threads[0].tid "$dir/t.json")
	run -1 --separate-stderr "$KPROF" dump -p "$tid"
	[[ $stderr == *"$tid is a thread of process ${pid[t]}"* ]]
	# The others are shown all the same.
	run -1 --separate-stderr "$KPROF" dump --json -p "4194300,${pid[t]}"
	[ "$(jq '.processes[0].threads | length' <<<"$output")" = 2 ]
	if [ "$(id -u)" = 0 ]; then
		run -3 --separate-stderr setpriv --reuid 65534 --clear-groups "$KPROF" dump -p "${pid[t]}"
		[[ $stderr == *hint:*sudo* ]]
	fi
	target_end t
	if [ -d /proc/2 ] && [ ! -e /proc/2/exe ]; then
		run -1 --separate-stderr "$KPROF" dump -p 2
		[[ $stderr == *"a thread of the kernel"* ]]
	fi
}

@test "kill -9 at any moment leaves nothing, and the target as it was" {
	local i before begin_us took_us us
	standing t "$driver-gcc" futex:50 poll:50 deep:20
	wait_for "$PATIENCE" "all threads to have left their CPUs" settled "${pid[t]}"
	dumped t # the next ones find the tables made
	begin_us=${EPOCHREALTIME/[.,]/}
	dumped t
	took_us=$((${EPOCHREALTIME/[.,]/} - begin_us))
	: >"$dir/maps"
	# It has its maps for a part of the time only: some must have been met in it.
	for ((i = 0; i < 20 || (i < 200 && $(wc -l <"$dir/maps") < 20); i++)); do
		spawn k "$KPROF" dump -p "${pid[t]}"
		us=$((took_us * (RANDOM % 110) / 100))
		sleep "$(printf '%d.%06d' $((us / 1000000)) $((us % 1000000)))"
		note_maps "${pid[k]}"
		kill -KILL "${pid[k]}" 2>/dev/null || true
		wait "${pid[k]}" || true
		unset "pid[k]"
	done
	wait_for "$PATIENCE" "the kernel to clear up" maps_gone
	[ "$(switches "${pid[t]}")" = "$before" ]
	dumped t
	judge native t
	target_end t
}
