#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# The small suite for other kernels: a C++ and a plain Python target, both calling the test double of a library, no
# PyTorch. Accounting, exceptions, kill -9; with whatever kinds of probe the kernel allows.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	own_targets
	use_kind gcc
}

teardown() {
	harness_teardown
}

@test "check says that attach can work" {
	"$KPROF" check
}

@test "C++: every call accounted for, the same result" {
	unprofiled plain "$driver" count --n 2000
	profiled here "" "$driver" count --n 2000
	same_result plain here
	account here --only --complete
}

@test "C++: with single uprobes" {
	profiled here "--no-multi" "$driver" count --n 2000
	account here --only --complete
}

@test "C++: threads and a small ring" {
	profiled here "--ring 64K" "$driver" threads --threads 4 --n 5000
	account here --only
}

@test "C++: operators that throw, 10,000 times" {
	unprofiled plain "$driver" throw --n 10000
	profiled here "" "$driver" throw --n 10000
	same_result plain here
	account here --only
}

@test "C++: only what is inside of a function" {
	profiled here "--within symbol:within::wanted" "$driver" within --n 40
	jq -e --slurpfile r "$dir/here.json" '[.traceEvents[] | select(.ph == "X") | .name] |
		(map(select(. == "aten::fake_linear")) | length) as $linear | $linear > 0 and $linear <= $r[0].inside and
		(map(select(. == "aten::fake_mul")) | length) == $linear and (map(select(. == "within::wanted")) | length) == $r[0].wanted' "$dir/here.trace.json"
}

@test "Python: every call accounted for, the same result" {
	unprofiled plain "$PYTHON" "$WORKLOADS/ctypes_ops.py" --lib "$library" --iters 1000
	profiled here "" "$PYTHON" "$WORKLOADS/ctypes_ops.py" --lib "$library" --iters 1000
	same_result plain here
	account here --only --complete
}

# Each program is larger with each of these, and its calls go deeper: before 6.13, all that call each other have 512 bytes of stack.
@test "C++: everything that can be asked for at once" {
	local within
	for within in '' '--within symbol:within::wanted' '--within function:nowhere'; do
		profiled here "--shapes --flow --modules --memory --with-stack --counters page-faults $within" "$driver" within --n 40
		jq -e --arg within "$within" '[.traceEvents[] | select(.cat == "cpu_op")] | length | if $within | test("nowhere") then . == 0 else . > 0 end' \
			"$dir/here.trace.json"
	done
}

@test "Python: only what is inside of a function" {
	profiled here "--within function:main" "$PYTHON" "$WORKLOADS/ctypes_ops.py" --lib "$library" --iters 1000
	account here --only --complete
	profiled none "--within function:nowhere" "$PYTHON" "$WORKLOADS/ctypes_ops.py" --lib "$library" --iters 1000
	jq -e '[.traceEvents[] | select(.cat == "cpu_op")] == []' "$dir/none.trace.json"
}

@test "children forked while recording" {
	profiled here "" "$driver" children --children 2 --n 2000 --pace 10
	account here --only
}

@test "--children exact: complete from the first instruction" {
	profiled here "--children exact" "$driver" children --children 2 --n 1000
	account here --only --complete
}

@test "attach -a: a process that runs, and one that starts meanwhile, are complete" {
	# Under a name of its own: other suites that run now have drivers, too.
	local copy=${driver%/*}/all-of-kernel
	cp "$driver" "$copy"
	target_start first "$copy" count --n 500
	kprof_start k attach -a --max-overhead 0 --comm all-of-kernel -o "$dir/k.kprof"
	unprofiled later "$copy" count --n 500
	target_go first && target_result first && target_end first
	kprof_stop k
	exported k
	jq -cs '.[0] + {children: [.[1] | {pid, counts}]}' "$dir/first.json" "$dir/later.json" >"$dir/k.json"
	account k --only --exact
}

@test "waits: what threads wait for, and all of their time" {
	target_start waiter "$BUILD/workloads/waiter" "$dir/disk" sleep:9 holder:9 mutex:9 writer:9 pipe:9 socket:9 epoll:9 run:2 parent:3
	kprof_start kprof sample -p "${pid[waiter]}" --off-cpu -o "$dir/waiter.kprof"
	target_go waiter && target_result waiter && kprof_stop kprof && target_end waiter
	"$KPROF" report --by wait --json "$dir/waiter.kprof" >"$dir/waiter.rows.json"
	"$PYTHON" "$LIB/check_waits.py" --sums "$dir/waiter.rows.json"
	jq -e '[.rows[].name] | contains(["sleep", "futex", "pipe read", "socket read", "epoll"])' "$dir/waiter.rows.json"
	jq -e '.rows[] | select(.name == "pipe read") | .woken_by | startswith("writer (")' "$dir/waiter.rows.json"
	"$KPROF" export --off-cpu "$dir/waiter.kprof" -o "$dir/waiter.folded"
	grep -q 'round_pipe;.*\[pipe read\]' "$dir/waiter.folded"
}

@test "counters: page faults and switches of threads that share CPUs with others" {
	library='' profiled here "--only mark --counters page-faults,page-faults:u,context-switches,task-clock" "$BUILD/workloads/counted" 5
	jq -e --slurpfile known "$dir/here.json" '[.rows[] | {key: .name, value: .counters}] | from_entries |
		.pages["page-faults"].total == $known[0].pages.faults and .burn["page-faults"].total == 0 and
		(.pages["page-faults:u"] | .calls < $known[0].pages.times or .total == $known[0].pages.faults) and
		(.sleeps["context-switches"].total | . >= $known[0].sleeps.switches_inside and . <= $known[0].sleeps.switches_around) and
		(.burn["task-clock"].calls | . >= 6)' "$dir/here.report.json" ||
		fail "$(cat "$dir/here.json")" "$(jq -c '.rows[] | {name, counters}' "$dir/here.report.json")"
}

@test "kill -9 of kprof while it records: the target lives, its code is its own again" {
	local i
	target_start target "$driver" spin
	target_go target
	for i in 1 2 3; do
		kprof_start "k$i" attach -p "${pid[target]}" -o "$dir/k.kprof"
		probed "${pid[target]}" "$library"
		kill -KILL "${pid[k$i]}"
		wait "${pid[k$i]}" || true
		wait_for "$PATIENCE" "the probes to go" text_is_clean "${pid[target]}" "$library"
	done
	kill -TERM "${pid[target]}"
	target_result target
	jq -e .ok "$dir/target.json"
	target_end target
}

@test "device calls: arguments at the entry, results where calls return" {
	library=$BUILD/sim/12/libcudart.so.12
	profiled calls "--no-agent" "$BUILD/workloads/cudacalls-12" runtime --rounds 5
	"$PYTHON" "$LIB/compare_calls.py" --slow "$dir/calls.trace.json" "$dir/calls.json"
	[ "$(jq .kprof.meta.calls.cuda_runtime.results_seen "$dir/calls.trace.json")" -gt 0 ]
}

# What a process has computed in all, and whether it has done so for that much longer.
cpu_ticks() { # PID
	local stat
	stat=$(cat "/proc/$1/stat")
	# shellcheck disable=SC2086 # words; behind the name, which may be anything
	set -- ${stat##*) }
	echo $((${12} + ${13}))
}

has_computed() { # PID TICKS
	[ "$(cpu_ticks "$1")" -ge "$2" ]
}

# The share of whole stacks, in percent, of a process that is sampled while it computes for so long. Its tables are there.
sampled_whole() { # PID SECONDS
	kprof_start samples sample -p "$1" -o "$dir/samples.kprof" || return 1
	wait_for "$((2 * PATIENCE))" "it to compute" has_computed "$1" $(($(cpu_ticks "$1") + $2 * $(getconf CLK_TCK))) || return 1
	kprof_stop samples || return 1
	"$KPROF" report "$dir/samples.kprof" --json >"$dir/samples.json" || return 1
	jq -e '.samples | .whole >= 0.9 * (.walked - (.ends["table not ready"] // 0)) and .walked >= 50' "$dir/samples.json" ||
		fail "$(jq -c .samples "$dir/samples.json")"
}

@test "samples: native stacks are whole" {
	target_start target "$driver" spin
	target_go target
	sampled_whole "${pid[target]}" 3
	kill -TERM "${pid[target]}"
	target_result target
	target_end target
}

@test "samples: Python frames" {
	target_start spin "$PYTHON" -c 'print("READY", 0, flush=True)
while True: sum(range(1000))'
	sampled_whole "${pid[spin]}" 3
	"$KPROF" report "$dir/samples.kprof" --by function --json | grep -qF '<module>' || fail "no Python frame"
	kill "${pid[spin]}"
	wait "${pid[spin]}" || true
}

@test "samples of all processes: one that runs is among them, and those that are over at once are counted" {
	cp /bin/true "$dir/kp_short"
	target_start spin "$PYTHON" -c 'print("READY", 0, flush=True)
while True: sum(range(1000))'
	kprof_start all sample -a -F 99 --max-overhead 0 -o "$dir/all.kprof"
	for _ in {1..50}; do "$dir/kp_short"; done
	sleep 2
	kprof_stop all
	kill "${pid[spin]}"
	wait "${pid[spin]}" || true
	"$KPROF" report "$dir/all.kprof" --by process --json | grep -q "\"pid\": *${pid[spin]}\b" || fail "no samples of the program that runs"
	"$KPROF" export "$dir/all.kprof" -o "$dir/all.json" >/dev/null
	grep -oE '"name": *"kp_short", *"processes": *50\b' "$dir/all.json" || fail "$(grep -o '"kp_short".\{60\}' "$dir/all.json")"
}

@test "stacks at entries" {
	target_start target "$driver" spin
	target_go target
	"$KPROF" attach -p "${pid[target]}" -d 3s --with-stack --stack-rate 0 -o "$dir/entries.trace.json"
	jq -e '[.traceEvents[] | select(.cat == "cpu_op" and .args["Call stack"])] | length > 100' "$dir/entries.trace.json"
	kill -TERM "${pid[target]}"
	target_result target
	target_end target
}

@test "dump: every place, frame by frame" {
	local driver=$BUILD/workloads/dumpdriver-gcc
	target_start t "$driver" && target_go t && target_result t
	"$KPROF" dump --json --wait "${PATIENCE}s" -p "${pid[t]}" >"$dir/t.dump"
	"$PYTHON" "$LIB/check_dump.py" native "$dir/t.dump" "$dir/t.json"
	target_end t
}

@test "dump: Python's frames as sys._current_frames() has them" {
	target_start t "$PYTHON" "$WORKLOADS/dump_python.py" && target_go t && target_result t
	"$KPROF" dump --json -p "${pid[t]}" >"$dir/t.dump"
	"$PYTHON" "$LIB/check_dump.py" python "$dir/t.dump" "$dir/t.json"
	target_end t
}
