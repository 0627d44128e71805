#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# --memory: what PyTorch allocates and frees, on each PyTorch there is ($KPROF_TORCH_PYTHONS). The
# judges: a program's own books, with no profiler active; torch.profiler(profile_memory=True) in the same run.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup_file() {
	torch_hosts
}

teardown_file() {
	torch_hosts_end
}

setup() {
	harness_setup
	needs_torch
}

teardown() {
	harness_teardown
}

# recorded NAME PYTHON [ARGUMENT…]: the workload under kprof attach --memory $options
recorded() {
	local name=$1 python=$2
	shift 2
	profiled "$name" "--memory ${options:-}" "$python" -W ignore "$WORKLOADS/allocate.py" "$@"
}

compare() {
	"$PYTHON" "$LIB/compare_memory.py" "$@"
}

@test "each allocation and free of two threads, as the program has them in its books" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		recorded "books-$release" "$python"
		compare books "$dir/books-$release.trace.json" "$dir/books-$release.json"
		"$KPROF" report "$dir/books-$release.kprof" --by memory --json >"$dir/peak.json"
		compare peak "$dir/books-$release.trace.json" "$dir/peak.json"
	done
}

@test "the same through single uprobes, without operators, with stacks" {
	options='--no-multi --ops aten::empty --with-stack' recorded single "$(newest_python)"
	compare books "$dir/single.trace.json" "$dir/single.json"
}

@test "a training's allocations are torch.profiler's, and so are the bytes of each operator" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		recorded "train-$release" "$python" --profile "$dir/torch-$release.json" --iters 5
		"$KPROF" report "$dir/train-$release.kprof" --step 100..104 --json >"$dir/steps.json"
		compare torch "$dir/train-$release.trace.json" "$dir/torch-$release.json" "$dir/steps.json" "$release"
	done
}

@test "the same where an agent observes the operators, whose begins and ends come later" {
	local python release
	python=$(newest_python)
	release=$(torch_release "$python")
	options=--observer recorded observed "$python" --profile "$dir/torch.json" --iters 5
	"$KPROF" report "$dir/observed.kprof" --step 100..104 --json >"$dir/steps.json"
	compare torch "$dir/observed.trace.json" "$dir/torch.json" "$dir/steps.json" "$release"
}

@test "what outlives its step: one block in each of them" {
	recorded kept "$(newest_python)" --profile "$dir/torch.json" --iters 6 --keep 4096
	"$KPROF" report "$dir/kept.kprof" --step 100..105 --by memory --json >"$dir/kept.json"
	jq -e '[.rows[] | select(.kept_blocks > 0)] | length == 1 and .[0].name == "aten::empty" and
		.[0].kept_blocks == 4 and .[0].kept_steps == 4 and .[0].kept_bytes == 4 * 4096' "$dir/kept.json" ||
		fail "$(jq -c '.rows[] | select(.kept_blocks > 0)' "$dir/kept.json")"
	"$KPROF" report "$dir/kept.kprof" --step 100..105 --by memory >"$dir/kept.txt"
	grep -qE '^aten::empty .* 16\.0 KiB +4$' "$dir/kept.txt" || fail "$(cat "$dir/kept.txt")"
	grep -qE '^process [0-9]+, cpu: at most .* in use, after ' "$dir/kept.txt" || fail "$(cat "$dir/kept.txt")"
	"$KPROF" report "$dir/kept.kprof" >"$dir/ops.txt"
	grep -q 'Self CPU Mem *CPU Mem' "$dir/ops.txt" || fail "$(head -n 4 "$dir/ops.txt")"
}

@test "what an allocator of a GPU says: each report, failures, peaks, and the bytes of each operator" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		profiled "device-$release" --memory "$python" -W ignore "$WORKLOADS/allocate_devices.py" --profile "$dir/torch.json"
		"$KPROF" report "$dir/device-$release.kprof" --step 100 --json >"$dir/ops.json"
		"$KPROF" report "$dir/device-$release.kprof" --by memory --json >"$dir/peak.json"
		compare devices "$dir/device-$release.trace.json" "$dir/device-$release.json" "$dir/torch.json" "$dir/ops.json" "$dir/peak.json"
	done
	"$KPROF" report "$dir/device-$release.kprof" >"$dir/ops.txt"
	grep -q 'Self CPU Mem *CPU Mem *Self Device Mem *Device Mem' "$dir/ops.txt" || fail "$(head -n 4 "$dir/ops.txt")"
	"$KPROF" report "$dir/device-$release.kprof" --by memory >"$dir/peak.txt"
	grep -qE '^process [0-9]+, cuda:0: at most 7\.. TiB in use, after .*, 7\.. TiB of it from before; .* reserved$' "$dir/peak.txt" ||
		fail "$(cat "$dir/peak.txt")"
}

@test "without --memory: no probe is placed there, and nothing is said of memory" {
	profiled without "" "$(newest_python)" -W ignore "$WORKLOADS/allocate.py"
	! grep -q '"\[memory\]"\|profile_memory\|memory allocated' "$dir/without.trace.json" || fail "memory in the trace"
	jq -e '.kprof.sources | has("memory") | not' "$dir/without.trace.json"
	"$KPROF" report "$dir/without.kprof" >"$dir/ops.txt"
	! grep -q 'CPU Mem' "$dir/ops.txt" || fail "$(head -n 4 "$dir/ops.txt")"
	"$KPROF" report "$dir/without.kprof" --by memory >"$dir/none.txt" 2>"$dir/none.err"
	grep -q '^hint: kprof attach --memory records them' "$dir/none.err" || fail "$(cat "$dir/none.err")"
}
