#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Calls of MPI: what they communicate, against the program's own books.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	own_targets
}

teardown() {
	harness_teardown
}

# recorded IMPLEMENTATION ARGUMENT…: two ranks under its mpirun; the judge gets the arguments
recorded() {
	local implementation=$1 more=()
	shift
	command -v "mpicc.$implementation" "mpirun.$implementation" >"$dir/found" ||
		skip "no $implementation: scripts/setup check installs it"
	[ "$implementation" = mpich ] || more=(--allow-run-as-root --oversubscribe)
	mkdir "$dir/books"
	"mpicc.$implementation" -O2 -o "$dir/mpiops" "$WORKLOADS/mpiops.c"
	profiled "$implementation" '' "mpirun.$implementation" "${more[@]}" -n 2 "$dir/mpiops" "$dir/books" 40
	"$PYTHON" "$LIB/check_mpi.py" "$@" "$dir/$implementation.trace.json" "$dir/books/0.json" "$dir/books/1.json"
}

@test "Open MPI: collectives, messages and waits of two ranks, with what each communicates" {
	recorded openmpi
}

@test "MPICH: the same, but for what its handles do not say" {
	recorded mpich --handles
}
