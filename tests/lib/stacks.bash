# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034 # CHECKS: the suites
# Helpers for the suites that compare samples with programs that know their stacks (tests/stacks), on top of harness.bash.

STACKS=$BUILD/stacks
CHECKS=$ROOT/tests/stacks
export BUILD

stacks_setup() {
	harness_setup
	[ -x "$STACKS/stackdump" ] || fail "the test programs are not built: make stacks"
}
