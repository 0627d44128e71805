#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# kprof push to a real OpenTelemetry collector: what it prints, and what it passes on, is what kprof report says. The
# collector reads all of a request, and writes it anew. Pyroscope and Parca cannot be had: what they would be sent is read by what
# they publish of their APIs (tests/backends/decode, parca.mjs).

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/../lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/../lib/cli.bash"
# shellcheck source=tests/lib/processes_text.bash
source "$BATS_TEST_DIRNAME/../lib/processes_text.bash"

setup() {
	harness_setup
	collector=${KPROF_CACHE:-/var/cache/kprof}/otelcol/otelcol
	[ -x "$collector" ] || skip "no OpenTelemetry collector: make backends builds it"
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	mkdir "$dir/receiver"
	"$KPROF_READERS_PYTHON" "$BATS_TEST_DIRNAME/../lib/receiver.py" "$dir/receiver" --passed-on --keep >"$dir/receiver/out" 2>&1 3>&- &
	pid[receiver]=$!
	wait_for "$PATIENCE" "the receiver to listen" test -e "$dir/receiver/port"
}

teardown() {
	local name
	for name in "${!pid[@]}"; do
		kill "${pid[$name]}" 2>/dev/null && wait "${pid[$name]}"
	done
	harness_teardown
}

# collect [OPTION…]: starts the collector at port $port, with these options.
collect() {
	port=$("$PYTHON" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
	cat >"$dir/collector.yaml" <<-END
		receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:$port"}}}}
		exporters:
		  debug: {verbosity: detailed}
		  otlp_http: {endpoint: "http://127.0.0.1:$(cat "$dir/receiver/port")"}
		service:
		  telemetry: {metrics: {level: none}}
		  pipelines: {profiles: {receivers: [otlp], exporters: [debug, otlp_http]}}
	END
	: >"$dir/collector"
	"$collector" --config "file:$dir/collector.yaml" "$@" >"$dir/collector" 2>&1 3>&- &
	pid[collector]=$!
	wait_for "$PATIENCE" "the collector" grep -q 'Everything is ready' "$dir/collector"
}

@test "a collector takes what kprof pushes, and passes on each function's samples and waits" {
	processes_text | "$BUILD/bench/gen_stacks" "$dir/two.kprof"
	collect --feature-gates=+service.profilesSupport
	kprof_says 0 push "$dir/two.kprof" --to "otlp+http://127.0.0.1:$port" --label team=vision
	wait_for "$PATIENCE" "the collector to pass it on" test -s "$dir/receiver/log"
	cat "$dir/receiver/log" # shown if it is not as it should be
	jq -e '.own == {samples: {add: 7, step: 11, sys_read: 5}, off_cpu: {step: 20000000, poll: 21000000}} and
		(.resources | map([.["service.name"], .["process.pid"], .rank, .team]) ==
			[["python3", 7, null, "vision"], ["trainer", 8, 3, "vision"]])' "$dir/receiver/log"
	for line in '"resource profiles": 2, "sample records": 5' 'service.name: Str\(trainer\)' 'process.pid: Int\(8\)' \
		'k8s.pod.uid: Str\(0a1b2c3d-1111-2222-3333-444455556666\)' 'Values: \[11\]' 'Values: \[21000000\]' \
		'thread.name: Str\(worker\)' 'DurationNano +: 273323230'; do
		grep -qE "$line" "$dir/collector" || fail "the collector does not print $line"
	done
}

@test "a training's thousands of samples: as many of each function as kprof report has" {
	"$PYTHON" "$BATS_TEST_DIRNAME/../readers/gen_training.py" 6000 | "$BUILD/bench/gen_stacks" "$dir/training.kprof"
	collect --feature-gates=+service.profilesSupport
	kprof_says 0 push "$dir/training.kprof" --to "otlp+http://127.0.0.1:$port"
	wait_for "$PATIENCE" "the collector to pass it on" test -s "$dir/receiver/log"
	cat "$dir/receiver/log" # shown if it is not as it should be
	"$KPROF" report "$dir/training.kprof" --by function --json --limit 0 |
		jq -S '[.rows[] | select(.self_samples > 0 and (.name | startswith("[") | not))] | group_by(.name) |
			map({(.[0].name): (map(.self_samples) | add)}) | add' >"$dir/report"
	jq -S '.own.samples | with_entries(select(.key | startswith("[") | not))' "$dir/receiver/log" >"$dir/passed"
	[ "$(jq length "$dir/report")" -gt 10 ]
	diff "$dir/report" "$dir/passed"
}

@test "a collector without a pipeline of profiles: what to do is said" {
	collect --feature-gates=+service.profilesSupport
	processes_text | "$BUILD/bench/gen_stacks" "$dir/two.kprof"
	kprof_says 1 push "$dir/two.kprof" --to "otlp+http://127.0.0.1:$port/elsewhere"
	grep -q 'answers 404' "$dir/stderr"
	grep -q '^hint: a collector takes profiles with the gate service.profilesSupport' "$dir/stderr"
}

# decoded FOLDER: what is in its files, in order, a line each
decoded() {
	find "$1" -name '*.body' | sort -V | xargs "$decode"
}

# to_both CAPTURE: $dir/pyroscope and $dir/parca have what arrived there, as the receivers' own code reads it; $dir/labels, $dir/asked
to_both() {
	decode=${KPROF_CACHE:-/var/cache/kprof}/decode/decode parca=${KPROF_CACHE:-/var/cache/kprof}/parca
	if [ ! -x "$decode" ] || [ ! -d "$parca/node_modules" ]; then skip "no decoders: make backends builds them"; fi
	local port
	port=$(cat "$dir/receiver/port")
	kprof_says 0 push "$1" --to "pyroscope+http://127.0.0.1:$port" --label team=vision
	decoded "$dir/receiver" >"$dir/pyroscope"
	mv "$dir/receiver/log" "$dir/asked"
	rm "$dir"/receiver/*.body
	kprof_says 0 push "$1" --to "parca+http://127.0.0.1:$port" --label team=vision
	find "$dir/receiver" -name '*.body' | sort -V | xargs node "$BATS_TEST_DIRNAME/../backends/parca.mjs" "$parca" >"$dir/labels"
	find "$dir/receiver" -name '*.body.pprof' | sort -V | xargs "$decode" >"$dir/parca"
}

@test "Pyroscope's and Parca's own messages: each group's functions, samples and waits, and its labels" {
	processes_text | "$BUILD/bench/gen_stacks" "$dir/two.kprof"
	to_both "$dir/two.kprof"
	for kind in pyroscope parca; do
		jq -se 'map(.samples) == [{add: 7}, {step: 11, sys_read: 5}, {step: 4, poll: 3}] and .[0].cpu == {add: (7 * 10101010)} and
			.[2].off_cpu == {step: 20000000, poll: 21000000}' "$dir/$kind"
	done
	jq -se 'map(.__name__) == ["process_cpu", "process_cpu", "off_cpu"] and map(.service_name) == ["python3", "trainer", "trainer"] and
		all(.team == "vision") and .[1].k8s_pod_uid == "0a1b2c3d-1111-2222-3333-444455556666"' "$dir/labels"
}

@test "a training's thousands of samples, as Pyroscope and Parca read them: as many of each function as kprof report has" {
	"$PYTHON" "$BATS_TEST_DIRNAME/../readers/gen_training.py" 6000 | "$BUILD/bench/gen_stacks" "$dir/training.kprof"
	to_both "$dir/training.kprof"
	"$KPROF" report "$dir/training.kprof" --by function --json --limit 0 |
		jq -S '[.rows[] | select(.self_samples > 0 and (.name | startswith("[") | not))] | group_by(.name) |
			map({(.[0].name): (map(.self_samples) | add)}) | add' >"$dir/report"
	[ "$(jq length "$dir/report")" -gt 10 ]
	for kind in pyroscope parca; do
		jq -sS 'map(select(has("off_cpu") | not).samples | to_entries[]) | group_by(.key) | map({(.[0].key): (map(.value) | add)}) | add |
			with_entries(select(.key | startswith("[") | not))' "$dir/$kind" | diff "$dir/report" - || fail "$kind"
	done
}
