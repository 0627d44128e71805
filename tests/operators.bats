#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# kprof against torch.profiler in one and the same run, on each PyTorch there is ($KPROF_TORCH_PYTHONS): the same calls, as
# often, inside one another in the same way. What may differ stands in docs/versus-torch-profiler.md.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup_file() {
	export USED=$BATS_FILE_TMPDIR/used COMPARED=$BATS_FILE_TMPDIR/compared
	: >"$USED"
	: >"$COMPARED"
	# What torch.compile makes is kept between the releases' runs of one test, and then thrown away.
	export TORCHINDUCTOR_CACHE_DIR=$BATS_FILE_TMPDIR/inductor
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

# compare NAME RELEASE [OPTION…]: NAME's trace with torch.profiler's of the same run
compare() {
	local name=$1 release=$2
	shift 2
	"$PYTHON" "$LIB/compare_profiler.py" --release "$release" --used "$USED" "$@" \
		"$dir/$name.trace.json" "$dir/$name.torch.json"
}

# same_as_torch WORKLOAD ARGUMENT…: on every PyTorch. Set by the caller, if need be: first, so that the first calls that
# kprof sees are compared, when it does not know yet where they return to.
same_as_torch() {
	local python release workload=$1 name failed='' options attach=''
	shift
	# The ring has room for all copies of stacks, so that none is left out where kprof gets no CPU.
	[ -z "${first:-}" ] || { attach='--ring 1G' && set -- "$@" --settle 0; }
	for python in $(pythons); do
		release=$(torch_release "$python")
		name=${workload%.py}-$release
		echo "-- torch $release: $workload $*"
		cache=${first:+$dir/cache-$release} profiled "$name" "$attach" "$python" -W ignore "$WORKLOADS/$workload" --profile "$dir/$name.torch.json" "$@" || return 1
		options=(${first:+--first})
		# See "Exceptions" in docs/versus-torch-profiler.md.
		[ "$workload" != exceptions.py ] || options+=(--counts)
		compare "$name" "$release" "${options[@]}" || failed+=" $release"
	done
	echo "$BATS_TEST_NAME" >>"$COMPARED"
	[ -z "$failed" ] || fail "differs with torch$failed"
}

@test "a CNN in training, from the first call on" {
	first=1 same_as_torch cnn.py --iters 3
}

@test "a transformer in training, from the first call on" {
	first=1 same_as_torch transformer.py --iters 5
}

@test "annotations, the optimizer's own and the user's, and a custom autograd function, from the first call on" {
	first=1 same_as_torch annotate.py --iters 5
}

@test "a CNN in training, from the first call on, started by kprof run" {
	local python own=()
	python=$(newest_python)
	own_cache "$dir/cache"
	target_start started "${own[@]}" "$KPROF" run --ring 1G -o "$dir/started.kprof" -- "$python" -W ignore "$WORKLOADS/cnn.py" \
		--profile "$dir/started.torch.json" --iters 3 --settle 0
	target_go started && target_result started && target_end started
	exported started
	compare started "$(torch_release "$python")" --first
}

# How annotations are probed in libtorch_python.so depends on what libtorch_cpu.so has, which the linker maps after it.
@test "annotations are seen once, though kprof sees the library that calls long before the one that is called" {
	"$KPROF" run -o "$dir/late.kprof" -- env LD_AUDIT="$BUILD/workloads/slow_linker.so" "$(newest_python)" -W ignore \
		"$WORKLOADS/annotate.py" --iters 2 --now || return 1
	exported late
	jq -e '.kprof.sources.annotations | .begins > 20 and .begins == .ends_exact' "$dir/late.trace.json" ||
		fail "$(jq -c .kprof.sources.annotations "$dir/late.trace.json")"
}

@test "annotations without operators, and the other way round: each range ends where it ended" {
	local python types
	python=$(newest_python)
	for types in user_annotation cpu_op; do
		profiled "$types" "--types $types" "$python" -W ignore "$WORKLOADS/annotate.py" --iters 5
		# The fast ones are operators to Kineto.
		jq -e --arg cat "$types" '[.traceEvents[] | select(.ph == "X" and .cat != "Trace")] | all(.cat == $cat) and
			(map(select(.cat == "user_annotation" or .name == "kprof test: fast")) |
				length == (if $cat == "cpu_op" then 5 else 62 end) and all(.args.finished == null))' "$dir/$types.trace.json"
		jq -e '.kprof.sources | all(.orphan_ends == 0)' "$dir/$types.trace.json"
	done
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

@test "torch.compile and a custom operator" {
	local python release compiled=0
	PATIENCE=$((5 * PATIENCE)) # the compiler takes its time
	for python in $(pythons); do
		release=$(torch_release "$python")
		[[ $release != 1.* ]] || continue # has no torch.compile
		compiled=1
		echo "-- torch $release"
		profiled "c-$release" "" "$python" -W ignore "$WORKLOADS/compiled.py" --profile "$dir/c-$release.torch.json" --iters 5
		compare "c-$release" "$release"
	done
	[ "$compiled" = 1 ] || skip "no PyTorch here that has torch.compile: scripts/setup check installs it"
	echo "$BATS_TEST_NAME" >>"$COMPARED"
}

@test "ranges that an extension opens in C++" {
	local python release torch
	python=$(newest_python)
	release=$(torch_release "$python")
	torch=$(torch_folder "$python")
	[ -e "$torch/include/ATen/record_function.h" ] || skip "the PyTorch here has no headers: scripts/setup check installs it"
	g++ -std=c++20 -shared -fPIC -I"$torch/include" -o "$dir/ranges.so" "$WORKLOADS/cpp_ranges.cpp" -L"$torch/lib" -lc10 -ltorch_cpu
	profiled ranges "" "$python" -W ignore "$WORKLOADS/cpp_ranges.py" --library "$dir/ranges.so" --profile "$dir/ranges.torch.json"
	[ "$(jq '[.traceEvents[] | select(.name // "" | startswith("extension: ")) | .cat] | unique | join(" ")' -r "$dir/ranges.torch.json")" = \
		"cpu_op user_annotation" ]
	compare ranges "$release"
	echo "$BATS_TEST_NAME" >>"$COMPARED"
}

@test "three threads at once" {
	local python release all others
	for python in $(pythons); do
		release=$(torch_release "$python")
		all=
		! grep -q profile_all_threads "$(torch_folder "$python")/lib/libtorch_python.so" || all=True
		echo "-- torch $release: sees all threads: ${all:-False}"
		others=()
		[ "$all" != True ] || others=(--all-threads)
		profiled "t-$release" "" "$python" -W ignore "$WORKLOADS/two_threads.py" --iters 20 \
			--profile "$dir/t-$release.torch.json" "${others[@]}"
		others=()
		# Where torch.profiler sees the main thread only, the others must have done the same.
		[ "$all" = True ] || others=(--same-threads "$(jq -r '.other_tids | join(",")' "$dir/t-$release.json")")
		compare "t-$release" "$release" "${others[@]}"
	done
	echo "$BATS_TEST_NAME" >>"$COMPARED"
}

@test "the ends of a steady loop are seen exactly, 99.9 % in its second half" {
	local python release
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		profiled "s-$release" "" "$python" "$WORKLOADS/transformer.py" --iters 100000 --seconds 3 --pause 0.1 --settle 2
		"$PYTHON" "$LIB/check_exact_ends.py" "$dir/s-$release.trace.json"
	done
}

@test "where calls return to is remembered: a later recording sees their ends from its first call on" {
	local python i
	python=$(newest_python)
	# One recording learns where calls return to, the next where those do that only return in their turn.
	for i in 1 2 3; do
		cache=$dir/cache profiled "r$i" "" "$python" "$WORKLOADS/transformer.py" --iters 3
	done
	[ "$(exact_share r1)" -lt 9900 ] || fail "the first recording knew where calls return to"
	[ "$(exact_share r3)" -ge 9990 ] || fail "of 10000 ends $(exact_share r3) were exact"
	# A damaged file is no harm.
	for f in "$dir"/cache/*.ret; do
		printf 'xxxxxxxx' | dd of="$f" bs=1 seek=40 conv=notrunc status=none
	done
	cache=$dir/cache profiled r4 "" "$python" "$WORKLOADS/transformer.py" --iters 3
	[ "$(jq .checksum "$dir/r4.json")" = "$(jq .checksum "$dir/r1.json")" ] || fail "another result"
}

# Of 10000 calls, how many have an exact end in NAME's trace.
exact_share() {
	jq '[.traceEvents[] | select(.ph == "X" and .cat == "cpu_op")] |
		(map(select(.args.end == null)) | length) * 10000 / length | floor' "$dir/$1.trace.json"
}

@test "the comparison notices what it is there to notice" {
	local python release
	python=$(newest_python)
	release=$(torch_release "$python")
	profiled here "" "$python" "$WORKLOADS/transformer.py" --iters 2 --profile "$dir/here.torch.json"
	compare here "$release"
	cp "$dir/here.trace.json" "$dir/true.json"
	local broken last='(.traceEvents | map(.name == "aten::bmm") | rindex(true)) as $last'
	for broken in \
		"$last"' | del(.traceEvents[$last])' \
		"$last"' | .traceEvents[$last].name = "aten::mm"' \
		'.baseTimeNanoseconds += 5000000' \
		'.traceEvents |= map(if .ph == "X" and .cat == "cpu_op" then .dur *= 0.5 else . end)'; do
		jq "$broken" "$dir/true.json" >"$dir/here.trace.json"
		if cmp -s "$dir/true.json" "$dir/here.trace.json"; then fail "changed nothing: $broken"; fi
		if compare here "$release"; then fail "not noticed: $broken"; fi
	done
}

@test "every line of the table in docs/versus-torch-profiler.md is needed" {
	[ "$(sort -u "$COMPARED" | wc -l)" = 9 ] || skip "not all of the comparisons above were run"
	[ "$(pythons | wc -l)" -ge 2 ] || skip "fewer than two PyTorch releases here: scripts/setup check installs it"
	local python releases=
	for python in $(pythons); do releases+="$(torch_release "$python") "; done
	"$PYTHON" "$LIB/compare_profiler.py" --unused "$USED" --release "$releases"
}
