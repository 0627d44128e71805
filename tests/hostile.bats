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
	gcc -D_GNU_SOURCE -O2 -o "$dir/hostile" "$WORKLOADS/hostile.c"
	unshare --mount --propagation unchanged true 2>/dev/null || skip "no mounts here"
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
		spawn "${words[0]}" "$KPROF" "${words[0]}" -p "${pid[target]}" "${words[@]:1}"
	done
	for command in sample dump attach; do
		wait_for "$PATIENCE" "kprof $command to end" ended "${pid[$command]}"
		wait "${pid[$command]}" || [ "$command" != sample ]
		grep -q "cannot be read in time" "$dir/$command.err"
		unset "pid[$command]"
	done
	[ "$("$KPROF" report --json "$dir/s.kprof" | jq '[.rows[].calls] | add')" -gt 0 ]
	target_end target
}

@test "no probe is placed in a file of such a file system, and kprof says why" {
	fuse_target answers "$BUILD/workloads/gcc/libtorch_cpu.so"
	for _ in 1 2 3 4 5; do
		run "$KPROF" attach -p "${pid[target]}" -d 0.1s -o "$dir/a.kprof"
		# Its server may be slow where others want the CPUs.
		[[ $output == *"cannot be read in time"* ]] || break
	done
	[ "$status" = 3 ] || fail "exit status $status: $output"
	[[ $output == *"could block every process of this machine"* ]]
	[[ $output == *"hint: --trust-files"* ]]
	run -0 "$KPROF" attach -p "${pid[target]}" --trust-files -d 0.1s -o "$dir/t.kprof"
	[[ $output != *"could block"* ]]
	"$KPROF" sample -p "${pid[target]}" -d 0.2s -o "$dir/s.kprof" 2>"$dir/s.err"
	run ! grep "in time" "$dir/s.err"
	target_end target
}

recorded_much() {
	[ -n "$(find "$dir" -name '.k.kprof.*' -size +100k)" ]
}

# A breakpoint there would change what others compute: the file's probes are in every process that maps it.
@test "a return address that is forged: no probe is placed in the middle of an instruction" {
	cp "$BUILD/workloads/gcc/libtorch_cpu.so" "$dir"
	gcc -O2 -fPIC -shared -DLIBRARY -o "$dir/libconstant.so" "$WORKLOADS/forged.c"
	gcc -O2 -o "$dir/forged" "$WORKLOADS/forged.c" -L"$dir" -l:libtorch_cpu.so -lconstant -Wl,-rpath,"$dir"
	target_start forge "$dir/forged" forge
	target_start compute "$dir/forged" compute
	kprof_start k attach --children exact -p "${pid[forge]},${pid[compute]}" -o "$dir/k.kprof"
	wait_for "$PATIENCE" "calls to be recorded" recorded_much
	for name in forge compute; do
		target_go "$name"
		target_result "$name"
		jq -e '.rounds > 0 and .wrong == 0' "$dir/$name.json"
	done
	kprof_stop k
	[ "$("$KPROF" report --json "$dir/k.kprof" | jq '[.rows[].calls] | add')" -gt 1000 ]
	target_end forge
	target_end compute
}

# The rows of the status of each thread of kprof and of its reader: "KEY VALUE"
statuses() { # PID
	local reader
	reader=$(pgrep -P "$1" kprof-reader)
	cat "/proc/$1"/task/*/status "/proc/$reader/status" | sed -n "s/^$2:[[:space:]]*//p" | sort -u
}

@test "once it records, nothing of kprof has a higher priority than the target" {
	local reader task
	target_start target "$BUILD/workloads/gcc/opdriver" throw --n 10 --linger
	kprof_start kprof attach -p "${pid[target]}" --stacks -o "$dir/a.kprof"
	reader=$(pgrep -P "${pid[kprof]}" kprof-reader)
	for task in /proc/"${pid[kprof]}"/task/*/stat "/proc/$reader/stat"; do
		[ "$(sed 's/.*) //' "$task" | cut -d' ' -f17)" = 0 ] # nice
	done
	target_go target
	target_result target
	kprof_stop kprof
	target_end target
}

# Capabilities by their numbers (linux/capability.h): those that docs/security.md has in its table
kept() {
	local cap sum=0
	for cap in 0 1 2 5 6 7 19 23 34 38 39 40; do sum=$((sum | 1 << cap)); done
	echo "$sum"
}

@test "a recording keeps the capabilities that it needs and no others, and executes nothing" {
	local key value
	target_start target "$BUILD/workloads/gcc/opdriver" throw --n 10 --linger
	kprof_start kprof attach -p "${pid[target]}" --stacks -o "$dir/a.kprof"
	for key in CapPrm CapEff CapBnd; do
		value=$(statuses "${pid[kprof]}" "$key")
		echo "$key $value"
		[ $((16#$value & ~$(kept))) = 0 ]
	done
	[ "$(statuses "${pid[kprof]}" CapInh)" = 0000000000000000 ]
	[ "$(statuses "${pid[kprof]}" NoNewPrivs)" = 1 ]
	[ "$(statuses "${pid[kprof]}" Seccomp)" = 2 ]
	target_go target
	target_result target
	kprof_stop kprof
	target_end target
}

@test "single probes are placed with what is kept" {
	target_start target "$BUILD/workloads/gcc/opdriver" throw --n 10 --linger
	kprof_start kprof attach --no-multi --max-probes 20 -p "${pid[target]}" -o "$dir/a.kprof"
	[ $((16#$(statuses "${pid[kprof]}" CapEff) & ~($(kept) | 1 << 21))) = 0 ] # and CAP_SYS_ADMIN
	target_go target
	target_result target
	kprof_stop kprof
	target_end target
	[ "$("$KPROF" report --json "$dir/a.kprof" | jq .events)" -gt 0 ]
}

@test "the command of kprof run has all that the caller has" {
	grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status >"$dir/before"
	"$KPROF" run -o "$dir/r.kprof" -- grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status >"$dir/out" 2>"$dir/err"
	grep -E '^(Cap|NoNewPrivs|Seccomp)' "$dir/out" | diff "$dir/before" -
}

# An export that waits for the reader of its output, so that it can be looked at
export_to_fifo() { # CAPTURE FIFO
	mkfifo -m 0666 "$2"
	spawn kprof "$KPROF" export "$1" -o "$2"
	wait_for "$PATIENCE" "kprof to give up root" given_up "${pid[kprof]}"
}

given_up() { # PID
	[ "$(sed -n 's/^NoNewPrivs:\t//p' "/proc/$1/status")" = 1 ] && [ "$(cat "/proc/$1/wchan")" = wait_for_partner ]
}

status_of() { # PID KEY
	sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"
}

@test "export gives up root before it reads a capture, for its owner or for files alone" {
	local users=12345
	"$KPROF" run -o "$dir/c.kprof" -- true
	mkdir "$dir/theirs"
	cp "$dir/c.kprof" "$dir/theirs/c.kprof"
	chown -R $users:$users "$dir/theirs"
	chmod 0600 "$dir/theirs/c.kprof"
	for d in "$dir" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"; do chmod a+x "$d" "$(dirname "$d")"; done
	export_to_fifo "$dir/theirs/c.kprof" "$dir/theirs/t.json"
	[ "$(status_of "${pid[kprof]}" Uid | tr '\t' ' ')" = "$users $users $users $users" ]
	[ "$(status_of "${pid[kprof]}" Groups | tr -d ' ')" = "" ]
	[ "$(status_of "${pid[kprof]}" CapPrm)" = 0000000000000000 ]
	jq -e .traceEvents <"$dir/theirs/t.json" >/dev/null
	wait "${pid[kprof]}"
	# root's own, in a directory that is root's
	mkdir -m 0700 "$dir/ours"
	cp "$dir/c.kprof" "$dir/ours/c.kprof"
	export_to_fifo "$dir/ours/c.kprof" "$dir/ours/t.json"
	[ $((16#$(status_of "${pid[kprof]}" CapPrm) & ~(1 << 0 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7))) = 0 ]
	jq -e .traceEvents <"$dir/ours/t.json" >/dev/null
	wait "${pid[kprof]}"
	unset "pid[kprof]"
}

@test "where nothing can be confined, kprof says so and skips names and lines" {
	gcc -O2 -o "$dir/without" "$WORKLOADS/without_seccomp.c"
	# a program that no cache knows
	cat >"$dir/spin.cpp" <<-END
		#include <cstdio>
		#include <unistd.h>
		namespace n$BASHPID$EPOCHSECONDS {
		volatile long turns;
		__attribute__((noinline)) void spin() { for (;;) turns++; }
		}
		int main()
		{
			printf("READY %d\\n", (int)getpid());
			fflush(stdout);
			n$BASHPID$EPOCHSECONDS::spin();
		}
	END
	g++ -g -O1 -o "$dir/spin" "$dir/spin.cpp"
	target_start target "$dir/spin"
	"$dir/without" "$KPROF" sample -d 0.3s -F 997 -p "${pid[target]}" -o "$dir/t.folded" 2>"$dir/kprof.err"
	grep "filters no system calls" "$dir/kprof.err"
	grep "stay mangled" "$dir/kprof.err"
	grep "could not be confined" "$dir/kprof.err"
	"$KPROF" sample -d 0.3s -F 997 -p "${pid[target]}" -o "$dir/u.folded" 2>"$dir/kprof.err"
	run ! grep -E "seccomp|confined" "$dir/kprof.err"
	grep "::spin" "$dir/u.folded"
}

@test "each promise of docs/security.md names tests that are there" {
	local path name nr=0
	while IFS=$'\t' read -r path name; do
		[ -e "$ROOT/$path" ] || fail "there is no $path"
		[ -z "$name" ] || grep -qF "$name" "$ROOT/$path" || fail "$path has no test '$name'"
		nr=$((nr + 1))
	done < <(awk -F'|' '/^\| .*\| .*`tests\// {
		n = split($3, parts, "`")
		for (i = 2; i <= n; i += 2) {
			m = split(parts[i + 1], names, "\"")
			print parts[i] "\t"
			for (k = 2; k <= m; k += 2)
				print parts[i] "\t" names[k]
		}
	}' "$ROOT/docs/security.md")
	[ "$nr" -ge 20 ]
}
