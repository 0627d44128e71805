#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# --within: only what threads do inside of annotations of one name. Judge: a program that counts what it calls inside and outside.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
bats_require_minimum_version 1.5.0

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
	export KPROF_MARK_LIBRARY=$BUILD/libkprof_mark.so
}

teardown() {
	harness_teardown
}

# counted NAME: as often as the program says, and nothing that was outside
counted() {
	jq -e --slurpfile r "$dir/$1.json" '[.traceEvents[] | select(.ph == "X" and .cat != "Trace") | .name] as $seen |
		$r[0].counts as $calls | $calls."aten::atan" > 0 and
		([$seen[] | select(. == "aten::atan" or . == "other" or . == "wanted not")] == []) and
		all("wanted", "aten::sinh", "aten::cosh"; . as $name | [$seen[] | select(. == $name)] | length == $calls[$name])' \
		"$dir/$1.trace.json" || fail "$1: $(jq -c .counts "$dir/$1.json"), not $(jq -c '[.traceEvents[] | select(.ph == "X") | .name] |
			group_by(.) | map({(.[0]): length}) | add' "$dir/$1.trace.json")"
}

@test "annotations, by probes: threads, recursion, exceptions" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		profiled "within-$release" "--within wanted" "$python" "$WORKLOADS/within.py" --iters 50 --settle 0
		counted "within-$release"
		jq -e '.kprof.sources.annotations | .orphan_ends == 0 and .dropped == 0' "$dir/within-$release.trace.json"
	done
}

@test "annotations, by the observer: the same, and no callback stands for an operator outside" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		profiled "observed-$release" "--observer --within wanted" "$python" "$WORKLOADS/within.py" --iters 50 --settle 0
		counted "observed-$release"
		jq -e '.kprof.sources | has("operators") | not' "$dir/observed-$release.trace.json"
	done
}
