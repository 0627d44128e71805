#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# scripts/gpu-check, as far as a machine without a GPU can try it: on the simulated CUDA.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	[ -x "$BUILD/sim/13/gpuops" ] || fail "the test programs are not built: make test-programs"
}

teardown() {
	harness_teardown
}

@test "gpu-check: holds on the simulated device, and says that it was one" {
	run "$ROOT/scripts/gpu-check" --simulated --build "$BUILD" -o "$dir/report.md"
	[ "$status" = 0 ] || fail "$output" "$(cat "$dir/report.md")"
	grep -q 'SIMULATED DEVICE: this says nothing about a real GPU' "$dir/report.md"
	[ "$(grep -c '^- PASS' "$dir/report.md")" -ge 15 ]
	run ! grep -q FAIL "$dir/report.md"
}

@test "gpu-check: what is lost or refused fails it" {
	KPROF_SIM_CUPTI_DROP=7 run "$ROOT/scripts/gpu-check" --simulated --build "$BUILD" -o "$dir/drops.md"
	[ "$status" = 1 ]
	grep -q 'FAIL:.*nothing dropped' "$dir/drops.md"
	KPROF_SIM_CUPTI_DENIED=1 run "$ROOT/scripts/gpu-check" --simulated --build "$BUILD" -o "$dir/denied.md"
	[ "$status" = 1 ]
	grep -q 'FAIL:.*of 0 kernels' "$dir/denied.md"
}

@test "gpu-check: cut short, it leaves what it has found; out of time, it says what is left out" {
	"$ROOT/scripts/gpu-check" --simulated --keep "$dir/kept" --build "$BUILD" -o "$dir/cut.md" >"$dir/cut.out" 2>&1 &
	wait_for "$PATIENCE" "the first results" grep -qs '^- PASS: training loop' "$dir/cut.md"
	kill -KILL $!
	wait $! || true
	grep -q 'cut short' "$dir/cut.md"
	grep -q '^Agent: state recorded, cupti_version [0-9]' "$dir/cut.md"
	run "$ROOT/scripts/gpu-check" --simulated --budget 0 --build "$BUILD" -o "$dir/none.md"
	[ "$status" = 0 ] || fail "$output"
	grep -q '^- left out, for want of time (--budget 0): simulated' "$dir/none.md"
	run ! grep -q 'cut short' "$dir/none.md"
}

@test "gpu-check: without a GPU it says so, and fails" {
	[ ! -e /proc/driver/nvidia/version ] || skip "there is a GPU here"
	run "$ROOT/scripts/gpu-check" --build "$BUILD" --repeats 1 --python "$PYTHON" -o "$dir/none.md"
	[ "$status" = 1 ]
	grep -q 'FAIL:.*cuda_program' "$dir/none.md"
}

@test "gpu-check: what is packed finds its own libraries, wherever it lies" {
	"$ROOT/scripts/gpu-check" --pack "$dir/packed" --build "$BUILD" >"$dir/pack.out"
	mv "$dir/packed" "$dir/elsewhere"
	[ "$("$dir/elsewhere/kprof" --version)" = "$("$KPROF" --version)" ]
	ldd "$dir/elsewhere/kprof" >"$dir/ldd"
	# All but the C library.
	run ! grep -vE "$dir/elsewhere/lib|lib[cm]\.so|ld-linux|linux-vdso" "$dir/ldd"
	"$dir/elsewhere/scripts/gpu-check" --help >/dev/null
}
