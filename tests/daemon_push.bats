#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# kprof daemon: its samples go to a receiver that refuses what an OpenTelemetry collector refuses (tests/lib/receiver.py), also
# after a time without one, and when the process that sends is killed; /metrics has what the receiver has counted.

# shellcheck disable=SC2030,SC2031,SC2034 # bats runs each test in a shell of its own, as is meant; daemon.bash reads daemon_web
# shellcheck source=tests/lib/daemon.bash
source "$BATS_TEST_DIRNAME/lib/daemon.bash"

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
}

teardown() {
	harness_teardown
}

receiver() { # NAME [PORT]
	mkdir -p "$dir/$1"
	spawn "$1" "$KPROF_READERS_PYTHON" "$LIB/receiver.py" "$dir/$1" ${2:+--port "$2"}
	wait_for "$PATIENCE" "the receiver to listen" test -s "$dir/$1/port"
	port=$(cat "$dir/$1/port")
}

taken() { # NAME NUMBER: so many requests, at least
	[ "$(jq -c 'select(.path)' "$dir/$1/log" 2>/dev/null | wc -l)" -ge "$2" ]
}

# The receiver took the first so many requests, of so many bytes: others have come since.
counted_by() { # NAME NUMBER: so many, at least
	local nr
	[ "$(daemon_ask /metrics metrics)" = 200 ] || return 1
	nr=$(figure 'kprof_pushes_total{result="pushed"}')
	[ "${nr:-0}" -ge "$2" ] && [ "$(figure kprof_pushed_bytes_total)" = \
		"$(jq -s --argjson n "$nr" 'map(select(.path))[:$n] | if length == $n then map(.bytes) | add else null end' "$dir/$1/log")" ]
}

# The oldest files of the queue have as many bytes as it says: others have come since.
queued() {
	[ "$(daemon_ask /metrics metrics)" = 200 ] || return 1
	find "$state/push" -mindepth 2 -type f -printf '%T@ %s\n' | sort -n | awk -v said="$(figure kprof_push_queue_bytes)" \
		'{ sum += $2; found = found || sum == said } END { exit !found }'
}

# Of each capture that is stored, when it began, in ns, as the receiver writes it down.
begins() {
	local capture
	mkdir -p "$dir/otlp"
	for capture in "$state"/samples/*.kprof; do
		"$KPROF" export "$capture" -o "$dir/otlp/$(basename "$capture" .kprof).otlp.pb" >&2
	done
	"$KPROF_READERS_PYTHON" - "$ROOT/tests/readers" "$dir"/otlp/*.pb <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import check_otlp
		for path in sys.argv[2:]:
		    with open(path, "rb") as file:
		        request = check_otlp.decode(file.read())
		    print(request.resource_profiles[0].scope_profiles[0].profiles[0].time_unix_nano)
	END
}

arrived_once() { # NAME FILE: the receiver has had those that the file has, each once, and no others
	jq -r 'select(.path) | .began' "$dir/$1/log" | sort | diff - "$2" >"$dir/difference"
}

pushing() { # JQ: of what the daemon says of it
	"$KPROF" ctl status --socket "$socket" --json | jq -e ".push | $1" >/dev/null
}

@test "samples are pushed by a process that is nobody; what could not be sent waits, and is sent later" {
	receiver first
	daemon_web=(--listen 127.0.0.1:0)
	daemon_start --chunk 1s --max-overhead 50% --to "otlp+http://127.0.0.1:$port" --label "cluster=here"
	wait_for "$PATIENCE" "some to arrive" taken first 3
	! grep refused "$dir/first/log" || false
	wait_for "$PATIENCE" "the receiver's numbers in /metrics" counted_by first 3
	local sender
	sender=$(pgrep -P "${pid[daemon]}" -x kprof-push)
	grep -qE "^Uid:	65534	65534	65534	65534" "/proc/$sender/status"
	grep -q "^CapEff:	0000000000000000" "/proc/$sender/status"
	# nobody listens
	kill "${pid[first]}"
	wait "${pid[first]}" || :
	unset 'pid[first]'
	wait_for "$PATIENCE" "the queue to fill" pushing '.queued >= 2'
	wait_for "$PATIENCE" "the queue's bytes in /metrics" queued
	wait_for "$PATIENCE" "failures in /metrics" has '^kprof_pushes_total\{result="retried"\} [1-9]'
	# the sender is killed meanwhile, and another one begins
	kill -KILL "$sender"
	receiver second "$port"
	wait_for "$PATIENCE" "what has waited" taken second 2
	# what it says each second may have one that was met just then
	wait_for "$PATIENCE" "the queue to be empty" pushing '.queued <= 1 and .pushed > 1 and .restarts == 1'
	wait_for "$PATIENCE" "the other receiver's numbers in /metrics" counted_by second 2
	# it does not want one of them, and leaves three profiles out of another
	printf '400\npartial\n' >"$dir/second/faults"
	wait_for "$PATIENCE" "what was dropped in /metrics" has '^kprof_pushes_total\{result="refused"\} 1$'
	wait_for "$PATIENCE" "what was rejected in /metrics" has '^kprof_pushes_total\{result="rejected"\} 3$'
	daemon_stop
	[ -z "$(find "$state/push" -name '*.capture*')" ]
}

@test "each capture arrives once, also over SIGHUP and restarts; what was stored while nothing was to be pushed does not" {
	receiver all
	config=$dir/conf
	echo '[daemon]' >"$config"
	spawn busy "$PYTHON" -c 'while True: pass'
	daemon_start --chunk 1s --max-overhead 50%
	wait_for "$PATIENCE" "a capture" eval 'compgen -G "$state/samples/*.kprof" >/dev/null'
	daemon_stop
	begins | sort >"$dir/before"
	echo "to = otlp+http://127.0.0.1:$port" >>"$config"
	daemon_start --chunk 1s --max-overhead 50%
	wait_for "$PATIENCE" "some to arrive" taken all 2
	# the sender and the sampler begin anew, with what the sampler before has stored last on its way
	kill -HUP "${pid[daemon]}"
	wait_for "$PATIENCE" "the options" logged reload
	wait_for "$PATIENCE" "the other sampler" eval '[ "$(jq -s "map(select(.event == \"recording\")) | length" "$dir/daemon.err")" = 2 ]'
	wait_for "$PATIENCE" "what comes then" taken all "$(($(jq -c 'select(.path)' "$dir/all/log" | wc -l) + 3))"
	pushing '.restarts == 0 and .captures_not_handed_over == 0'
	daemon_stop
	daemon_start --chunk 1s --max-overhead 50%
	wait_for "$PATIENCE" "what comes then" taken all "$(($(jq -c 'select(.path)' "$dir/all/log" | wc -l) + 2))"
	daemon_stop
	# what was stored last
	daemon_start --no-sampling
	begins | sort | comm -23 - "$dir/before" >"$dir/stored"
	[ "$(wc -l <"$dir/stored")" -ge 8 ]
	wait_for "$PATIENCE" "all" arrived_once all "$dir/stored" || { cat "$dir/difference"; false; }
	wait_for "$PATIENCE" "the queue to be empty" pushing '.queued == 0 and .restarts == 0 and .captures_not_handed_over == 0'
	daemon_stop
	arrived_once all "$dir/stored"
	! grep refused "$dir/all/log" || false
	rm -r "$state/samples" # many, of all of the machine: tests/run would have each read as a trace
}
