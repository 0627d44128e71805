#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# kprof attach --shapes: the inputs of operators, against torch.profiler(record_shapes=True) in the same run.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup_file() {
	export TORCHINDUCTOR_CACHE_DIR=$BATS_FILE_TMPDIR/inductor
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

# same_inputs WORKLOAD ARGUMENT…: on every PyTorch. Set by the caller: without, names of calls whose
# inputs are not recorded (docs/shapes.md); observer, --observer or nothing.
same_inputs() {
	local python release workload=$1 name failed='' observer=${observer:-}
	needs_torch
	shift
	for python in $(pythons); do
		release=$(torch_release "$python")
		name=${workload%.py}-$release
		echo "-- torch $release: $workload $*"
		profiled "$name" "$observer --shapes --ring 256M" "$python" -W ignore "$WORKLOADS/$workload" \
			--profile "$dir/$name.torch.json" --shapes "$@" || return 1
		# Equal inputs are found again, instead of being worked out for each call.
		jq -e '.record_shapes == 1 and (.kprof.meta.inputs | .calls > 0 and .worked_out * 4 < .calls)' \
			"$dir/$name.trace.json" || return 1
		"$PYTHON" "$LIB/compare_inputs.py" "$dir/$name.trace.json" "$dir/$name.torch.json" \
			--without "${without:-}" || failed+=" $release"
	done
	[ -z "$failed" ] || fail "differs with torch$failed"
}

@test "every kind of input" {
	same_inputs inputs.py --iters 2
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
	same_inputs script_ops.py --iters 3
}

@test "the boxed door: TorchScript, torch.ops, a program's own operators" {
	local capture
	same_inputs boxed.py --iters 3
	# Every product is one of two matrices of 4 x 4 elements.
	for capture in "$dir"/boxed-*.kprof; do
		"$KPROF" report "$capture" --by flops --json | jq -e '[.rows[] | select(.name == "aten::mm")] |
			length == 1 and (.[0] | .calls > 0 and .flops == .calls * 128)'
	done
}

# same_operations NAME COUNTED: the capture's operations are those that PyTorch counted; compared gets the name, if it counts any
same_operations() {
	local status=0
	"$PYTHON" "$LIB/compare_flops.py" "$KPROF" "$dir/$1.kprof" "$dir/$1.trace.json" "$2" || status=$?
	[ "$status" != 77 ] || return 0
	[ "$status" = 0 ] || fail "$1 differs"
	compared+=" $1"
}

@test "what the observer is told: every kind of input, calls of TorchScript, all numbers" {
	without='' observer=--observer same_inputs inputs.py --iters 2
	without='' observer=--observer same_inputs script_ops.py --iters 3
}

@test "operations of matrix products, convolutions, sums: those of with_flops" {
	local python release name workload compared=''
	needs_torch
	for python in $(pythons); do
		release=$(torch_release "$python")
		for workload in cnn transformer; do
			name=$workload-$release
			profiled "$name" "--flops --ring 256M" "$python" -W ignore "$WORKLOADS/$workload.py" \
				--profile "$dir/$name.torch.json" --shapes --flops --iters 2
			jq -e '.with_flops == 1' "$dir/$name.trace.json"
			same_operations "$name" "$dir/$name.torch.tree.json"
		done
	done
	[[ $compared == *cnn*transformer* ]] || fail "compared:$compared"
	echo "#$compared"
}

@test "operations of attention and convolutions, forwards and backwards: those of PyTorch's own counter" {
	local python release compared=''
	needs_torch
	for python in $(pythons); do
		release=$(torch_release "$python")
		profiled "operations-$release" --flops "$python" -W ignore "$WORKLOADS/operations.py" --iters 3 --settle 4
		same_operations "operations-$release" "$dir/operations-$release.json"
		"$KPROF" report "$dir/operations-$release.kprof" --by flops --json >"$dir/by-flops.json"
		jq -e '.least_s == null and (.rows | map(select(.name == "aten::mm")) | length == 1 and (.[0] |
			.calls > 0 and .flops == .calls * 327680 and .bytes > 0 and .bytes <= .calls * 91136 and .total_ns > 0 and
			.type == "float" and .where == "cpu" and .peak_flops_per_s == null and .limit == null))' "$dir/by-flops.json"
	done
	[ -n "$compared" ] || fail "no release has a counter"
	echo "#$compared"
}

@test "a build whose tensors are not understood: said, recorded without" {
	use_kind gcc
	profiled other "--shapes" "$driver" threads --threads 1 --n 100
	grep -q "no shapes, as the layout of tensors could not be learnt" "$dir/other-kprof.err"
	jq -e '(has("record_shapes") | not) and .kprof.meta.inputs.calls == 0 and .kprof.meta.inputs.operators_without > 0 and
		([.traceEvents[] | select(.cat == "cpu_op" and (.args | has("Input Dims")))] == [])' "$dir/other.trace.json"
	account other
}
