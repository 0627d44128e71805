#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# --modules: the calls of PyTorch's modules that operators ran in, on each PyTorch there is ($KPROF_TORCH_PYTHONS). The
# judges: a program's own books, with no profiler active; torch.profiler(with_stack=True) in the same run.

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
	own_targets
	needs_torch
}

teardown() {
	harness_teardown
}

# recorded NAME PYTHON [ARGUMENT…]: the workload under kprof attach --modules $options
recorded() {
	local name=$1 python=$2
	shift 2
	profiled "$name" "--modules ${options:-}" "$python" -W ignore "$WORKLOADS/modules.py" --iters 3 "$@"
}

judge() {
	"$PYTHON" "$LIB/check_modules.py" "$@"
}

# books NAME: the workload's books against the trace and the table
books() {
	"$KPROF" report "$dir/$1.kprof" --by module --json >"$dir/$1.report.json"
	judge books "$dir/$1.trace.json" "$dir/$1.report.json"
}

@test "each operator in the calls that the program has in its books, with attribute paths" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		recorded "books-$release" "$python"
		books "books-$release"
	done
}

@test "the same with hooks on every module, through single uprobes, with inputs, memory and stacks" {
	local python
	python=$(newest_python)
	options='--shapes --memory --with-stack' recorded hooks "$python" --hooks
	books hooks
	options='--no-multi --ops aten::add,aten::linear' recorded single "$python"
	books single
}

@test "a training's calls are torch.profiler's, by name" {
	local python release judged=0
	for python in $(pythons); do
		release=$(torch_release "$python")
		[[ $release != 1.13* ]] || continue # Debian's build has no Kineto, and shows no modules
		echo "-- torch $release"
		recorded "train-$release" "$python" --profile "$dir/torch-$release.json"
		judge torch "$dir/train-$release.trace.json" "$dir/torch-$release.json"
		judged=1
	done
	[ "$judged" = 1 ] || skip "only PyTorch 1.13 is there, whose profiler shows no modules"
}

@test "on each Python that is there: its layouts, and its way to tell two calls apart" {
	local python nr=0
	use_kind gcc
	for python in "$PYTHON" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
		"$python" -c 'import ctypes, sys; sys.exit(not (3, 8) <= sys.version_info < (3, 15))' 2>/dev/null || continue
		nr=$((nr + 1))
		profiled "plain-$nr" --modules "$python" "$WORKLOADS/plain_modules.py" --lib "$library" --iters 20
		judge plain "$dir/plain-$nr.trace.json" "$dir/plain-$nr.json"
	done
}

@test "without --modules: nothing of them in traces and tables" {
	profiled without "" "$(newest_python)" -W ignore "$WORKLOADS/modules.py" --iters 1
	! grep -q 'nn.Module\|with_modules\|Module Hierarchy' "$dir/without.trace.json" || fail "modules in the trace"
	jq -e '.kprof.sources | has("modules") | not' "$dir/without.trace.json"
	"$KPROF" report "$dir/without.kprof" --by module >"$dir/none.txt" 2>"$dir/none.err"
	grep -q '^hint: kprof attach --modules records them' "$dir/none.err" || fail "$(cat "$dir/none.err")"
}
