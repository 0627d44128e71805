#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# kprof attach --shapes: the inputs of operators, against torch.profiler(record_shapes=True) in the same run.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup_file() {
	export TORCHINDUCTOR_CACHE_DIR=$BATS_FILE_TMPDIR/inductor
}

setup() {
	harness_setup
	[ -n "$(pythons)" ] || skip "no Python with torch here: scripts/setup check installs it"
}

teardown() {
	harness_teardown
}

# same_inputs WORKLOAD ARGUMENT…: on every PyTorch. Set by the caller: without, names of calls whose
# inputs are not recorded (docs/shapes.md).
same_inputs() {
	local python release workload=$1 name failed=''
	shift
	for python in $(pythons); do
		release=$(torch_release "$python")
		name=${workload%.py}-$release
		echo "-- torch $release: $workload $*"
		profiled "$name" "--shapes --ring 256M" "$python" -W ignore "$WORKLOADS/$workload" \
			--profile "$dir/$name.torch.json" --shapes "$@" || return 1
		jq -e '.record_shapes == 1 and .kprof.meta.inputs.calls > 0' "$dir/$name.trace.json" || return 1
		"$PYTHON" "$LIB/compare_inputs.py" "$dir/$name.trace.json" "$dir/$name.torch.json" \
			--without "${without:-}" || failed+=" $release"
	done
	[ -z "$failed" ] || fail "differs with torch$failed"
}

@test "every kind of input" {
	without=prims::add same_inputs inputs.py --iters 2
}

@test "a CNN in training" {
	same_inputs cnn.py --iters 3
}

@test "a transformer in training" {
	same_inputs transformer.py --iters 3
}

@test "annotations, optimizers, a custom autograd function" {
	without=Square same_inputs annotate.py --iters 3
}

@test "TorchScript, an LSTM, sparse tensors" {
	without='aten::* forward' same_inputs script_ops.py --iters 3
}
