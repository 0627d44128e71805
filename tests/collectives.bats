#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# What collectives communicate: against the program's own books, and torch.profiler in the same run.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup_file() {
	torch_hosts
}

teardown_file() {
	torch_hosts_end
}

setup() {
	harness_setup
	needs_torch
}

teardown() {
	harness_teardown
}

@test "each collective of two ranks, and its work: what is communicated, in which group, as which of its collectives" {
	local python release torch
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		torch=(--settle 2)
		# 1.13 has no Kineto, and shows no ranges of gloo's.
		[[ $release == 1.13* ]] || torch=(--profile "$dir/torch-$release.json" --shapes --settle 4)
		profiled "of-$release" '' "$python" -W ignore "$WORKLOADS/collectives.py" --iters 10 "${torch[@]}"
		[[ $release == 1.13* ]] && torch=() || torch=(--torch "$dir/torch-$release.json")
		"$PYTHON" "$LIB/check_collectives.py" "$dir/of-$release.trace.json" "$dir/of-$release.json" "${torch[@]}" ||
			fail "differs with torch $release"
	done
}
