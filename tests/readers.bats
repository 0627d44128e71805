#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# A trace of a real training step in the programs people open traces with: Holistic Trace Analysis, TensorBoard's PyTorch
# plugin, Perfetto's engine and its interface in a browser. They run in the environment that scripts/setup makes.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

READERS=$BATS_TEST_DIRNAME/readers

setup_file() {
	# shellcheck source=tests/lib/harness.bash
	source "$BATS_TEST_DIRNAME/lib/harness.bash"
	local python
	python=$(pythons | head -n 1) # whose start takes least
	[ -n "$python" ] || return 0
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR harness_setup
	profiled real "" "$python" -W ignore "$WORKLOADS/annotate.py" --iters 5
	harness_teardown
	gzip -c "$dir/real.trace.json" >"$dir/real.pt.trace.json.gz"
	export TRACE=$dir/real.pt.trace.json.gz
}

setup() {
	[ -n "${TRACE:-}" ] || skip "no Python with torch here: scripts/setup check installs it"
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
}

@test "Holistic Trace Analysis" {
	"$KPROF_READERS_PYTHON" "$READERS/check_hta.py" "$TRACE"
}

@test "TensorBoard's PyTorch plugin" {
	"$KPROF_READERS_PYTHON" "$READERS/check_tensorboard.py" "$TRACE"
}

@test "Perfetto's trace processor" {
	"$KPROF_READERS_PYTHON" "$READERS/check_perfetto.py" "$TRACE"
}

@test "Perfetto's interface in a browser" {
	"$KPROF_READERS_PYTHON" "$READERS/check_perfetto_ui.py" "$TRACE" "$BATS_TEST_TMPDIR/shot.png"
	[ -s "$BATS_TEST_TMPDIR/shot.png" ]
}

@test "a device's kernels, times and launches in all three" {
	[ -x "$BUILD/bench/gen_device" ] || fail "the test programs are not built: make test-programs"
	"$BUILD/bench/gen_device" 2000 "$BATS_TEST_TMPDIR/device.kprof"
	"$KPROF" export "$BATS_TEST_TMPDIR/device.kprof" -o "$BATS_TEST_TMPDIR/device.pt.trace.json.gz"
	"$KPROF_READERS_PYTHON" "$READERS/check_device.py" "$BATS_TEST_TMPDIR/device.pt.trace.json.gz"
	"$KPROF_READERS_PYTHON" "$READERS/check_perfetto.py" "$BATS_TEST_TMPDIR/device.pt.trace.json.gz"
	"$KPROF_READERS_PYTHON" "$READERS/check_tensorboard.py" "$BATS_TEST_TMPDIR/device.pt.trace.json.gz"
}

@test "each of them notices a trace that is cut" {
	local check
	gzip -dc "$TRACE" >"$BATS_TEST_TMPDIR/whole.json"
	head -c "$(($(stat -c %s "$BATS_TEST_TMPDIR/whole.json") / 2))" "$BATS_TEST_TMPDIR/whole.json" >"$BATS_TEST_TMPDIR/cut.pt.trace.json"
	for check in check_hta check_tensorboard check_perfetto; do
		run -1 "$KPROF_READERS_PYTHON" "$READERS/$check.py" "$BATS_TEST_TMPDIR/cut.pt.trace.json"
	done
}

@test "of many captures in one folder Perfetto reads the first in both formats and of the last some, and tells of one that is cut" {
	local left=$BATS_TEST_TMPDIR/left i
	[ -x "$BUILD/bench/gen_device" ] || fail "the test programs are not built: make test-programs"
	mkdir -p "$left/1/test/1" "$left/2/test/1"
	"$BUILD/bench/gen_device" 20 "$left/1/test/1/01.kprof"
	for i in {02..57}; do ln "$left/1/test/1/01.kprof" "$left/1/test/1/$i.kprof"; done
	printf '== tests/many.bats\nok 1 many\n' >"$left/1/log"
	"$KPROF" export "$left/1/test/1/01.kprof" -o "$BATS_TEST_TMPDIR/whole.json"
	head -c "$(($(stat -c %s "$BATS_TEST_TMPDIR/whole.json") / 2))" "$BATS_TEST_TMPDIR/whole.json" >"$left/2/test/1/cut.trace.json"
	printf '== tests/cut.bats\nok 1 one\n' >"$left/2/log"
	touch "$left/over"
	"$KPROF_READERS_PYTHON" "$READERS/check_traces.py" "$left" | tee "$BATS_TEST_TMPDIR/said"
	grep -q '^not ok 1 tests/cut.bats: one: cut.trace.json: ' "$BATS_TEST_TMPDIR/said"
	# 2 * 2, eight, five of the last 47, and the one that is cut
	[ "$(tail -n 1 "$BATS_TEST_TMPDIR/said")" = "ok 2 18 traces read by Perfetto's trace processor" ]
	[ ! -e "$left/1" ]
}
