#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# --ask-jvm: names of Java's compiled code, for which the virtual machine is asked; and processes that only look like one. What
# they were told they count themselves.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
bats_require_minimum_version 1.5.0

setup() {
	harness_setup
}

teardown() {
	[ -z "${java:-}" ] || rm -f "/tmp/perf-$java.map"
	harness_teardown
}

# busy_java [COMMAND…] -- [OPTION…]: a Java program whose compiled code takes a CPU
busy_java() {
	local before=()
	while [ "$1" != -- ]; do before+=("$1") && shift; done
	shift
	command -v java >/dev/null || skip "no java here: scripts/setup check installs it"
	[ "$(java -XshowSettings:properties -version 2>&1 | sed -n 's/ *java.specification.version = //p')" -ge 17 ] ||
		skip "the JDK here is older than 17, which scripts/setup check installs"
	cat >"$dir/java.in" <<-'END'
		public class Busy {
			static double churned(double x) {
				for (int i = 0; i < 100000; i++) x = x * 1.0000001 + Math.sqrt(x + i);
				return x;
			}
			public static void main(String[] none) {
				System.out.println("READY");
				for (double x = 1;;) x = churned(x) % 1000;
			}
		}
	END
	# from its standard input, since another user may not enter this directory
	spawn java "${before[@]}" java "$@" --source 17 /dev/stdin
	wait_for "$PATIENCE" "java to be ready" grep -q READY "$dir/java.out" || fail "$(cat "$dir/java.err")" || return 1
	java=${pid[java]}
}

# used TICKS: the process has used so much CPU time since the call before
used() {
	local now
	now=$(awk '{ print $14 + $15 }' "/proc/$java/stat")
	[ "$now" -ge $((${since:=$now} + $1)) ]
}

folded() {
	"$KPROF" export "$dir/out.kprof" -o "$dir/out.folded" >/dev/null
}

meta() { # FILTER
	"$KPROF" export "$dir/out.kprof" -o "$dir/out.json" >/dev/null && jq -ce ".kprof.meta.stacks | $1" "$dir/out.json"
}

@test "a real one names its compiled code, though it began without any option" {
	busy_java --
	kprof_start kprof sample -p "$java" -F 199 --ask-jvm -o "$dir/out.kprof"
	wait_for "$PATIENCE" "java to run" used 100
	kprof_stop kprof
	run ! ended "${pid[java]}"
	folded
	grep 'Busy.churned' "$dir/out.folded"
	run ! grep 'shown as \[jit\]' "$dir/kprof.err"
	[ ! -e "/tmp/.attach_pid$java" ]
	# the program did not print its stacks, as at a SIGQUIT that was not meant to make it listen
	[ "$(cat "$dir/java.out")" = READY ]
	# what most samples are in
	awk '{ all += $NF } /Busy.churned/ { named += $NF } END { print named, all; exit named < all * 0.7 }' "$dir/out.folded"
	meta '.jvm_named >= 1 and .jvm_named == .jvm_asked'
	meta '.runtimes.Java.whole > 50'
	"$KPROF" report --by function "$dir/out.kprof" | grep '^by what ran: .*Java '
	"$KPROF" report --json "$dir/out.kprof" | jq -e --slurpfile t "$dir/out.json" '.samples.runtimes == $t[0].kprof.meta.stacks.runtimes'
}

@test "one of another user, found among all processes; without the option it is not asked" {
	busy_java setpriv --reuid 65534 --regid 65534 --clear-groups --
	kprof_start kprof sample -a --max-overhead 0 --comm java -F 199 -o "$dir/out.kprof"
	wait_for "$PATIENCE" "java to run" used 50
	kprof_stop kprof
	[ ! -e "/tmp/perf-$java.map" ]
	folded
	run ! grep 'Busy.churned(' "$dir/out.folded"
	grep -A 1 "Java's compiled code is shown as \[jit\].*process $java" "$dir/kprof.err" | grep 'hint: --ask-jvm'
	since=
	kprof_start kprof sample -a --max-overhead 0 --comm java -F 199 --ask-jvm -o "$dir/out.kprof"
	wait_for "$PATIENCE" "java to run" used 100
	kprof_stop kprof
	[ "$(stat -c %u "/tmp/perf-$java.map")" = 65534 ]
	folded
	grep 'Busy.churned' "$dir/out.folded"
}

@test "one that may not be asked, and one that does not handle the signal" {
	local option
	declare -A said=([-XX:+DisableAttachMechanism]="its attach mechanism is disabled" [-Xrs]="it handles no SIGQUIT")
	for option in "${!said[@]}"; do
		busy_java -- "$option"
		kprof_start kprof sample -p "$java" -F 199 --ask-jvm -o "$dir/out.kprof"
		wait_for "$PATIENCE" "kprof to know" grep -q "was asked for names of its compiled code: ${said[$option]}" "$dir/kprof.err"
		kprof_stop kprof
		[ "$(cat "$dir/java.out")" = READY ]
		kill "$java"
		wait_for "$PATIENCE" "java to end" ended "${pid[java]}"
	done
}

# fake MODE WHAT: a process that calls itself a JVM; kprof says WHAT of it
fake() {
	mkdir "$dir/$1"
	target_start "$1" "$PYTHON" "$WORKLOADS/fake_jvm.py" "$1" "$dir/$1"
	target_go "$1"
	kprof_start "kprof-$1" sample -p "${pid[$1]}" -F 199 --ask-jvm -o "$dir/$1.kprof"
	wait_for "$PATIENCE" "kprof to know" grep -q "process ${pid[$1]} (Java) was asked for names of its compiled code: $2" "$dir/kprof-$1.err"
	kprof_stop "kprof-$1"
	touch "$dir/$1/enough"
	target_result "$1"
	cat "$dir/$1.json"
	target_end "$1"
	"$KPROF" report --json "$dir/$1.kprof" | jq -e '.samples.samples > 0'
}

@test "who does not handle SIGQUIT is not sent it" {
	fake unready 'it handles no SIGQUIT'
	jq -e '.signals == 0' "$dir/unready.json"
}

@test "who never listens, never answers, or never ends its answer is given up" {
	fake deaf 'it does not answer'
	jq -e '.signals == 1' "$dir/deaf.json"
	fake silent 'it does not answer'
	jq -e '.signals == 1 and (.kept | length) == 1' "$dir/silent.json"
	fake endless ''
	jq -e '.signals == 1 and (.requests | length) == 1' "$dir/endless.json"
}

@test "another process in its place is told nothing" {
	fake other 'another process'
	jq -e '.signals == 0' "$dir/other.json"
}

@test "a JDK that does not know the command" {
	fake old 'its JDK is older than 17'
	jq -e '.requests == [["1", "jcmd", "Compiler.perfmap", "", "", ""]]' "$dir/old.json"
}

@test "what answers as a JVM does names its code" {
	mkdir "$dir/answers"
	target_start answers "$PYTHON" "$WORKLOADS/fake_jvm.py" answers "$dir/answers"
	target_go answers
	kprof_start kprof sample -p "${pid[answers]}" -F 199 --ask-jvm -o "$dir/out.kprof"
	wait_for "$PATIENCE" "its map" test -e "/tmp/perf-${pid[answers]}.map"
	kprof_stop kprof
	touch "$dir/answers/enough"
	target_result answers
	target_end answers
	# when the first code was met, and at the end
	jq -e '.signals == 1 and (.requests | length) == 2' "$dir/answers.json"
	folded
	grep ';fake_compiled ' "$dir/out.folded"
}
