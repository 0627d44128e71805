#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# kprof daemon --device-window: what devices do, for seconds now and then, on the simulated CUDA, whose truth says what the
# device did and when CUPTI was used.

bats_require_minimum_version 1.5.0
# shellcheck disable=SC2030,SC2031,SC2034 # bats runs each test in a shell of its own; daemon.bash reads config, daemon_web
# shellcheck source=tests/lib/daemon.bash
source "$BATS_TEST_DIRNAME/lib/daemon.bash"

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	own_targets
	[ -x "$BUILD/sim/13/cudadriver" ] || fail "the test programs are not built: make test-programs"
	unset CUDA_INJECTION64_PATH KPROF_AGENT_WAIT_MS
	comm=d$BATS_TEST_NUMBER-$$ # other suites' processes are none of these daemons'
	cuda=$BUILD/sim/13/$comm
	cp "$BUILD/sim/13/cudadriver" "$cuda"
	export KPROF_SIM_TRUTH=$dir/truth
}

teardown() {
	harness_teardown
}

# windows_start ARGUMENT…: a daemon that records this test's processes, as often as it can
windows_start() {
	daemon_start --no-sampling --device-window 500ms --device-every 1s --device-comm "$comm" --max-overhead 100% "$@"
}

device() { # JQ: of what the daemon says of its windows
	"$KPROF" ctl status --socket "$socket" --json | jq -e ".device | $1"
}

window_is() { # JQ
	device "$1" >/dev/null
}

windows() { # the captures' paths
	find "$state/device" -name '[0-9]*.kprof' | sort
}

# The windows, as traces, in which the process's device has done something (kernel), or in which it has called CUDA (call).
windows_with() { # PID kernel|call
	local capture of
	of='.kprof.meta["agent.\($pid)"].records_received > 0 and any(.traceEvents[]; .ph == "X" and .cat == "kernel")'
	[ "$2" = kernel ] || of='any(.traceEvents[]; .ph == "X" and .pid == $pid and .cat == "cuda_runtime")'
	while read -r capture; do
		[ -e "$capture.trace.json" ] || "$KPROF" export "$capture" -o "$capture.trace.json" >/dev/null || return 1
		[ -e "$capture.$2.$1" ] || jq --argjson pid "$1" "$of" "$capture.trace.json" >"$capture.$2.$1" || return 1
		! grep -q true "$capture.$2.$1" || echo "$capture.trace.json"
	done < <(windows)
}

has_windows() { # NUMBER PID kernel|call
	[ "$(windows_with "$2" "$3" | wc -l)" -ge "$1" ]
}

# Each of the windows that have kernels of the process has all that its device did meanwhile, and nothing else.
as_it_was() { # PID
	local trace
	while read -r trace; do
		"$PYTHON" "$LIB/compare_device.py" "$trace" "$dir/truth" "$1" --window || fail "$trace" || return 1
	done < <(windows_with "$1" kernel)
}

truth() { # REGEX PID: how many lines of the truth match
	grep -acE "$1" "$dir/truth.$2.jsonl" || true
}

more_than() { # NUMBER REGEX PID
	[ "$(truth "$2" "$3")" -gt "$1" ]
}

unrecorded='"t":"kernel".*"cupti":"off"'

works_unseen() { # PID: its device does something that CUPTI makes no record of
	wait_for "$PATIENCE" "work of the device" more_than $(($(truth "$unrecorded" "$1") + 20)) "$unrecorded" "$1"
}

let_go() { # PID: nobody uses CUPTI there
	[ "$(truth '"cuptiSubscribe"' "$1")" = "$(truth '"cuptiUnsubscribe"' "$1")" ]
}

agent_switches() { # PID: how often the agent's thread has begun to wait, in all
	local task
	task=$(grep -ls '^kprof-agent$' "/proc/$1/task/"*/comm) && awk '/^voluntary/ { print $2 }' "${task%comm}status"
}

# One that rests looks each second whether kprof lives.
agent_sleeps() { # PID
	local before
	before=$(agent_switches "$1") && sleep 2.5 && [ "$(agent_switches "$1")" = "$before" ]
}

end_target() { # NAME
	kill -TERM "${pid[$1]}"
	target_result "$1"
	jq -e .ok "$dir/$1.json"
	target_end "$1"
}

@test "windows have what the device did, to the nanosecond; between them the agent sleeps; it is put in once, and only if allowed" {
	local p
	windows_start --device-inject
	target_start target "$cuda" spin
	p=${pid[target]}
	target_go target
	wait_for "$PATIENCE" "three windows" has_windows 3 "$p" kernel
	daemon_stop
	wait_for "$PATIENCE" "CUPTI to be free" let_go "$p"
	[ "$(truth '"cuptiSubscribe"' "$p")" -ge 3 ]
	# nobody asks it anything: it does not even wake
	works_unseen "$p"
	wait_for "$PATIENCE" "the agent to sleep" agent_sleeps "$p"
	let_go "$p"
	end_target target
	as_it_was "$p"
	# it was held for that once
	jq -se ". | map(.kprof.meta[\"agent.$p\"].injected | select(.)) | length == 1" "$state/device/"*.trace.json
}

@test "without permission nothing is put into processes: calls are recorded, and kernels of those that loaded the agent themselves" {
	local trace p
	windows_start
	target_start plain "$cuda" spin
	target_go plain
	wait_for "$PATIENCE" "windows with its calls" has_windows 2 "${pid[plain]}" call
	target_start loaded env CUDA_INJECTION64_PATH="$BUILD/libkprof_agent.so" "$cuda" spin
	target_go loaded
	p=${pid[loaded]}
	wait_for "$PATIENCE" "windows with kernels" has_windows 2 "$p" kernel
	daemon_stop
	run ! grep -q libkprof_agent "/proc/${pid[plain]}/maps"
	[ "$(truth '"cuptiSubscribe"' "${pid[plain]}")" = 0 ]
	wait_for "$PATIENCE" "CUPTI to be free" let_go "$p"
	while read -r trace; do
		jq -e '.kprof.meta["agent.'"${pid[plain]}"'"].detail == "no agent waits in it, and none may be put into it"' "$trace"
	done < <(windows_with "$p" kernel)
	end_target plain
	end_target loaded
	as_it_was "$p"
}

killed_window() {
	local child
	child=$(device 'select(.state == "recording").pid') || return 1
	kill -KILL "$child" 2>/dev/null
}

more_windows_than() { # NUMBER
	[ "$(windows | wc -l)" -gt "$1" ]
}

is_recording() {
	window_is '.state == "recording"'
}

@test "a target that dies meanwhile; a window's process or a daemon that is killed: no target stays slow, and all goes on" {
	local p nr
	windows_start --device-inject --device-window 1500ms --device-every 3s
	target_start dies "$cuda" spin
	target_go dies
	wait_for "$PATIENCE" "what was recorded to be handed over" more_than 0 '"t":"delivered".*"work":[1-9]' "${pid[dies]}"
	p=${pid[dies]}
	kill -KILL "$p"
	wait "$p" || true
	unset 'pid[dies]'
	wait_for "$PATIENCE" "its window" has_windows 1 "$p" kernel
	# who dies between keeping a record and counting it leaves it uncounted
	jq -e ".kprof.meta[\"agent.$p\"] | .records_received - .records | . >= 0 and . <= 2" "$(windows_with "$p" kernel | head -n 1)"
	# the daemon, in the middle of a window: what was recorded is stored
	target_start target "$cuda" spin
	p=${pid[target]}
	target_go target
	wait_for "$PATIENCE" "a window" has_windows 1 "$p" kernel
	nr=$(windows | wc -l)
	wait_for "$PATIENCE" "a window" is_recording
	kill -KILL "${pid[daemon]}"
	wait "${pid[daemon]}" || true
	unset 'pid[daemon]'
	wait_for "$PATIENCE" "the agent to be let go" let_go "$p"
	works_unseen "$p"
	let_go "$p"
	wait_for "$PATIENCE" "the capture" more_windows_than "$nr"
	# the agent waits there: the next daemon needs no permission, also after its window's process was killed
	windows_start --device-window 1500ms --device-every 3s
	nr=$(windows_with "$p" kernel | wc -l)
	wait_for "$PATIENCE" "a window of the next daemon" has_windows $((nr + 1)) "$p" kernel
	wait_for "$PATIENCE" "a window's process to be killed" killed_window
	wait_for "$PATIENCE" "the agent to notice" let_go "$p"
	nr=$(windows_with "$p" kernel | wc -l)
	wait_for "$PATIENCE" "windows after that" has_windows $((nr + 1)) "$p" kernel
	logged recorder '.message | test("ended by a signal")'
	daemon_stop
	end_target target
}

@test "windows that cost more than their share come less often; SIGHUP ends them, and changes them" {
	local first
	printf '[daemon]\nlisten = 127.0.0.1:0\nno-sampling\ndevice-window = 500ms\ndevice-every = 1s\ndevice-comm = %s\nmax-overhead = 0.2%%\n' "$comm" >"$dir/conf"
	config=$dir/conf daemon_web=()
	run -2 "$KPROF" daemon --config "$dir/conf" --device-every 999ms
	run -2 "$KPROF" daemon --config "$dir/conf" --device-window 600ms
	[[ $output == *"at most half of --device-every"* ]]
	target_start target "$cuda" spin
	target_go target
	daemon_start
	wait_for "$PATIENCE" "a window" window_is '.chunks == 1'
	# as its cost says, and no further one comes: the share is 0.16 % of one CPU, or of all that are busy
	device '.max_share == 0.0016 and .cost_ns > 0 and .pause_ns > 5 * .every_ns and .pause_ns <= .cost_ns / .max_share * 1.01 and
		.pause_ns >= ([3600e9, .cost_ns / .max_share / '"$(getconf _NPROCESSORS_ONLN)"' * 0.8] | min)'
	# a clock that is put right makes none old; one of a daemon before is as old as its file
	first=$(windows | head -n 1)
	touch -d 2000-01-01 "$first" "$state/device/0000000000000-1-1.kprof"
	wait_for "$PATIENCE" "the oldest to go" window_is '.chunks_removed > 0'
	[ ! -e "$state/device/0000000000000-1-1.kprof" ]
	[ -e "$first" ]
	# what it has cost is paid for with the same options read anew, too
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "the options" logged reload
	device '.pause_ns > 5 * .every_ns'
	sed -i /device-window/d "$dir/conf"
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "no windows" window_is '. == null'
	sed 's/^max.*/max-overhead = 100%\ndevice-inject\ndevice-window = 500ms/' -i "$dir/conf"
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "windows with kernels" has_windows 2 "${pid[target]}" kernel
	wait_for "$PATIENCE" "the numbers" has_gpu
	end_target target
	wait_for "$PATIENCE" "the numbers to go" has_no_gpu
	grep -qE "^kprof_gpu_activities_total\{process=\"$comm\"\} [1-9]" "$dir/metrics"
	daemon_stop
}

has_gpu() { # how busy the device is, and at which rate; the process is known by its name
	has "^kprof_gpu_busy_ratio\{gpu=\"0\",process=\"$comm\"\} 0\.[0-9]*[1-9]" &&
		grep -qE "^kprof_gpu_activities_per_second\{process=\"$comm\"\} [1-9]" "$dir/metrics" &&
		grep -qE '^kprof_cpu_seconds_total\{session="device",part="begin"\} 0\.[0-9]*[1-9]' "$dir/metrics" &&
		grep -qE '^kprof_chunks_total\{kind="device"\} [1-9]' "$dir/metrics"
}

has_no_gpu() { # nobody uses it any more
	[ "$(daemon_ask /metrics metrics 2>/dev/null)" = 200 ] && ! grep -qE '^kprof_gpu_(busy_ratio|activities_per_second)' "$dir/metrics"
}

@test "who attaches waits for the window's end, has the device then, and leaves the agent as it was" {
	local p nr
	windows_start --device-inject --device-window 3s --device-every 6s
	target_start target "$cuda" spin
	p=${pid[target]}
	target_go target
	wait_for "$PATIENCE" "a window" more_than 0 '"cuptiActivityEnable"' "$p"
	kprof_start k attach -p "$p" -o "$dir/k.kprof"
	daemon_stop
	# from now on, it is the only one that can ask CUPTI
	nr=$(truth '"t":"kernel".*"recorded"' "$p")
	wait_for "$PATIENCE" "work that is recorded" more_than $((nr + 50)) '"t":"kernel".*"recorded"' "$p"
	run ! grep 'another kprof' "$dir/k.err"
	kprof_stop k
	"$KPROF" report "$dir/k.kprof" --by kernel --json | jq -e '[.rows[].calls] | add > 0'
	# it has left the agent as it was: waiting
	windows_start --device-window 1500ms --device-every 3s
	nr=$(windows_with "$p" kernel | wc -l)
	wait_for "$PATIENCE" "windows with kernels" has_windows $((nr + 1)) "$p" kernel
	daemon_stop
	end_target target
}

@test "a GPU that is idle in a window has the flight recorder's last seconds dumped" {
	windows_start --device-inject --watch "$comm" --flight-chunk 500ms --trigger 'gpu-idle>1%'
	target_start target "$cuda" spin
	target_go target
	wait_for "$PATIENCE" "a dump" dump_for gpu-idle
	logged trigger '.message | test("device 0 of process .* was idle")'
	daemon_stop
	end_target target
}
