#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Waits: kprof sample --off-cpu and attach --sched, against programs that know their own waits, and what the kernel counts of
# their threads.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

WAITER=$BUILD/workloads/waiter

setup() {
	harness_setup
	[ -x "$WAITER" ] || fail "the test programs are not built: make test-programs"
	[ "$(id -u)" = 0 ] || skip "needs root"
}

teardown() {
	harness_teardown
}

# waits NAME OPTION… -- COMMAND…: a target that is READY, recorded from before its measured part to after it: $dir/NAME.kprof,
# the table as $dir/NAME.rows.json, and stacks as $dir/NAME.folded
waits() {
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	target_start "$name" "$@" || return 1
	kprof_start kprof sample -p "${pid[$name]}" --off-cpu -o "$dir/$name.kprof" "${options[@]}" || return 1
	target_go "$name" && target_result "$name" && kprof_stop kprof && target_end "$name" || return 1
	"$KPROF" report --by wait --json "$dir/$name.kprof" >"$dir/$name.rows.json" &&
		"$KPROF" export --off-cpu "$dir/$name.kprof" -o "$dir/$name.folded" >/dev/null
}

check_waits() { # NAME
	"$PYTHON" "$LIB/check_waits.py" "$dir/$1.rows.json" "$dir/$1.json" "$dir/$1.folded"
}

rows() { # NAME JQ-EXPRESSION: whether it is true of the rows
	jq -e "$2" "$dir/$1.rows.json" >/dev/null || fail "$2" "$(jq -c '.rows[] | [.name, .category, .calls, .total_ns]' "$dir/$1.rows.json")"
}

@test "what each thread waits for, how long, where, and who wakes it; its times, beside the kernel's" {
	waits waiter -- "$WAITER" "$dir/disk" sleep futex holder mutex writer pipe socket epoll poll child run yield parent nothing &&
		check_waits waiter
}

@test "perf sched, of the same run: each wait that it saw is one of kprof's, as long, and as long runnable" {
	target_start waiter "$WAITER" "$dir/disk" sleep futex holder mutex writer pipe socket epoll poll child run yield parent nothing || return 1
	spawn perf perf sched record -a -k CLOCK_MONOTONIC -o "$dir/perf.data" -- sleep 1000 || return 1
	wait_for "$PATIENCE" "perf to record" pgrep -P "${pid[perf]}" sleep >/dev/null || return 1
	kprof_start kprof sample -p "${pid[waiter]}" --off-cpu --min-wait 0 -o "$dir/waiter.kprof" || return 1
	target_go waiter && target_result waiter && kprof_stop kprof && target_end waiter || return 1
	kill -INT "${pid[perf]}" && wait_for "$PATIENCE" "perf to end" ended "${pid[perf]}" || return 1
	"$KPROF" report --by wait --json "$dir/waiter.kprof" >"$dir/rows.json" &&
		"$KPROF" export "$dir/waiter.kprof" -o "$dir/trace.json" >/dev/null &&
		"$PYTHON" "$LIB/compare_sched.py" "$dir/trace.json" "$dir/rows.json" "$dir/perf.data"
}

@test "a disk, without its cache" {
	# more than one place to look for a file system that has O_DIRECT
	local place=$dir
	[ "$(stat -f -c %T "$place")" != tmpfs ] || place=/var/tmp
	waits waiter --min-wait 1us -- "$WAITER" "$place/kprof-waits.$$" disk:200
	rm -f "$place/kprof-waits.$$"
	jq -e '.threads | length == 1' "$dir/waiter.json" >/dev/null || skip "no file system here has O_DIRECT"
	rows waiter '[.rows[] | select(.name == "disk" and (.category | endswith(" disk")))] | length == 1' &&
		"$PYTHON" "$LIB/check_waits.py" --sums "$dir/waiter.rows.json"
}

@test "the allocator's lock" {
	waits waiter --min-wait 1us -- env MALLOC_ARENA_MAX=1 GLIBC_TUNABLES=glibc.malloc.tcache_count=0 \
		"$WAITER" "$dir/disk" malloc:100 malloc:100 malloc:100 malloc:100 || return 1
	rows waiter '[.rows[] | select(.name == "allocator lock" and (.category | endswith(" malloc")))] | length == 1'
}

@test "Python: sleep, a lock, and the interpreter's lock" {
	waits python -- "$PYTHON" "$WORKLOADS/python_waits.py" && check_waits python || return 1
	# who sleeps, or waits for another lock, is not said to wait for the GIL meanwhile
	rows python '[.rows[] | select(.name == "GIL") | .total_ns] | add > 0'
}

@test "forks, execs and ends: each thread's times are all of its life" {
	# shellcheck disable=SC2016 # the inner shell's
	spawn kprof "$KPROF" sample --off-cpu -o "$dir/sh.kprof" -- \
		sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep 0.01 & done; wait; exec sleep 0.1'
	wait_for "$PATIENCE" "kprof to end" ended "${pid[kprof]}" || return 1
	"$KPROF" report --by wait --json "$dir/sh.kprof" >"$dir/sh.rows.json" &&
		"$PYTHON" "$LIB/check_waits.py" --sums "$dir/sh.rows.json" || return 1
	jq -e '.threads | length >= 9' "$dir/sh.rows.json"
}

@test "of all processes: a thread that uses no CPU comes to the recording by its waits" {
	target_start waiter "$WAITER" "$dir/disk" sleep writer pipe nothing || return 1
	kprof_start kprof sample -a --max-overhead 0 --off-cpu --comm waiter -o "$dir/waiter.kprof" || return 1
	target_go waiter && target_result waiter && kprof_stop kprof && target_end waiter || return 1
	"$KPROF" report --by wait --json "$dir/waiter.kprof" >"$dir/waiter.rows.json" || return 1
	"$PYTHON" "$LIB/check_waits.py" --met "$dir/waiter.rows.json" "$dir/waiter.json" || return 1
	rows waiter 'all(.rows[]; .category | test(" (sleep|writer|pipe|nothing|waiter)$"))'
}

# The kernel has told of its end, and knows it no more; /proc has it.
@test "of all processes: one whose end takes long has waited as it did before that" {
	target_start slow "$PYTHON" "$WORKLOADS/slow_exit.py" || return 1
	kprof_start kprof sample -a --max-overhead 0 --off-cpu --comm kp_slow_exit -o "$dir/slow.kprof" || return 1
	target_go slow && target_result slow && kprof_stop kprof && target_end slow || return 1
	"$KPROF" export "$dir/slow.kprof" -o "$dir/slow.json.gz" >/dev/null || return 1
	zcat "$dir/slow.json.gz" | jq -e --slurpfile did "$dir/slow.json" '
		[.traceEvents[] | select(.ph == "X" and .pid == $did[0].pid and (.name | startswith("wait: ")))] | sort_by(.ts) |
		length >= 20 and all(.[].name; . != "wait: exit_group") and ([.[1:], .[:-1]] | transpose | all(.[0].ts >= .[1].ts + .[1].dur - 0.001))'
}

@test "of all processes: programs that neither wait nor are sampled are counted by name, and not each is told of" {
	cp /bin/true "$dir/nothing" || return 1
	kprof_start kprof sample -a --off-cpu --max-overhead 0 -o "$dir/all.kprof" || return 1
	# a shell that forks: each child leaves its CPU once, for its parent
	sh -c 'for i in $(seq 300); do "$0"; done' "$dir/nothing"
	kprof_stop kprof || return 1
	"$BUILD/workloads/chunk_dump" "$dir/all.kprof" >"$dir/all.jsonl" || return 1
	jq -se '[.[] | select(.type == "meta" and .key == "all_processes") | .value.ended[]
		| select(.name == "nothing").processes] | add == 300' "$dir/all.jsonl" || fail "$(grep '"all_processes"' "$dir/all.jsonl")" ||
		return 1
	# the few that are told of have waited, or a sample has met them
	jq -se '([.[] | select(.type == "process" and .name == "nothing").pid] | unique)
		- [.[] | select(.type == "sample" or .type == "wait" or (.type == "time" and .blocked_ns > 0)).pid] | length < 30' "$dir/all.jsonl"
}

@test "of all processes: one that waited for its CPU once, and then ran to its end, has that wait" {
	cat >"$dir/fork.py" <<-'EOF'
		import os, time
		os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
		for _ in range(50):
		    pid = os.fork()
		    if not pid:
		        os._exit(0)
		    print(pid)
		    end = time.monotonic() + 0.002
		    while time.monotonic() < end:
		        pass
		    os.waitpid(pid, 0)
	EOF
	kprof_start kprof sample -a --off-cpu --max-overhead 0 -o "$dir/all.kprof" || return 1
	"$PYTHON" "$dir/fork.py" >"$dir/pids" && kprof_stop kprof || return 1
	"$BUILD/workloads/chunk_dump" "$dir/all.kprof" >"$dir/all.jsonl" || return 1
	# a CPU that is wanted by others may be given to some at once
	for type in wait time; do
		jq -se --slurpfile pids "$dir/pids" --arg type "$type" '[.[] | select(.type == $type and (.pid as $p | $pids | index($p))).pid]
			| unique | length > 25' "$dir/all.jsonl" || fail "$type: too few of the children" || return 1
	done
}

@test "what the ring had no room for is counted, and the times are right all the same" {
	waits waiter --ring 4K --min-wait 1us -- "$WAITER" "$dir/disk" yield:100 yield:100 sleep || return 1
	jq -e '.sources[] | select(.name == "waits") | .fired == .captured + .dropped and .dropped > 0' \
		"$dir/waiter.rows.json" &&
		"$PYTHON" "$LIB/check_waits.py" --sums "$dir/waiter.rows.json"
}

@test "traces: slices by what for, and an arrow from who wakes to who is woken, for both of Perfetto's formats" {
	waits waiter -- "$WAITER" "$dir/disk" sleep:9 writer:9 pipe:9 socket:9 epoll:9 || return 1
	"$KPROF" export "$dir/waiter.kprof" -o "$dir/waiter.trace.json" >/dev/null &&
		"$KPROF" export "$dir/waiter.kprof" -o "$dir/waiter.pftrace" >/dev/null &&
		"$PYTHON" "$LIB/validate_trace.py" "$dir/waiter.trace.json" || return 1
	# the table's numbers, of threads whose name is their kind
	local waits
	waits=$(jq '[.rows[] | select(.name == "pipe read" and (.category | endswith(" pipe"))) | .calls] | add' "$dir/waiter.rows.json")
	[ "$(jq '[.traceEvents[] | select(.cat == "wait" and .name == "wait: pipe read")] | length' "$dir/waiter.trace.json")" = "$waits" ] ||
		fail "$waits waits in the table"
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	"$KPROF_READERS_PYTHON" "$ROOT/tests/readers/check_pftrace.py" "$dir/waiter.trace.json" "$dir/waiter.pftrace" &&
		"$KPROF_READERS_PYTHON" "$ROOT/tests/readers/check_wakes.py" "$dir/waiter.pftrace" writer pipe socket epoll
}

@test "attach --sched: the trace of a process without any operator has its waits" {
	target_start target "$PYTHON" "$WORKLOADS/python_waits.py" || return 1
	kprof_start kprof attach -p "${pid[target]}" --sched -o "$dir/target.kprof" || return 1
	target_go target && target_result target && kprof_stop kprof && target_end target || return 1
	"$KPROF" export "$dir/target.kprof" -o "$dir/target.trace.json" >/dev/null &&
		"$PYTHON" "$LIB/validate_trace.py" "$dir/target.trace.json" || return 1
	jq -e '[.traceEvents[] | select(.cat == "wait" and .name == "wait: sleep" and .args["woken by"] == "an interrupt")] | length > 40' \
		"$dir/target.trace.json"
}

@test "attach --sched: Perfetto's own view of the scheduler, whose times are those of the table" {
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	for _ in 1 2 3 4 5; do
		# shellcheck disable=SC2016 # the inner shell's
		spawn kprof "$KPROF" run --sched -o "$dir/sh.kprof" -- sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep 0.01 & done; wait
			for i in 1 2 3 4 5 6 7 8; do echo | cat | cat; done'
		wait_for "$PATIENCE" "kprof to end" ended "${pid[kprof]}" || return 1
		# few of the switches are not reported by the kernel, and the times of these are estimates
		! grep -q 'the kernel did not report' "$dir/kprof.err" || continue
		break
	done
	"$KPROF" report --by wait --json "$dir/sh.kprof" >"$dir/sh.rows.json" &&
		"$KPROF" export "$dir/sh.kprof" -o "$dir/sh.pftrace" >/dev/null || return 1
	jq -e '.sources[] | select(.name == "waits") | .dropped == 0' "$dir/sh.rows.json" || return 1
	"$KPROF_READERS_PYTHON" "$ROOT/tests/readers/check_sched.py" "$dir/sh.pftrace" "$dir/sh.rows.json"
}

@test "diff --by wait: what threads wait for longer, and what they do not" {
	local i name
	mkdir "$dir/before" "$dir/after"
	for i in 1 2 3; do
		waits before --min-wait 1ms -- "$WAITER" "$dir/disk" sleep:40 poll:20 || return 1
		waits after --min-wait 1ms -- "$WAITER" "$dir/disk" sleep:20 poll:40 || return 1
		mv "$dir/before.kprof" "$dir/before/$i.kprof" && mv "$dir/after.kprof" "$dir/after/$i.kprof" || return 1
	done
	"$KPROF" diff "$dir/before" "$dir/after" --by wait --per run --json >"$dir/diff.json" || return 1
	jq -e '[.rows[] | select(.where == .name) | [.name, .time.verdict]] | contains([["sleep", "less"]]) and contains([["poll", "more"]])' \
		"$dir/diff.json" || fail "$(jq -c '.rows[] | [.name, .where, .time]' "$dir/diff.json")" || return 1
	"$KPROF" diff "$dir/before" "$dir/before" --by wait --json | jq -e 'all(.rows[].time.verdict; . != "more" and . != "less")' || return 1
	# times are those of the table, but for the time in which only a CPU was missing
	"$KPROF" diff "$dir/before/3.kprof" "$dir/after/3.kprof" --by wait --per run --json >"$dir/diff.json" || return 1
	for name in sleep poll; do
		jq -e --arg name "$name" --slurpfile d "$dir/diff.json" '[.rows[] | select(.name == $name and (.category | endswith(" " + $name)))
			| .total_ns - .runnable_ns] | add as $ns
			| $d[0].rows[] | select(.name == $name and .where == $name).time.before_ns - $ns | fabs < 1000' \
			"$dir/before.rows.json" || fail "$(jq -c '.rows[] | [.name, .where, .time]' "$dir/diff.json")" || return 1
	done
	"$KPROF" sample -q -d 10ms -o "$dir/none.kprof" -- true || true
	run "$KPROF" diff "$dir/before/1.kprof" "$dir/none.kprof" --by wait
	[ "$status" = 1 ]
	[[ $output == *"none.kprof has no waits"* ]]
}

@test "time on and off the CPU are never in one picture" {
	waits waiter -- "$WAITER" "$dir/disk" sleep run || return 1
	"$KPROF" export "$dir/waiter.kprof" -o "$dir/on.folded" >/dev/null || return 1
	! grep -q '\[sleep\]' "$dir/on.folded" && grep -q round_run "$dir/on.folded" || fail "on the CPU: $(cat "$dir/on.folded")" ||
		return 1
	grep -q '\[sleep\]' "$dir/waiter.folded" || fail "off the CPU: $(cat "$dir/waiter.folded")" || return 1
	"$KPROF" export --off-cpu "$dir/waiter.kprof" -o "$dir/off.svg" >/dev/null && grep -q 'time off the CPU' "$dir/off.svg" ||
		return 1
	# the same time, in a table and in the picture's own numbers, which are rounded up to microseconds
	local table picture lines
	table=$("$KPROF" report --by thread --off-cpu --json "$dir/waiter.kprof" | jq '[.rows[].self_ns] | add')
	picture=$(awk '{ sum += $NF } END { print sum }' "$dir/waiter.folded")
	lines=$(wc -l <"$dir/waiter.folded")
	[ "$((picture * 1000 - table))" -ge 0 ] && [ "$((picture * 1000 - table))" -le "$((lines * 1000))" ] ||
		fail "$table ns in the table, $picture us in the picture"
}
