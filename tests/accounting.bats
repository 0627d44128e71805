#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Nothing is lost silently: of N known calls each is captured, dropped, missed by the kernel, or in a declared gap.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup_file() {
	torch_hosts
}

teardown_file() {
	torch_hosts_end
}

setup() {
	harness_setup
	own_targets
}

teardown() {
	harness_teardown
}

count_of() { # NAME OPERATOR
	jq "[.traceEvents[] | select(.ph == \"X\" and .name == \"$2\")] | length" "$dir/$1.trace.json"
}

@test "every call of a quiet loop, however it was compiled" {
	local kind
	for kind in "${kinds[@]}"; do
		use_kind "$kind"
		profiled "$kind" "" "$driver" count --n 20000
		account "$kind" --only --complete
	done
}

@test "the spans enclose each other as the calls did" {
	use_kind gcc
	profiled here "" "$driver" count --n 1000
	"$PYTHON" "$LIB/check_nesting.py" "$dir/here.trace.json"
}

@test "several threads at once" {
	use_kind gcc
	profiled here "" "$driver" threads --threads 8 --n 5000
	account here --only --complete
	[ "$(jq '[.traceEvents[] | select(.ph == "X" and .cat == "cpu_op").tid] | unique | length' "$dir/here.trace.json")" = 8 ]
}

@test "an absurdly small ring: what does not fit is counted, and said" {
	use_kind gcc
	stalled=1 profiled here "--ring 64K" "$driver" threads --threads 4 --n 20000
	account here --only --must-drop
	grep -qi drop "$dir/here-kprof.err"
}

@test "an absurdly small ring with --strict: exit status 4, and the file is there" {
	use_kind gcc
	stalled=1 expect=4 profiled here "--ring 64K --strict" "$driver" threads --threads 4 --n 20000
	account here --only --must-drop
}

@test "with --strict, nothing dropped: exit status 0" {
	use_kind gcc
	profiled here "--strict" "$driver" count --n 100
	account here --only --complete
}

@test "a library opened while recording: complete, or with a declared gap" {
	use_kind gcc
	meanwhile="go_on here 1" profiled here "" "$driver_dl" count --lib "$library" --n 20000 --until-file "$dir/here.probed"
	account here --only
	[ "$(count_of here aten::fake_linear)" -gt 0 ]
}

@test "a library that cannot be read: its events are missing, which is said" {
	head -c 65536 /dev/urandom >"$dir/libtorch_cpu.so"
	spawn target "$PYTHON" -c '
import mmap, sys, time
with open(sys.argv[1], "rb") as file:
    code = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
print("mapped", flush=True)
time.sleep(1000)' "$dir/libtorch_cpu.so"
	wait_for "$PATIENCE" "the target" grep -q mapped "$dir/target.out"
	"$KPROF" attach -p "${pid[target]}" -d 0.2 -o "$dir/here.trace.json"
	kill "${pid[target]}"
	jq -e '[.kprof.gaps[] | select(.what == "libtorch_cpu.so") | .dur >= 200000] == [true]' "$dir/here.trace.json"
}

@test "single uprobes do the same job" {
	use_kind gcc
	profiled here "--no-multi" "$driver" count --n 5000
	account here --only --complete
}

@test "--ops and --exclude: the others cost nothing and are not there" {
	use_kind gcc
	profiled some "--ops aten::fake_mul*,no_such_*,aten::fake_add" "$driver" count --n 1000
	[ "$(cat "$dir"/*.err | grep -e '--ops .*: no operator is called so')" = "kprof: --ops no_such_*: no operator is called so" ]
	[ "$(count_of some aten::fake_mul)" = 1000 ]
	[ "$(count_of some aten::fake_add)" = 2000 ]
	[ "$(count_of some aten::fake_linear)" = 0 ]
	jq -e '.kprof.sources.operators.fired == 3000' "$dir/some.trace.json"
	profiled others "--exclude aten::*add" "$driver" count --n 1000
	[ "$(count_of others aten::fake_mul)" = 1000 ]
	[ "$(count_of others aten::fake_add)" = 0 ]
	jq -e '.kprof.sources.operators.fired == 2000' "$dir/others.trace.json"
	# Not that there is no framework.
	profiled none "--types kernel" "$driver" count --n 10
	grep -q 'has nothing of what was asked for' "$dir"/*.err
	! grep -q 'no known framework' "$dir"/*.err || fail "it has a framework"
}

@test "attached twice, one after the other: both complete" {
	use_kind gcc
	target_start target "$driver" count --n 2000 --linger
	local n
	for n in 1 2; do
		kprof_start "k$n" attach -p "${pid[target]}" -o "$dir/k$n.kprof"
		[ "$n" = 1 ] || { target_go target && target_result target; }
		kprof_stop "k$n"
		clean_text "${pid[target]}" "$library"
	done
	target_end target
	cp "$dir/target.json" "$dir/k2.json"
	exported k2
	account k2 --only --complete
}

@test "two kprofs at the same time see the same" {
	use_kind gcc
	target_start target "$driver" count --n 2000 --linger
	kprof_start a attach -p "${pid[target]}" -o "$dir/a.kprof"
	kprof_start b attach -p "${pid[target]}" -o "$dir/b.kprof"
	target_go target
	target_result target
	kprof_stop a
	kprof_stop b
	clean_text "${pid[target]}" "$library"
	target_end target
	local n
	for n in a b; do
		cp "$dir/target.json" "$dir/$n.json"
		exported "$n"
		account "$n" --only --complete
	done
}

@test "PyTorch: every call of an op-bound loop" {
	needs_torch
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		profiled "$release" "" "$python" "$WORKLOADS/oploop.py" --iters 20 --calls 1000
		account "$release" --complete
	done
}

@test "PyTorch: an absurdly small ring" {
	needs_torch
	local python
	python=$(newest_python)
	stalled=1 profiled here "--ring 64K" "$python" "$WORKLOADS/oploop.py" --iters 50 --calls 1000
	account here --must-drop
}
