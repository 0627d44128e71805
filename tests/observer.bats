#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# --observer: operators by PyTorch's own callbacks, which an agent registers in the process. Judges: torch.profiler in the
# same run; probes on the same operators, by a second kprof; at::hasGlobalCallbacks(), which says whether any callback stands.

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

# same_as_torch WORKLOAD ARGUMENT…: on every PyTorch
same_as_torch() {
	local python release workload=$1 name failed=''
	shift
	for python in $(pythons); do
		release=$(torch_release "$python")
		name=${workload%.py}-$release
		echo "-- torch $release: $workload $*"
		profiled "$name" --observer "$python" -W ignore "$WORKLOADS/$workload" --profile "$dir/$name.torch.json" "$@" || return 1
		"$PYTHON" "$LIB/compare_profiler.py" --exact "$dir/$name.trace.json" "$dir/$name.torch.json" || failed+=" $release"
		jq -e '.kprof.sources | has("operators") | not' "$dir/$name.trace.json" || fail "there were probes"
	done
	[ -z "$failed" ] || fail "differs with torch$failed"
}

@test "a CNN in training" {
	same_as_torch cnn.py --iters 3
}

@test "a transformer in training" {
	same_as_torch transformer.py --iters 5
}

@test "annotations, the optimizer's own and the user's, and a custom autograd function" {
	same_as_torch annotate.py --iters 5
}

@test "operators that throw" {
	same_as_torch exceptions.py --iters 20
}

@test "TorchScript, an LSTM and sparse matrices" {
	same_as_torch script_ops.py --iters 3
}

@test "DistributedDataParallel, rank 0" {
	same_as_torch ddp.py --iters 5
}
