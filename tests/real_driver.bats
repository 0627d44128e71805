#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# NVIDIA's own libcuda where there is no device: it loads, answers, and loads what CUDA_INJECTION64_PATH names. The library is
# Debian's, as scripts/setup check brings it.

bats_require_minimum_version 1.5.0
# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

# Called by root, the library makes a device file even where there is no driver.
setup_file() {
	[ -e /dev/nvidiactl ] || export KPROF_NO_NVIDIACTL=1
}

teardown_file() {
	[ -z "${KPROF_NO_NVIDIACTL:-}" ] || rm -f /dev/nvidiactl
}

setup() {
	harness_setup
	cuda=${KPROF_CACHE:-/var/cache/kprof}/libcuda/libcuda.so.1
	[ -e "$cuda" ] || skip "no libcuda of NVIDIA's: scripts/setup check unpacks it where apt has Debian's non-free"
	unset CUDA_INJECTION64_PATH KPROF_AGENT_WAIT_MS
}

teardown() {
	harness_teardown
}

agent_is_gone() { # PID
	! grep -qs '^kprof-agent$' "/proc/$1/task/"*/comm
}

# The code of the library in the process is that of the file.
code_is_unchanged() { # PID
	"$PYTHON" - "$1" "$(readlink -f "$cuda")" <<-'END'
		import sys

		pid, path = sys.argv[1:]
		found = 0
		with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory, open(path, "rb") as file:
		    for line in maps:
		        addresses, rights, offset, *_ = line.split()
		        if not line.rstrip().endswith(path) or "x" not in rights:
		            continue
		        start, end = (int(a, 16) for a in addresses.split("-"))
		        memory.seek(start)
		        file.seek(int(offset, 16))
		        code = file.read(end - start)
		        assert memory.read(len(code)) == code, "the code differs"
		        found += 1
		assert found, "the library is not mapped"
	END
}

@test "real libcuda, by attach: every call and its error, and nothing is left behind" {
	target_start target "$PYTHON" "$WORKLOADS/real_libcuda.py" "$cuda" --linger
	kprof_start k attach --no-agent -p "${pid[target]}" -o "$dir/k.kprof"
	target_go target
	target_result target
	kprof_stop k
	code_is_unchanged "${pid[target]}"
	target_go target
	target_end target
	exported k
	"$PYTHON" "$LIB/compare_calls.py" "$dir/k.trace.json" "$dir/target.json"
	grep -q 'CUDA_ERROR_NO_DEVICE (100)' "$dir/k.trace.json"
	"$KPROF" report --by api --json "$dir/k.kprof" >"$dir/api"
	# All of them fail; of the first, from which kprof learns where they return to, that may not be known.
	inits=$(jq '[.calls[] | select(.name == "cuInit")] | length' "$dir/target.json")
	errors=$(jq '.rows[] | select(.name == "cuInit").errors' "$dir/api")
	((errors == inits || errors == inits - 1)) || fail "$errors of $inits calls failed"
}

@test "real libcuda, by run: it loads the agent, which says what it finds" {
	"$KPROF" run -o "$dir/k.kprof" -- "$PYTHON" "$WORKLOADS/real_libcuda.py" "$cuda" --now >"$dir/out" 2>"$dir/err"
	exported k
	jq -e '[.kprof.meta | to_entries[] | select(.key | startswith("agent."))] | length == 1 and
		(.[0].value | .injected == false and .state == "failed" and .cuda_driver_version > 12000)' "$dir/k.trace.json"
	grep -q '^kprof: no device activities of process' "$dir/err"
}

@test "real libcuda, by attach: the agent is put in, answers, and leaves" {
	target_start target "$PYTHON" "$WORKLOADS/real_libcuda.py" "$cuda" --linger
	target_go target
	target_result target
	kprof_start k attach -v -p "${pid[target]}" -o "$dir/k.kprof"
	wait_for "$PATIENCE" "the agent" grep -q "^kprof: injected the agent into process ${pid[target]}" "$dir/k.err"
	kprof_stop k
	wait_for "$PATIENCE" "the agent's thread to end" agent_is_gone "${pid[target]}"
	code_is_unchanged "${pid[target]}"
	target_go target
	target_end target
	exported k
	jq -e ".kprof.meta[\"agent.$(jq .pid "$dir/target.json")\"] | .injected and .cuda_driver_version > 12000 and
		(.detail | contains(\"cuInit was not called, or failed\"))" "$dir/k.trace.json"
}
