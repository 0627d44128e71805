#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# What samples stand for: the CPU time that the kernel counts, and the shares of it that other samplers see.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/stacks.bash
source "$BATS_TEST_DIRNAME/lib/stacks.bash"

setup() {
	stacks_setup
}

teardown() {
	harness_teardown
}

# The kernel counts both: what a thread ran for, and the clock that samples it. A stay on a CPU is off by less than a period at
# each of its ends, by a sixth of its square in the mean: the tolerance is four standard deviations, and a hundredth. Where a
# hypervisor takes the CPU away there is one tick when it is back, for time that the thread has not had; where it does not say so,
# the thread's clock goes on without ticks, and a step has taken long.
@test "samples stand for the CPU time that was spent: taken, of those due, within a hundredth" {
	target_start spin "$PYTHON" "$WORKLOADS/spin_cpu.py"
	kprof_start kprof sample -p "${pid[spin]}" -F 997 -o "$dir/all.kprof"
	target_go spin && target_result spin && kprof_stop kprof && target_end spin
	"$KPROF" report "$dir/all.kprof" --json | jq -e '[.sources[] | .dropped + .missed == 0] | all'
	"$STACKS/stackdump" "$dir/all.kprof" | jq -s --slurpfile spent "$dir/spin.json" -f "$LIB/cpu_time.jq" >"$dir/both"
	cat "$dir/both"
	jq -e '.lost_ns < .cpu_ns / 5 and (.sampled_ns + .lost_ns - .cpu_ns) as $more | (.cpu_ns / 100 + 4 * .sd_ns) as $room
		| -$more <= $room and $more <= $room + .stolen_ns' "$dir/both"
	# However busy the machine is: of two in one period's distance the second stands for just that: the clocks' periods differ by 33 us in the mean.
	"$STACKS/stackdump" "$dir/all.kprof" | jq -sf "$LIB/near_samples.jq" >"$dir/pairs"
	cat "$dir/pairs"
	jq -e '.pairs > 100 and .median_ns < 15000' "$dir/pairs"
}

# agree PYTHON: kprof, perf and py-spy on one training
agree() {
	local name spy
	name=torch-$(torch_release "$1")
	spy=$(dirname "${KPROF_READERS_PYTHON:-${KPROF_CACHE:-/var/cache/kprof}/readers/bin/python}")/py-spy
	[ -x "$spy" ] || spy=
	rm -f "$dir/stop"
	target_start "$name" "$1" "$WORKLOADS/cnn.py" --iters 100000000 --until-file "$dir/stop" || return 1
	target_go "$name"
	# One that goes on until PyTorch's unwind table is made, however long that takes here: it is kept for those that are compared.
	kprof_start "$name-tables" sample -p "${pid[$name]}" -o "$dir/tables.kprof" && kprof_stop "$name-tables" || return 1
	"$PYTHON" "$CHECKS/compare.py" --seconds 3 --rounds 2 --hz 199 ${spy:+--py-spy "$spy"} "$KPROF" "${pid[$name]}" "$dir" ||
		return 1
	touch "$dir/stop"
	target_result "$name" && target_end "$name"
}

@test "one training, seen by kprof, perf and py-spy: the same shares, whole stacks, nothing lost" {
	needs_torch
	local python
	# the oldest, too, in make soak
	for python in $(pythons | sed -n "${KPROF_SOAK:+1p;}\$p"); do
		echo "-- $python"
		agree "$python" || return 1
	done
}
