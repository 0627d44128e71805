#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,long
# kill -9 of what puts the agent into a process, at every single step and at random moments: the target ends with the
# right result, and the next injection removes what is left.
#   KPROF_KILLS   how many at random moments (40; 1,000 with KPROF_SOAK, which `make soak` sets)
#   KPROF_SEED    the random moments of an earlier run

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	inject_setup kill_at
	kills=${KPROF_KILLS:-$([ -n "${KPROF_SOAK:-}" ] && echo 1000 || echo 40)}
	RANDOM=${KPROF_SEED:=$((SRANDOM % 32768))}
	echo "KPROF_SEED=$KPROF_SEED"
}

teardown() {
	harness_teardown
}

# A thread has ended, or is seen once with no signals blocked but SIGUSR2, and what the workloads block for a moment: glibc
# blocks all of them where a thread begins and ends, and where it makes one.
signals_are_open() { # TASK'S FOLDER
	local blocked
	blocked=$(sed -n 's/^SigBlk:[[:space:]]*//p' "$1/status" 2>/dev/null) || return 0
	[ -z "$blocked" ] || [ $((0x$blocked & ~0x2a00)) = 0 ]
}

# ends_well NAME [FILTER]: one more injection succeeds and leaves nothing; then the target's own result
ends_well() {
	local task
	"$inject/inject_driver" "${pid[$1]}" "$agent" >"$dir/last" || fail "$(cat "$dir/last")" || return 1
	[ -z "$(find "/proc/${pid[$1]}/fd" -lname '*memfd:libkprof_agent*')" ] || fail "a memfd is left" || return 1
	[ "$(grep -c 'r-xp.*memfd:libkprof_agent' "/proc/${pid[$1]}/maps")" = 1 ] || fail "a mapping is left" || return 1
	for task in "/proc/${pid[$1]}"/task/*; do
		wait_for "$PATIENCE" "the signals of $task" signals_are_open "$task" || return 1
	done
	target_go "$1"
	target_result "$1" || return 1
	jq -e ".errors == 0 and .loads == 1 and .starts >= 1 and (${2:-.eintr == 0 and .early == 0})" "$dir/$1.json" >/dev/null ||
		fail "$(cat "$dir/$1.json" "$dir/$1.err")" || return 1
	wait "${pid[$1]}" || [ -n "${2:-}" ] || fail "$1: exit status $?" || return 1
	unset "pid[$1]" "fd[$1]"
}

# killed_everywhere KIND [FILTER]: before and behind each system call by which the injector acts on others
killed_everywhere() {
	local n status=0
	target_start "t-$1" "$inject/inject_target" "$1" --alone || return 1
	for ((n = 0; n < 400; n++)); do
		status=0
		timeout 60 "$inject/kill_at" "$n" "$inject/inject_driver" "${pid[t-$1]}" "$agent" >/dev/null || status=$?
		! ended "${pid[t-$1]}" || fail "the target died at $n" || return 1
		[ "$status" = 0 ] || break
	done
	# 3: it came through, so all steps have been had; there are some dozens
	[ "$status" = 3 ] && [ "$n" -gt 40 ] || fail "status $status at step $n" || return 1
	ends_well "t-$1" "${2:-}"
}

@test "killed at every step: a thread that computes" {
	killed_everywhere vector
	killed_everywhere malloc
	[ -z "${KPROF_SOAK:-}" ] || killed_everywhere x87
}

@test "killed at every step: a thread that waits" {
	killed_everywhere nanosleep
	killed_everywhere futex
	if [ -n "${KPROF_SOAK:-}" ]; then
		killed_everywhere poll
		killed_everywhere select
	fi
	# Stopping these is enough for them to end with EINTR, until it is undone (signal(7)).
	killed_everywhere epoll '.eintr < 10'
}

# killed_at_random KINDS KILLS
killed_at_random() {
	local i
	target_start t "$inject/inject_target" "$1" || return 1
	for ((i = 0; i < $2; i++)); do
		spawn k "$inject/inject_driver" "${pid[t]}" "$agent" 1000000
		sleep "0.0$(printf %04d $((RANDOM * 400 / 32768 + 10)))"
		kill -KILL "${pid[k]}" 2>/dev/null || true
		wait "${pid[k]}" || true
		unset "pid[k]"
		! ended "${pid[t]}" || fail "the target died at kill $i" || return 1
	done
	ends_well t
}

@test "killed at random moments: threads that wait" {
	killed_at_random read,futex,cond,poll,ppoll,select,nanosleep,clock,pause $((kills / 2))
}

@test "killed at random moments: threads that work" {
	killed_at_random malloc,dlopen,printf,fork,vfork,signal,errno,vector,spin,x87 $((kills / 2))
}

# ---- while making a thread takes long (tests/workloads/inject_slow.c) ----

# is_back NAME: its first thread, which is the one that is borrowed, is at its own work
is_back() {
	signals_are_open "/proc/${pid[$1]}/task/${pid[$1]}"
}

slow_start() { # NAME MILLISECONDS
	target_start "$1" env LD_PRELOAD="$inject/libslow.so" INJECT_SLOW_MS="$2" "$inject/inject_target" nanosleep --alone
}

@test "killed at random moments while the thread that it holds takes long to make another" {
	local i held=0 ms=400
	slow_start t "$ms"
	for ((i = 0; i < kills / 4; i++)); do
		spawn k "$inject/inject_driver" "${pid[t]}" "$agent"
		sleep "0.$(printf %03d $((RANDOM * 3 * ms / 2 / 32768)))"
		is_back t || held=$((held + 1))
		kill -KILL "${pid[k]}" 2>/dev/null || true
		wait "${pid[k]}" || true
		unset "pid[k]"
		! ended "${pid[t]}" || fail "the target died at kill $i" || return 1
		wait_for "$PATIENCE" "the thread to be back after kill $i" is_back t || return 1
	done
	echo "held at $held of $i kills"
	[ "$held" -gt 0 ]
	ends_well t
}

# begin_lost N: an injection that cannot come through in time, killed at step N
begin_lost() {
	slow_start "t$1" 3000 || return 1
	spawn "k$1" "$inject/kill_at" "$1" "$inject/inject_driver" "${pid[t$1]}" "$agent"
}

# again_lost N [EXPECTED STATUS]: the next one, once the thread is back
again_lost() {
	local status=0
	wait_for "$PATIENCE" "the end of the injection that is killed at $1" ended "${pid[k$1]}" || return 1
	wait "${pid[k$1]}" || status=$?
	[ "$status" = "${2:-0}" ] || fail "status $status at step $1" || return 1
	wait_for "$PATIENCE" "the thread to be back after step $1" is_back "t$1" || return 1
	spawn "k$1" "$inject/inject_driver" "${pid[t$1]}" "$agent"
}

# end_lost N: either the thread was put back, and the process is not tried again; or the thread has come through by itself,
# since kprof was gone, and the second time it is put back. The target ends as if nothing had been.
end_lost() {
	wait_for "$PATIENCE" "the end of the second injection after $1" ended "${pid[k$1]}" || return 1
	wait "${pid[k$1]}" || true
	unset "pid[k$1]"
	case $(cat "$dir/k$1.out") in
	"failed 35:"*"was put back to its own work"*) came_through=$((came_through + 1)) ;;
	"failed 35:"*"was lost in an earlier attempt"*) put_back=$((put_back + 1)) ;;
	*) fail "after step $1: $(cat "$dir/k$1.out")" || return 1 ;;
	esac
	target_go "t$1" && target_result "t$1" || return 1
	jq -e '.errors == 0 and .eintr == 0 and .early == 0 and .rounds > 0' "$dir/t$1.json" >/dev/null ||
		fail "$(cat "$dir/t$1.json" "$dir/t$1.err")" || return 1
	target_end "t$1"
}

@test "killed at each step by which a thread that does not come back in time is put back" {
	local n last steps put_back=0 came_through=0
	begin_lost 99999
	wait_for "$PATIENCE" "the injection to give up" ended "${pid[k99999]}"
	grep -q 'failed 35:.*was put back to its own work' "$dir/k99999.out"
	last=$(sed -n 's/^COUNT //p' "$dir/k99999.out")
	[ "$last" -gt 40 ]
	again_lost 99999 3
	end_lost 99999
	[ "$put_back" = 1 ]
	# All wait at once. The first of them is killed before it knows that the thread is late.
	steps=$([ -n "${KPROF_SOAK:-}" ] && echo "$last" || echo 10)
	for ((n = last - steps; n < last; n++)); do begin_lost "$n" || return 1; done
	for ((n = last - steps; n < last; n++)); do again_lost "$n" || return 1; done
	for ((n = last - steps; n < last; n++)); do end_lost "$n" || return 1; done
	echo "put back: $put_back, came through by itself: $came_through"
	[ "$put_back" -gt 1 ] && [ "$came_through" -gt 0 ]
}
