#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Programs that have themselves recorded (kprof/profile.h, kprof_mark.profile), as a user without privileges, by a daemon of
# the test's own; and `kprof status`. The judge of a recording is what the program has counted between start and stop.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

USER_A=65534 USER_B=61234 # nobody, and somebody who is not even known

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	[ -x "$BUILD/workloads/inside/gcc-c11" ] || fail "the test programs are not built: make workloads"
	# Where any user may go, which the suite's own folder is not.
	public=$(mktemp -d /tmp/kprof-inside.XXXXXX) && chmod 755 "$public"
	cp "$KPROF" "$BUILD"/workloads/inside/* "$WORKLOADS/inside.py" "$ROOT/share/kprof/kprof_mark.py" \
		"$BUILD/workloads/gcc/libtorch_cpu.so" "$public"
	mkdir -m 1777 "$public/out"
	socket=$public/run/socket
	export KPROF_DAEMON_SOCKET=$socket
}

teardown() {
	harness_teardown
	[ -z "${public:-}" ] || rm -rf --one-file-system "$public"
}

as() { # UID COMMAND…
	setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

listens() { file_says "$dir/daemon.err" '"event":"begun"'; }

daemon_start() { # OPTION…
	spawn daemon "$KPROF" daemon --config /dev/null --state "$public/state" --socket "$socket" --no-sampling "$@"
	wait_for "$PATIENCE" "the daemon to listen" listens
}

daemon_stop() {
	kill -TERM "${pid[daemon]}"
	wait_for "$PATIENCE" "the daemon to end" ended "${pid[daemon]}"
	wait "${pid[daemon]}" || fail "the daemon: exit status $?" "$(cat "$dir/daemon.err")"
	unset "pid[daemon]"
}

program() { # NAME UID PROGRAM MODE OPTION…: from its begin to its line of JSON
	target_start "$1" setpriv --reuid "$2" --regid "$2" --clear-groups "$public/$3" "$4" "$public/libtorch_cpu.so" "${@:5}"
	target_go "$1"
	target_result "$1"
}

python_program() { # NAME PYTHON MODE [torch]
	target_start "$1" setpriv --reuid $USER_A --regid $USER_A --clear-groups "$2" "$public/inside.py" "$3" "$public" \
		"$public/libtorch_cpu.so" "${@:4}"
	target_go "$1"
	target_result "$1"
	jq -e '.wrong == []' "$dir/$1.json"
}

# recorded NAME ID: what the user gets of this recording, and has itself, has what the program has counted, and no more.
# Set by the caller, if need be: gaps, as in a library in which kprofs of other suites have probes.
recorded() {
	local name=$1 id=$2
	as $USER_A "$public/kprof" ctl get --socket "$socket" "$id" -o "$public/out/$name.kprof"
	[ "$(stat -c '%u %a' "$public/state/recordings/$id.kprof")" = "$USER_A 600" ]
	"$KPROF" report "$public/out/$name.kprof" --json >"$dir/$name.ops"
	jq -e --slurpfile truth "$dir/$name.json" --arg gaps "${gaps:-}" '$truth[0].counts as $truth |
		([.rows[] | {(.name): .calls}] | add) as $seen | $seen == $truth or
		($gaps != "" and .gaps != [] and all($seen | to_entries[]; .value <= $truth[.key]))' "$dir/$name.ops" ||
		fail "$(jq -c .counts "$dir/$name.json"), but:" "$(jq -c '.rows[] | [.name, .calls]' "$dir/$name.ops")"
}

id_of() { # NAME
	jq -re '.stopped.id | select(. != "")' "$dir/$1.json"
}

# What goes on, in the daemon's words: "" when nothing does.
going_on() {
	"$KPROF" ctl list --socket "$socket" --json | jq -r '.recordings[] | select(.state | IN("done", "failed", "cancelled") | not).id'
}

nothing_goes_on() { [ -z "$(going_on)" ]; }

@test "inside: C and C++ programs, by two compilers and old and new standards: exactly what they did between start and stop" {
	local kind name
	daemon_start --allow-owner
	for kind in gcc-c11 gcc-gnu17 clang-c11 gcc-c++11 gcc-c++20 clang-c++11 clang-c++20; do
		program $kind $USER_A $kind plain
		jq -e '.started.code == 0 and .stopped.code == 0 and .on == 0 and .errno_kept == 1 and .started.id == .stopped.id and
			.counts["aten::fake_linear"] == 200' "$dir/$kind.json"
		recorded $kind "$(id_of $kind)"
		# It was told where the capture is, and may read it there.
		as $USER_A "$public/kprof" report "$(jq -r .stopped.path "$dir/$kind.json")" --json | diff - "$dir/$kind.ops"
		target_end $kind
	done
	daemon_stop
}

@test "inside: a scope, however it is left; options arrive as they are" {
	local id kind
	daemon_start --allow-owner
	for kind in gcc-c11 clang-c++11; do
		program $kind $USER_A $kind scope
		target_end $kind
		id=$("$KPROF" ctl list --socket "$socket" --json | jq -re '.recordings | max_by(.begun_ms).id')
		recorded $kind "$id"
		"$KPROF" export "$public/out/$kind.kprof" -o - | jq -e '.trace_id == "of \"a\" scope"'
	done
	program thrown $USER_A gcc-c++20 thrown
	jq -e '.stopped.code == 0 and .stopped.path != ""' "$dir/thrown.json"
	recorded thrown "$(jq -re .started.id "$dir/thrown.json")"
	target_end thrown
}

@test "inside: starts nest, of one thread and of many: the first begins it, the last ends it" {
	daemon_start --allow-owner
	program nested $USER_A gcc-c11 nested
	jq -e '.counts["aten::fake_linear"] == 600' "$dir/nested.json"
	recorded nested "$(id_of nested)"
	program threads $USER_A clang-c++20 threads
	jq -e '.counts["aten::fake_linear"] == 1200' "$dir/threads.json"
	recorded threads "$(id_of threads)"
	target_end nested
	target_end threads
	[ "$("$KPROF" ctl list --socket "$socket" --json | jq '.recordings | length')" = 2 ]
}

@test "inside: one thread, of which nothing is missing, and nothing of another that works beside it" {
	daemon_start --allow-owner
	program one $USER_A gcc-c11 thread
	jq -e '.counts["aten::fake_linear"] == 200' "$dir/one.json"
	recorded one "$(id_of one)"
	target_end one
}

@test "inside: a thread in a PID namespace of its own, whose numbers the daemon does not have" {
	local inside="unshare --pid --fork --kill-child setpriv --reuid $USER_A --regid $USER_A --clear-groups"
	daemon_start --allow-owner
	# shellcheck disable=SC2086 # words
	target_start ns $inside "$public/gcc-c11" thread "$public/libtorch_cpu.so"
	file_says "$dir/ns.out" '^READY 1$'
	target_go ns
	target_result ns
	recorded ns "$(id_of ns)"
	target_end ns
}

@test "inside: root of a PID namespace of its own, with capabilities, as in a container: where owners may, and itself alone" {
	local id
	target_start_in_ns() { # NAME
		target_start "$1" unshare --pid --fork --kill-child "$public/gcc-c11" plain "$public/libtorch_cpu.so"
		target_go "$1"
		target_result "$1"
	}
	daemon_start
	target_start_in_ns refused
	jq -e '.started.code == 1 and .started.error == "you may not have processes recorded" and
		(.started.hint | startswith("from another PID namespace"))' "$dir/refused.json"
	target_end refused
	daemon_stop
	daemon_start --allow-owner
	target_start_in_ns ns
	jq -e '.started.code == 0 and .stopped.code == 0 and .counts["aten::fake_linear"] == 200' "$dir/ns.json"
	id=$(id_of ns)
	[ "$(stat -c '%u %a' "$public/state/recordings/$id.kprof")" = "0 600" ]
	"$KPROF" report "$public/state/recordings/$id.kprof" --json |
		jq -e --slurpfile truth "$dir/ns.json" '([.rows[] | {(.name): .calls}] | add) == $truth[0].counts'
	target_end ns
}

@test "inside: a forked child is not what its parent has begun, and may begin its own; exec ends what was begun" {
	local id way
	daemon_start --allow-owner
	program fork $USER_A gcc-gnu17 fork
	recorded fork "$(id_of fork)"
	target_end fork
	[ "$("$KPROF" ctl list --socket "$socket" --json | jq '[.recordings[] | select(.state == "done")] | length')" = 2 ]

	# A program of this user's own, and one that is another user's: neither is what was asked for.
	cp "$public/gcc-c11" "$public/setuid" && chmod 4755 "$public/setuid"
	for way in "" "$public/setuid"; do
		INSIDE_EXEC=$way program exec $USER_A gcc-c11 exec
		id=$(jq -re .started.id "$dir/exec.json")
		# Nothing of it was open in the new program.
		[ "$(find "/proc/${pid[exec]}/fd" -lname 'socket:*' | wc -l)" = 0 ]
		wait_for "$PATIENCE" "its recording to end" nothing_goes_on
		"$KPROF" report "$public/state/recordings/$id.kprof" --json |
			jq -e '[.rows[] | select(.name == "aten::fake_linear").calls] == [300]'
		target_end exec
	done
	# Root's go on: root may record every program.
	program roots 0 gcc-c11 exec
	id=$(jq -re .started.id "$dir/roots.json")
	[ "$(going_on)" = "$id" ]
	"$KPROF" ctl stop --socket "$socket" -p "${pid[roots]}"
	"$KPROF" report "$public/state/recordings/$id.kprof" --json | jq -e '[.rows[] | select(.name == "aten::fake_linear").calls] == [700]'
	target_end roots
}

@test "inside: another user can neither see, stop nor get it" {
	local id what roots
	daemon_start --allow-owner
	program mine $USER_A gcc-c11 begun
	id=$(jq -re .started.id "$dir/mine.json")
	for what in "stop $id" "get $id -o $public/out/theirs.kprof" "cancel $id" "status $id"; do
		# shellcheck disable=SC2086 # words
		run as $USER_B "$public/kprof" ctl $what --socket "$socket"
		[ "$status" = 1 ]
		[[ $output == *"there is no recording $id"* ]] || fail "$what: $output"
	done
	[ "$(as $USER_B "$public/kprof" ctl list --socket "$socket" --json | jq '.recordings | length')" = 0 ]
	run as $USER_B "$public/kprof" ctl stop --socket "$socket" -p "${pid[mine]}"
	[[ $output == *"nothing is recorded"* ]]
	run as $USER_B "$public/kprof" ctl start --socket "$socket" -p "${pid[mine]}"
	[ "$status" = 1 ]
	[[ $output == *"process ${pid[mine]} is not yours to record"* ]]
	[ "$(going_on)" = "$id" ]
	# Root's recording of the same process, which came later, is not in the way, and is not ended.
	roots=$("$KPROF" ctl start --socket "$socket" -p "${pid[mine]}")
	[ "$(as $USER_A "$public/kprof" status -p "${pid[mine]}" --capturing --socket "$socket")" = "process ${pid[mine]} is being recorded: $id" ]
	[ "$(as $USER_A "$public/kprof" ctl stop -q --socket "$socket" -p "${pid[mine]}")" = "$id" ]
	[ "$(going_on)" = "$roots" ]
	! as $USER_B cat "$public/state/recordings/$id.kprof" || fail "another user's capture could be read"
	target_end mine
}

@test "inside: a thread of another process, and options that owners do not have, are refused" {
	daemon_start --allow-owner
	program refused $USER_A gcc-c11 plain --sched
	jq -e '.started.code == 1 and .started.id == "" and (.started.error | contains("--sched is not for requests"))' "$dir/refused.json"
	program other $USER_A gcc-c11 plain "--tid=$$"
	jq -e '.started.code == 1 and (.started.error | contains("no process that is to be recorded has a thread"))' "$dir/other.json"
	program nonsense $USER_A gcc-c11 plain --durtaion=5s
	jq -e '.started.code == 1 and (.started.error | contains("durtaion"))' "$dir/nonsense.json"
	# What is wrong, and not what a warning said before.
	program warned $USER_A gcc-c11 plain --activities=cpu "--trace-id=$(printf 'a\nb')"
	jq -e '.started.code == 1 and (.started.error | contains("trace")) and .started.hint == "printable characters, in UTF-8"' \
		"$dir/warned.json" || fail "$(cat "$dir/warned.json")"
	program long $USER_A gcc-c11 plain "--ops=$(printf 'x%.0s' {1..5000})"
	jq -e '.started.error == "the options are too long for a request"' "$dir/long.json"
	nothing_goes_on
}

@test "inside: a daemon that does not allow it says so, and why; root's programs may" {
	daemon_start
	program refused $USER_A gcc-c11 plain
	jq -e '.started.code == 1 and .started.error == "you may not have processes recorded" and
		(.started.hint | contains("allow-owner")) and .on == 0' "$dir/refused.json"
	program root 0 gcc-c11 plain
	jq -e '.started.code == 0 and .stopped.path != ""' "$dir/root.json"
}

@test "inside: without a daemon a start is over in five system calls, and the program goes on" {
	program none $USER_A gcc-c11 plain
	jq -e --arg socket "$socket" '.started.code == 2 and .started.error == "no daemon listens at " + $socket and
		(.started.hint | contains("kprof daemon")) and .on == 0 and .errno_kept == 1' "$dir/none.json"
	target_end none
	# A socket that a daemon left.
	mkdir -p "$public/run"
	"$PYTHON" -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$socket"
	chmod 666 "$socket"
	program dead $USER_A clang-c++11 plain
	jq -e '.started.code == 111' "$dir/dead.json"
	target_end dead
	echo go | strace -o "$dir/calls" "$public/gcc-c11" plain "$public/libtorch_cpu.so"
	sed -n '/^read(0, "go/,/^close/p' "$dir/calls" | sed 's/(.*//' >"$dir/names"
	diff <(printf '%s\n' read clock_gettime getpid socket connect close) "$dir/names"
	grep -q '^socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0)' "$dir/calls"
}

@test "inside: a daemon that does not answer is waited for as long as the program says, and what it begins then is given up" {
	daemon_start --allow-owner
	pause_process "${pid[daemon]}"
	INSIDE_MS=200 program late $USER_A gcc-c11 plain
	jq -e '.started.code == 110 and .started.error == "the daemon has not answered in time" and .on == 0' "$dir/late.json"
	KPROF_DAEMON_SOCKET=$socket "$PYTHON" - "$public" <<-'P'
		import sys
		sys.path.insert(0, sys.argv[1])
		import kprof_mark
		with kprof_mark.profile(timeout=0.2) as p:
		    assert not p and p.error == "the daemon has not answered in time", p.error
	P
	kill -CONT "${pid[daemon]}"
	# It finds the question, and nobody who waits for the answer.
	given_up() { file_says "$dir/daemon.err" '"state":"cancelled"'; }
	wait_for "$PATIENCE" "the recording to be given up" given_up
	wait_for "$PATIENCE" "nothing to go on" nothing_goes_on
	target_end late
}

@test "inside: a daemon that is killed meanwhile: stop says no, and nothing hangs" {
	daemon_start --allow-owner
	target_start held setpriv --reuid $USER_A --regid $USER_A --clear-groups "$PYTHON" -c 'if 1:
		import json, os, sys
		sys.path.insert(0, sys.argv[1])
		import kprof_mark
		started = kprof_mark.start()
		print("READY", os.getpid(), flush=True)
		sys.stdin.readline()
		stopped = kprof_mark.stop()
		print(json.dumps([started.ok, stopped.ok, stopped.error, kprof_mark.profiling()]), "{", flush=True)' "$public"
	kill -KILL "${pid[daemon]}"
	wait "${pid[daemon]}" || true
	unset "pid[daemon]"
	target_go held
	answered() { target_said held 'false'; }
	wait_for "$PATIENCE" "its answer" answered
	grep -q '^\[true, false, "no daemon listens at ' "$dir/held.out"
	target_end held
}

@test "inside: Python, without a compiler or a library" {
	local mode
	daemon_start --allow-owner
	for mode in plain thrown decorated threads fork; do
		python_program $mode "$PYTHON" $mode
		jq -e '.stopped.ok and .stopped.path != null and .stopped.error == null' "$dir/$mode.json"
		recorded $mode "$(id_of $mode)"
		target_end $mode
	done
	"$KPROF" export "$public/out/plain.kprof" -o - | jq -e '.trace_id == "of \"x\""'
	python_program thread "$PYTHON" thread
	jq '.counts = {"aten::fake_linear": .calls, "aten::fake_add": (2 * .calls), "aten::fake_mul": .calls}' "$dir/thread.json" >"$dir/t" &&
		mv "$dir/t" "$dir/thread.json"
	recorded thread "$(id_of thread)"
	target_end thread
}

@test "inside: PyTorch" {
	needs_torch
	daemon_start --allow-owner
	python_program torch "$(newest_python)" plain torch
	gaps=1 recorded torch "$(id_of torch)"
	"$KPROF" export "$public/out/torch.kprof" -o - | jq -e '.record_shapes == 1 and (has("profile_memory") | not)'
	target_end torch
}

# answers WHAT: a daemon that says this, whatever it is asked, to one client after the other
answers() {
	mkdir -p "$public/run"
	spawn fake "$PYTHON" -c 'if 1:
		import json, os, socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.bind(sys.argv[1] + ".new")
		os.chmod(sys.argv[1] + ".new", 0o666)
		s.listen()
		os.rename(sys.argv[1] + ".new", sys.argv[1])
		answer = eval(sys.argv[2])
		while True:
		    c = s.accept()[0]
		    c.recv(65536)
		    for byte in [answer] if len(answer) > 600 else [bytes([b]) for b in answer]:
		        try: c.sendall(byte)
		        except OSError: break
		    c.close()' "$socket" "$1"
	is_there() { [ -S "$socket" ]; }
	wait_for "$PATIENCE" "the fake daemon" is_there
}

@test "inside: whatever a daemon answers, byte by byte, is taken for what it is, or for nothing" {
	local answer code
	while IFS=$'\t' read -r answer code; do
		rm -f "$socket"
		answers "$answer"
		INSIDE_MS=60000 program c $USER_A gcc-c11-asan plain
		jq -e --argjson code "$code" '.started.code == $code' "$dir/c.json" || fail "$answer: $(cat "$dir/c.json")"
		"$PYTHON" -c 'import sys; sys.path.insert(0, sys.argv[1]); import kprof_mark; r = kprof_mark.start(timeout=60); assert r.ok == (sys.argv[2] == "0"), r.error' "$public" "$code"
		target_end c
		kill "${pid[fake]}"
		wait "${pid[fake]}" || true
		unset "pid[fake]"
	done <<-'END'
		b'{"ok":true,"id":"a-1"}\n'	0
		b'{"x":{"ok":false,"error":"e"},"y":["ok",{"error":1}],"z":"\\"ok\\":false","ok": true,"id":"a-1"}\n'	0
		b'{"ok":false,"error":"no","hint":"h"}\n'	1
		b'{"ok":true,"error":"it failed"}\n'	1
		b'{"ok":true,"id":"'	32
		b''	32
		b'\n'	71
		b'"ok":true\n'	71
		b'{"ok\n'	71
		b'{"a":"\\\n'	71
		b'x' * 100000	71
	END
	rm -f "$socket"
	answers 'json.dumps({"ok": False, "error": "\"q\" \\ \a\n/", "hint": "h" * 900}).encode() + b"\n"'
	program c $USER_A gcc-c11-asan plain
	jq -e '.started.code == 1 and .started.error == "\"q\" \\   /" and .started.hint == "h" * 255' "$dir/c.json" ||
		fail "$(cat "$dir/c.json")"
}

@test "inside: a daemon that has hung up raises no signal, and nothing stays open" {
	answers 'b""'
	echo go | strace -o "$dir/calls" "$public/gcc-c11" plain "$public/libtorch_cpu.so" >"$dir/out"
	grep '^{' "$dir/out" | jq -e '.started.code == 32 and .on == 0'
	grep -q '^sendto(.*MSG_DONTWAIT|MSG_NOSIGNAL' "$dir/calls"
	[ "$(grep -c '^socket(' "$dir/calls")" = 1 ]
	grep -A20 '^socket(' "$dir/calls" | grep -q "^close($(sed -n 's/^socket(.* = //p' "$dir/calls"))"
}

@test "inside: one count for a program, of several files in C and C++, and the libraries that it is linked with" {
	answers 'b"{\"ok\":true,\"id\":\"a-1\",\"path\":\"/p\"}\n"'
	cd "$dir"
	printf '#include <kprof/profile.h>\nbool of_library(bool on)\n{\n\treturn on ? kprof_profile_start(NULL, NULL) : kprof_profile_on();\n}\n' >library.c
	printf '#include <kprof/profile.h>\nextern "C" bool of_second(void)\n{\n\treturn kprof_profile_on();\n}\n' >second.cpp
	cat >main.c <<-'C'
		#include <kprof/profile.h>
		bool of_library(bool on), of_second(void);
		int main(void)
		{
			struct kprof_profile_result r;
			bool right = !kprof_profile_on() && of_library(true);

			right = right && kprof_profile_on() && of_second() && of_library(false);
			right = right && kprof_profile_start(NULL, &r) && kprof_profile_stop(NULL, &r) && !r.path[0];
			right = right && kprof_profile_stop(NULL, &r) && !strcmp(r.path, "/p");
			return !right || kprof_profile_on() || of_second() || of_library(false);
		}
	C
	gcc -std=c11 -Wall -Wextra -Werror -pedantic -I"$ROOT/include" -O2 -fPIC -shared library.c -o libinside.so
	g++ -std=c++20 -Wall -Wextra -Werror -pedantic -I"$ROOT/include" -O2 -c second.cpp
	gcc -std=c11 -Wall -Wextra -Werror -pedantic -I"$ROOT/include" -O2 main.c second.o -o main -L. -linside -Wl,-rpath,"$dir"
	./main
}

@test "inside: where kprof cannot record, the functions are there, and say no" {
	printf '#include <kprof/profile.h>\nbool f(void);\nbool f(void)\n{\n\tstruct kprof_profile_result r;\n\tKPROF_PROFILE_SCOPE("--shapes");\n\treturn kprof_profile_start(NULL, &r) || kprof_profile_stop(NULL, &r) || kprof_profile_on();\n}\n' >"$dir/f.c"
	for target in "gcc -m32" "gcc -mx32" "clang --target=aarch64-linux-gnu" "clang --target=x86_64-apple-darwin" "clang --target=x86_64-windows-gnu"; do
		# No header of a system's: there is none here for these.
		$target -std=c11 -Wall -Wextra -Werror -pedantic -ffreestanding -I"$ROOT/include" -O2 -c "$dir/f.c" -o "$dir/f.o" || fail "$target"
	done
}

@test "inside: threads that start and stop all the time, under the thread sanitizer" {
	answers 'b"{\"ok\":true,\"id\":\"a-1\",\"path\":\"/p\"}\n"'
	program t $USER_A gcc-c11-tsan churn
	jq -e '.on == 0' "$dir/t.json"
	target_end t
	! grep -q 'WARNING' "$dir/t.err" || fail "$(cat "$dir/t.err")"
}

@test "status: by exit status and in a sentence" {
	local id
	run "$KPROF" status -p $$ --capturing --socket "$socket"
	[ "$status" = 1 ]
	[[ $output == "process $$ is not being recorded"*"no daemon listens" ]]
	run "$KPROF" status -p $$ --can-capture --socket "$socket"
	[ "$status" = 0 ]
	[ "$output" = "process $$ can be recorded: \`kprof attach -p $$\`" ]
	run as $USER_A "$public/kprof" status -p $$ --can-capture --socket "$socket"
	[ "$status" = 1 ]
	[[ $output == "process $$ cannot be recorded by this user: "?* ]]

	daemon_start --allow-owner
	program t $USER_A gcc-c11 begun
	id=$(jq -re .started.id "$dir/t.json")
	for user in $USER_A 0; do
		run as "$user" "$public/kprof" status -p "${pid[t]}" --capturing --socket "$socket"
		[ "$status" = 0 ]
		[ "$output" = "process ${pid[t]} is being recorded: $id" ]
	done
	run as $USER_A "$public/kprof" status -q -p "${pid[t]}" --capturing --socket "$socket"
	[ "$status" = 0 ] && [ -z "$output" ]
	run as $USER_B "$public/kprof" status -p "${pid[t]}" --capturing --socket "$socket"
	[ "$status" = 1 ]
	run as $USER_A "$public/kprof" status -p "${pid[t]}" --can-capture --socket "$socket"
	[ "$status" = 0 ]
	[ "$output" = "process ${pid[t]} can be recorded: \`kprof ctl start -p ${pid[t]}\`" ]
	run as $USER_B "$public/kprof" status -q -p "${pid[t]}" --can-capture --socket "$socket"
	[ "$status" = 1 ] && [ -z "$output" ]
	as $USER_A "$public/kprof" ctl stop --socket "$socket" "$id"
	run as $USER_A "$public/kprof" status -p "${pid[t]}" --capturing --socket "$socket"
	[ "$status" = 1 ]
	target_end t
	run "$KPROF" status -p 4194305 --capturing --socket "$socket"
	[ "$status" = 2 ] || [ "$output" = "there is no process 4194305" ]
	for wrong in "" "--capturing" "-p $$" "--capturing --can-capture -p $$" "-p $$ --capturing more"; do
		# shellcheck disable=SC2086 # words
		run "$KPROF" status $wrong
		[ "$status" = 2 ] || fail "status $wrong: $status"
	done
}

@test "status: what kprof memory records, root sees" {
	target_start t "$public/gcc-c11" plain "$public/libtorch_cpu.so"
	"$KPROF" memory start -q -p "${pid[t]}"
	run "$KPROF" status -p "${pid[t]}" --capturing --socket "$socket"
	[ "$status" = 0 ]
	[ "$output" = "process ${pid[t]} is being recorded by \`kprof memory\`" ]
	"$KPROF" memory stop -q -p "${pid[t]}"
	run "$KPROF" status -p "${pid[t]}" --capturing --socket "$socket"
	[ "$status" = 1 ]
	rm -r "/run/kprof/memory/${pid[t]}" # what it would find of a later process with this number
}
