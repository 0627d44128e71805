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

# names NAME: how often what was recorded
names() {
	jq -c '[.traceEvents[] | select(.ph == "X") | .name] | group_by(.) | map({(.[0]): length}) | add' "$dir/$1.trace.json"
}

# counted NAME: as often as the program says, and nothing that was outside
counted() {
	jq -e --slurpfile r "$dir/$1.json" '[.traceEvents[] | select(.ph == "X" and .cat != "Trace" and .cat != "gpu_user_annotation") | .name] as $seen |
		$r[0].counts as $calls | $calls."aten::atan" > 0 and
		([$seen[] | select(. == "aten::atan" or . == "other" or . == "wanted not")] == []) and
		all("wanted", "aten::sinh", "aten::cosh"; . as $name | [$seen[] | select(. == $name)] | length == $calls[$name])' \
		"$dir/$1.trace.json" || fail "$1: $(jq -c .counts "$dir/$1.json"), not $(names "$1")"
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
	profiled devices "--within function:wanted" env LD_LIBRARY_PATH="$sim" KPROF_CUPTI_PATH="$sim/libcupti.so.12" "$PYTHON" \
		"$WORKLOADS/within_functions.py" --iters 20 --settle 0 --cudart "$sim/libcudart.so.12"
	counted_inside devices
	jq -e --slurpfile r "$dir/devices.json" '[.traceEvents[] | select(.ph == "X")] |
		(map(select(.cat == "gpu_memset")) | length) == (map(select(.cat == "cpu_op")) | length)' "$dir/devices.trace.json" || fail "$(jq -c .counts "$dir/devices.json")"
}

# counted_inside NAME LEAST: as often as the program says, and nothing that was outside. Of what is made anew at an address, some
# may be missed.
counted_inside() {
	jq -e --slurpfile r "$dir/$1.json" '[.traceEvents[] | select(.ph == "X" and .cat != "Trace") | .name] as $seen |
		$r[0].counts as $calls | $calls."aten::atan" > 0 and $calls."aten::sinh" > 0 and all($seen[]; . != "aten::atan") and
		([$seen[] | select(. == "aten::sinh")] | length) == $calls."aten::sinh" and
		([$seen[] | select(. == "aten::cosh")] | length) <= $calls."aten::cosh"' "$dir/$1.trace.json" ||
		fail "$1: $(jq -c .counts "$dir/$1.json"), not $(names "$1")"
}

@test "Python functions: at depth, recursion, exceptions, threads, generators, coroutines" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		profiled "function-$release" "--within function:wanted" "$python" "$WORKLOADS/within_functions.py" --iters 20 --settle 0
		counted_inside "function-$release"
		jq -e '.kprof.meta.within == "function:wanted" and .kprof.overhead.within_unknown == 0' "$dir/function-$release.trace.json"
	done
}

@test "Python functions: methods by their qualified names, where the interpreter has these" {
	local python release name
	for python in $(pythons); do
		release=$(torch_release "$python")
		name='function:*coder.forward'
		! "$python" -c 'import sys; sys.exit(sys.version_info >= (3, 11))' || name='function:forward'
		profiled "method-$release" "--within $name" "$python" "$WORKLOADS/within_functions.py" --iters 10 --settle 0 --kind method
		# before 3.11, forward is also what modules of another class have
		[ "$name" = function:forward ] || counted_inside "method-$release"
		jq -e --slurpfile r "$dir/method-$release.json" '[.traceEvents[] | select(.name == "aten::sinh")] | length == $r[0].counts."aten::sinh"' \
			"$dir/method-$release.trace.json"
	done
}

@test "Python functions, where probes read inputs, numbers, stacks, calls of modules and counters, too; one by one" {
	local python
	python=$(newest_python)
	profiled all "--within function:wanted --shapes --flow --memory --with-stack --modules --counters page-faults" "$python" \
		"$WORKLOADS/within_functions.py" --iters 20 --settle 0
	jq 'del(.traceEvents[] | select(.cat == "python_function" or (.name | startswith("nn.Module"))))' "$dir/all.trace.json" >"$dir/ops.trace.json"
	cp "$dir/all.json" "$dir/ops.json"
	counted_inside ops
	jq -e '[.traceEvents[] | select(.name == "aten::sinh") | .args] | length > 0 and all(has("Input Dims") and has("page-faults"))' "$dir/all.trace.json"
	profiled single "--within function:wanted --no-multi --ops aten::sinh,aten::cosh,aten::atan" "$python" "$WORKLOADS/within_functions.py" --iters 5 --settle 0
	counted_inside single
}

@test "Python functions, on each interpreter that is there: bare names before 3.11" {
	local python release nr=0 lib
	use_kind gcc
	lib=$library library='' # which would be looked at when kprof has detached
	for python in "$PYTHON" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
		release=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || continue
		[[ $release =~ ^3\.([89]|1[0-4])$ ]] || continue
		nr=$((nr + 1))
		profiled "on-$release" "--within function:main" "$python" "$WORKLOADS/ctypes_ops.py" --lib "$lib" --iters 500
		jq -e --slurpfile r "$dir/on-$release.json" '[.traceEvents[] | select(.cat == "cpu_op") | .name] | group_by(.) | map({(.[0]): length}) | add ==
			($r[0].counts | with_entries(select(.value > 0)))' "$dir/on-$release.trace.json" || fail "$release: $(cat "$dir/on-$release.json")"
		profiled "off-$release" "--within function:nowhere.else" "$python" "$WORKLOADS/ctypes_ops.py" --lib "$lib" --iters 500
		jq -e '[.traceEvents[] | select(.cat == "cpu_op")] == []' "$dir/off-$release.trace.json"
		[[ $release =~ ^3\.(8|9|10)$ ]] || continue
		grep -q -e "--within function:nowhere.else: in process .* functions have no names with a dot" "$dir/off-$release-kprof.err" ||
			fail "$(cat "$dir/off-$release-kprof.err")"
	done
	[ "$nr" -gt 0 ]
}

@test "samples are those inside of a Python function" {
	local python
	python=$(newest_python)
	# the names of functions that are made anew are read too late
	profiled samples "--within function:wanted --stacks -F 999" "$python" "$WORKLOADS/within_functions.py" --iters 400 --settle 0 --lasting
	"$KPROF" export "$dir/samples.kprof" -o "$dir/samples.folded" >/dev/null
	[ -s "$dir/samples.folded" ] || fail "no samples"
	! grep -v ';wanted' "$dir/samples.folded" || fail "samples outside"
}

@test "children that are forked: a Python function is known there at once" {
	local python
	python=$(newest_python)
	profiled forked "--within function:wanted --children exact" "$python" "$WORKLOADS/within_functions.py" --iters 20 --settle 0 --fork
	counted_inside forked
	jq -e '.kprof.overhead.within_unknown == 0' "$dir/forked.trace.json"
}

@test "modules: by the class whose call runs" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		profiled "module-$release" "--within module:Dec?der" "$python" "$WORKLOADS/within_functions.py" --iters 20 --settle 0 --kind module
		counted_inside "module-$release"
	done
}

# counted_symbol NAME [SOME]: nothing that was outside, each call of the function, and of what was inside as many as the program says;
# SOME: or less, as it was not known yet where calls return
counted_symbol() {
	jq -e --slurpfile r "$dir/$1.json" --arg some "${2:-}" '[.traceEvents[] | select(.ph == "X" and .cat != "Trace") | .name] |
		(group_by(.) | map({key: .[0], value: length}) | from_entries) as $seen | $r[0].inside as $inside |
		$seen."aten::fake_mul" == $seen."aten::fake_linear" and $seen."within::wanted" == $r[0].wanted and
		(if $some == "" then $seen."aten::fake_linear" == $inside else $seen."aten::fake_linear" <= $inside end)' "$dir/$1.trace.json" ||
		fail "$1: $(jq -c . "$dir/$1.json"), not $(names "$1")"
}

@test "a function of native code: called directly, and in turn with others, itself, exceptions, longjmp, threads" {
	local kind name
	for kind in gcc gcc-O0 clang; do
		[ -x "$BUILD/workloads/$kind/opdriver" ] || continue
		use_kind "$kind"
		# The first recording learns where calls return to; until then, what is called from a place that calls others, too, is left out.
		mkdir -p "$dir/cache-$kind"
		for name in first _ZN6within6wantedENS_3howEm within::wanted; do
			cache=$dir/cache-$kind profiled "$kind-$name" "--ring 64M --within symbol:${name/first/within::wanted}" "$driver" within --n 40
			if [ "$name" = first ]; then
				counted_symbol "$kind-$name" some
			else
				counted_symbol "$kind-$name"
				jq -e '.kprof.overhead.within_unknown == 0' "$dir/$kind-$name.trace.json"
			fi
		done
	done
}

@test "a function of native code: by its whole name, in samples, with single probes" {
	use_kind gcc
	target_start whole "$driver" within --n 200 --linger
	kprof_start whole-kprof attach -p "${pid[whole]}" -o "$dir/whole.kprof" --ring 64M --stacks -F 999 \
		--within "symbol:within::wanted(within::how, unsigned long)"
	target_go whole && target_result whole && kprof_stop whole-kprof && target_end whole
	exported whole
	counted_symbol whole some
	"$KPROF" export "$dir/whole.kprof" -o "$dir/whole.folded" >/dev/null
	grep -q 'within::wanted' "$dir/whole.folded" || fail "no sample inside"
	# What is called outside as often; a stack that was interrupted in a probe may be broken.
	! grep 'within::other' "$dir/whole.folded" || fail "samples outside"
	grep -v -e 'within::wanted' -e '\[incomplete\]' "$dir/whole.folded" || true
	awk '!/within::wanted|\[incomplete\]/ { outside += $NF } { all += $NF } END { exit outside > 0.05 * all }' "$dir/whole.folded" || fail "samples outside"
	profiled single "--no-multi --within symbol:within::wanted" "$driver" within --n 20
	counted_symbol single some
}

@test "a function of native code inside of PyTorch: what it calls, and it alone" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		profiled "native-$release" "--within symbol:at::_ops::linear::call" "$python" "$WORKLOADS/modules.py" --iters 3 --settle 0 || return 1
		jq -e '[.traceEvents[] | select(.ph == "X" and .cat != "Trace")] | (map(select(.name == "at::_ops::linear::call"))) as $calls |
			($calls | length > 0) and (map(select(.name == "aten::linear")) | length) == ($calls | length) and
			all(.[]; . as $e | any($calls[]; .tid == $e.tid and .ts - 0.01 <= $e.ts and .ts + .dur + 0.01 >= $e.ts + $e.dur))' \
			"$dir/native-$release.trace.json" || fail "$(names "native-$release")"
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
		run --separate-stderr "$KPROF" attach -p 1 --observer --within "$option"
		[ "$status" = 2 ]
		[[ $stderr == *"--observer knows what is inside of annotations"*hint:* ]] || fail "$stderr"
	done
	for option in symbol: module:layers.3.attn module: function: annotation: 'function:a[bc]'; do
		run --separate-stderr "$KPROF" attach -p 1 --within "$option"
		[ "$status" = 2 ]
		[[ $stderr == *"--within"*hint:* ]] || fail "$stderr"
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

@test "a name that no Python function has, nor a class" {
	local python kind
	python=$(newest_python)
	for kind in function module; do
		profiled "none-$kind" "--within $kind:Nowhere" "$python" "$WORKLOADS/within_functions.py" --iters 5 --settle 0
		grep -q -e "--within $kind:Nowhere: no operator or call was met inside" "$dir/none-$kind-kprof.err" || fail "$(cat "$dir/none-$kind-kprof.err")"
	done
}

@test "where probes are few, those that say what is inside are among them" {
	local python
	python=$(newest_python)
	profiled few "--no-multi --max-probes 20 --within wanted" "$python" "$WORKLOADS/within.py" --iters 10 --settle 0
	jq -e --slurpfile r "$dir/few.json" '[.traceEvents[] | select(.ph == "X") | .name] |
		(map(select(. == "wanted")) | length) == $r[0].counts.wanted and (map(select(. == "other" or . == "aten::atan")) == [])' "$dir/few.trace.json"
}
