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
	jq -e --slurpfile r "$dir/$1.json" '[.traceEvents[] | select(.ph == "X" and .cat != "Trace" and .cat != "gpu_user_annotation") | .name] as $seen |
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

@test "annotations, where the probes at their ends read inputs and numbers, too" {
	local python
	python=$(newest_python)
	profiled inputs "--within wanted --shapes --flow" "$python" "$WORKLOADS/within.py" --iters 50 --settle 0
	counted inputs
	jq -e '[.traceEvents[] | select(.name == "aten::sinh") | .args | has("Input Dims")] | all and length > 0' "$dir/inputs.trace.json"
}

@test "annotations, by the observer: the same, and no operator outside has a callback" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		profiled "observed-$release" "--observer --within annotation:w?nt*d" "$python" "$WORKLOADS/within.py" --iters 50 --settle 0
		counted "observed-$release"
		jq -e '.kprof.sources | has("operators") | not' "$dir/observed-$release.trace.json"
		jq -e '.callbacks == {"aten::atan": [false], "aten::sinh": [true]}' "$dir/observed-$release.json" ||
			fail "$(jq -c .callbacks "$dir/observed-$release.json")"
	done
}

@test "an annotation that began before the recording does not count, nor does its end" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		profiled "around-$release" "--within wanted" "$python" "$WORKLOADS/within.py" --iters 20 --settle 0 --around
		counted "around-$release"
		profiled "around-o-$release" "--observer --within wanted" "$python" "$WORKLOADS/within.py" --iters 20 --settle 0 --around
		counted "around-o-$release"
	done
}

@test "another process that gets probes changes nothing of who is inside" {
	local python
	python=$(newest_python)
	profiled child "--within wanted" "$python" "$WORKLOADS/within.py" --iters 10 --settle 0 --child
	has_placed child-kprof 1 || fail "the child got no probes: $(cat "$dir/child-kprof.err")"
	counted child
}

# A library's probes have come while the target is inside: it goes on.
late_probed() {
	wait_for "$PATIENCE" "late.so to be there" grep -q late.so "/proc/${pid[late]}/maps" &&
		wait_for "$PATIENCE" "probes in it" probed "${pid[late]}" "$dir/late.so" && touch "$dir/late.so.probed"
}

@test "a library that is loaded inside: the annotation ends there, as its end may be missed" {
	local python meanwhile=late_probed
	python=$(newest_python)
	cp "$KPROF_MARK_LIBRARY" "$dir/late.so"
	profiled late "--within wanted" "$python" "$WORKLOADS/within.py" --iters 10 --settle 0 --load "$dir/late.so"
	counted late
	# Four of them nest. One that seems to go on would have all others of its thread inside.
	jq -e '[.traceEvents[] | select(.name == "wanted" and .ph == "X")] | group_by(.tid) |
		all(. as $own | all(. as $one | [$own[] | select(.ts <= $one.ts and .ts + .dur >= $one.ts + $one.dur)] | length <= 4))' "$dir/late.trace.json"
}

@test "a name that could not be read where it was needed is said" {
	local python
	python=$(newest_python)
	printf 'wanted\0' >"$dir/name"
	profiled unread "--within wanted" "$python" "$WORKLOADS/within.py" --iters 5 --settle 0 --unread "$dir/name"
	counted unread
	grep -q -e "--within wanted: the names of 2 annotations could not be read: they do not count" "$dir/unread-kprof.err" || fail "$(cat "$dir/unread-kprof.err")"
}

@test "marks and ITT; scopes without annotations" {
	local python
	python=$(newest_python)
	profiled mark "--within wanted" "$python" "$WORKLOADS/within.py" --iters 20 --settle 0 --kind mark
	counted mark
	profiled itt "--within ?anted" "$python" "$WORKLOADS/within.py" --iters 20 --settle 0 --kind itt
	counted itt
	for how in "" --observer; do
		profiled "scopes$how" "$how --scopes FUNCTION --within wanted" "$python" "$WORKLOADS/within.py" --iters 20 --settle 0
		jq -e --slurpfile r "$dir/scopes$how.json" '[.traceEvents[] | select(.ph == "X" and .cat != "Trace") | .name] | group_by(.) | map({(.[0]): length}) | add ==
			($r[0].counts | del(.wanted, ."aten::atan"))' "$dir/scopes$how.trace.json"
	done
}

@test "what a device does: only what is launched inside" {
	local sim=$BUILD/sim/12 how
	[ -e "$sim/libcudart.so.12" ] || fail "the simulated CUDA is not built: make sim"
	"$PYTHON" -c 'import torch' 2>/dev/null || skip "Debian's PyTorch is not there, which brings no CUPTI of its own: scripts/setup check installs it"
	for how in "" --observer; do
		profiled "device$how" "$how --within wanted" env LD_LIBRARY_PATH="$sim" KPROF_CUPTI_PATH="$sim/libcupti.so.12" "$PYTHON" "$WORKLOADS/within.py" \
			--iters 50 --settle 0 --cudart "$sim/libcudart.so.12"
		counted "device$how"
		jq -e --slurpfile r "$dir/device$how.json" '[.traceEvents[] | select(.ph == "X")] |
			(map(select(.name == "cudaMemsetAsync")) | length) == $r[0].counts."aten::sinh" and
			(map(select(.cat == "gpu_memset")) | length) == $r[0].counts."aten::sinh"' "$dir/device$how.trace.json" ||
			fail "$(jq -c .counts "$dir/device$how.json"): $(jq -c '[.traceEvents[] | select(.ph == "X") | .cat + " " + .name] | group_by(.) | map({(.[0]): length}) | add' "$dir/device$how.trace.json")"
		"$KPROF" report "$dir/device$how.kprof" --by memcpy --json >"$dir/copies.json"
		jq -e --slurpfile r "$dir/device$how.json" '[.rows[].calls] | add == $r[0].counts."aten::sinh"' "$dir/copies.json" || fail "$(head -c 2000 "$dir/copies.json")"
	done
}

@test "what contradicts it, or is not there, is refused" {
	local option stderr=""
	for option in --sched "--steps 3" "--observer --stacks"; do
		# shellcheck disable=SC2086 # several words
		run --separate-stderr "$KPROF" attach -p 1 --within wanted $option
		[ "$status" = 2 ]
		[[ $stderr == *"--within and ${option%% [0-9]*}"*"can't be had together"* || $stderr == *"--within and --observer with --stacks"* ]] || fail "$stderr"
	done
	for option in module:net function:Decoder.forward symbol:main; do
		run --separate-stderr "$KPROF" attach -p 1 --within "$option"
		[ "$status" = 2 ]
		[[ $stderr == *"knows annotations, and no '${option%%:*}:'"*hint:* ]] || fail "$stderr"
	done
	run --separate-stderr "$KPROF" attach -p 1 --within 'a[bc]'
	[ "$status" = 2 ]
	run --separate-stderr "$KPROF" attach -p 1 --within ''
	[ "$status" = 2 ]
}

@test "a name that no annotation has" {
	local python
	python=$(newest_python)
	for how in "" --observer; do
		target_start none "$python" "$WORKLOADS/within.py" --iters 5 --settle 0 --linger
		kprof_start none-kprof attach $how --within Decoder.forward -p "${pid[none]}" -o "$dir/none.kprof"
		target_go none && target_result none
		expect=any
		kill -INT "${pid[none-kprof]}"
		wait "${pid[none-kprof]}" || true
		grep -q -e "--within Decoder.forward: no annotation of this name began" "$dir/none-kprof.err" || fail "$(cat "$dir/none-kprof.err")"
		target_end none
	done
}

@test "where probes are few, those that say what is inside are among them" {
	local python
	python=$(newest_python)
	profiled few "--no-multi --max-probes 20 --within wanted" "$python" "$WORKLOADS/within.py" --iters 10 --settle 0
	jq -e --slurpfile r "$dir/few.json" '[.traceEvents[] | select(.ph == "X") | .name] |
		(map(select(. == "wanted")) | length) == $r[0].counts.wanted and (map(select(. == "other" or . == "aten::atan")) == [])' "$dir/few.trace.json"
}
