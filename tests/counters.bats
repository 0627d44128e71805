#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# --counters: what each call had of page faults, switches, CPU time. The judges: a program that knows what its annotations had,
# beside others that take its CPUs and have page faults of their own; the kernel's own numbers of a thread; perf.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup() {
	harness_setup
	own_targets
	all=page-faults,page-faults:u,context-switches,cpu-migrations,task-clock,cpu-clock
}

teardown() {
	harness_teardown
}

# judged NAME [OPTION…]: the workload's annotations against what it knows of them
judged() {
	local name=$1
	shift
	profiled "$name" "--only mark --counters $all $*" "$BUILD/workloads/counted" 20
	"$PYTHON" "$LIB/check_counted.py" "$dir/$name.trace.json" "$dir/$name.json" "$dir/$name.report.json" ||
		fail "$name: see above" "$(cat "$dir/$name.json")"
}

# Has perf opened its events?
counts_for_perf() { # PID
	find "/proc/$1/fd" -lname 'anon_inode:*perf_event*' | grep -q .
}

@test "counters: of threads that change their CPUs and share them with busy others, each has its own" {
	judged annotations
	# The table has a column of the total, one without what is inside, and one for a call.
	"$KPROF" report "$dir/annotations.kprof" >"$dir/table.txt"
	grep -q '^Name .* page-faults  Self page-faults  page-faults/call  page-faults:u .* Self task-clock ' "$dir/table.txt"
	grep -q '^Counters: of calls whose ends were seen' "$dir/table.txt"
	# A copy of the capture has the same.
	"$KPROF" export "$dir/annotations.kprof" -o "$dir/copy.kprof"
	"$KPROF" report "$dir/copy.kprof" --json | jq '[.rows[] | {name, counters}]' >"$dir/copy.json"
	jq '[.rows[] | {name, counters}]' "$dir/annotations.report.json" | diff - "$dir/copy.json"
	jq -e 'length == 5 and all(.counters | length == 6)' "$dir/copy.json"
}

@test "counters: the same through single uprobes" {
	judged single --no-multi
}

# as_perf_counts: 2 if the kernel did not tell of a switch in the middle of an annotation, which has no number then
as_perf_counts() {
	local counted of_perf judge
	target_start perf "$BUILD/workloads/counted" 20 alone || return 1
	kprof_start perf-kprof attach -p "${pid[perf]}" -o "$dir/perf.kprof" --only mark --counters page-faults:u || return 1
	perf stat -x, -o "$dir/perf.csv" -e page-faults:u -p "${pid[perf]}" 2>/dev/null &
	judge=$!
	wait_for "$PATIENCE" "perf to count" counts_for_perf "$judge" && target_go perf && target_result perf || return 1
	kill -INT "$judge"
	wait "$judge" || true
	kprof_stop perf-kprof && target_end perf && "$KPROF" report "$dir/perf.kprof" --json >"$dir/perf.report.json" || return 1
	jq -e '.rows[] | select(.name == "outer") | .calls == .counters["page-faults:u"].calls' "$dir/perf.report.json" || return 2
	counted=$(jq '.rows[] | select(.name == "outer").counters["page-faults:u"].total' "$dir/perf.report.json")
	of_perf=$(awk -F, '$3 ~ /^page-faults/ { print $1 }' "$dir/perf.csv")
	[ -n "$of_perf" ] || fail "$(cat "$dir/perf.csv")" || return 1
	# Two threads that begin have some, too.
	if [ "$counted" -lt 300 ] || [ "$counted" -gt "$of_perf" ] || [ "$of_perf" -gt $((counted + 40)) ]; then
		fail "$counted, perf: $of_perf"
	fi
}

@test "counters: perf's own count of a process whose work is all in annotations" {
	local status try
	command -v perf >/dev/null || skip "no perf here"
	perf stat -e page-faults:u true 2>/dev/null || skip "perf cannot count here"
	for try in 1 2 3 4 5; do
		status=0
		as_perf_counts || status=$?
		[ "$status" = 2 ] || return "$status"
		echo "try $try: an annotation without a number"
	done
	fail "each time an annotation had no number"
}

@test "counters: operators of PyTorch that touch new memory" {
	local python release
	needs_torch
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		profiled "ops-$release" "--counters page-faults,minor-faults:u,task-clock --ops aten::fill_" "$python" -W ignore \
			"$WORKLOADS/counted_ops.py"
		# Each exact end has the values; the first calls of a recording have none.
		jq -e --slurpfile known "$dir/ops-$release.json" '
			[.traceEvents[] | select(.name == "counted")] as $around |
			[.traceEvents[] | select(.name == "aten::fill_")] | sort_by(.ts) | to_entries |
			($known[0].most | map(select(. >= 255)) | length >= 40) and length == ($known[0].most | length) and length == ($around | length) and
			([.[] | select(.value.args | has("end") | not)] | length >= 20 and all(.value.args["page-faults"] as $n |
				$n >= $known[0].most[.key] - 20 and $n <= $known[0].most[.key] and
				(.value.args["minor-faults:u"] // $n) == $n and (.value.args["task-clock"] // 1) > 0)) and
			all(.[]; (.value.args | has("end")) != (.value.args | has("page-faults")))' "$dir/ops-$release.trace.json" ||
			fail "$(jq -c '[.traceEvents[] | select(.name == "aten::fill_").args]' "$dir/ops-$release.trace.json")" \
				"$(cat "$dir/ops-$release.json")"
	done
}

@test "counters: torch.profiler's own count of page faults, in the same calls" {
	local python release
	needs_torch
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		[[ $release != 1.* ]] || continue # it has no performance_events
		profiled "torch-$release" "--counters pagefaults --ops aten::fill_" "$python" -W ignore "$WORKLOADS/counted_ops.py" \
			--profile "$dir/profile-$release.json"
		# torch.profiler counts inside of its own bookkeeping, and kprof around it.
		jq -e --slurpfile torch "$dir/profile-$release.json" '
			[$torch[0].traceEvents[] | select(.name == "aten::fill_")] | sort_by(.ts) | map(.args.pagefaults) as $theirs |
			[$ours[0].traceEvents[] | select(.name == "aten::fill_")] | sort_by(.ts) | map(.args.pagefaults) as $mine |
			[$theirs, $mine] | transpose | map(select(.[1])) |
			(map(select(.[0] >= 255)) | length >= 20) and all(.[]; .[0] <= .[1] and .[1] <= .[0] + 20)' \
			--slurpfile ours "$dir/torch-$release.trace.json" -n ||
			fail "$(jq -c '[.traceEvents[] | select(.name == "aten::fill_").args.pagefaults]' "$dir/profile-$release.json")" \
				"$(jq -c '[.traceEvents[] | select(.name == "aten::fill_").args.pagefaults]' "$dir/torch-$release.trace.json")"
	done
}

@test "counters: without the option there is nothing of them" {
	profiled without "--only mark" "$BUILD/workloads/counted" 2
	! grep -q 'page-faults\|task-clock' "$dir/without.trace.json" || fail "counters in the trace"
	jq -e 'all(.rows[]; has("counters") | not)' "$dir/without.report.json"
}

@test "counters: what this machine lacks is refused by its name, and wrong names are" {
	local name
	refuses "'cycle' is no counter" attach -p 1 --counters cycle -o "$dir/x.kprof"
	refuses "'task-clock:u' is not counted apart" attach -p 1 --counters page-faults,task-clock:u -o "$dir/x.kprof"
	refuses 'at most' attach -p 1 --counters r1,r2,r3,r4,r5,r6,r7,r8,r9 -o "$dir/x.kprof"
	refuses "'cs' is there twice" run --counters cs,cs -o "$dir/x.kprof" -- true
	kprof_says 0 attach --counters list
	grep -q '^page-faults  *page faults$' "$dir/stdout"
	name=$(awk '/not on this machine/ { print $1; exit }' "$dir/stdout")
	[ -n "$name" ] || skip "this machine has all counters"
	kprof_says 3 run --counters "page-faults,$name" -o "$dir/x.kprof" -- true
	refused "cannot count '$name'"
	[ ! -e "$dir/x.kprof" ]
	"$KPROF" check >"$dir/check.txt" || true
	grep -q "^ok  *counters  *task-clock, cpu-clock, page-faults, " "$dir/check.txt"
	grep -qE "^ +no counters .*$name" "$dir/check.txt"
}
