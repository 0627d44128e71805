#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Perfetto's own format: to Perfetto's trace processor it is what the JSON of the same capture is, and the samples beside it are
# those of the capture. It runs in the environment of trace readers that scripts/setup makes; nothing here needs root.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

READERS=$BATS_TEST_DIRNAME/readers

setup() {
	harness_setup
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	[ -x "$BUILD/bench/gen_device" ] || fail "the test programs are not built: make test-programs"
}

teardown() {
	harness_teardown
}

# both NAME: the exports of NAME.kprof are the same to the trace processor
both() {
	"$KPROF" export "$dir/$1.kprof" -o "$dir/$1.json"
	"$KPROF" export "$dir/$1.kprof" -o "$dir/$1.pftrace"
	"$KPROF_READERS_PYTHON" "$READERS/check_pftrace.py" "$dir/$1.json" "$dir/$1.pftrace"
}

# everything NAME: a capture with a bit of everything
everything() {
	KPROF_PFTRACE_CAPTURE=$dir/$1.kprof "$BUILD/unit/sink/perfetto/pftrace" >/dev/null
}

@test "a bit of everything is what the JSON is" {
	everything all
	both all
}

@test "devices: many streams, several processes" {
	"$BUILD/bench/gen_device" -s 16 1000 "$dir/many.kprof"
	both many
	"$BUILD/bench/gen_device" -p 3 -s 2 1000 "$dir/three.kprof"
	both three
}

@test "threads whose spans nest" {
	"$BUILD/bench/gen_capture" 20000 60 4 "$dir/ops.kprof"
	both ops
}

@test "samples and their stacks are the capture's" {
	everything all
	"$KPROF" export "$dir/all.kprof" -o "$dir/all.pftrace"
	"$KPROF_READERS_PYTHON" "$READERS/check_pftrace_stacks.py" "$dir/all.pftrace"
}

@test "one process in a file of its own" {
	"$BUILD/bench/gen_device" -p 3 -s 2 300 "$dir/three.kprof"
	"$KPROF" export "$dir/three.kprof" -o "$dir/each-%p.json"
	"$KPROF" export "$dir/three.kprof" -o "$dir/each-%p.pftrace"
	for each in "$dir"/each-*.json; do
		"$KPROF_READERS_PYTHON" "$READERS/check_pftrace.py" "$each" "${each%.json}.pftrace"
	done
	[ "$(find "$dir" -name 'each-*.pftrace' | wc -l)" = 3 ]
}

@test "Perfetto's interface in a browser, compressed" {
	everything all
	"$KPROF" export "$dir/all.kprof" -o "$dir/all.pftrace.gz"
	"$KPROF_READERS_PYTHON" "$READERS/check_perfetto_ui.py" "$dir/all.pftrace.gz" "$dir/shot.png"
	[ -s "$dir/shot.png" ]
}

@test "a trace that differs is noticed" {
	"$BUILD/bench/gen_device" 300 "$dir/one.kprof"
	"$BUILD/bench/gen_device" 700 "$dir/more.kprof"
	"$KPROF" export "$dir/one.kprof" -o "$dir/one.json"
	"$KPROF" export "$dir/more.kprof" -o "$dir/more.pftrace"
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_pftrace.py" "$dir/one.json" "$dir/more.pftrace"
	[[ $output == *slices:*differ* ]]
}
