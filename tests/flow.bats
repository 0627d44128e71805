#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# kprof attach --flow: sequence numbers of operators and of autograd's nodes, and the arrows between them, against
# torch.profiler in the same run.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

READERS=$BATS_TEST_DIRNAME/readers

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

# same_numbers WORKLOAD ARGUMENT…: on every PyTorch. Set by the caller: options, of kprof; of_release, a function that
# sets what may differ with a release (docs/flow.md): without, only, lack.
same_numbers() {
	local python release workload=$1 name without only lack threads failed=''
	needs_torch
	shift
	for python in $(pythons); do
		release=$(torch_release "$python")
		name=${workload%.py}-$release without='' only='' lack='' threads=''
		[ -z "${of_release:-}" ] || $of_release
		echo "-- torch $release: $workload $*"
		# shellcheck disable=SC2086 # none, or an option
		profiled "$name" "--flow --ring 256M ${options:-}" "$python" -W ignore "$WORKLOADS/$workload" \
			--profile "$dir/$name.torch.json" $threads "$@" || return 1
		jq -e '.kprof.meta.flow | .operators > 0 and .nodes > 0' "$dir/$name.trace.json" || return 1
		"$PYTHON" "$LIB/compare_sequences.py" "$dir/$name.trace.json" "$dir/$name.torch.json" \
			--without "$without" --only-here "$only" --lack "$lack" || failed+=" $release"
	done
	[ -z "$failed" ] || fail "differs with torch$failed"
}

# Without a number: called by a function whose schema is not in the library; below autocast. With one only
# here: what is around a node that does not run, where the function inside has no symbol.
gradients_of() {
	case $release in
		2.1[0-9]*) without='aten::add aten::index' lack=aten::index threads=--all-threads ;;
		1.*) without='aten::relu aten::sum' only='autograd::engine::evaluate_function:?MulBackward0' ;;
		*) without='aten::add aten::relu aten::sum' lack='aten::relu aten::sum' ;;
	esac
}

@test "everything that decides about nodes: modes, lists, custom functions, checkpoints, gradients of gradients" {
	of_release=gradients_of same_numbers gradients.py --iters 3
}

@test "a CNN in training, with shapes" {
	options=--shapes same_numbers cnn.py --iters 3
}

@test "a transformer in training" {
	same_numbers transformer.py --iters 3
}

# A program's own operators may be told to leave autograd alone.
boxed_of() {
	without='kprof_boxed::*'
	case $release in 2.1[0-9]*) threads=--all-threads ;; esac
}

@test "the boxed door: TorchScript, torch.ops" {
	of_release=boxed_of same_numbers boxed.py --iters 3
	of_release=boxed_of options=--shapes same_numbers boxed.py --iters 3
}

# Every call has its number, TorchScript's and boxed ones, too.
observed_of() {
	case $release in 2.1[0-9]*) threads=--all-threads ;; esac
}

@test "what the observer is told" {
	of_release=observed_of options='--observer --shapes' same_numbers gradients.py --iters 3
	options=--observer same_numbers transformer.py --iters 3
}

@test "the same arrows in Perfetto's own format, in a copy of one process, and in a part of the time" {
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	needs_torch
	local arrows='[.traceEvents[] | select(.cat == "fwdbwd" and .ph == "s") | .ts] | sort'
	profiled both "--flow" "$(newest_python)" -W ignore "$WORKLOADS/cnn.py" --iters 3
	"$KPROF" export "$dir/both.kprof" -o "$dir/both.pftrace"
	"$KPROF_READERS_PYTHON" "$READERS/check_flow.py" "$dir/both.trace.json" "$dir/both.pftrace"
	"$KPROF" export "$dir/both.kprof" --pid "$(jq .pid "$dir/both.json")" -o "$dir/copy.kprof"
	"$KPROF" export "$dir/copy.kprof" -o "$dir/copy.trace.json"
	diff <(jq "$arrows" "$dir/both.trace.json") <(jq "$arrows" "$dir/copy.trace.json")
	"$KPROF" export "$dir/both.kprof" --from 50ms --to 150ms -o "$dir/part.trace.json"
	"$PYTHON" "$LIB/validate_trace.py" "$dir/part.trace.json"
}

@test "single uprobes, without nodes" {
	needs_torch
	profiled single "--flow --no-multi --ops aten::conv2d,aten::convolution,aten::linear,aten::addmm" \
		"$(newest_python)" -W ignore "$WORKLOADS/cnn.py" --iters 2
	jq -e '.kprof.meta.flow | .operators > 0 and .nodes == 0' "$dir/single.trace.json"
}

@test "without --flow: no numbers, no arrows" {
	needs_torch
	profiled without "" "$(newest_python)" -W ignore "$WORKLOADS/cnn.py" --iters 2
	! grep -q 'fwdbwd\|equence number' "$dir/without.trace.json" || fail "sequence numbers in the trace"
}

@test "a build that is not understood: said, recorded without" {
	use_kind gcc
	profiled other "--flow" "$driver" threads --threads 1 --n 100
	grep -q "no sequence numbers, as it could not be learnt from this build" "$dir/other-kprof.err"
	jq -e '.kprof.meta.flow == {"operators": 0, "operators_unsure": 0, "nodes": 0}' "$dir/other.trace.json"
	account other
}
