#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# kprof's side of the agent, from the program's first instruction and in the middle of it: on the simulated CUDA, whose
# truth says what the device did, and with an agent whose records are made up.

bats_require_minimum_version 1.5.0
# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	own_targets
	agent=$BUILD/libkprof_agent.so
	made_up=$BUILD/workloads/agentdriver
	use_major 13
	[[ -x $cuda && -x $made_up ]] || fail "the test programs are not built: make test-programs"
	unset CUDA_INJECTION64_PATH OPENCL_LAYERS KPROF_AGENT_WAIT_MS
	export KPROF_SIM_TRUTH=$dir/truth
}

teardown() {
	harness_teardown
}

use_major() {
	cuda=$BUILD/sim/$1/cudadriver
	cuda_dl=$BUILD/sim/$1/cudadriver-dl
}

# device NAME [OPTION…]: the trace's device rows are what the device did
device() {
	local name=$1
	shift
	"$PYTHON" "$LIB/compare_device.py" "$dir/$name.trace.json" "$dir/truth" "$(jq .pid "$dir/$name.json")" "$@"
}

# meta NAME FILTER: of what the trace says about the process's agent
meta() {
	jq -e ".kprof.meta[\"agent.$(jq .pid "$dir/$1.json")\"] | $2" "$dir/$1.trace.json"
}

rows() { # NAME CATEGORY
	jq "[.traceEvents[] | select(.ph == \"X\" and .cat == \"$2\")] | length" "$dir/$1.trace.json"
}

# by_run NAME "RUN ARGUMENTS" COMMAND…: the program from its first instruction to its end
by_run() {
	local name=$1 arguments status=0
	read -ra arguments <<<"$2"
	shift 2
	"$KPROF" run -v -o "$dir/$name.kprof" "${arguments[@]}" -- "$@" --now >"$dir/$name.out" 2>"$dir/$name.err" || status=$?
	[ "$status" = "${expect:-0}" ] || fail "exit status $status" "$(cat "$dir/$name.err")" || return 1
	grep '^{' "$dir/$name.out" >"$dir/$name.json"
	exported "$name"
}

records_of_cupti() {
	cat "$dir"/truth.*.jsonl | grep -ac '"cupti":"recorded"'
}

is_recorded() {
	grep -aqs '"cupti":"recorded"' "$dir"/truth.*.jsonl
}

more_than() { # NUMBER
	[ "$(records_of_cupti)" -gt "$1" ]
}

# Until the device has done something worth recording.
wait_for_work() {
	wait_for "$PATIENCE" "the device to work" more_than $(($(records_of_cupti) + 20))
}

calls() {
	cat "$dir"/truth.*.jsonl | grep -ac '"t":"api"'
}

more_calls_than() { # NUMBER
	[ "$(calls)" -gt "$1" ]
}

has_agent() { # PID
	grep -qs '^kprof-agent$' "/proc/$1/task/"*/comm
}

agent_is_gone() {
	! has_agent "$1"
}

# ---- every activity, record by record ----

@test "agent: by run, every activity of the device is there, in all ways to use it, of two CUDA majors" {
	local major mode
	export KPROF_SIM_DEVICES=2
	for major in 12 13; do
		use_major $major
		for mode in loop graph copies events threads ptsz driver nosync; do
			echo "$mode $major"
			by_run "$mode$major" "" "$cuda" $mode --n 20
			device "$mode$major"
			meta "$mode$major" '.state == "recorded" and .injected == false and .records == .records_received'
		done
	done
	# The first use of CUDA waited for kprof: nothing is missing from before.
	jq -e '[.kprof.gaps[] | select(.what == "device activities")] | length == 0' "$dir/loop13.trace.json"
	jq -e '.deviceProperties[0] | .numSms > 0 and .clockRateKHz == 1410000' "$dir/loop13.trace.json"
}

@test "agent: CUDA that is used long after the program has begun misses nothing, and no gap is told of" {
	use_major 13
	(sleep 3 && echo) | "$KPROF" run -o "$dir/late.kprof" -- env LD_PRELOAD=libcuda.so.1 "$cuda" loop --n 20 > "$dir/late.out" 2> "$dir/late.err"
	exported late
	jq -e '[.kprof.gaps[] | select(.what == "device activities")] == []' "$dir/late.trace.json" || fail "$(cat "$dir/late.err")"
	jq -e '[.traceEvents[] | select(.cat == "kernel")] | length >= 20' "$dir/late.trace.json"
}

@test "agent: … and where CUDA does not wait for kprof, the gap begins with its first use" {
	use_major 13
	KPROF_AGENT_WAIT_MS=0 target_start unheld "$KPROF" run -o "$dir/unheld.kprof" -- env LD_PRELOAD=libcuda.so.1 "$cuda" spin
	sleep 2 # a while after CUDA was mapped
	pause_process "${pid[unheld]}" # or it may have the agent record before the first use goes on
	target_go unheld
	wait_for "$PATIENCE" "the program to go on" more_calls_than 0
	kill -CONT "${pid[unheld]}"
	wait_for "$PATIENCE" "the agent to record" is_recorded
	pkill -TERM -P "${pid[unheld]}" cudadriver
	target_result unheld
	target_end unheld
	exported unheld
	jq -e '.kprof.gaps | map(select(.what == "libcuda.so.1")) as $mapped |
		map(select(.what == "device activities")) | length == 1 and .[0].ts > $mapped[0].ts + 500000' "$dir/unheld.trace.json" ||
		fail "$(jq -c .kprof.gaps "$dir/unheld.trace.json")" "$(cat "$dir/unheld.err")"
}

# The agent's thread, which fetches the last records, gets no CPU before all is done but for what waits for it.
@test "agent: … of a program that is shorter than the agent's thread takes to begin" {
	use_major 13
	by_run short "" env LD_PRELOAD="$BUILD/gpucheck/late_thread.so" "$cuda" nosync --n 20
	device short
}

@test "agent: … with buffers that are small, late, and in disorder" {
	export KPROF_SIM_CUPTI_SHUFFLE=7 KPROF_SIM_CUPTI_BUFFER_RECORDS=50 KPROF_SIM_CUPTI_LATE_NS=3000000
	by_run disorder "" "$cuda" loop --n 200
	device disorder
}

@test "agent: a row where the device came to an event, if CUPTI tells when" {
	by_run events "--types kernel,gpu_memcpy,gpu_memset,cuda_runtime,cuda_event" "$cuda" events --n 20
	device events
	device events --events
	[ "$(rows events cuda_event)" -gt 20 ]
	# They are no work: no arrow ends at them, and no table of work counts them.
	"$KPROF" report "$dir/events.kprof" --by kernel --json >"$dir/kernels.json"
	jq -e '[.. | .name? // empty | select(. == "cudaEvent")] | length == 0' "$dir/kernels.json"
	# Nobody asked: CUPTI does not even look at the device's clock for them.
	by_run without "--types kernel" "$cuda" events --n 5
	[ "$(rows without cuda_event)" = 0 ]
	[ "$(cat "$dir"/truth.*.jsonl | grep -ac 'cuptiActivityEnableCudaEventDeviceTimestamps","on":1')" = 1 ]
	use_major 12
	by_run old "--types kernel,cuda_event" "$cuda" events --n 5
	[ "$(rows old cuda_event)" = 0 ]
	grep -q "^kprof: the CUPTI of process [0-9]* does not tell when events were reached" "$dir/old.err"
}

@test "agent: what CUPTI itself drops is asked for, counted, and said" {
	export KPROF_SIM_CUPTI_DROP=10
	by_run drops "" "$cuda" loop --n 100
	device drops
	meta drops '.device_dropped > 10'
	grep -q '^kprof: [0-9]* of [0-9]* records of what GPUs did were lost' "$dir/drops.err"
}

@test "agent: how much memory a device has given out, at every allocation and release" {
	by_run alloc --cuda-memory "$cuda" alloc --n 20 --bytes 10000
	# Two of 10 kB each, in units of 512 bytes, at a time; managed and pinned memory is not the device's.
	jq -e '[.traceEvents[] | select(.ph == "C" and .name == "memory allocated since the start").args.value]
		| length == 80 and max == 20480 and .[-1] == 0 and min == 0' "$dir/alloc.trace.json"
	# Not asked for, CUPTI does not record it; the calls and their bytes are there.
	by_run plain "" "$cuda" alloc --n 20 --bytes 10000
	jq -e '[.traceEvents[] | select(.name == "memory allocated since the start")] | length == 0' "$dir/plain.trace.json"
	jq -e '[.traceEvents[] | select(.name == "cudaMalloc" and .args.bytes == 10000)] | length > 0' "$dir/plain.trace.json"
}

@test "agent: by attach, injected, once and again; the target gets its own back" {
	local i
	target_start target "$cuda" spin
	target_go target
	for i in 1 2; do
		kprof_start "k$i" attach -p "${pid[target]}" -o "$dir/k$i.kprof"
		# A target that is not in a good place at first is tried again.
		wait_for "$PATIENCE" "the agent" grep -q \
			"^kprof: injected the agent into process ${pid[target]}, which was held for [0-9.]* ms$" "$dir/k$i.err"
		wait_for "$PATIENCE" "its thread" has_agent "${pid[target]}"
		wait_for_work
		kprof_stop "k$i"
		wait_for "$PATIENCE" "the agent to leave" agent_is_gone "${pid[target]}"
		exported "k$i"
	done
	kill -TERM "${pid[target]}"
	target_result target
	jq -e .ok "$dir/target.json"
	for i in 1 2; do
		cp "$dir/target.json" "$dir/k$i.json"
		device "k$i" --window
		meta "k$i" '.injected and .held_ns > 0 and .records == .records_received'
		# the agent says what it costs
		jq -e '.kprof.overhead.ledger | .parts.agents.ns | . > 0 and . < 1000000000' "$dir/k$i.trace.json"
	done
	target_end target
}

@test "agent: CUDA that is opened while kprof records; what was before is a gap" {
	target_start late "$cuda_dl" "${cuda%/*}/libcudadriver.so" spin --linger
	kprof_start late-kprof attach -p "${pid[late]}" -o "$dir/late.kprof"
	target_go late
	wait_for "$PATIENCE" "the agent" has_agent "${pid[late]}"
	wait_for_work
	kill -TERM "${pid[late]}"
	target_result late
	kprof_stop late-kprof
	target_end late
	exported late
	meta late '.state == "recorded" and .injected'
	jq -e '[.kprof.gaps[] | select(.what == "device activities")] | length == 1' "$dir/late.trace.json"
	device late --window # … and all of what CUPTI recorded from then on
}

injecting() { # NAME OF THE KPROF: the number of its thread that does
	grep -ls '^kprof-inject$' "/proc/${pid[$1]}/task/"*/comm | grep -o 'task/[0-9]*' | head -n 1
}

written() { # NAME: bytes of a capture that is not complete yet
	cat "$dir/.$1.kprof."*.tmp | wc -c
}

grows_beyond() { # NAME BYTES
	[ "$(written "$1")" -gt "$2" ]
}

# One target's only thread is on a signal's stack, so that kprof tries again and again for ten seconds.
@test "agent: while one target keeps the injection busy, what the others do is recorded, and Ctrl-C is heard" {
	local before thread
	target_start busy env LD_PRELOAD="${cuda%/*}/libcuda.so.1" "$BUILD/inject/inject_modes" altstack
	target_start target "$cuda" spin
	target_go target
	kprof_start k attach -p "${pid[busy]}" -p "${pid[target]}" -o "$dir/k.kprof"
	thread=$(injecting k)
	[ -n "$thread" ] || fail "nothing is being injected: $(cat "$dir/k.err")"
	before=$(written k)
	wait_for "$PATIENCE" "the capture to grow" grows_beyond k $((before + 1000))
	[ "$(injecting k)" = "$thread" ] || fail "the injection ended first: $(cat "$dir/k.err")"
	kprof_stop k
	kill -TERM "${pid[target]}"
	target_result target
	target_end target
	target_end busy
}

@test "agent: in a PID namespace: threads and calls under the host's numbers" {
	# shellcheck disable=SC2016 # expanded inside
	target_start target "${own_mounts[@]}" --pid --fork sh -c \
		'mount --make-private /proc && mount -t proc proc /proc && exec "$0" spin' "$cuda"
	target_go target
	kprof_start k attach -p "${pid[target]}" -o "$dir/target.kprof"
	wait_for_work
	kprof_stop k
	pkill -TERM -P "${pid[target]}"
	target_result target
	target_end target
	exported target
	[ "$(jq .pid "$dir/target.json")" = 1 ]
	device target --window
	# Their calls are known by their threads.
	jq -e '.kprof.correlation.linked > 0' "$dir/target.trace.json"
}

# ---- where there is none ----

@test "agent: --no-agent puts nothing into anything" {
	target_start target "$cuda" spin
	target_go target
	kprof_start k attach -p "${pid[target]}" --no-agent -o "$dir/k.kprof"
	wait_for "$PATIENCE" "calls" more_calls_than $(($(calls) + 20))
	agent_is_gone "${pid[target]}"
	run ! grep -q libkprof_agent "/proc/${pid[target]}/maps"
	kprof_stop k
	kill -TERM "${pid[target]}"
	target_result target
	target_end target
	exported k
	[ "$(rows k kernel)" = 0 ]
	[ "$(rows k gpu_approximate)" = 0 ]
	[ "$(rows k cuda_runtime)" -gt 0 ]
	by_run run "--no-agent" "$cuda" loop --n 5
	run ! grep -q '"t":"injection"' "$dir/truth.$(jq .pid "$dir/run.json").jsonl"
	[ "$(rows run kernel)" = 0 ]
}

@test "agent: without CUPTI: the reason, and brackets in place of kernels" {
	local reason
	for reason in busy:KPROF_SIM_CUPTI_BUSY no_permission:KPROF_SIM_CUPTI_DENIED; do
		echo "$reason"
		export "${reason#*:}=1"
		# It lasts for two seconds: what is called before the agent knows that it can't has no brackets.
		by_run without "" "$cuda" loop --n 100 --pace 20
		unset "${reason#*:}"
		grep -q "^kprof: no device activities of process $(jq .pid "$dir/without.json"): " "$dir/without.err"
		grep -q '^hint: ' "$dir/without.err"
		meta without ".state == \"failed\" and .reason == \"${reason%%:*}\""
		[ "$(rows without kernel)" = 0 ]
		[ "$(rows without gpu_approximate)" -gt 0 ]
		jq -e '[.traceEvents[] | select(.cat == "gpu_approximate") | .args.reason | length > 0] | all' "$dir/without.trace.json"
	done
}

@test "agent: … in the middle of it, too" {
	export KPROF_SIM_CUPTI_BUSY=1
	target_start target "$cuda" spin
	target_go target
	kprof_start k attach -p "${pid[target]}" -o "$dir/k.kprof"
	wait_for "$PATIENCE" "it to be said" grep -q "^kprof: no device activities of process ${pid[target]}: " "$dir/k.err"
	kprof_stop k
	wait_for "$PATIENCE" "the agent to leave" agent_is_gone "${pid[target]}"
	kill -TERM "${pid[target]}"
	target_result target
	target_end target
	cp "$dir/target.json" "$dir/k.json"
	exported k
	meta k '.state == "failed" and .reason == "busy" and .injected'
	[ "$(rows k kernel)" = 0 ]
}

@test "agent: CUPTI that does not work yet while CUDA starts is tried again" {
	export KPROF_SIM_CUPTI_LATE_START=100
	by_run late "" "$cuda" loop --n 200
	meta late '.state == "recorded"'
	[ "$(rows late kernel)" -gt 0 ]
}

@test "agent: another tool that begins in the middle: what is missing from then on is a gap" {
	# not at the second flush: while a kernel runs, CUPTI does not hand over the buffer that will have its record
	export KPROF_SIM_CUPTI_TAKEN_OVER=4
	target_start target "$cuda" spin
	target_go target
	kprof_start k attach -p "${pid[target]}" -o "$dir/k.kprof"
	wait_for "$PATIENCE" "it to be said" grep -q \
		"^kprof: no more device activities of process ${pid[target]}: another tool in the process has begun" "$dir/k.err"
	kprof_stop k
	wait_for "$PATIENCE" "the agent to leave" agent_is_gone "${pid[target]}"
	kill -TERM "${pid[target]}"
	target_result target
	target_end target
	cp "$dir/target.json" "$dir/k.json"
	exported k
	[ "$(rows k kernel)" -gt 0 ]
	jq -e '[.kprof.gaps[] | select(.what == "device activities" and (.reason | contains("another tool")))] | length == 1' \
		"$dir/k.trace.json"
	run ! grep -ahq misuse "$dir"/truth.*
}

@test "agent: CUDA_INJECTION64_PATH of the user's own stays, and that is said" {
	export CUDA_INJECTION64_PATH=$dir/nothing.so
	by_run own "" "$cuda" loop --n 20
	grep -q "^kprof: CUDA_INJECTION64_PATH is $dir/nothing.so and stays so" "$dir/own.err"
	grep -q '^hint: ' "$dir/own.err"
}

@test "agent: a second kprof says that another one records" {
	target_start target "$cuda" spin
	target_go target
	kprof_start first attach -p "${pid[target]}" -o "$dir/first.kprof"
	wait_for "$PATIENCE" "the agent" has_agent "${pid[target]}"
	kprof_start second attach -p "${pid[target]}" -o "$dir/second.kprof"
	wait_for "$PATIENCE" "it to be said" grep -q 'another kprof records them' "$dir/second.err"
	kprof_stop second
	has_agent "${pid[target]}"
	wait_for_work
	kprof_stop first
	kill -TERM "${pid[target]}"
	target_result target
	cp "$dir/target.json" "$dir/first.json"
	exported first
	device first --window
	target_end target
}

# ---- ends of all kinds ----

killed() { # NAME: by us, and by nothing before
	local status=0
	kill -KILL "${pid[$1]}"
	wait "${pid[$1]}" || status=$?
	[ "$status" = 137 ] || fail "$1 ended with $status, not of SIGKILL: $(cat "$dir/$1.err")"
}

@test "agent: kill -9 of kprof: the agent notices, is gone, and can be asked again" {
	target_start target "$cuda" spin
	target_go target
	kprof_start dies attach -p "${pid[target]}" -o "$dir/dies.kprof"
	wait_for "$PATIENCE" "the agent" has_agent "${pid[target]}"
	killed dies
	wait_for "$PATIENCE" "the agent to leave" agent_is_gone "${pid[target]}"
	kprof_start k attach -p "${pid[target]}" -o "$dir/k.kprof"
	wait_for_work
	kprof_stop k
	kill -TERM "${pid[target]}"
	target_result target
	jq -e .ok "$dir/target.json"
	cp "$dir/target.json" "$dir/k.json"
	exported k
	device k --window
	target_end target
}

@test "agent: kill -9 of kprof, and an attach before, while and after the agent notices: it has the device from its first moment" {
	target_start target "$cuda" spin
	target_go target
	for ms in 0 300 1000 1040 1300; do
		kprof_start dies attach -p "${pid[target]}" -o "$dir/dies.kprof"
		killed dies
		sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
		kprof_start "after-$ms" attach -p "${pid[target]}" -o "$dir/after-$ms.kprof"
		wait_for_work
		kprof_stop "after-$ms"
	done
	kill -TERM "${pid[target]}"
	target_result target
	for capture in "$dir"/after-*.kprof; do
		name=$(basename "$capture" .kprof)
		cp "$dir/target.json" "$dir/$name.json"
		exported "$name"
		device "$name" --window
		jq -e '[.kprof.gaps[]? | select(.what == "device activities")] == []' "$dir/$name.trace.json" ||
			fail "$name has a gap"
	done
	target_end target
}

@test "agent: of a target that is killed, what had left CUPTI's hands is there" {
	expect=137 by_run killed "" "$cuda" kill --n 5000
	device killed --delivered
	# Who dies between keeping a record and counting it leaves it uncounted: the agent's thread, a thread of CUPTI's.
	meta killed '.records_received - .records | . >= 0 and . <= 2'
}

# record_made_up MODE [ARGUMENT…]: the agent's records made up, recorded by attach; the trace is $dir/MODE.trace.json
record_made_up() {
	local mode=$1 options
	read -ra options <<<"${ring:-}"
	target_start "$mode" "$made_up" "$agent" "$@"
	kprof_start "$mode-kprof" attach -p "${pid[$mode]}" -o "$dir/$mode.kprof" "${options[@]}"
	target_go "$mode"
	target_result "$mode"
	kprof_stop "$mode-kprof"
	exported "$mode"
}

@test "agent: what a dying target left in its slots is read from there, and once" {
	record_made_up slots --n 500
	[ "$(rows slots kernel)" = 500 ]
	meta slots '.records == 500 and .records_received == 500 and .records_salvaged == 500'
	record_made_up handed --n 500
	[ "$(rows handed kernel)" = 500 ]
	meta handed '.records_received == 500 and .records_salvaged < 500'
}

@test "agent: bytes that are no records harm nobody" {
	record_made_up garbage --n 300
	[ "$(rows garbage kernel)" = 1 ]
	meta garbage '.malformed_batches == 300'
	jq -e '.kprof.sources.agent | .dropped == 2 and .fired == 303' "$dir/garbage.trace.json"
	record_made_up cut
	[ "$(rows cut kernel)" = 0 ]
}

@test "agent: a ring that overflows: every record is there or counted" {
	ring="--ring 128K" record_made_up flood --n 3000 --threads 2
	made=$(jq .records "$dir/flood.json")
	jq -e ".kprof.sources.device_activities | .fired == $made and .captured + .dropped == .fired and .dropped > 0" \
		"$dir/flood.trace.json"
	jq -e '.kprof.sources.agent | .fired == 6000 and .captured + .dropped == 6000' "$dir/flood.trace.json"
	[ "$(rows flood kernel)" = "$(jq .kprof.sources.device_activities.captured "$dir/flood.trace.json")" ]
}
