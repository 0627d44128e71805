#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# Targets that want to harm who profiles them: docs/security.md says what is promised.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
}

teardown() {
	harness_teardown
}

# fuse_target MODE LIBRARY: a target that maps the library from a file system of its own
fuse_target() {
	gcc -O2 -o "$dir/hostile" "$WORKLOADS/hostile.c"
	unshare --mount true 2>/dev/null || skip "no mounts here"
	[ -w /dev/fuse ] || skip "no /dev/fuse"
	target_start target "$dir/hostile" "$@"
}

library() {
	ldd "$PYTHON" | sed -n 's/.*libm\.so.* => \([^ ]*\).*/\1/p'
}

@test "a file system that does not answer holds up neither sample nor dump nor attach" {
	fuse_target silent "$(library)"
	# Each ends by itself. One that hung could not even be killed: the file system's end lets it go.
	for command in "sample -d 0.2s -o $dir/s.kprof" "dump" "attach -d 0.2s -o $dir/a.kprof"; do
		read -ra words <<<"$command"
		spawn kprof "$KPROF" "${words[0]}" -p "${pid[target]}" "${words[@]:1}"
		wait_for "$PATIENCE" "kprof ${words[0]} to end" ended "${pid[kprof]}"
		wait "${pid[kprof]}" || [ "${words[0]}" != sample ]
		grep -q "cannot be read in time" "$dir/kprof.err"
		unset "pid[kprof]"
	done
	[ "$("$KPROF" report --json "$dir/s.kprof" | jq '[.rows[].calls] | add')" -gt 0 ]
	target_end target
}

@test "no probe is placed in a file of such a file system, and kprof says why" {
	fuse_target answers "$BUILD/workloads/gcc/libtorch_cpu.so"
	run -3 "$KPROF" attach -p "${pid[target]}" -d 0.1s -o "$dir/a.kprof"
	[[ $output == *"could block every process of this machine"* ]]
	[[ $output == *"hint: "* ]]
	"$KPROF" sample -p "${pid[target]}" -d 0.2s -o "$dir/s.kprof" 2>"$dir/s.err"
	! grep "in time" "$dir/s.err"
	target_end target
}
