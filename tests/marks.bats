#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# kprof/mark.h: every mark of a program that counts them is in the trace, whatever compiled it; nobody watching, nothing
# happens; the counters of who watches go back to zero.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	marks=$BUILD/workloads/marks
	before=() # a command that executes it
	[ -x "$marks/gcc-c-O2" ] || fail "$marks is not built: make workloads"
}

teardown() {
	harness_teardown
}

# record PROGRAM [KPROF ARGUMENT…]: ten steps of it, held against the trace
record() {
	local name=${1##*/} program=$1
	shift
	target_start "$name" "${before[@]}" "$program" 10
	kprof_start "k-$name" attach -p "${pid[$name]}" -o "$dir/$name.json" "$@"
	target_go "$name"
	target_result "$name"
	kprof_stop "k-$name"
	[ "$(semaphore "${pid[$name]}" "$program")" = 0 ] || fail "$name: its counter was left up"
	target_end "$name"
	"$PYTHON" "$LIB/validate_trace.py" "$dir/$name.json"
	"$PYTHON" "$LIB/check_marks.py" "$dir/$name.json" "$dir/$name.json.result" || fail "$name: see above"
}

# The workload's own line of JSON would have the trace's name.
target_result() {
	wait_for "$PATIENCE" "$1's result" result_said "$1" || return 1
	grep '^{' "$dir/$1.out" >"$dir/$1.json.result"
}

# semaphore PID PROGRAM: the counter of who watches, read in the process
semaphore() {
	"$PYTHON" "$LIB/read_semaphore.py" "$1" "$(nm "$2" | awk '$3 == "kprof_mark_semaphore" { print $1 }')"
}

@test "marks: all of them, from C and C++, by gcc and clang, at every level of optimization" {
	local program
	for program in "$marks"/*; do
		record "$program"
	done
}

@test "marks: what whoever records says is at the top of the trace, and the program's own metadata replaces none of it" {
	record "$marks/gcc-c-O2" --trace-id 'run 7' --trace-name 'my "run"' --meta model='"mine"' --meta lr=0.010 --meta lr=0.020 \
		--meta 'tags=["a, b", {"rank": 3}]'
	jq -e '.trace_id == "run 7" and .model == "mine" and .lr == 0.02 and .tags == ["a, b", {"rank": 3}] and
		.kprof.meta["user.model"] == "a \"model\"\n" and (.kprof.meta | has("trace.lr") | not) and
		.distributedInfo.rank == 0 and [.traceEvents[] | select(.cat == "Trace").name] == ["my \"run\""]' "$dir/gcc-c-O2.json"
	# As it was given: no reader's idea of a number.
	grep -q '^  "lr": 0.020,$' "$dir/gcc-c-O2.json"
}

@test "marks: in a time namespace, with times that the program gives" {
	may_shift || skip "no time namespaces that exec enters: Linux 6.1 has them"
	before=("${shifted[@]}")
	record "$marks/gcc-c-O2"
}

@test "marks: nothing but them" {
	record "$marks/gcc-c-O2" --only mark
	jq -e '.kprof.sources | keys - ["annotations", "return_sites", "tasks", "agent"] == []' "$dir/gcc-c-O2.json"
}

@test "marks: through single uprobes" {
	record "$marks/gcc-c-O2" --no-multi
}

@test "marks: a text that nothing has read yet, and that is gone right after" {
	cat >"$dir/late.c" <<-'C'
		#include <fcntl.h>
		#include <kprof/mark.h>
		#include <stdio.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			char line[8], *text;
			int fd = open(argv[1], O_RDONLY);

			printf("READY %d\n", (int)getpid());
			fflush(stdout);
			if (!fgets(line, sizeof(line), stdin))
				return 1;
			text = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
			KPROF_MARK(text + 4090); /* over a page's end */
			munmap(text, 8192);
			puts("{}");
			fflush(stdout);
			return fgets(line, sizeof(line), stdin) != NULL;
		}
	C
	gcc -Wall -Wextra -Werror -Wno-unused-parameter -O2 -I"$ROOT/include" -o "$dir/late" "$dir/late.c"
	{ head -c 4090 /dev/zero && echo -n "a late text" && head -c 4091 /dev/zero; } >"$dir/text"
	target_start late "$dir/late" "$dir/text"
	kprof_start k attach -p "${pid[late]}" -o "$dir/late.json"
	target_go late
	target_result late
	kprof_stop k
	jq -e '[.traceEvents[] | select(.name == "a late text")] | length == 1' "$dir/late.json"
	! grep -q 'nothing was recorded' "$dir/k.err" || fail "$(cat "$dir/k.err")"
	target_end late
}

@test "marks: a recording that was killed leaves no counter up" {
	target_start target "$marks/gcc-c-O2" 10
	kprof_start k attach -p "${pid[target]}" -o "$dir/t.json"
	[ "$(semaphore "${pid[target]}" "$marks/gcc-c-O2")" -gt 0 ]
	kill -KILL "${pid[k]}"
	wait "${pid[k]}" || true
	unset "pid[k]"
	gone() { [ "$(semaphore "${pid[target]}" "$marks/gcc-c-O2")" = 0 ]; }
	wait_for "$PATIENCE" "the counter to go back" gone
	target_go target
	target_result target
	[ "$(jq '.evaluated == 0 and .wrong == 0' "$dir/target.json.result")" = true ]
	target_end target
}

@test "marks: an untouched program evaluates nothing" {
	target_start target "$marks/clang-c++-O3" 5
	target_go target
	target_result target
	[ "$(jq '.evaluated == 0 and .outer == 10' "$dir/target.json.result")" = true ]
	target_end target
}

@test "marks: from Python, without a compiler" {
	local python name nr=0
	for python in "$PYTHON" $(pythons | head -n 1); do
		name=py$((nr++))
		KPROF_MARK_LIBRARY=$BUILD/libkprof_mark.so target_start $name "$python" "$WORKLOADS/mark_python.py"
		kprof_start "k-$name" attach -p "${pid[$name]}" -o "$dir/$name.json"
		target_go $name
		target_result $name
		kprof_stop "k-$name"
		target_end $name
		[ "$(jq '.available and .watched' "$dir/$name.json.result")" = true ]
		"$PYTHON" "$LIB/validate_trace.py" "$dir/$name.json"
		jq -e --argjson n "$(jq .rounds "$dir/$name.json.result")" -f "$LIB/marks_of_python.jq" "$dir/$name.json"
	done
}

@test "marks: Python without the library goes on as if nothing were" {
	KPROF_MARK_LIBRARY='' run "$PYTHON" "$WORKLOADS/mark_without.py" "$ROOT/share/kprof"
	[ "$status" = 0 ]
}
