#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# What a recording says it cost, beside what the workload and the kernel counted; and the bound on that, under loads that try to
# break it. What is asserted of the bound is never the machine's speed, only what the data say.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	DRIVER=$BUILD/workloads/gcc/opdriver
	[ -x "$DRIVER" ] || fail "the test programs are not built: make test-programs"
	[ "$(id -u)" = 0 ] || skip "needs root"
}

teardown() {
	harness_teardown
}

# ledger NAME: what $dir/NAME.kprof says of its cost, $dir/NAME.ledger.json, and the report's JSON
ledger() {
	"$KPROF" export "$dir/$1.kprof" -o "$dir/$1.trace.json" >/dev/null &&
		jq .kprof.overhead.ledger "$dir/$1.trace.json" >"$dir/$1.ledger.json" &&
		"$KPROF" report --json "$dir/$1.kprof" >"$dir/$1.report.json"
}

says() { # NAME JQ-EXPRESSION: whether it is true of the ledger
	jq -e "$2" "$dir/$1.ledger.json" >/dev/null || fail "not so: $2" "$(jq -c 'del(.programs)' "$dir/$1.ledger.json")"
}

# steps_in_order NAME: no step comes before one that is to be tried first; the rate may rise and fall in between
steps_in_order() {
	says "$1" '["rate", "operators", "stacks", "wait_stacks", "all_operators", "children"] as $order
		| [.steps[] | select(.step != "rate_back" and .step != "rate") | .step as $s | $order | index($s)]
		| length == 0 or . == sort'
}

# A process that only uses a CPU, and may be ended at any time.
spinning() {
	spawn "$1" gzip -c /dev/zero
}

cpu_ns() { # PID: of its first thread, by the scheduler
	cut -d ' ' -f 1 "/proc/$1/schedstat"
}

own_ns() { # PID: of all its threads, in ticks of 10 ms
	awk '{ sub(/.*\) /, ""); print ($12 + $13) * 10000000 }' "/proc/$1/stat"
}

@test "--max-overhead: shares, with and without a percent sign, and what is none" {
	local text
	for text in 2% 2 0.5% 100% 0; do
		run "$KPROF" sample -p 4194304 --max-overhead "$text" -o "$dir/none.kprof"
		[ "$status" != 2 ] || fail "$text: $output"
	done
	for text in -1 200% two 0.01% 2%% nan ''; do
		run "$KPROF" sample -p 1 --max-overhead "$text" -o "$dir/none.kprof"
		[ "$status" = 2 ] && [[ $output == *"--max-overhead: '$text' is no share"* && $output == *hint:* ]] ||
			fail "$text: $status $output"
	done
}

@test "runs of the kernel's programs are the calls that the program counted, and kprof's time is its own" {
	local before
	target_start driver "$DRIVER" threads --n 20000 --threads 2 --linger || return 1
	kprof_start kprof attach -p "${pid[driver]}" -o "$dir/driver.kprof" || return 1
	target_go driver && target_result driver || return 1
	before=$(own_ns "${pid[kprof]}")
	kprof_stop kprof && target_end driver && ledger driver || return 1
	says driver '.bound == null and .steps == []' &&
		says driver "(.programs | [.begin, .begin_text, .begin_args] | map(.runs // 0) | add) == $(jq '[.counts[]] | add' "$dir/driver.json")" || return 1
	# times of ticks: two of them may be missing. What kprof does after the recording is in none of both.
	says driver ".before_ns + .parts.own.ns + .parts.helpers.ns >= $before - 20000000" &&
		says driver '. as $l | [.parts[].ns] | add - $l.cost_ns | fabs < 10' || return 1
	says driver '.share * .base_ns - .cost_ns | fabs < 10' &&
		says driver '.calibration.trap_ns > 0 and .parts.traps.ns > 0 and .parts.bpf.ns > 0 and .memory.resident_bytes > 1000000' &&
		says driver '.memory.kernel_maps_bytes > 100000' || return 1
	run "$KPROF" report "$dir/driver.kprof"
	[[ $output =~ "kprof cost "[0-9.e+-]+" % of the recorded processes' CPU time: traps "[0-9.]+ ]] || fail "$output"
	jq -e '.overhead.parts_ns.traps > 0 and .overhead.share > 0' "$dir/driver.report.json" &&
		jq -e '[.traceEvents[] | select(.ph == "C" and (.name | startswith("kprof overhead")))] | length > 0' "$dir/driver.trace.json"
}

@test "the time that the recorded process uses is what the kernel counts of it" {
	local first last
	spinning gzip
	first=$(cpu_ns "${pid[gzip]}")
	kprof_start kprof sample -p "${pid[gzip]}" -o "$dir/gzip.kprof" || return 1
	wait_for "$PATIENCE" "gzip to run" eval '[ "$(cpu_ns "${pid[gzip]}")" -gt $((first + 1500000000)) ]' || return 1
	kprof_stop kprof || return 1
	last=$(cpu_ns "${pid[gzip]}")
	ledger gzip || return 1
	says gzip ".used_ns > 500000000 and .used_ns <= $((last - first)) and .base_ns >= .elapsed_ns - 1000" &&
		says gzip '.programs.sample.runs > 0 and .parts.samples.ns > 0 and .parts.traps.ns == 0'
}

@test "16 threads of nothing but empty operators: the operators are given up, and the capture says so" {
	target_start driver "$DRIVER" threads --n 100000000 --threads 16 || return 1
	target_go driver
	"$KPROF" attach -p "${pid[driver]}" --max-overhead 2% -d 6s -o "$dir/driver.kprof" || return 1
	kill -KILL "${pid[driver]}"
	ledger driver && steps_in_order driver || return 1
	says driver '.bound == 0.02 and (.steps | length > 0) and .steps[0].step == "operators"' &&
		says driver '[.steps[] | select(.step == "operators") | .operators[].name] | index("aten::fake_add.Tensor") and index("aten::fake_mul.Tensor")' &&
		says driver '[.steps[] | select(.step == "operators") | .operators[] | select(.calls_a_second <= 0)] == []' || return 1
	# all that was given up is a gap until the end, and nothing of it is in the trace afterwards
	jq -e '. as $r | [.overhead.steps[] | .operators[]?.name] - [$r.gaps[] | select(.pid == 0) | .what] == []' "$dir/driver.report.json" || return 1
	"$PYTHON" "$LIB/check_given_up.py" "$dir/driver.trace.json" "$dir/driver.report.json"
}

@test "after that, the last second is within the bound" {
	target_start driver "$DRIVER" threads --n 100000000 --threads 16 || return 1
	target_go driver
	"$KPROF" attach -p "${pid[driver]}" --max-overhead 2% -d 8s -o "$dir/driver.kprof" || return 1
	kill -KILL "${pid[driver]}"
	ledger driver && says driver '.worst_second_share > .bound and .last_second_share <= .bound'
}

@test "10000 samples a second: fewer are taken, and they stand for all of the time" {
	local first last
	spinning gzip
	first=$(cpu_ns "${pid[gzip]}")
	kprof_start kprof sample -p "${pid[gzip]}" -F 10000 --max-overhead 0.5% -o "$dir/gzip.kprof" || return 1
	wait_for "$PATIENCE" "gzip to run" eval '[ "$(cpu_ns "${pid[gzip]}")" -gt $((first + 4000000000)) ]' || return 1
	kprof_stop kprof || return 1
	last=$(cpu_ns "${pid[gzip]}")
	ledger gzip && steps_in_order gzip || return 1
	says gzip '.steps[0].step == "rate" and .steps[0].from_hz > 9990 and .steps[0].to_hz <= 5000' || return 1
	# a change of the rate loses half a period on each CPU, and a tick that comes late counts as one
	jq -e --argjson used "$(jq .used_ns "$dir/gzip.ledger.json")" '.samples.weight_ns | . > $used * 0.9 and . < $used * 1.1' "$dir/gzip.report.json" ||
		fail "$(jq -c .samples "$dir/gzip.report.json") $(jq -c '{used_ns, steps}' "$dir/gzip.ledger.json")"
	jq -e ".samples.weight_ns <= $((last - first))" "$dir/gzip.report.json"
}

@test "switches as fast as two processes can: waits' stacks go, the sums of times stay whole" {
	target_start pipe "$PYTHON" "$WORKLOADS/ping_pong.py" || return 1
	kprof_start kprof sample -p "${pid[pipe]}" --off-cpu --min-wait 1us -F 4999 --max-overhead 0.1% -o "$dir/pipe.kprof" || return 1
	target_go pipe && target_result pipe && kprof_stop kprof && target_end pipe && ledger pipe && steps_in_order pipe || return 1
	says pipe '(.steps | length > 0) and .programs.switch.runs >= '"$(jq .switches "$dir/pipe.json")" &&
		"$PYTHON" "$LIB/check_waits.py" --sums "$dir/pipe.report.json"
}

@test "forks as fast as a shell can: children are given up, and not operators, which cost nothing" {
	# shellcheck disable=SC2016 # the inner shell's
	spawn sh sh -c 'while :; do (:); done'
	"$KPROF" attach -p "${pid[sh]}" --max-overhead 0.1% -d 4s -o "$dir/sh.kprof" || return 1
	kill -KILL "${pid[sh]}"
	ledger sh && says sh '[.steps[].step] == ["children"] and .programs.task.runs > 0 and .parts.own.ns > 0' || return 1
	# no process that the capture has began after that
	jq -e '.gaps | map(select(.pid == 0 and .what == "child processes that are forked")) | length == 1' "$dir/sh.report.json" || return 1
	"$KPROF" report --by process --json "$dir/sh.kprof" >"$dir/sh.processes.json" && jq -e '.rows | length > 1' "$dir/sh.processes.json"
}

@test "sample -a has a bound of 2 % unless another is given" {
	"$KPROF" sample -a -d 1s -o "$dir/all.kprof" && ledger all && says all '.of == "machine" and .bound == 0.02' || return 1
	"$KPROF" sample -a -d 1s --max-overhead 0 -o "$dir/all.kprof" && ledger all && says all '.bound == null'
}
