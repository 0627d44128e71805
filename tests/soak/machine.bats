#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# The long forms of two tests of machine.bats: threads that use more CPU time, and file systems that come and go for longer. Only
# in `make soak`.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/../lib/harness.bash"

@test "many threads and many mounts, for long" {
	KPROF_THREAD_MS=60 KPROF_MOUNTS=5000 KPROF_PATIENCE=1200 bats --filter 'two thousand threads|file systems that come and go' "$BATS_TEST_DIRNAME/../machine.bats"
}
