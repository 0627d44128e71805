#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Tables of samples. The capture is of a training that never was, with known shares (tests/bench/gen_samples.c), so this
# needs neither root nor a sampler.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup() {
	harness_setup
	[ -x "$BUILD/bench/gen_samples" ] || fail "the test programs are not built: make test-programs"
	"$BUILD/bench/gen_samples" 10000 "$dir/s.kprof"
}

# row FILE NAME: samples with it innermost, samples with it anywhere, in percent of all
row() {
	jq -r --arg name "$2" '.samples.samples as $n | .rows[] | select(.name == $name) |
		"\(.self_samples * 100 / $n) \(.samples * 100 / $n)"' "$1"
}

# shares ARGUMENT… -- NAME SELF TOTAL …: what the report must say of each
shares() {
	local arguments=()
	while [ "$1" != -- ]; do
		arguments+=("$1")
		shift
	done
	shift
	"$KPROF" report "$dir/s.kprof" --json "${arguments[@]}" >"$dir/r.json"
	jq -e '([.rows[].self_samples] | add) == .samples.samples and .of_samples' "$dir/r.json" >/dev/null ||
		fail "not every sample is in a row"
	while [ $# != 0 ]; do
		[ "$(row "$dir/r.json" "$1")" = "$2 $3" ] || fail "$1: '$(row "$dir/r.json" "$1")', not '$2 $3'" "$(jq -c '.rows[]' "$dir/r.json")"
		shift 3
	done
}

@test "report --by function: Python, native, inlined and kernel functions, recursion once" {
	shares --by function -- \
		mkl_blas_avx2_sgemm_kernel 65 65 step 0 64 '<module>' 0 64 fib 4 4 Linear.forward 0 40 \
		at::_ops::addmm::call 0 40 at::native::cpublas::gemm 0 40 'at::vec::Vectorized<...>::loadu' 10 10 \
		'at::vec::map<...>' 0 10 copy_page_to_iter 10 10 do_syscall_64 0 10 __clone3 0 35 \
		gomp_team_barrier_wait_end 10 10 '[libweird.so]' 1 1
}

@test "report --native and --python: as if the others were not there" {
	shares --by function --python -- step 20 64 Linear.forward 40 40 fib 4 4 '[no Python frame]' 36 36
	shares --python -- step 20 64 # by function, when nothing else is asked for
	shares --by function --native -- Py_BytesMain 4 64 copy_page_to_iter 10 10 _PyObject_MakeTpCall 0 40
	! jq -e '.rows[] | select(.category == "python")' "$dir/r.json" || fail "a Python function"
	kprof_says 2 report "$dir/s.kprof" --by op --native
	refused "native or Python frames alone"
}

@test "the interpreter's own frames stand back, unless they are asked for" {
	shares --by function --interpreter -- _PyObject_MakeTpCall 0 40 step 0 64 Linear.forward 0 40
	shares --by function -- step 0 64 Linear.forward 0 40
	[ -z "$(row "$dir/r.json" _PyObject_MakeTpCall)" ]
	"$KPROF" export "$dir/s.kprof" -o "$dir/s.folded" >/dev/null
	grep -q ';step[^;]*;Linear.forward' "$dir/s.folded" || fail "$(cat "$dir/s.folded")"
	"$KPROF" export "$dir/s.kprof" --interpreter -o "$dir/all.folded" >/dev/null
	grep -q ';step[^;]*;_PyObject_MakeTpCall;Linear.forward' "$dir/all.folded"
	[ "$(wc -l <"$dir/s.folded")" = "$(wc -l <"$dir/all.folded")" ]
}

@test "report --by line: the lines being executed" {
	shares --by line -- 'train.py:17 step' 0 40 'train.py:18 step' 0 10 'train.py:19 step' 0 10 \
		'train.py:20 step' 0 4 'train.py:7 fib' 4 4 'functional.h:77 at::vec::Vectorized<...>::loadu' 10 10
}

@test "report --by op: from samples alone, with their error" {
	shares -- aten::addmm 40 40 aten::linear 0 40 aten::mm 25 25 AddmmBackward0 0 25 aten::relu 10 10 \
		'[outside of operators]' 24 24 '[incomplete stack]' 1 1
	# Wilson's interval of 40 % of 10,000: 39.0 to 41.0.
	jq -e '.rows[] | select(.name == "aten::linear") | .total_low > 0.390 and .total_low < 0.391 and
		.total_high > 0.409 and .total_high < 0.410 and .self_low == 0 and .self_high < 0.001' "$dir/r.json"
	"$KPROF" report "$dir/s.kprof" >"$dir/table"
	grep -qE '^aten::addmm +40\.00% +0\.96 ' "$dir/table"
	grep -q '95 % confidence' "$dir/table"
}

@test "report --by thread: shares, and who holds the interpreter's lock" {
	shares --by thread -- '4242/4242 python3' 65 65 '4242/4243 pt_autograd_0' 25 25 '4242/4244 omp' 10 10
	[ "$(jq '.rows[0] | .gil_ns * 100 / .self_ns | round' "$dir/r.json")" = 83 ] # 54 of 65
}

@test "report: how many samples there are, were lost, and reach the thread's root" {
	"$KPROF" report "$dir/s.kprof" --by function >"$dir/table"
	grep -qx '10000 samples that stand for 101.010s, 2 lost (0.02%)' "$dir/table"
	grep -qx "99.00% of 10000 native stacks reach the thread's first function; ended otherwise: 100 no table" "$dir/table"
	[ "$("$KPROF" report "$dir/s.kprof" --json | jq -c '.samples | [.lost, .walked, .whole, .ends["no table"]]')" = '[2,10000,9900,100]' ]
}

@test "report: order and limit" {
	[ "$("$KPROF" report "$dir/s.kprof" --sort name --json | jq -c '[.rows[:2][].name]')" = '["AddmmBackward0","[incomplete stack]"]' ]
	[ "$("$KPROF" report "$dir/s.kprof" --by op --sort total --limit 1 --json | jq -r '.rows[].name')" = aten::addmm ]
	[ "$("$KPROF" report "$dir/s.kprof" --by op --sort count --limit 2 --json | jq -c '[.rows[].samples]')" = '[4000,4000]' ]
	kprof_says 2 report "$dir/s.kprof" --by function --sort avg
	refused "no average"
}

@test "a copy says the same, and one cut short what is left" {
	"$KPROF" export "$dir/s.kprof" -o "$dir/copy.kprof"
	for by in function line op thread; do
		diff <("$KPROF" report "$dir/s.kprof" --by "$by" --json) <("$KPROF" report "$dir/copy.kprof" --by "$by" --json)
	done
	"$BUILD/bench/gen_samples" 200000 "$dir/long.kprof"
	head -c 400000 "$dir/long.kprof" >"$dir/cut.kprof"
	kprof_says 0 report "$dir/cut.kprof" --by function --json
	grep -q 'cut short: its last .* cannot be read' "$dir/stderr"
	cp "$dir/stderr" "$dir/cut.said"
	for out in cut.json cut.folded cut.pftrace copy2.kprof; do
		kprof_says 0 export "$dir/cut.kprof" -o "$dir/$out"
		diff "$dir/cut.said" "$dir/stderr" || fail "of $out"
	done
	kprof_says 0 report "$dir/cut.kprof" --by function --json
	[ "$(jq '.samples.samples > 10000 and .samples.samples < 200000' "$dir/stdout")" = true ]
}

@test "a capture without samples has none to show" {
	"$BUILD/bench/gen_device" 100 "$dir/d.kprof"
	kprof_says 0 report "$dir/d.kprof" --by function --json
	grep -q 'has no samples' "$dir/stderr"
	[ "$(jq -c '.rows' "$dir/stdout")" = '[]' ]
	[ "$("$KPROF" report "$dir/d.kprof" --json | jq .of_samples)" = false ]
}

@test "a capture without devices has no table of theirs, and says so" {
	for by in kernel stream memcpy idle api; do
		local what='has no activities of devices'
		[ "$by" != memcpy ] || what='has no copies or sets by devices'
		[ "$by" != api ] || what="has no calls of a device's runtime"
		kprof_says 0 report "$dir/s.kprof" --by "$by"
		grep -q "s.kprof $what" "$dir/stderr" || fail "$by: $(cat "$dir/stderr")"
		grep -q '^hint: .*CUDA or OpenCL' "$dir/stderr"
		kprof_says 0 report "$dir/s.kprof" --by "$by" --json
		[ "$(jq -c .rows "$dir/stdout")" = '[]' ]
	done
	"$BUILD/bench/gen_device" 100 "$dir/d.kprof"
	for by in kernel stream memcpy idle api; do
		kprof_says 0 report "$dir/d.kprof" --by "$by"
		[ ! -s "$dir/stderr" ] || fail "$by: $(cat "$dir/stderr")"
	done
}

@test "a capture of format 1.1 is read as it was then" {
	kprof_says 0 report "$ROOT/tests/fuzz/corpus/store/format-1.1.kprof" --json
	[ "$(jq -c '[.complete, .events, .samples.samples, [.rows[].calls]]' "$dir/stdout")" = '[true,6,0,[3,3]]' ]
}
