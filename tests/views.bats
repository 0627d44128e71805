#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,long
# Parts of the recorded time, and tables by process, user and step. The judges: the trace of the whole, of which a program
# that knows nothing of ranges computes what must be in a part; and programs that say what they did in each step.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup_file() {
	[ "$(id -u)" != 0 ] || hosts_of=newest_python torch_hosts
}

teardown_file() {
	torch_hosts_end
}

setup() {
	harness_setup
	own_targets
	[ -x "$BUILD/bench/gen_device" ] || fail "the test programs are not built: make test-programs"
}

teardown() {
	harness_teardown
}

seconds() { # NANOSECONDS
	printf '%d.%09d' $(($1 / 1000000000)) $(($1 % 1000000000))
}

# part_of FILE.kprof FROM TO: its table, traces and copy of these nanoseconds, against the trace of all, $dir/all.json
part_of() {
	local range=(--from "$(seconds "$2")" --to "$(seconds "$3")") check=("$PYTHON" "$LIB/check_range.py")
	"$KPROF" report "$1" "${range[@]}" --json >"$dir/part.report" || return 1
	"${check[@]}" table "$dir/all.json" "$2" "$3" "$dir/part.report" || return 1
	for suffix in json kprof pftrace; do
		"$KPROF" export "$1" "${range[@]}" -o "$dir/part.$suffix" 2>"$dir/part.err" || return 1
		grep -qE '^kprof: selected range: .* events \([0-9]+ outside of it\)' "$dir/part.err" || return 1
	done
	"$KPROF" export "$dir/part.kprof" -o "$dir/copy.json" || return 1
	"${check[@]}" trace "$dir/all.json" "$2" "$3" "$dir/part.json" || return 1
	"${check[@]}" trace "$dir/all.json" "$2" "$3" "$dir/copy.json" || return 1
	"$PYTHON" "$LIB/validate_trace.py" "$dir/part.json" "$dir/copy.json"
}

@test "a part of the time: tables and traces have what begins in it or reaches into it, to the nanosecond" {
	"$BUILD/bench/gen_device" 300 "$dir/d.kprof"
	"$KPROF" export "$dir/d.kprof" -o "$dir/all.json"
	# With both edges in spans; one edge on the begin, or the end, of the recording; hardly anything.
	for range in "100000 400000" "0 300000" "331234 599999" "400000 1200000" "700000 700001" "5000 5100"; do
		# shellcheck disable=SC2086 # two numbers
		part_of "$dir/d.kprof" $range
	done
	# Each moment is in one of three parts: device time and calls add up.
	for by in kernel memcpy api op; do
		for range in "--to 200us" "--from 200us --to 450us" "--from 450us" ""; do
			# shellcheck disable=SC2086 # two options
			"$KPROF" report "$dir/d.kprof" --by "$by" $range --json |
				jq '[.rows[] | .calls, .total_ns, .bytes // 0]
					| [range(0; length; 3) as $i | .[$i:$i + 3]] | transpose | map(add)' >>"$dir/$by"
		done
		jq -se '(.[:3] | transpose | map(add)) == .[3] and .[0][0] > 0 and .[1][1] > 0' "$dir/$by" ||
			fail "$by: $(jq -c . "$dir/$by")"
	done
}

@test "a judge of ranges that notices another range" {
	"$BUILD/bench/gen_device" 100 "$dir/d.kprof"
	"$KPROF" export "$dir/d.kprof" -o "$dir/all.json"
	part_of "$dir/d.kprof" 100000 400000
	run -1 "$PYTHON" "$LIB/check_range.py" table "$dir/all.json" 100000 400001 "$dir/part.report"
	run -1 "$PYTHON" "$LIB/check_range.py" trace "$dir/all.json" 104000 400000 "$dir/part.json"
}

@test "devices: busy and idle time of a part are all of it" {
	"$BUILD/bench/gen_device" 300 "$dir/d.kprof"
	"$KPROF" report "$dir/d.kprof" --by stream --from 100us --to 400us --json |
		jq -e '[.rows[] | .busy_ns + .idle_ns] | unique == [300000]'
	"$KPROF" report "$dir/d.kprof" --by idle --from 100us --to 400us --json >"$dir/idle"
	"$KPROF" report "$dir/d.kprof" --by stream --from 100us --to 400us --json |
		jq -e --slurpfile idle "$dir/idle" '(.rows[] | select(has("stream") | not) | .idle_ns) == $idle[0].self_total_ns'
}

@test "samples: three parts are all of them, in tables and profiles" {
	local ns third
	"$BUILD/bench/gen_samples" 10000 "$dir/s.kprof"
	ns=$("$KPROF" report "$dir/s.kprof" --json | jq .window_ns)
	third=$((ns / 3))
	for range in "--to $(seconds $third)" "--from $(seconds $third) --to $(seconds $((2 * third)))" "--from $(seconds $((2 * third)))" ""; do
		# shellcheck disable=SC2086 # options
		"$KPROF" report "$dir/s.kprof" --by function $range --json >>"$dir/parts"
		for suffix in folded speedscope.json pb.gz svg pftrace json; do
			# shellcheck disable=SC2086 # options
			"$KPROF" export "$dir/s.kprof" $range -o "$dir/x.$suffix"
		done
		cat "$dir/x.folded" >>"$dir/folded.$([ -z "$range" ]; echo $?)"
		"$PYTHON" "$LIB/validate_trace.py" "$dir/x.json"
		jq '[.traceEvents[] | select(.name == "ProfileChunk").args.data.cpuProfile.samples | length] | add' "$dir/x.json" >>"$dir/events"
	done
	jq -se 'map(.samples.samples) | (.[:3] | add) == .[3] and .[3] == 10000 and (.[:3] | min > 3000)' "$dir/parts"
	jq -se 'map([.range.samples, .range.samples_outside]) | .[:3] | all(add == 10000)' "$dir/parts"
	jq -se '(.[:3] | add) == .[3] and .[3] == 10000' "$dir/events"
	# Microseconds of each stack are rounded up in each file.
	awk '{ n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += FNR == NR ? n : -n }
		END { for (stack in sum) if (sum[stack] > 0 || sum[stack] < -3) { print stack, sum[stack]; wrong = 1 } exit wrong }' \
		"$dir/folded.0" "$dir/folded.1"
	[ "$(wc -l <"$dir/folded.0")" -gt 5 ]
}

@test "times from the end, the edges, and none" {
	"$BUILD/bench/gen_samples" 1000 "$dir/s.kprof"
	report() { "$KPROF" report "$dir/s.kprof" --by function --json "$@" | jq -c .; }
	[ "$(report --from=-1s | jq .window_ns)" = 1000000000 ]
	[ "$(report --from 0 | jq .samples)" = "$(report | jq .samples)" ]
	[ "$(report --to 1h | jq .samples)" = "$(report --from -1h | jq .samples)" ]
	[ "$(report | jq 'has("range")')" = false ]
	"$KPROF" report "$dir/s.kprof" --by function --from 0 --to 1s | grep -qE '^selected range: 1.000s, [0-9]+ samples \([0-9]+ outside of it\)$'
}

hints() { # REGEX
	grep -qE "^hint: .*$1" "$dir/stderr" || fail "no hint like '$1' in:" "$(cat "$dir/stderr")"
}

@test "ranges that are none, and what there is" {
	"$BUILD/bench/gen_samples" 1000 "$dir/s.kprof"
	kprof_says 2 report "$dir/s.kprof" --from 1h
	refused "begins where .* has ended"
	hints "goes from 0 to [0-9.]+s"
	kprof_says 2 report "$dir/s.kprof" --from 2s --to 1s
	refused "the range is empty: it begins at 2.000000s and ends at 1.000000s"
	hints "goes from 0 to [0-9.]+s"
	kprof_says 2 export "$dir/s.kprof" --to -1h -o "$dir/x.json"
	refused "ends where .* begins"
	hints "goes from 0 to [0-9.]+s"
	[ ! -e "$dir/x.json" ]
	kprof_says 2 report "$dir/s.kprof" --from soon
	refused "'soon' is no time"
	kprof_says 2 report "$dir/s.kprof" --step 3..1
	refused "'3..1' are no steps"
	kprof_says 2 report "$dir/s.kprof" --step 3 --from 1s
	refused "either --step, or --from and --to"
	kprof_says 2 report "$dir/s.kprof" --step 3
	refused "has no steps"
	hints "ProfilerStep#7"
	"$BUILD/bench/gen_device" 300 "$dir/d.kprof"
	kprof_says 2 export "$dir/d.kprof" --step 77 -o "$dir/x.json"
	refused "no step from 77 to 77"
	hints "it has steps 2 to 6"
	kprof_says 1 export "$dir/d.kprof" --from 10us -o "$dir/x.svg"
	refused "has no samples"
	kprof_says 1 export "$dir/s.kprof" --from 0 --to 1us -o "$dir/x.svg"
	refused "has no samples in the selected range"
}

@test "a capture cut short: a part of what is left" {
	"$BUILD/bench/gen_capture" 100000 50 3 "$dir/g.kprof"
	head -c $(($(stat -c %s "$dir/g.kprof") / 2)) "$dir/g.kprof" >"$dir/cut.kprof"
	"$KPROF" export "$dir/cut.kprof" -o "$dir/all.json"
	"$KPROF" report "$dir/cut.kprof" --json >"$dir/report"
	[ "$(jq '.complete or .events < 20000' "$dir/report")" = false ]
	part_of "$dir/cut.kprof" 100000 4000000
	part_of "$dir/cut.kprof" 0 "$(jq .window_ns "$dir/report")"
}

# ---- programs that know their steps ----

# stepping NAME OF THE STEPS: recorded, $dir/NAME.kprof, with what it says of them, $dir/NAME.json
stepping() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	[ -n "$(newest_python)" ] || skip "no Python with torch here: scripts/setup check installs it"
	profiled "$1" "--stacks" "$(newest_python)" -W ignore "$WORKLOADS/steps.py" --name "$1" --iters 21
}

# Of steps 5 to 7, and of each of them, the calls that the program counted.
calls_in_steps() { # NAME FIRST LAST
	"$KPROF" report "$dir/$1.kprof" --step "$2..$3" --json |
		jq -e --slurpfile truth "$dir/$1.json" '([.rows[] | select(.name == "aten::mul").calls] | add) ==
			([$truth[0].steps[] | select(.number >= '"$2"' and .number <= '"$3"').calls] | add)' >/dev/null ||
		fail "$1: steps $2 to $3 have other calls"
}

@test "steps: torch.profiler's, with their numbers, durations and calls" {
	stepping profiler
	"$KPROF" report "$dir/profiler.kprof" --by step --json >"$dir/steps"
	"$PYTHON" "$LIB/check_range.py" steps "$dir/profiler.json" "$dir/steps"
	calls_in_steps profiler 105 107
	calls_in_steps profiler 101 101 # with one of another name inside
	"$KPROF" report "$dir/profiler.kprof" --by step >"$dir/table"
	grep -qE '^ProfilerStep#110 ' "$dir/table"
	grep -qE '^21 steps from begin to end: median .*, slowest .* \(ProfilerStep#110 of process [0-9]+\)$' "$dir/table"
	# Those in the range alone; the slowest first.
	[ "$("$KPROF" report "$dir/profiler.kprof" --by step --step 103..105 --json | jq -c '[.rows[].step]')" = '[103,104,105]' ]
	[ "$("$KPROF" report "$dir/profiler.kprof" --by step --sort total --json | jq '.rows[0].step')" = 110 ]
	# A trace of three steps has these three.
	"$KPROF" export "$dir/profiler.kprof" --step 103..105 -o "$dir/three.json"
	"$PYTHON" "$LIB/validate_trace.py" "$dir/three.json"
	[ "$(jq -c '[.traceEvents[] | select(.cat == "user_annotation" and (.name | startswith("ProfilerStep"))).name]' "$dir/three.json")" = \
		'["ProfilerStep#103","ProfilerStep#104","ProfilerStep#105"]' ]
}

@test "steps: named by the program, and numbered here" {
	stepping named
	"$KPROF" report "$dir/named.kprof" --by step --json >"$dir/steps"
	"$PYTHON" "$LIB/check_range.py" steps "$dir/named.json" "$dir/steps"
	calls_in_steps named 4 9
	[ "$(jq -r '.rows[3].name' "$dir/steps")" = "train_step 3" ]
}

@test "steps: from one optimizer's step to the next" {
	stepping optimizer
	"$KPROF" report "$dir/optimizer.kprof" --by step --json >"$dir/steps"
	# 20 before the counted ones, of which the first only opens; between step i's ends lie its calls.
	jq -e --slurpfile truth "$dir/optimizer.json" '(.rows | length) == 40 and
		.steps.slowest == 29 and ([.rows[].inexact] | add) < 5' "$dir/steps" || fail "$(jq -c '.rows[], .steps' "$dir/steps")"
	"$KPROF" report "$dir/optimizer.kprof" --step 25 --json |
		jq -e --slurpfile truth "$dir/optimizer.json" '([.rows[] | select(.name == "aten::mul").calls] | add) == $truth[0].steps[6].calls'
}

@test "steps: the slow ones are named, and what took longer in them" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	[ -n "$(newest_python)" ] || skip "no Python with torch here: scripts/setup check installs it"
	local tries=0
	until [ "$tries" -gt 0 ] && jq -e '.disturbed | not' "$dir/slow.json" >/dev/null; do # by other programs
		[ $((tries += 1)) -le 20 ] || fail "each time, the machine was too busy: $(cat "$dir/slow.json")"
		rm -f "$dir/slow.kprof"
		target_start slow "$(newest_python)" -W ignore "$WORKLOADS/slow_steps.py" --linger
		kprof_start k attach --sched -p "${pid[slow]}" -o "$dir/slow.kprof"
		target_go slow
		target_result slow
		kprof_stop k
		target_end slow
	done
	"$KPROF" report "$dir/slow.kprof" --by step --json >"$dir/steps"
	# The program's clock says how long each took. On a busy machine there are more slow ones, and waits for a CPU in them.
	jq -e --slurpfile truth "$dir/slow.json" '$truth[0] as $t |
		(.rows | length) == 30 and .steps.outliers >= 3 and
		all(.rows[]; .total_ns <= $t.took_ns[.step] and ((.outlier | not) or .of_median > 1.1)) and
		(.rows[10] | .outlier and any(.differences[]; .what == "operator" and .name == "aten::cumsum" and
			.median_ns == 0 and .ns > 0.1 * $t.planted_ns)) and
		(.rows[17] | .outlier and .wait_ns > 0.9 * $t.planted_ns and
			any(.differences[]; .what == "wait" and .name == "sleep" and .ns - .median_ns > 0.9 * $t.planted_ns)) and
		(.rows[24] | .outlier and any(.differences[]; .what == "outside of these" and
				.ns - .median_ns > 0.9 * $t.planted_ns) and
			all(.differences[]; .what != "operator" or .ns < $t.planted_ns))' "$dir/steps" >/dev/null ||
		fail "$(jq -c '.rows[] | select(.outlier)' "$dir/steps") $(cat "$dir/slow.json")"
	"$KPROF" report "$dir/slow.kprof" --by step >"$dir/table"
	grep -qE '^[0-9]+ outliers \(!\): longer than the median of its process by more than 10 %, and than 5 times' "$dir/table"
	grep -qE '^ProfilerStep#10 .* [0-9]+\.[0-9]+ ! ' "$dir/table"
	grep -A5 -E '^  ProfilerStep#10 of process [0-9]+: ' "$dir/table" | grep -qE '^    \+.* operator aten::cumsum: .* instead of 0ns$'
}

@test "processes and users: whose they are, and what each did" {
	local python other=65534 name
	[ "$(id -u)" = 0 ] || skip "needs root"
	# Processes with command lines of their own; the oldest PyTorch is there soonest.
	python=$(pythons | head -n 1)
	[ -n "$python" ] || skip "no Python with torch here: scripts/setup check installs it"
	target_start mine env "$python" -W ignore "$WORKLOADS/steps.py" --iters 6 --linger
	# It may read the tree, wherever that lies.
	target_start other setpriv --reuid "$other" --clear-groups --inh-caps +dac_read_search --ambient-caps +dac_read_search "$python" -W ignore "$WORKLOADS/steps.py" --iters 9 --linger
	kprof_start k attach --stacks -p "${pid[mine]},${pid[other]}" -o "$dir/two.kprof"
	for name in mine other; do target_go "$name"; done
	for name in mine other; do target_result "$name"; done
	kprof_stop k
	"$KPROF" report "$dir/two.kprof" --by process --json >"$dir/processes"
	"$KPROF" report "$dir/two.kprof" --by user --json >"$dir/users"
	"$KPROF" export "$dir/two.kprof" -o "$dir/all.json"
	for name in mine other; do
		# Its operators, as the trace has them, and its user, as it says itself.
		jq -e --slurpfile truth "$dir/$name.json" --slurpfile trace "$dir/all.json" '
			$truth[0].pid as $pid | ([$trace[0].traceEvents[] | select(.cat == "cpu_op" and .pid == $pid)] | length) as $ops |
			.rows[] | select(.pid == $pid) | .calls == $ops and $ops > 50 and .uid == $truth[0].uid and
			.op_ns > 0 and (.command | test("steps.py"))' "$dir/processes" || fail "$name: $(jq -c '.rows[]' "$dir/processes")"
		jq -e --slurpfile truth "$dir/$name.json" --slurpfile processes "$dir/processes" '
			.rows[] | select(.uid == $truth[0].uid) | .processes == 1 and
			.calls == ($processes[0].rows[] | select(.pid == $truth[0].pid).calls)' "$dir/users"
	done
	[ "$(jq -r '.rows[] | select(.uid == 0).user' "$dir/users")" = "$(id -un 0)" ]
	[ "$(jq -r '.rows[] | select(.uid == '"$other"').user' "$dir/users")" = "$(getent passwd "$other" | cut -d: -f1)" ]
	jq -e '([.rows[].samples] | add) == .samples.samples' "$dir/processes"
	for name in mine other; do target_end "$name"; done
}
