#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# What kprof daemon itself serves by HTTP: its numbers, against those who counted the same; its page, in a browser; and that it
# goes on serving. What has to do with HTTP alone is in web.bats, and what has to do with one part of the daemon beside that
# part's tests: daemon_push.bats, daemon_dyno.bats.

bats_require_minimum_version 1.5.0
# shellcheck disable=SC2030,SC2031,SC2034 # bats runs each test in a shell of its own; daemon.bash reads daemon_web
# shellcheck source=tests/lib/daemon.bash
source "$BATS_TEST_DIRNAME/lib/daemon.bash"
# shellcheck source=tests/lib/prometheus.bash
source "$BATS_TEST_DIRNAME/lib/prometheus.bash"

READERS=$BATS_TEST_DIRNAME/readers

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	daemon_web=(--listen 127.0.0.1:0)
	comm=h$BATS_TEST_NUMBER-$$ # of what is watched: other suites' daemons do not mean it
}

teardown() {
	harness_teardown
}

# valid: both texts are, by promtool and by Prometheus' Python client
valid() {
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	[ "$(daemon_ask /metrics text)" = 200 ]
	promtool check metrics <"$dir/text"
	[ "$(daemon_ask /metrics open 'Accept: application/openmetrics-text;version=1.0.0')" = 200 ]
	"$KPROF_READERS_PYTHON" "$READERS/check_openmetrics.py" "$dir/open" "$dir/text" "$ROOT/docs/metrics.md" daemon
}

lacks() { # REGEX: no line of /metrics matches
	[ "$(daemon_ask /metrics metrics 2>/dev/null)" = 200 ] && ! grep -E "$1" "$dir/metrics"
}

@test "metrics: Prometheus has what is sampled, recorded and asked; shares of waits are what the scheduler says" {
	local i
	daemon_start --chunk 3s -F 49
	cat >"$dir/prometheus.yml" <<-END
		global: {scrape_interval: 1s}
		scrape_configs: [{job_name: kprof, static_configs: [{targets: ['127.0.0.1:$(daemon_web ports[0])']}]}]
	END
	prometheus_start
	for i in 1 2; do spawn "rests$i" "$PYTHON" "$WORKLOADS/rests.py" "$comm"; done
	ctl start -p "${pid[rests1]}"
	ctl stop "$(cat "$dir/stdout")"
	prometheus_says 'kprof_recordings_total{result="done"}' '.data.result[0].value[1] == "1"'
	prometheus_says 'kprof_requests_total{request="stop",result="ok"}' '.data.result[0].value[1] == "1"'
	prometheus_says "kprof_samples_total{process=\"$comm\"}" '.data.result[0].value[1] | tonumber > 0'
	prometheus_says 'sum(kprof_overhead_ratio)' '.data.result[0].value[1] | tonumber > 0'
	wait_for "$PATIENCE" "shares" has "^kprof_process_wait_ratio\{process=\"$comm\"\}"
	cp "$dir/metrics" "$dir/shares"
	valid
	"$PYTHON" "$LIB/check_figures.py" waits "$dir/shares" "$state/samples" "$KPROF" "$comm" "$dir"/rests[12].out
	daemon_stop
	rm -r "$state/samples" # many, of all of the machine: tests/run would have each read as a trace
}

looked() { # KIND NUMBER: so many chunks of it, at least
	local nr
	daemon_ask /metrics metrics >"$dir/asked"
	nr=$(sed -nE "s/^kprof_chunk_looks_total\\{kind=\"$1\",result=\"done\"\\} //p" "$dir/metrics")
	[ "${nr:-0}" -ge "$2" ]
}

has_used() { # PID MIB: so much memory
	local pages
	read -r _ pages _ <"/proc/$1/statm" && [ $((pages * $(getconf PAGESIZE) >> 20)) -ge "$2" ]
}

up_for() { # SECONDS, by its own figures
	[ "$(daemon_ask /metrics metrics 2>/dev/null)" = 200 ] && jq -en "$(figure kprof_uptime_seconds) >= $1" >/dev/null
}

held() { # the process that looks at a chunk is $looker, and goes on no more
	looker=$(pgrep -x -P "${pid[daemon]}" kprof-count) && pause_process "$looker"
}

@test "who looks at chunks does not outlive the daemon" {
	local looker recorder status=0
	daemon_start --chunk 1s --max-overhead 0.1% # looks have three tenths of that, and last
	wait_for "$PATIENCE" "a look" held
	recorder=$("$KPROF" ctl status --socket "$socket" --json | jq .sampler.pid)
	kill -KILL "${pid[daemon]}"
	wait_for "$PATIENCE" "it to be gone, too" ended "$looker" || { kill -KILL "$looker"; false; }
	wait "${pid[daemon]}" || status=$?
	[ "$status" = $((128 + 9)) ] # it was killed, and did not end before
	unset 'pid[daemon]'
	wait_for "$PATIENCE" "its recorder to end" ended "$recorder"
	rm -r "$state/samples" # many, of all of the machine: tests/run would have each read as a trace
}

@test "metrics: operators, steps and GPUs are those that the programs counted" {
	local name calls gone up
	[ -x "$BUILD/sim/13/cudadriver" ] || fail "the test programs are not built: make test-programs"
	config=$dir/conf
	printf '[daemon]\n%s\n' "watch = $comm*" "device-window = 2s" >"$config"
	# Chunks of the flight recorder's end when they are asked for: with the usual bound there is no look for 333 times as long as one took,
	# and on a slow machine, many that wait for theirs would be left out.
	daemon_start --no-sampling --flight 1h --flight-chunk 1h --device-every 10s --device-comm "$comm*" --max-overhead 100%
	wait_for "$PATIENCE" "the flight recorder" logged recording
	# a library each: one that has probes already makes a process known only when it runs into these
	mkdir "$dir/own" "$dir/other"
	cp "$library" "$BUILD"/sim/13/*.so* "$dir/own"
	cp "$library" "$dir/other"
	cp "$driver" "$dir/own/${comm}o"
	cp "$BUILD/workloads/stepper" "$dir/own/${comm}s"
	cp "$BUILD/sim/13/cudadriver" "$dir/own/${comm}g"
	target_start ops "$dir/own/${comm}o" count --n 20000 --pace 0 --linger
	target_start steps "$dir/own/${comm}s" "$dir/other/libtorch_cpu.so" 500 2 250 4000 64
	target_start gpu env LD_LIBRARY_PATH="$dir/own" KPROF_SIM_TRUTH="$dir/truth" CUDA_INJECTION64_PATH="$BUILD/libkprof_agent.so" \
		"$dir/own/${comm}g" spin --gap-us 3000
	wait_for "$PATIENCE" "all to be watched" watched 3
	for name in ops steps gpu; do target_go "$name"; done
	wait_for "$PATIENCE" "the slow step" has_used "${pid[steps]}" 64
	ctl dump # the slow step, and most likely operators, are in two chunks
	for name in ops steps; do target_result "$name"; done
	ctl dump
	wait_for "$PATIENCE" "all looks" looked flight "$("$KPROF" ctl status --socket "$socket" --json | jq .flight.chunks)"
	run ! grep -E '^kprof_chunk_looks_total\{.*result="(failed|skipped)"' "$dir/metrics"
	calls=$(jq '[.counts[]] | add' "$dir/ops.json")
	[ "$(figure "kprof_operators_total{process=\"${comm}o\"}")" = "$calls" ]
	[ "$(figure "kprof_step_seconds_count{process=\"${comm}s\"}")" = 500 ]
	[ "$(figure "kprof_step_seconds_bucket{process=\"${comm}s\",le=\"2.5\"}")" = 499 ]
	wait_for "$PATIENCE" "device windows" looked device 2
	wait_for "$PATIENCE" "a GPU" has "^kprof_gpu_busy_ratio\{gpu=\"0\",process=\"${comm}g\"\}"
	"$PYTHON" "$LIB/check_figures.py" gpu "$dir/metrics" "$state/device" "$KPROF" "${comm}g" "$dir/truth" "${pid[gpu]}"
	valid
	for name in ops steps; do target_end "$name"; done
	# what is recorded no longer is not shown as if it were, then and seconds later: but for what was counted
	gone='^kprof_(overhead_ratio|shed_level)\{session="(flight|device)"|^kprof_(processes\{state="(watched|in_window)|process_|gpu_busy|gpu_activities_per)'
	: >"$config"
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "the end of both" lacks "$gone"
	up=$(figure kprof_uptime_seconds)
	wait_for "$PATIENCE" "three seconds" up_for "$(jq -n "$up + 3")"
	lacks "$gone"
	[ "$(figure "kprof_operators_total{process=\"${comm}o\"}")" = "$calls" ]
	daemon_stop
}

listens() { # PORT: there, and at no other
	[ "$(daemon_web 'ports | tostring')" = "[$1]" ]
}

@test "a port that is taken: the daemon says so, and serves once it is free; SIGHUP; the process that serves is killed" {
	local port
	spawn other "$PYTHON" -c 'import socket, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
time.sleep(1000)'
	wait_for "$PATIENCE" "a port" test -s "$dir/other.out"
	port=$(cat "$dir/other.out")
	printf '[daemon]\nlisten = 127.0.0.1:%s\n' "$port" >"$dir/conf"
	config=$dir/conf daemon_web=()
	daemon_start --no-sampling
	logged web '.level == "error" and .hint == "another program has this port: choose another one" and (.message | test("recording goes on.*already in use"))'
	ctl start -p "${pid[other]}"
	ctl cancel "$(cat "$dir/stdout")"
	[ "$(daemon_web 'ports | length')" = 0 ]
	kill "${pid[other]}"
	wait_for "$PATIENCE" "the port" listens "$port"
	has '^kprof_uptime_seconds '
	kill -9 "$(daemon_web pid)"
	wait_for "$PATIENCE" "another process" logged web '.message | test("begins anew")'
	wait_for "$PATIENCE" "its answer" has '^kprof_uptime_seconds '
	[ "$(jq -rs '[.[] | select(.event == "web" and .level == "error" and .hint)] | length' "$dir/daemon.err")" = 1 ] # said once
	printf '[daemon]\nlisten = 127.0.0.2:0\n' >"$dir/conf"
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "the options" logged reload
	[ "$("$PYTHON" "$LIB/http_ask.py" "http://127.0.0.2:$(daemon_web 'ports[0]')/metrics" "$dir/metrics")" = 200 ]
	! "$PYTHON" "$LIB/http_ask.py" "http://127.0.0.1:$port/metrics" "$dir/metrics" 2>"$dir/refused" || false
	grep -q 'Connection refused' "$dir/refused"
	printf '[daemon]\nno-listen\n' >"$dir/conf"
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "it to serve nothing" listens ""
	daemon_stop
}

shows_no_samples() { # TOKEN: the page shows neither processes nor a flame graph, and /metrics nothing of the sampler's but what was counted
	local auth="Authorization: Bearer $1"
	[ "$(daemon_ask /api/status status "$auth")" = 200 ] && [ "$(daemon_ask /api/processes processes "$auth")" = 200 ] && [ "$(daemon_ask /metrics metrics "$auth")" = 200 ] &&
		jq -e '.processes == []' "$dir/processes" && jq -e 'has("flame") | not' "$dir/status" &&
		grep -q '^kprof_samples_total{' "$dir/metrics" &&
		! grep -E '^kprof_(overhead_ratio|shed_level)\{session="sampler"|state="sampled"|^kprof_process_' "$dir/metrics"
}

@test "page: in a browser, a process, a flame graph, and a recording that Perfetto is handed; only with the token" {
	local token id origin
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	target_start browser "$KPROF_READERS_PYTHON" "$READERS/check_web_daemon.py"
	origin=$(sed -n 's/^READY [0-9]* //p' "$dir/browser.out")
	config=$dir/conf
	: >"$config"
	daemon_start --chunk 2s --max-overhead 100% --web --web-perfetto "$origin"
	[ "$(daemon_ask / page)" = 401 ]
	token=$(cat "$dir/state/web-token")
	spawn rests "$PYTHON" "$WORKLOADS/rests.py" "$comm"
	ctl start -p "${pid[rests]}"
	id=$(cat "$dir/stdout")
	ctl stop "$id"
	jq -nc --arg t "$token" --arg u "http://127.0.0.1:$(daemon_web 'ports[0]')/" --arg i "$id" --arg n "$comm" --argjson p "${pid[rests]}" \
		'{url: $u, token: $t, pid: $p, name: $n, recording: $i}' >&"${fd[browser]}"
	target_end browser
	cat "$dir/browser.out"
	[ "$(stat -c %a:%u "$state/web/$id.pftrace.gz")" = 600:0 ]
	printf '[daemon]\nno-sampling\n' >"$config"
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "what was sampled to go" shows_no_samples "$token"
	daemon_stop
	rm -r "$state/samples"
}
