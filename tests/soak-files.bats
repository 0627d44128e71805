#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Files of a target are cut short, overwritten and restored at random while kprof reads them, whatever it does: it ends by itself,
# with a result or an error, and the target, which does not use what is damaged, goes on.
#   KPROF_ROUNDS   how many times everything is done (2; 300 with KPROF_SOAK, which `make soak` sets)
#   KPROF_SEED     the random changes of an earlier run

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	inject_setup inject_driver
	rounds=${KPROF_ROUNDS:-$([ -n "${KPROF_SOAK:-}" ] && echo 300 || echo 2)}
	: "${KPROF_SEED:=$SRANDOM}"
	echo "KPROF_SEED=$KPROF_SEED"
}

teardown() {
	harness_teardown
}

# The library that the target calls, with much behind what a loader maps: symbols and DWARF.
make_library() {
	{
		for ((i = 0; i < 200; i++)); do
			echo "static unsigned long turn$i(unsigned long n) { for (unsigned long i = 0; i < n % 7; i++) n ^= n << $((i % 9 + 1)); return n; }"
		done
		echo "unsigned long turns(unsigned long n) { unsigned long sum = 1; while (n--) {"
		for ((i = 0; i < 200; i++)); do echo "sum += turn$i(sum);"; done
		echo "n -= n ? 1 : 0; } return sum; }"
	} >"$dir/used.c"
	gcc -O1 -g -fno-inline -shared -fPIC -o "$dir/libused.so" "$dir/used.c"
}

# ends STATUSES COMMAND…: kprof ends by itself, with one of these
ends() {
	local statuses=$1 status=0
	shift
	timeout -s KILL "$PATIENCE" "$@" >"$dir/said" 2>&1 || status=$?
	[[ " $statuses " == *" $status "* ]] || fail "exit status $status: $*" "$(cat "$dir/said")" || return 1
	[ "$status" = 0 ] || grep -qE 'error|failed' "$dir/said" || fail "no reason: $*" "$(cat "$dir/said")" || return 1
	[ "$status" != 0 ] || worked=$((worked + 1))
	! ended "${pid[target]}" || fail "the target died: $*" "$(cat "$dir/target.err")"
}

@test "a target's files change at random while it is recorded, sampled, looked at and injected into" {
	local target round worked=0 seconds
	make_library
	cp "$BUILD/workloads/gcc/libtorch_cpu.so" "$BUILD/sim/13/libcuda.so.1" "$dir/"
	cp "$(ldd "$BUILD/workloads/gcc/opdriver" | sed -n 's/.*libstdc++\.so.* => \([^ ]*\).*/\1/p')" "$dir/libstdc++.so.6"
	target_start target "$PYTHON" "$WORKLOADS/files_target.py" "$dir/libused.so" "$dir"/{libtorch_cpu.so,libcuda.so.1,libstdc++.so.6}
	target_start damage "$PYTHON" "$WORKLOADS/files_damage.py" "$KPROF_SEED" \
		"$dir"/{libtorch_cpu.so,libcuda.so.1,libstdc++.so.6} -- "$dir/libused.so"
	target=${pid[target]}
	for ((round = 0; round < rounds; round++)); do
		seconds=0.$((RANDOM % 3 + 1))
		ends "0 1 3" "$KPROF" attach -p "$target" --stacks -d "$seconds"s -o "$dir/a.kprof" || return 1
		ends "0 1 3" "$KPROF" sample -p "$target" -d "$seconds"s -F 499 -o "$dir/s.kprof" || return 1
		[ ! -e "$dir/s.kprof" ] || ends 0 "$KPROF" report "$dir/s.kprof" --by line || return 1
		ends "0 1 3" "$KPROF" dump -p "$target" || return 1
		ends "0 1 3" "$KPROF" check -v -p "$target" || return 1
		ends "0 1 3" "$inject/inject_driver" "$target" "$agent" || return 1
	done
	echo "$worked of $((6 * rounds)) worked"
	# Some of it was in vain, and the files have changed all the while.
	target_go damage && target_result damage && target_end damage || return 1
	jq -e '.changes | min > 10' "$dir/damage.json"
	# As they are again, all goes well.
	ends 0 "$KPROF" attach -p "$target" -d 0.1s -o "$dir/a.kprof"
	ends 0 "$inject/inject_driver" "$target" "$agent"
	target_go target && target_result target && target_end target || return 1
	jq -e '.wrong == 0 and .rounds > 10 and .files == 3' "$dir/target.json"
}
