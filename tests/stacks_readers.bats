#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,long
# Samples in every format, each opened by the programs that people open it with, against a text that says what was sampled:
# the flame graph in headless Chromium, speedscope's own application, Google's pprof, Perfetto's trace processor.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

READERS=$BATS_TEST_DIRNAME/readers

setup_file() {
	# shellcheck source=tests/lib/harness.bash
	source "$BATS_TEST_DIRNAME/lib/harness.bash"
	local name
	[ -x "$BUILD/bench/gen_stacks" ] || fail "the test programs are not built: make test-programs"
	cd "$BATS_FILE_TMPDIR" || return
	"$PYTHON" "$READERS/gen_training.py" 6000 >training.txt
	"$PYTHON" "$READERS/gen_hostile.py" >hostile.txt
	for name in training hostile; do
		"$BUILD/bench/gen_stacks" "$name.kprof" <"$name.txt"
		for suffix in folded speedscope.json pb.gz otlp.pb otlp.pb.gz json svg; do
			"$KPROF" export "$name.kprof" --interpreter -o "$name.$suffix"
		done
	done
}

setup() {
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	cd "$BATS_FILE_TMPDIR" || return
	export KPROF_SPEEDSCOPE=${KPROF_SPEEDSCOPE:-${KPROF_CACHE:-/var/cache/kprof}/speedscope/node_modules/speedscope/dist/release}
	export KPROF_PPROF=${KPROF_PPROF:-${KPROF_CACHE:-/var/cache/kprof}/pprof/bin/pprof}
}

both() { # FORMAT SUFFIX
	local name
	for name in training hostile; do
		"$KPROF_READERS_PYTHON" "$READERS/check_stacks.py" "$1" "$name.$2" "$name.txt"
	done
}

# shellcheck source=tests/lib/processes_text.bash
source "$BATS_TEST_DIRNAME/lib/processes_text.bash"

need_speedscope() {
	[ -e "$KPROF_SPEEDSCOPE/index.html" ] || skip "no speedscope: scripts/setup check installs it where there is npm"
}

@test "the flame graph in a browser: every frame, search, zoom, keys, both schemes" {
	"$KPROF_READERS_PYTHON" "$READERS/check_flame.py" training.svg training.txt "$BATS_TEST_TMPDIR"
	[ -s "$BATS_TEST_TMPDIR/search.png" ]
}

@test "the flame graph of a part of the time, chosen by mouse" {
	local part_ns range
	part_ns=$(grep -o 'data-part-ns="[0-9]*"' training.svg | tr -dc 0-9)
	seconds() { awk -v ns="$(($1 * part_ns))" 'BEGIN { printf "%.9f", ns / 1e9 }'; }
	range=(--from "$(seconds 24)" --to "$(seconds 51)")
	"$KPROF" export training.kprof --interpreter "${range[@]}" -o part.folded
	"$KPROF" report training.kprof --by function "${range[@]}" --json >part.json
	"$KPROF_READERS_PYTHON" "$READERS/check_flame.py" training.svg training.txt "$BATS_TEST_TMPDIR" \
		24 50 part.folded "$(jq .samples.samples part.json)"
	# It notices another part.
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_flame.py" training.svg training.txt "$BATS_TEST_TMPDIR" \
		25 50 part.folded "$(jq .samples.samples part.json)"
}

@test "the flame graph of hostile names" {
	"$KPROF_READERS_PYTHON" "$READERS/check_flame.py" hostile.svg hostile.txt
}

@test "collapsed stacks, in speedscope too" {
	need_speedscope
	both folded folded
}

@test "speedscope's own format" {
	need_speedscope
	both speedscope speedscope.json
}

@test "a profile in Google's pprof" {
	need_speedscope
	[ -x "$KPROF_PPROF" ] || skip "no pprof: scripts/setup check installs it where there is a new enough Go"
	both pprof pb.gz
}

@test "OTLP: OpenTelemetry's own decoder, what receivers demand, each function's samples" {
	"$KPROF" report training.kprof --interpreter --by function --json --limit 0 >functions.json
	cmp training.otlp.pb <(gzip -dc training.otlp.pb.gz)
	"$KPROF_READERS_PYTHON" "$READERS/check_otlp.py" training.otlp.pb.gz functions.json
	"$KPROF_READERS_PYTHON" "$READERS/check_otlp.py" hostile.otlp.pb.gz
	# It notices other numbers, bytes that are missing, and the layout before 1.10.
	jq '.rows[0].self_samples += 1' functions.json >other.json
	run ! "$KPROF_READERS_PYTHON" "$READERS/check_otlp.py" training.otlp.pb.gz other.json
	head -c 9000 training.otlp.pb >cut.otlp.pb
	run ! "$KPROF_READERS_PYTHON" "$READERS/check_otlp.py" cut.otlp.pb
}

@test "OTLP: processes with their containers, ranks and waits; nothing of command lines" {
	processes_text >two.txt
	"$BUILD/bench/gen_stacks" two.kprof <two.txt
	"$KPROF" export two.kprof -o two.otlp.pb
	"$KPROF" export two.kprof --off-cpu -o waits.otlp.pb
	"$KPROF" report two.kprof --by function --json --limit 0 >functions.json
	"$KPROF" report two.kprof --by function --off-cpu --json --limit 0 >waits.json
	"$KPROF_READERS_PYTHON" "$READERS/check_otlp.py" two.otlp.pb functions.json waits.json >seen.json
	jq -e --arg id "$(printf '%064d' 7)" '. == [
		{"service.name": "python3", "process.pid": 7, "process.executable.name": "python3", "host.name": "node7",
			kinds: ["samples"], samples: 7},
		{"service.name": "trainer", "process.pid": 8, "process.executable.name": "trainer", "host.name": "node7",
			"container.id": $id, "k8s.pod.uid": "0a1b2c3d-1111-2222-3333-444455556666", rank: 3,
			kinds: ["samples", "off_cpu"], samples: 16}]' seen.json
	"$KPROF_READERS_PYTHON" "$READERS/check_otlp.py" waits.otlp.pb >seen.json
	jq -e 'map([."service.name", .kinds]) == [["trainer", ["off_cpu"]]]' seen.json
	run ! grep -q secret two.otlp.pb
	run ! grep -q "$(printf '\xff\xff\xff\xff')" two.otlp.pb # an address of the kernel's
}

@test "samples and operators' stacks of a Chrome trace in Perfetto" {
	both chrome json
	"$PYTHON" "$LIB/validate_trace.py" training.json hostile.json
}

@test "each of them notices a file that says something else" {
	need_speedscope
	sed 's/^\(sample\t0\t\)[0-9]*/\12/' training.txt >other.txt
	"$BUILD/bench/gen_stacks" other.kprof <other.txt
	for suffix in folded speedscope.json json svg; do
		"$KPROF" export other.kprof -o "other.$suffix"
	done
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_stacks.py" folded other.folded training.txt
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_stacks.py" speedscope other.speedscope.json training.txt
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_stacks.py" chrome other.json training.txt
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_flame.py" other.svg training.txt
}

@test "no samples: an error with a way out, and no file" {
	printf 'process\t7\tx\tx\nthread\t7\t7\tx\n' | "$BUILD/bench/gen_stacks" none.kprof
	for suffix in folded speedscope.json pb.gz otlp.pb svg; do
		run -1 --separate-stderr "$KPROF" export none.kprof -o "none.$suffix"
		# shellcheck disable=SC2154 # run sets it
		[[ $stderr == *"none.kprof has no samples"* && $stderr == *"hint: "*"kprof sample"* ]]
		[ ! -e "none.$suffix" ]
	done
}

@test "%p: each process gets its own" {
	printf 'process\t%s\tx\tprogram\n' 7 8 9 >two.txt
	printf 'thread\t%s\t%s\tx%s\n' 7 7 7 8 8 8 >>two.txt
	printf 'sample\t%s\t%s\t10000000\t256\tN|/bin/x||1||%s||0\n' 0 3 first 1 5 second >>two.txt
	"$BUILD/bench/gen_stacks" two.kprof <two.txt
	"$KPROF" export two.kprof -o two-%p.folded
	[ "$(cat two-7.folded)" = "x7 (7);first 30000" ]
	[ "$(cat two-8.folded)" = "x8 (8);second 50000" ]
	[ ! -e two-9.folded ] # it has no samples
	"$KPROF" export two.kprof -o two.folded
	[ "$(cat two.folded)" = "x (7);x7 (7);first 30000
x (8);x8 (8);second 50000" ]
	"$KPROF" export two.kprof -p 8 -o two-%p.svg
	grep -q '5 samples; itself' two-8.svg
	run ! grep -q '>first' two-8.svg
}
