#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# --with-stack: the Python functions around operators, as rows of traces, on each PyTorch there is ($KPROF_TORCH_PYTHONS). The
# judges: torch.profiler(with_stack=True) in the same run; a program's own books, by sys.setprofile(), with no profiler active.

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

# recorded NAME PYTHON [ARGUMENT…]: the workload under kprof attach --with-stack $options
recorded() {
	local name=$1 python=$2
	shift 2
	profiled "$name" "--with-stack ${options:---stack-rate 0}" "$python" -W ignore "$WORKLOADS/python_calls.py" --iters 3 "$@"
}

judge() {
	"$PYTHON" "$LIB/compare_functions.py" "$@"
}

@test "the functions around each operator are torch.profiler's, by name, file and first line" {
	local python release judged=0
	for python in $(pythons); do
		release=$(torch_release "$python")
		[[ $release != 1.13* ]] || continue # Debian's build has no Kineto, and shows no functions
		echo "-- torch $release"
		recorded "same-$release" "$python" --profile "$dir/torch-$release.json"
		judge torch "$dir/same-$release.trace.json" "$dir/torch-$release.json"
		judged=1
	done
	[ "$judged" = 1 ] || skip "only PyTorch 1.13 is there, whose profiler shows no functions"
}

@test "each row is a part of one call in the program's books: threads, exceptions, generators, recursion" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		recorded "books-$release" "$python"
		judge books "$dir/books-$release.trace.json" "$dir/books-$release.json" 900
	done
}

@test "the same with few stacks, with modules, of a part of the time, and in a copy of the capture" {
	local python from
	python=$(newest_python)
	options='--stack-rate 300' recorded rare "$python"
	judge books "$dir/rare.trace.json" "$dir/rare.json" 50
	options='--stack-rate 0 --modules' recorded modules "$python"
	judge books "$dir/modules.trace.json" "$dir/modules.json" 900
	from=$(jq -n --slurpfile books "$dir/modules.json" --slurpfile trace "$dir/modules.trace.json" \
		'($books[0].books | map(.[4]) | sort | .[length / 2 | floor]) - $trace[0].kprof.clock.start_mono_ns | . / 1e6 | floor')
	"$KPROF" export "$dir/modules.kprof" --from "${from}ms" -o "$dir/part.trace.json"
	judge books "$dir/part.trace.json" "$dir/modules.json" 50
	"$KPROF" export "$dir/modules.kprof" --from "${from}ms" -o "$dir/part.kprof"
	"$KPROF" export "$dir/part.kprof" -o "$dir/copied.trace.json"
	judge books "$dir/copied.trace.json" "$dir/modules.json" 50
	diff <(functions part) <(functions copied) || fail "the copy has other functions"
}

# functions NAME: their rows in a trace, without numbers and times: one may begin later where what was before is left out
functions() {
	jq -r '.traceEvents[] | select(.cat == "python_function" and (.name | startswith("nn.Module: ") | not)) | "\(.tid) \(.name)"' "$dir/$1.trace.json" | sort
}
