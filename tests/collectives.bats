#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# What collectives communicate: against the program's own books, and torch.profiler in the same run.

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
	needs_torch
}

teardown() {
	harness_teardown
}

@test "each collective of two ranks, and its work: what is communicated, in which group, as which of its collectives" {
	local python release torch
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		torch=(--settle 2)
		# 1.13 has no Kineto, and shows no ranges of gloo's.
		[[ $release == 1.13* ]] || torch=(--profile "$dir/torch-$release.json" --shapes --settle 4)
		profiled "of-$release" '' "$python" -W ignore "$WORKLOADS/collectives.py" --iters 10 "${torch[@]}"
		[[ $release == 1.13* ]] && torch=() || torch=(--torch "$dir/torch-$release.json")
		"$PYTHON" "$LIB/check_collectives.py" "$dir/of-$release.trace.json" "$dir/of-$release.json" "${torch[@]}" ||
			fail "differs with torch $release"
	done
}

@test "NCCL's calls and kernels: both have what is communicated; PyTorch's objects, simulated kernels" {
	local python release major
	for python in $(pythons); do
		release=$(torch_release "$python")
		case $release in
		1.13*) continue ;; # Debian's has no CUDA
		2.3*) major=12 ;;
		*) major=13 ;;
		esac
		echo "-- torch $release"
		"$WORKLOADS/build_ncclops" "$python" "$BUILD/sim/$major" "$BUILD/workloads/ncclops-$release"
		profiled "nccl-$release" '' "$BUILD/workloads/ncclops-$release/ncclops" --n 10
		"$PYTHON" "$LIB/check_nccl.py" "$dir/nccl-$release.trace.json" "$dir/nccl-$release.json" || fail "differs with torch $release"
	done
}

@test "report --by collective: who came last, how long the others waited; and what only one rank was recorded of" {
	local python rank
	python=$(newest_python)
	profiled late '' "$python" -W ignore "$WORKLOADS/collectives.py" --iters 8 --settle 2 --late 1 --late-ms 100
	"$KPROF" report "$dir/late.kprof" --by collective --json >"$dir/late.report.json"
	"$PYTHON" "$LIB/check_collectives.py" "$dir/late.trace.json" "$dir/late.json" --report "$dir/late.report.json" --late 1 ||
		fail "differs"
	"$KPROF" report "$dir/late.kprof" --by collective >"$dir/late.txt"
	grep -qE '^allreduce +0 +2 +[0-9]+ .* rank 1 ' "$dir/late.txt" || fail "$(cat "$dir/late.txt")"
	grep -qE '^group 0, rank 1 \(process [0-9]+\): last in [0-9]+ of [0-9]+, others waited ' "$dir/late.txt" || fail "$(cat "$dir/late.txt")"
	# Each rank's own trace says which it is, as HTA reads it.
	"$KPROF" export "$dir/late.kprof" -o "$dir/rank-%p.json"
	for rank in 0 1; do
		jq -e --argjson rank $rank '.distributedInfo | .rank == $rank and .backend == "gloo" and .world_size == 2 and
			(.pg_config | any(. == {pg_name: "0", pg_size: 2, ranks: [0, 1]}))' "$dir/rank-$(jq .pids[$rank] "$dir/late.json").json" ||
			fail "$(jq -c .distributedInfo "$dir"/rank-*.json)"
	done
	profiled alone --no-children "$python" -W ignore "$WORKLOADS/collectives.py" --iters 2 --settle 2
	"$KPROF" report "$dir/alone.kprof" --by collective >"$dir/alone.txt" 2>"$dir/alone.err"
	grep -q 'has no collective with the work of all of its ranks' "$dir/alone.err" || fail "$(cat "$dir/alone.err")"
	grep -q '^hint: record all ranks' "$dir/alone.err"
}

@test "without torch.distributed: no collectives" {
	profiled none '' "$(newest_python)" -W ignore "$WORKLOADS/annotate.py" --iters 1
	"$KPROF" report "$dir/none.kprof" --by collective >"$dir/none.txt" 2>"$dir/none.err"
	grep -q '^hint: they come from processes that use torch.distributed with gloo' "$dir/none.err" || fail "$(cat "$dir/none.err")"
}
