#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# --observer: operators by PyTorch's own callbacks, which an agent registers in the process. Judges: torch.profiler in the
# same run; probes on the same operators, by a second kprof; at::hasGlobalCallbacks(), which says whether any callback stands.

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
		profiled "$name" --observer "$python" -W ignore "$WORKLOADS/$workload" --settle 0 --profile "$dir/$name.torch.json" "$@" || return 1
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

@test "three threads at a time" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		profiled "t-$release" --observer "$python" -W ignore "$WORKLOADS/two_threads.py" --iters 20 --settle 0 --profile "$dir/t-$release.torch.json"
		"$PYTHON" "$LIB/compare_profiler.py" --exact --same-threads "$(jq -r '.other_tids | join(",")' "$dir/t-$release.json")" \
			"$dir/t-$release.trace.json" "$dir/t-$release.torch.json"
	done
}

@test "ranges that an extension opens in C++, of which probes see nothing" {
	local python torch
	python=$(newest_python)
	torch=$(torch_folder "$python")
	[ -e "$torch/include/ATen/record_function.h" ] || skip "the PyTorch here has no headers: scripts/setup check installs it"
	g++ -std=c++20 -shared -fPIC -I"$torch/include" -o "$dir/ranges.so" "$WORKLOADS/cpp_ranges.cpp" -L"$torch/lib" -lc10 -ltorch_cpu
	profiled ranges --observer "$python" -W ignore "$WORKLOADS/cpp_ranges.py" --settle 0 --library "$dir/ranges.so" --profile "$dir/ranges.torch.json"
	[ "$(jq '[.traceEvents[] | select(.name // "" | startswith("extension: ")) | .cat] | unique | join(" ")' -r "$dir/ranges.trace.json")" = \
		"cpu_op user_annotation" ]
	"$PYTHON" "$LIB/compare_profiler.py" --exact "$dir/ranges.trace.json" "$dir/ranges.torch.json"
}

@test "annotations that end before those inside of them" {
	local python
	for python in $(pythons); do
		profiled generators --observer "$python" "$WORKLOADS/generators.py" --iters 100 --settle 0
		jq -e '[.traceEvents[] | select(.ph == "X")] | (map(select(.name == "aten::sinh")) | length == 900) and
			(map(select(.name | startswith("generator "))) | length == 300)' "$dir/generators.trace.json"
		jq -e '.kprof.sources.observer | .orphan_ends == 0 and .dropped == 0' "$dir/generators.trace.json"
	done
}

# More of them than may be open at a time.
@test "annotations that another thread closes, with nothing around them" {
	local python
	python=$(newest_python)
	profiled elsewhere --observer "$python" "$WORKLOADS/end_elsewhere.py" --iters 1000 --settle 0
	jq -e '[.traceEvents[] | select(.ph == "X") | .name] | (map(select(. == "elsewhere")) | length == 1000) and
		(map(select(. == "aten::cosh")) | length == 1000)' "$dir/elsewhere.trace.json"
	# each is over before the next begins
	"$PYTHON" "$LIB/validate_trace.py" "$dir/elsewhere.trace.json"
	pairs "$dir/elsewhere.trace.json" >"$dir/pairs"
	jq -e '."elsewhere > elsewhere" == null and ."elsewhere > aten::sinh" == 1000 and ."elsewhere > aten::cosh" == null' \
		"$dir/pairs" || fail "$(cat "$dir/pairs")"
}

# of TRACE: how often each "name of the parent > name" occurs
pairs() {
	"$PYTHON" -c 'if True:
		import collections, json, sys
		sys.path.insert(0, sys.argv[1])
		from trace import Trace
		spans = Trace.load(sys.argv[2]).spans
		print(json.dumps(collections.Counter(f"{s.parent and s.parent.name} > {s.name}" for s in spans)))' "$LIB" "$1"
}

# What probes see comes at once, what the agent observes up to tenths of a second later.
@test "marks, which probes see, between annotations and operators" {
	local python
	for python in $(pythons); do
		KPROF_MARK_LIBRARY=$BUILD/libkprof_mark.so profiled marks --observer "$python" "$WORKLOADS/callbacks.py" --iters 3000 --settle 0
		pairs "$dir/marks.trace.json" >"$dir/pairs"
		jq -e '."None > outer" == 3000 and ."outer > middle" == 3000 and ."middle > inner" == 3000 and
			."inner > aten::sinh" == 3000' "$dir/pairs" || fail "$(cat "$dir/pairs")"
		jq -e '.kprof.overhead.late_records == 0' "$dir/marks.trace.json" || fail "$(jq .kprof "$dir/marks.trace.json" | head -n 40)"
	done
}

@test "what a device does, beside it: calls by probes, activities by the same agent" {
	local sim=$BUILD/sim/12
	[ -e "$sim/libcudart.so.12" ] || fail "the simulated CUDA is not built: make sim"
	"$PYTHON" -c 'import torch' 2>/dev/null || skip "Debian's PyTorch is not there, which brings no CUPTI of its own: scripts/setup check installs it"
	profiled device --observer env LD_LIBRARY_PATH="$sim" KPROF_CUPTI_PATH="$sim/libcupti.so.12" "$PYTHON" "$WORKLOADS/callbacks.py" \
		--iters 300 --settle 0 --cudart "$sim/libcudart.so.12"
	pairs "$dir/device.trace.json" >"$dir/pairs"
	jq -e '."inner > aten::sinh" == 300 and ."inner > cudaMemsetAsync" == 300' "$dir/pairs" || fail "$(cat "$dir/pairs")"
	# Each is the work of the annotation around its call.
	jq -e '[.traceEvents[] | select(.ph == "X")] | (map(select(.name == "inner") | {(.args."External id" | tostring): 1}) | add) as $inner |
		map(select(.cat == "gpu_memset")) | length == 300 and all($inner[.args."External id" | tostring])' "$dir/device.trace.json"
}

# operators NAME: how often each was called
operators() {
	jq -S '[.traceEvents[] | select(.cat == "cpu_op" and (.name | startswith("aten::"))) | .name] | group_by(.) |
		map({(.[0]): length}) | add' "$dir/$1.trace.json"
}

@test "the same as probes by another kprof on the same process" {
	local python
	python=$(newest_python)
	target_start both "$python" "$WORKLOADS/transformer.py" --iters 30 --settle 0 --linger
	kprof_start probes attach --no-agent --ring 256M -p "${pid[both]}" -o "$dir/probes.kprof"
	kprof_start observer attach --observer -p "${pid[both]}" -o "$dir/observer.kprof"
	target_go both && target_result both && kprof_stop observer && kprof_stop probes && target_end both
	exported observer && exported probes
	[ "$(operators probes | jq length)" -gt 20 ]
	diff <(operators probes) <(operators observer)
}

@test "scopes, and names of operators" {
	local python
	python=$(newest_python)
	KPROF_MARK_LIBRARY=$BUILD/libkprof_mark.so profiled scopes "--observer --scopes user_scope" "$python" "$WORKLOADS/callbacks.py" --iters 20 --settle 0
	jq -e '[.traceEvents[] | select(.ph == "X" and .cat != "Trace") | .name] | unique - ["inner", "middle", "outer"] | length == 2' "$dir/scopes.trace.json"
	profiled ops "--observer --ops *sinh" "$python" "$WORKLOADS/callbacks.py" --iters 20 --settle 0
	jq -e '[.traceEvents[] | select(.cat == "cpu_op") | .name] | unique == ["aten::sinh"]' "$dir/ops.trace.json"
}

# named NAME: how often each operator and annotation was seen, but for those that probes see nothing of, or only they
named() {
	jq -S '[.traceEvents[] | select(.ph == "X" and (.cat == "cpu_op" or .cat == "user_annotation")) | .name] -
		["detach", "_grad_sum_to_size", "<backward op>", "fallback_function", "kprof test: fast"] |
		group_by(.) | map({(.[0]): length}) | add' "$dir/$1.trace.json"
}

@test "scopes by probes: those of the observer, with probes on no others" {
	local python scope workload
	for python in $(pythons); do
		for scope in FUNCTION BACKWARD_FUNCTION TORCHSCRIPT_FUNCTION USER_SCOPE; do
			workload=annotate.py
			[ "$scope" != TORCHSCRIPT_FUNCTION ] || workload=script_ops.py
			target_start both "$python" -W ignore "$WORKLOADS/$workload" --iters 6 --settle 0 --linger
			kprof_start observer attach --observer --scopes "$scope" -p "${pid[both]}" -o "$dir/observer.kprof"
			kprof_start probes attach --no-agent --scopes "${scope,,}" -p "${pid[both]}" -o "$dir/probes.kprof"
			"$KPROF" check -v -p "${pid[both]}" | grep -F -e '--scopes: probes see' >"$dir/check"
			target_go both && target_result both && kprof_stop observer && kprof_stop probes && target_end both
			exported observer && exported probes
			if [[ "$(<"$dir/check")" == *"see"*" $scope"*"; only"* ]]; then
				[ "$(named observer | jq length)" -gt 0 ]
				diff <(named probes) <(named observer) || fail "$(torch_release "$python"), $scope"
			else # a build without local symbols
				[ "$python" = /usr/bin/python3 ] && [[ $scope == @(BACKWARD|TORCHSCRIPT)_FUNCTION ]]
			fi
			jq -e --arg scope "$scope" '.kprof.sources | map_values(.fired) |
				($scope == "FUNCTION" or (.operators // 0) == 0) and ($scope == "USER_SCOPE" or $scope == "FUNCTION" or (.boxed // 0) == 0) and
				($scope != "USER_SCOPE" or ((.autograd // 0) == 0 and .annotations > 0))' "$dir/probes.trace.json"
		done
	done
}

@test "scopes that probes see nothing of" {
	local scope stderr=""
	for scope in CUSTOM_CLASS lite_interpreter STATIC_RUNTIME_OP,FUNCTION; do
		run --separate-stderr "$KPROF" attach -p 1 --scopes "$scope"
		[ "$status" = 2 ]
		[[ $stderr == *"probes see nothing of the scope "[CLS]*"hint: --observer"* ]] || fail "$stderr"
	done
	run --separate-stderr "$KPROF" attach -p 1 --scopes FUNCTION --steps 3
	[ "$status" = 2 ]
	[[ $stderr == *"add USER_SCOPE"* ]] || fail "$stderr"
}

@test "started by kprof run" {
	# seconds: on a busy machine, the agent needs one of them to get there
	"$KPROF" run --observer -o "$dir/run.kprof" -- "$(newest_python)" "$WORKLOADS/callbacks.py" --iters 3000 --pause 0.002 --now </dev/null >"$dir/run.json"
	exported run
	# What was called before the agent was there is a gap.
	jq -e '([.traceEvents[] | select(.ph == "X" and .name == "outer")] | length) as $seen |
		$seen > 1000 and ($seen == 3000 or any(.kprof.gaps[]; .what == "operators"))' "$dir/run.trace.json"
	jq -e '[.traceEvents[] | select(.name == "kprof test: window end")] | length == 1' "$dir/run.trace.json"
}

@test "forked children: recorded once the agent is there, a gap before" {
	local python
	python=$(newest_python)
	unprofiled plain "$python" -W ignore "$WORKLOADS/fork_ops.py" --iters 3
	profiled fork --observer "$python" -W ignore "$WORKLOADS/fork_ops.py" --iters 3 --settle 0
	same_result plain fork
	jq -e --slurpfile r "$dir/fork.json" '([.traceEvents[] | select(.name == "aten::sinh" and .pid == '"$(jq .pid "$dir/fork.json")"')] | length) ==
		$r[0].counts."aten::sinh"' "$dir/fork.trace.json"
	# The children live for a moment.
	jq -e --slurpfile r "$dir/fork.json" '[.kprof.gaps[] | select(.what == "operators") | .pid | tostring] | unique as $gaps |
		$r[0].children | keys - $gaps == []' "$dir/fork.trace.json" || fail "$(jq -c .kprof.gaps "$dir/fork.trace.json")"
}

@test "a child that is not recorded, or a process that was, has no callback left" {
	local python
	for python in $(pythons); do
		profiled left "--observer --no-children" "$python" "$WORKLOADS/callbacks.py" --iters 20 --children --callbacks
		jq -e '.here == true and .child == [false]' "$dir/left.json" || fail "$(cat "$dir/left.json")"
		target_start after "$python" "$WORKLOADS/callbacks.py" --iters 1 --callbacks --linger
		"$KPROF" check -v -p "${pid[after]}" | grep -q "with it, --shapes and --flow have every call"
		kprof_start k attach --observer -p "${pid[after]}" -o "$dir/k.kprof" && kprof_stop k
		target_go after && target_result after && target_end after
		jq -e '.here == false' "$dir/after.json"
	done
}

# Without the observer no child needs the lock that such a thread holds for a moment.
@test "children forked while threads run their first operators do not hang" {
	local python
	python=$(newest_python)
	profiled forks --observer "$python" -W ignore "$WORKLOADS/forks.py" --iters 150 --settle 0
	jq -e '.forks >= 150 and .hung == 0' "$dir/forks.json" || fail "$(cat "$dir/forks.json")"
}

@test "killed at random moments, again and again, while threads run operators" {
	local python i
	python=$(newest_python)
	target_start target "$python" -W ignore "$WORKLOADS/two_threads.py" --iters 1000000 --until-file "$dir/enough"
	target_go target
	for ((i = 0; i < 12; i++)); do
		spawn k "$KPROF" attach -v --observer -p "${pid[target]}" -o "$dir/k.kprof"
		[ $((i % 2)) = 0 ] || wait_for "$PATIENCE" "kprof to record" kprof_recording k
		sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
		kill -KILL "${pid[k]}" 2>/dev/null || true
		wait "${pid[k]}" || true
		unset "pid[k]"
		! ended "${pid[target]}" || fail "the target died at kill $i" "$(cat "$dir/target.err")"
	done
	# and it can be recorded after that: the agent may come late, since it has to see first that the kprof before is gone
	kprof_start last attach --observer -p "${pid[target]}" -d 5s -o "$dir/last.kprof" && kprof_stop last
	touch "$dir/enough"
	target_result target && target_end target
	exported last
	jq -e '.kprof.sources.observer | .captured > 1000 and .dropped == 0' "$dir/last.trace.json"
	unprofiled plain "$python" -W ignore "$WORKLOADS/two_threads.py" --iters "$(jq .iters "$dir/target.json")"
	same_result plain target
}

# The last records of these threads are read when they are gone.
@test "threads that live for a moment, and threads that are killed" {
	local python
	python=$(newest_python)
	profiled short --observer "$python" "$WORKLOADS/brief_threads.py" --iters 100 --settle 0
	[ "$(operators short | jq '."aten::sinh"')" = 500 ]
	jq -e '.kprof.sources.observer.dropped == 0' "$dir/short.trace.json"

	# more at a time than the agent has places for
	profiled many --observer "$python" "$WORKLOADS/brief_threads.py" --iters 300 --settle 0 --together
	[ "$(operators many | jq '."aten::sinh"')" = 1500 ]
	jq -e '.kprof.sources.observer.dropped == 0' "$dir/many.trace.json"

	target_start killed "$python" "$WORKLOADS/brief_threads.py" --iters 3 --settle 0 --kill
	kprof_start k attach --observer -p "${pid[killed]}" -o "$dir/killed.kprof" && target_go killed
	wait_for "$PATIENCE" "the target to be killed" ended "${pid[killed]}" && kprof_stop k && exported killed
	[ "$(operators killed | jq '."aten::sinh"')" = 15 ]
}

@test "what is observed by a kprof that is stopped for a while is counted" {
	local python
	python=$(newest_python)
	stalled=1 profiled stalled "--observer --ring 64K" "$python" "$WORKLOADS/transformer.py" --iters 50 --settle 0
	jq -e '.kprof.sources.observer | .dropped > 0 and .fired == .captured + .dropped' "$dir/stalled.trace.json"
}

@test "a library whose callbacks are not understood is refused, by check, too" {
	use_kind gcc # has no callbacks at all
	target_start target "$driver" spin
	kprof_start k attach --observer -p "${pid[target]}" -o "$dir/k.kprof" && kprof_stop k
	grep -q "no operators of process ${pid[target]}: the way in which its PyTorch takes observers is not known" "$dir/k.err"
	run grep memfd:libkprof_agent "/proc/${pid[target]}/maps"
	[ "$status" = 1 ]
	run "$KPROF" check -v -p "${pid[target]}"
	[[ $output == *"--observer is refused"* ]] || fail "$output"
}

@test "what contradicts the observer is refused" {
	local option stderr=""
	for option in --with-stack --modules "--only nvtx" --no-agent "--max-overhead 2%"; do
		# shellcheck disable=SC2086 # several words
		run --separate-stderr "$KPROF" attach -p 1 --observer $option
		[ "$status" = 2 ]
		[[ $stderr == *"--observer and ${option%% *} can't be had together"* ]] || fail "$stderr"
	done
	run --separate-stderr "$KPROF" attach -p 1 --observer --scopes FUNCTION,SOME
	[ "$status" = 2 ]
	[[ $stderr == *"'SOME' is no scope"* ]]
}
