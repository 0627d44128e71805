#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# kprof why: programs with one planted cause each, which must be named first, and one without. The judge is the program, which
# says how much of its time the cause took by its own clock.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup_file() {
	hosts_of=newest_python torch_hosts
}

teardown_file() {
	torch_hosts_end
}

setup() {
	harness_setup
	[ -x "$BUILD/workloads/why_malloc" ] || fail "the test programs are not built: make test-programs"
	[ "$(id -u)" = 0 ] || skip "needs root"
	# So that the program gets a CPU when others want one, too.
	first=(chrt -r 1)
	"${first[@]}" true 2>/dev/null || first=(nice -n -20)
	hurry=(--hurry)
}

teardown() {
	harness_teardown
}

# recorded OPTION… -- COMMAND…: the whole measured part, $dir/c.kprof, and what is said of it: $dir/why.json, $dir/page
recorded() {
	local options=()
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	target_start target "$@" || return 1
	kprof_start kprof attach -p "${pid[target]}" --sched --stacks -o "$dir/c.kprof" "${options[@]}" || return 1
	target_go target && target_result target && kprof_stop kprof && target_end target || return 1
	"$KPROF" why --json "$dir/c.kprof" >"$dir/why.json" && "$KPROF" why "$dir/c.kprof" >"$dir/page"
}

# planted CAUSE ARGUMENT…: a program with steps. Empty hurry: it shares the CPUs with others.
planted() {
	local cause=$1
	shift
	recorded "${options[@]}" -- "$python" "$WORKLOADS/why.py" --cause "$cause" --seconds 2 "${hurry[@]}" "$@"
}

needs_torch() {
	python=$(newest_python)
	[ -n "$python" ] || skip "no Python with torch here: scripts/setup check installs it"
}

# What holds of every answer: shares are all of the time, what was found comes first, and the page fits.
sound() {
	jq -e '([.causes[].share] | add - 1 | fabs) < 1e-3 and all(.causes[]; .win <= .share + 1e-6 and (.low // 0) <= .share + 1e-6) and
		([.causes[].found] == ([.causes[].found] | sort | reverse))' "$dir/why.json" >/dev/null &&
		[ "$(wc -L <"$dir/page")" -le 100 ] && return
	fail "not sound" "$(cat "$dir/page")"
}

first_is() { # CAUSE…: found, and named first; one of these
	sound || return 1
	jq -e --arg causes "$*" '.causes[0] | .found and (.cause as $c | $causes | split(" ") | index($c) != null)' "$dir/why.json" >/dev/null ||
		fail "not first: $*" "$(cat "$dir/page")"
}

evidence() { # KIND REGEX: of the first cause
	jq -e --arg kind "$1" --arg text "$2" '.causes[0].evidence[] | select(.kind == $kind) | .text | select(test($text))' "$dir/why.json" \
		>/dev/null || fail "no $1 like $2" "$(cat "$dir/page")"
}

@test "a loader thread that computes: data" {
	needs_torch
	planted loader && first_is data gil && evidence who '^loader' && evidence doing '^(spin|make_batch)' || return 1
	jq -e '.per == "step" and .step == "ProfilerStep#N" and .steps > 5' "$dir/why.json"
}

@test "a loader process that computes: data, by the program's own clock" {
	needs_torch
	planted process && first_is data && evidence line '^Steps.waits' && evidence doing '^(spin|make_batch)' || return 1
	# No more of its time than the program itself says, but for the steps at both ends
	jq -e --slurpfile own "$dir/target.json" '.causes[0].share < $own[0].planted / $own[0].seconds + 0.05' "$dir/why.json"
}

@test "a loader that waits for its disk: the disk" {
	needs_torch
	local place=$dir
	[ "$(stat -f -c %T "$place")" != tmpfs ] || place=/var/tmp
	head -c 64M /dev/zero >"$place/kprof-why.$$"
	dd if="$place/kprof-why.$$" of=/dev/null bs=1M count=1 iflag=direct 2>/dev/null || skip "no file system here has O_DIRECT"
	planted disk --file "$place/kprof-why.$$"
	rm -f "$place/kprof-why.$$"
	first_is disk && evidence who '^loader' && evidence doing '^read_batch'
}

@test "sleeping" {
	needs_torch
	planted sleep && first_is sleep && evidence line 'why.py'
}

@test "another Python thread that computes: the GIL, and who has it" {
	needs_torch
	planted gil && first_is gil && evidence doing '^hog'
}

@test "thousands of tiny operators: launching" {
	needs_torch
	options=(--ring 256M)
	planted tiny --seconds 1 && first_is launching && evidence operator '^aten::'
}

@test "more processes than CPUs: the run queue" {
	needs_torch
	hurry=()
	planted cpus && first_is cpu
}

@test "a straggling rank: the collective, and what the other process does" {
	needs_torch
	planted straggler --file "$dir/ranks" --iters 40 --more 60 && first_is collective && evidence peer 'computing'
}

@test "the allocator's lock" {
	recorded -- env LD_BIND_NOW=1 "${first[@]}" "$BUILD/workloads/why_malloc" 2 && first_is lock && evidence who '^trimmer'
}

@test "a result that is read in each step: the device" {
	recorded -- env LD_LIBRARY_PATH="$BUILD/sim/13" KPROF_SIM_LAUNCH_NS=2000000 "${first[@]}" "$BUILD/sim/13/gpuops" --n 1500 --linger &&
		first_is device && evidence operator '^aten::gpu_item$' || return 1
	jq -e '.device_share > 0 and .causes[0].win <= 1 - .device_share' "$dir/why.json"
}

@test "a healthy program: nothing, but for a CPU that others take" {
	needs_torch
	planted healthy && sound || return 1
	jq -e '[.causes[] | select(.found and .cause != "cpu")] == []' "$dir/why.json" || fail "$(cat "$dir/page")"
}

@test "what the capture can't show is named, and nothing is made up for it" {
	needs_torch
	target_start target "$python" "$WORKLOADS/why.py" --cause sleep --seconds 1 --hurry || return 1
	kprof_start kprof attach -p "${pid[target]}" -o "$dir/plain.kprof" || return 1
	target_go target && target_result target && kprof_stop kprof && target_end target || return 1
	kprof_says 0 why --json "$dir/plain.kprof" || return 1
	jq -e '[.causes[] | select(.found)] == [] and (.causes[0].cause == "unknown") and
		([.not_seen[].how] | any(test("--sched")) and any(test("--stacks")))' "$dir/stdout" || fail "$(cat "$dir/stdout")" || return 1
	kprof_says 0 why "$dir/plain.kprof" && grep -q 'nothing that this capture can show' "$dir/stdout" || return 1
	refuses "is no percentage" why --least much "$dir/plain.kprof"
	kprof_says 1 why --thread 1 "$dir/plain.kprof" && refused "no thread 1 "
}
