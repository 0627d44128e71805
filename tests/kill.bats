#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# kill -9 of kprof at random moments of attach, learning, recording and detach: the target lives and ends with the right
# result, and nothing of kprof is left, in it or in the kernel.
#   KPROF_KILLS   how many (30; 1,000 with KPROF_SOAK, which `make soak` sets)
#   KPROF_SEED    the random moments of an earlier run

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	kills=${KPROF_KILLS:-$([ -n "${KPROF_SOAK:-}" ] && echo 1000 || echo 30)}
	RANDOM=${KPROF_SEED:=$((SRANDOM % 32768))}
	echo "KPROF_SEED=$KPROF_SEED"
}

teardown() {
	harness_teardown
}

now_ms() {
	local t=${EPOCHREALTIME/[.,]/}
	echo $((t / 1000))
}

# Sleeps a random part of so many milliseconds.
some_of() {
	local ms=$((RANDOM * $1 / 32768))
	sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}

# kill_at_some_moment PID ATTACH_MS: attaches to it, and kills kprof before, at, or after Ctrl-C
kill_at_some_moment() {
	spawn k "$KPROF" attach -v -p "$1" -o "$dir/k.kprof"
	if [ $((RANDOM % 3)) = 0 ]; then
		wait_for "$PATIENCE" "kprof to record" kprof_recording k
		kill -INT "${pid[k]}" # stopping takes a while, too: there
		some_of 200
	else
		some_of $((2 * $2 + 100))
	fi
	kill -KILL "${pid[k]}" 2>/dev/null || early=$((early + 1)) # it has just ended by itself
	wait "${pid[k]}" || true
	unset "pid[k]"
	rm -f "$dir"/k.kprof* "$dir"/.k.kprof*
}

attach_time() { # PID: milliseconds from the start until its probes stand
	local start
	start=$(now_ms)
	kprof_start probe attach -p "$1" -o "$dir/probe.kprof" || return 1
	attach_ms=$(($(now_ms) - start))
	kprof_stop probe
}

no_links() {
	[ "$(links_on "$1")" = 0 ]
}

# kill_often NAME LIBRARY TIMES
kill_often() {
	local name=$1 lib=$2 i early=0 target=${pid[$1]}
	attach_time "$target"
	for ((i = 0; i < $3; i++)); do
		kill_at_some_moment "$target" "$attach_ms"
		! ended "$target" || fail "the target died at kill $i" "$(cat "$dir/$name.err")"
		# The kernel takes links away after the process that held them, in its own time.
		wait_for "$PATIENCE" "the probes of kill $i to go" text_is_clean "$target" "$lib"
	done
	echo "killed $((i - early)) of $i times; attaching takes $attach_ms ms"
	[ "$early" -lt "$i" ] || fail "kprof always ended by itself first"
}

@test "a C++ target under kill -9" {
	# A copy under a name of its own: links on it are ours.
	use_kind gcc
	cp "$library" "$driver" "$dir/"
	target_start target "$dir/opdriver" spin
	target_go target
	kill_often target "$dir/libtorch_cpu.so" "$((kills * 4 / 5))"
	wait_for "$PATIENCE" "the kernel's links to go" no_links "$dir/libtorch_cpu.so"
	kill -TERM "${pid[target]}"
	target_result target
	jq -e '.ok and .iterations > 0' "$dir/target.json"
	target_end target
}

@test "a PyTorch training loop under kill -9" {
	needs_torch
	local python lib times=$((kills / 5)) begun
	python=$(newest_python)
	# As long as it is being killed; then its checksum must be that of as many undisturbed steps.
	target_start target "$python" "$WORKLOADS/transformer.py" --iters 1000000 --until-file "$dir/enough"
	lib=$(sed -nE 's/.* (\/.*libtorch_cpu\.so[^ ]*)$/\1/p' "/proc/${pid[target]}/maps" | head -n 1)
	begun=$SECONDS
	target_go target
	kill_often target "$lib" "$times"
	touch "$dir/enough"
	target_result target
	target_end target
	# As many steps take as long again, and longer where others have come to work beside it.
	PATIENCE=$((PATIENCE + 2 * (SECONDS - begun)))
	unprofiled plain "$python" "$WORKLOADS/transformer.py" --iters "$(jq .iters "$dir/target.json")"
	same_result plain target
}
