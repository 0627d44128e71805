#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,long
# The agent is put into running processes: whatever they do, they go on as if nothing had been; what cannot be done
# safely is refused with a reason. The library that is put in here only counts (tests/inject/agent.c).

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	inject_setup inject_driver
}

teardown() {
	local mounted
	for mounted in "$dir"/*/proc; do ! mountpoint -q "$mounted" || umount "$mounted"; done
	harness_teardown
}

said_pid() { # NAME: as it numbers itself
	sed -n 's/^READY //p' "$dir/$1.out" | tail -n 1
}

# put_in PID [TIMES]: and the library was loaded at most once
put_in() {
	"$inject/inject_driver" "$1" "$agent" "${2:-1}" >"$dir/put_in" || fail "$(cat "$dir/put_in")" || return 1
	[ "$(grep -c '^ok held_ns=[1-9]' "$dir/put_in")" = "${2:-1}" ] || fail "$(cat "$dir/put_in")"
}

# refused PID WORDS [LIBRARY]: and nothing is left in it
refused() {
	local target=$1 words=$2 library=${3:-$agent}
	run "$inject/inject_driver" "$target" "$library"
	[ "$status" != 0 ] && [[ $output == *"$words"* ]] || fail "exit status $status: $output" || return 1
	nothing_left "$target"
}

nothing_left() { # PID: no memfd, no mapping of one
	! grep -s 'memfd:libkprof_agent' "/proc/$1/maps" || fail "a mapping is left" || return 1
	no_memfd "$1"
}

no_memfd() { # PID
	[ -z "$(find "/proc/$1/fd" -lname '*memfd:libkprof_agent*' 2>/dev/null)" ] || fail "a memfd is left"
}

# went_well NAME STARTS: nothing wrong, no EINTR, nothing early; loaded once and started so often, and once more each time
# that a busy machine made the injector believe that it had not worked
went_well() {
	jq -e --argjson starts "$2" '.errors == 0 and .eintr == 0 and .early == 0 and .rounds > 0
		and .loads == 1 and .starts >= $starts and .threads == .starts' "$dir/$1.json" >/dev/null ||
		fail "$(cat "$dir/$1.json" "$dir/$1.err")"
}

# through TIMES KIND [PROGRAM]: one process with one thread that does this, all the while
through() {
	target_start "t-$2" "$inject/${3:-inject_target}" "$2" --alone || return 1
	put_in "${pid[t-$2]}" "$1" || fail "$2" || return 1
	no_memfd "${pid[t-$2]}" || return 1
	target_go "t-$2" && target_result "t-$2" && went_well "t-$2" "$1" && target_end "t-$2"
}

@test "a thread that waits in the kernel: no EINTR, nothing early" {
	for kind in futex cond poll ppoll select epoll nanosleep clock sigwait; do through 20 "$kind" || return 1; done
}

in_call() { # PID NUMBER: its first thread waits in that system call
	[ "$(cut -d ' ' -f 1 "/proc/$1/syscall")" = "$2" ]
}

@test "a wait that was interrupted before and may not be restarted is not used" {
	local futex=202 restart=219
	target_start t "$PYTHON" "$WORKLOADS/inject_interrupted.py"
	wait_for "$PATIENCE" "its wait" in_call "${pid[t]}" "$futex"
	pause_process "${pid[t]}"
	kill -CONT "${pid[t]}"
	wait_for "$PATIENCE" "the restarted wait" in_call "${pid[t]}" "$restart"
	put_in "${pid[t]}"
	# It was put in after the wait, which nothing has cut short.
	grep -qx 'WAITED ETIMEDOUT' "$dir/t.out"
	target_end t
}

@test "a thread that computes: registers, vectors, x87, flags, red zone, errno" {
	for kind in spin vector x87 errno; do through 50 "$kind" || return 1; done
}

@test "a thread that is in malloc, stdio, the loader, fork, or its handlers most of the time" {
	for kind in malloc printf dlopen fork vfork signal; do through 20 "$kind" || return 1; done
}

@test "a program whose stacks cannot be unwound" {
	for kind in spin nanosleep malloc; do through 10 "$kind" inject_target-no-tables || return 1; done
}

waits=read,futex,cond,poll,ppoll,select,nanosleep,clock,pause

# at_once KIND[,KIND…]: a thread each
at_once() {
	target_start all "$inject/inject_target" "$1"
	put_in "${pid[all]}" 100
	[ "$(grep -c was_loaded=0 "$dir/put_in")" = 1 ]
	target_go all
	target_result all
	went_well all 100
	target_end all
}

@test "many threads that do all of it at once" {
	at_once malloc,dlopen,printf,signal,errno,vector,spin,x87,$waits,epoll,sigwait
}

# A child's end while the thread that made it is held: the kernel, which hides no signal from a tracer, sends the SIGCHLD that
# everybody ignores to another thread. That ends a call which no signal restarts, epoll_wait() or sigtimedwait().
@test "many threads, some of which have children" {
	at_once malloc,dlopen,printf,fork,vfork,signal,errno,vector,spin,x87,$waits
}

@test "a thread waits for all others to answer a signal of glibc's (setuid) meanwhile" {
	target_start t "$inject/inject_target" setuid,malloc,spin
	put_in "${pid[t]}" 50
	target_go t
	target_result t
	went_well t 50
	target_end t
}

@test "a library that does not start, or does not load, leaves nothing" {
	target_start t "$inject/inject_target" nanosleep
	refused "${pid[t]}" "did not start: No space left" "$inject/fails/libkprof_agent.so"
	refused "${pid[t]}" "undefined symbol: there_is_no_such_function" "$inject/missing/libkprof_agent.so"
	refused "${pid[t]}" "not an ELF file" /etc/passwd
	put_in "${pid[t]}" 1
	target_go t
	target_result t
	went_well t 1
	target_end t
}

@test "every CPython there is" {
	local python nr=0
	for python in /usr/bin/python3 "$HOME"/.pyenv/versions/*/bin/python; do
		[ -x "$python" ] || continue
		nr=$((nr + 1))
		target_start "py$nr" "$python" "$BATS_TEST_DIRNAME/workloads/inject_python.py"
		put_in "${pid[py$nr]}" 5 || fail "$python" || return 1
		target_go "py$nr"
		target_result "py$nr"
		grep -q '"wrong": 0' "$dir/py$nr.json" || fail "$python: $(cat "$dir/py$nr.json")" || return 1
		target_end "py$nr"
	done
}

@test "PyTorch trains to the same bits" {
	local python
	python=$(newest_python)
	[ -n "$python" ] || skip "no Python with PyTorch (KPROF_TORCH_PYTHONS): scripts/setup check installs it"
	target_start alone "$python" "$BATS_TEST_DIRNAME/workloads/inject_torch.py"
	# Two lines: it trains once.
	target_go alone && target_go alone && target_result alone && target_end alone
	target_start t "$python" "$BATS_TEST_DIRNAME/workloads/inject_torch.py"
	target_go t
	put_in "${pid[t]}" 30 # however long that takes: it trains as long
	target_go t
	target_result t
	diff "$dir/alone.json" "$dir/t.json"
	target_end t
}

@test "other PID and mount namespaces, with a root and libraries of their own" {
	local root=$dir/root file
	for file in $(ldd "$inject/inject_target" | grep -o '/[^ ]*'); do
		mkdir -p "$root/${file%/*}"
		cp -L "$file" "$root/$file"
	done
	mkdir -p "$root/bin" "$root/proc"
	cp "$inject/inject_target" "$root/bin/"
	# shellcheck disable=SC2016 # expanded inside
	target_start t "${own_mounts[@]}" -pf sh -c 'mount -t proc proc "$0/proc"; exec chroot "$0" /bin/inject_target malloc,nanosleep' "$root"
	[ "$(said_pid t)" = 1 ]
	host=$(pgrep -P "${pid[t]}")
	put_in "$host" 20
	target_go t
	target_result t
	went_well t 20
	target_end t
	umount -l "$root/proc" 2>/dev/null || true # where mounts are shared
}

@test "refused: no /proc in the target's mount namespace" {
	# shellcheck disable=SC2016 # expanded inside
	target_start t "${own_mounts[@]}" sh -c 'mount --make-private /proc && mount -t tmpfs none /proc && exec "$0" nanosleep' "$inject/inject_target"
	refused "${pid[t]}" "sees no /proc"
	target_end t
}

@test "refused: static, 32-bit, musl" {
	local kind
	declare -A words=([static]="is a static program" [static-pie]="is a static program" [32bit]="is a 32-bit program"
		[musl]="uses musl" [musl-static]="is a static program")
	for kind in "${!words[@]}"; do
		if [ ! -x "$inject/$kind" ]; then
			[[ $kind == musl* ]] || fail "$kind is not built" || return 1
			continue # no musl-gcc here
		fi
		target_start "$kind" "$inject/$kind"
		refused "${pid[$kind]}" "${words[$kind]}" || fail "$kind" || return 1
		target_end "$kind"
	done
}

# mode MODE WORDS: refused with these; none: it works
mode() {
	target_start "$1" "$inject/inject_modes" "$1" || return 1
	# In that mode nothing could be said any more.
	[ "$1" != filter-strict ] || wait_for "$PATIENCE" "strict mode" grep -q '^Seccomp:.1' "/proc/$(said_pid "$1")/status" || return 1
	if [ -n "${2:-}" ]; then
		refused "$(said_pid "$1")" "$2" || fail "$1" || return 1
	else
		put_in "$(said_pid "$1")" 2 || fail "$1" || return 1
	fi
	target_end "$1" || fail "$1: $(cat "$dir/$1.err")" || return 1
	[ ! -s "$dir/$1.err" ] || fail "$1: $(cat "$dir/$1.err")"
}

@test "refused: a C library without threads" {
	local libc
	libc=$(ldd "$inject/inject_malloc" | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')
	mkdir "$dir/lib"
	# Of the same length: everything else stays where it is.
	LC_ALL=C sed 's/\x00pthread_create\x00/\x00pthread_Create\x00/' "$libc" >"$dir/lib/libc.so.6"
	grep -qa pthread_Create "$dir/lib/libc.so.6"
	target_start t env LD_LIBRARY_PATH="$dir/lib" "$inject/inject_malloc" 20
	refused "${pid[t]}" "has a C library without pthread_create()"
	target_go t
	target_result t
	target_end t
}

@test "seccomp: containers' filters allow it; what would end the process is seen before" {
	mode filter-allows
	mode filter-kills "a seccomp filter of process"
	mode filter-errno "forbids clone"
	mode filter-strict "strict mode"
}

@test "processes that are not dumpable, or another user's" {
	mode not-dumpable
	mode other-user
}

@test "refused: traced, in vfork, on a signal's stack, out of descriptors" {
	mode traced "is traced by process"
	mode vfork "shares its parent's memory"
	mode altstack "on a stack that is not the thread's own"
	mode no-files "Too many open files"
}

@test "refused: a stopped process, which stays stopped; one that is gone; a kernel thread; kprof itself" {
	target_start t "$inject/inject_target" nanosleep
	pause_process "${pid[t]}"
	refused "${pid[t]}" "is stopped"
	grep -q '^State:.T' "/proc/${pid[t]}/status"
	kill -CONT "${pid[t]}"
	target_end t
	refused "$(said_pid t)" "no process"
	refused 2 "is a kernel thread"
}

@test "refused without the right to trace" {
	target_start t "$inject/inject_modes" not-dumpable
	# Where another user may read it.
	local public status=0 output
	public=$(mktemp -d /tmp/kprof-inject.XXXXXX)
	cp "$inject/inject_driver" "$agent" "$public"
	chmod 755 "$public" "$public"/*
	output=$(setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \
		"$public/inject_driver" "${pid[t]}" "$public/${agent##*/}" 2>&1) || status=$?
	rm -r "$public"
	[ "$status" = 3 ]
	[[ $output == *"hint: run it with sudo"* ]] || fail "$status: $output"
	target_end t
}

@test "SIGSTOP and SIGCONT while it is done" {
	target_start t "$inject/inject_target" nanosleep,spin,malloc
	(
		while kill -0 "${pid[t]}" 2>/dev/null; do
			kill -STOP "${pid[t]}"
			sleep 0.01
			kill -CONT "${pid[t]}"
			sleep 0.02
		done
	) 3>&- &
	stopper=$!
	for ((i = 0; i < 30; i++)); do
		run "$inject/inject_driver" "${pid[t]}" "$agent"
		[ "$status" = 0 ] || [[ $output == *"is stopped"* ]] || { kill "$stopper"; fail "$output"; return 1; }
	done
	kill "$stopper"
	wait "$stopper" || true
	kill -CONT "${pid[t]}"
	target_go t
	target_result t
	jq -e '.errors == 0 and .eintr == 0 and .early == 0 and .loads <= 1' "$dir/t.json"
	target_end t
}

@test "targets that end, or execute something, meanwhile" {
	local kind
	for ((i = 0; i < 40; i++)); do
		kind=$([ $((i % 2)) = 0 ] && echo exits || echo exec)
		spawn "t$i" "$inject/inject_modes" "$kind"
		wait_for "$PATIENCE" "it to begin" grep -q READY "$dir/t$i.out"
		run "$inject/inject_driver" "${pid[t$i]}" "$agent" 3
		[ "$status" -le 1 ] || fail "$kind: $status: $output" || return 1
		if [ "$kind" = exits ]; then
			wait "${pid[t$i]}" || fail "it ended with $?" || return 1
		else
			! ended "${pid[t$i]}" || fail "it died" || return 1
			kill "${pid[t$i]}"
			wait "${pid[t$i]}" || true
		fi
		unset "pid[t$i]"
	done
}

@test "a target that puts another file in the memfd's place: kprof lends it no rights" {
	head -c 1000 /dev/urandom >"$dir/victim"
	cp "$dir/victim" "$dir/before"
	for ((i = 0; i < 10; i++)); do
		target_start "t$i" "$inject/inject_hostile" swap "$dir/victim"
		run "$inject/inject_driver" "${pid[t$i]}" "$BUILD/libkprof_agent.so"
		cmp "$dir/victim" "$dir/before" || fail "$output" || return 1
		kill -KILL "${pid[t$i]}" 2>/dev/null || true
		wait "${pid[t$i]}" || true # perhaps it has harmed itself
		unset "pid[t$i]"
	done
}

@test "a seccomp filter that kills: nothing is asked of it that it forbids" {
	local calls="72 318 39 13 334 157 28 186 271 21 435" forbidden i=0
	for forbidden in $calls ""; do
		i=$((i + 1))
		# shellcheck disable=SC2046 # words
		target_start "t$i" "$inject/inject_hostile" filter $(tr ' ' '\n' <<<"$calls" | grep -vx "${forbidden:--}")
		# READY comes before: the filter may forbid what printing needs.
		wait_for "$PATIENCE" "its filter" grep -q '^Seccomp:.2' "/proc/${pid[t$i]}/status"
		run "$inject/inject_driver" "${pid[t$i]}" "$BUILD/libkprof_agent.so"
		if [ -n "$forbidden" ]; then
			[[ $output == *"a seccomp filter of process ${pid[t$i]} forbids"* ]]
		else
			[[ $output == ok* ]]
		fi || fail "$forbidden: $output" || return 1
		target_end "t$i" || return 1
	done
}

@test "no room for another thread: said, and not tried again and again" {
	target_start t "$inject/inject_hostile" nproc
	run "$inject/inject_driver" "${pid[t]}" "$BUILD/libkprof_agent.so"
	# EIO; EAGAIN means "later"
	[[ $output == "failed 5: no thread can be made in process "*": Resource temporarily unavailable"* ]] || fail "$output"
	no_memfd "${pid[t]}"
	! grep memfd:kprof-agent-shm "/proc/${pid[t]}/maps" || fail "its memory is left"
	target_end t
}

@test "a constructor that waits for the thread that would be borrowed" {
	target_start t "$inject/inject_hostile" loading "$inject/hostile.so"
	put_in "${pid[t]}" 1
	target_end t
}

@test "a thread with a pending cancellation is not cancelled by what it is borrowed for" {
	target_start t "$inject/inject_hostile" cancelled
	put_in "${pid[t]}" 5
	target_end t
}

@test "an allocator that kprof has never heard of: no thread is used that is inside" {
	target_start t env LD_PRELOAD="$inject/libown_malloc.so" "$inject/inject_malloc" 4
	put_in "${pid[t]}" 5
	target_go t
	target_result t
	jq -e '.signals and .rounds > 0' "$dir/t.json"
	target_end t
}

# The library with the lock exports no malloc(), and is called by a jump: nothing on the stack tells of an allocator.
@test "a thread that cannot come back is put back, and the process is not tried again" {
	local before
	target_start t env LD_PRELOAD="$inject/libouter_malloc.so" "$inject/inject_malloc" 0
	before=$(grep ^SigBlk: "/proc/${pid[t]}/status")
	run "$inject/inject_driver" "${pid[t]}" "$agent"
	[[ $output == "failed 35:"*"was put back to its own work"* ]] || fail "$output"
	# The thread itself restores its signals: the first thing that it does when it has a CPU again.
	wait_for "$PATIENCE" "its own blocked signals" grep -qxF "$before" "/proc/${pid[t]}/status" || return 1
	run "$inject/inject_driver" "${pid[t]}" "$agent"
	[[ $output == "failed 35:"*"was lost in an earlier attempt"* ]] || fail "$output"
	target_go t
	target_result t
	jq -e '.signals and .rounds > 0' "$dir/t.json"
	target_end t
}

# inject_at_once SLOW_MS COMMAND…: four targets, t1 to t4, and an injection into each; loading takes so long
inject_at_once() {
	local i slow=$1
	shift
	for i in 1 2 3 4; do
		target_start "t$i" env LD_PRELOAD="$inject/libslow.so" INJECT_SLOW_MS="$slow" "$@"
		spawn "k$i" "$inject/inject_driver" "${pid[t$i]}" "$agent"
	done
}

# injection_said N REGEX: the end of the injection into tN: what it printed, and an exit status that says the same
injection_said() {
	local k=k$1 status=0
	wait_for "$PATIENCE" "the end of injection $1" ended "${pid[$k]}" || return 1
	wait "${pid[$k]}" || status=$?
	unset "pid[$k]"
	grep -E "$2" "$dir/$k.out" || fail "injection $1: $(cat "$dir/$k.out" "$dir/$k.err")" || return 1
	[ "$status" = "$(grep -c '^failed' "$dir/$k.out")" ] || fail "injection $1: exit status $status"
}

# Another thread waits for its answer to a signal nearly all the time, with a lock held.
@test "a thread that is put back while all threads are asked to change the user: nobody waits for ever" {
	local i
	inject_at_once 9000 "$inject/inject_target" setuids
	for i in 1 2 3 4; do
		injection_said "$i" '^failed 35:.*was put back to its own work'
		target_go "t$i"
		target_result "t$i"
		target_end "t$i"
	done
}

# By then all that it was borrowed for is done, and it needs to be put back once only.
@test "a thread whose last system call takes too long goes on where it was" {
	local i
	inject_at_once 300 "$inject/inject_hostile" unmapping
	for i in 1 2 3 4; do
		injection_said "$i" '^(failed 35:|ok )'
		target_end "t$i"
	done
}

@test "a C library whose code the program has changed: nothing of it is executed" {
	target_start t "$inject/inject_hostile" patched
	run "$inject/inject_driver" "${pid[t]}" "$agent"
	[[ $output == "failed 71:"*"is not what is in its file"* ]] || fail "$output"
	nothing_left "${pid[t]}"
	target_end t
}
