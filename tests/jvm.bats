#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# --ask-jvm: names of Java's compiled code, for which the virtual machine is asked; and processes that only look like one. What
# they were told they count themselves.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
bats_require_minimum_version 1.5.0

setup() {
	harness_setup
}

teardown() {
	local p all=("${java:-}" "${pid[@]}")
	harness_teardown
	for p in "${all[@]}"; do # those that were killed have left their files
		[ -z "$p" ] || rm -f "/tmp/perf-$p.map" "/tmp/.java_pid$p" "/tmp/.attach_pid$p"
	done
	[ -z "${open:-}" ] || rm -rf "$open"
}

# busy_java [COMMAND…] -- [OPTION…]: a Java program whose compiled code takes a CPU
busy_java() {
	local before=()
	while [ "$1" != -- ]; do before+=("$1") && shift; done
	shift
	[[ $(java -XshowSettings:properties -version 2>&1) =~ java.specification.version\ =\ ([0-9]+) && ${BASH_REMATCH[1]} -ge 17 ]] ||
		skip "no Java of 17 or later here: scripts/setup check installs it"
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

# fake_starts MODE [COMMAND…]: a process that calls itself a JVM
fake_starts() {
	local mode=$1
	shift
	mkdir -p "${open:=$(mktemp -d)}/$mode"
	chmod 755 "$open" && chmod 777 "$open/$mode"
	# its text, not its file: another user may not come to that
	target_start "$mode" "$@" "$PYTHON" -c "$(cat "$WORKLOADS/fake_jvm.py")" "$mode" "$open/$mode"
	target_go "$mode"
}

# fake MODE WHAT: kprof says WHAT of such a process
fake() {
	fake_begins "$1"
	fake_ends "$@"
}

fake_begins() { # MODE
	fake_starts "$1"
	kprof_start "kprof-$1" sample -p "${pid[$1]}" -F 199 --ask-jvm -o "$dir/$1.kprof"
}

fake_ends() { # MODE WHAT
	wait_for "$PATIENCE" "kprof to know" grep -q "process ${pid[$1]} (Java) was asked for names of its compiled code: $2" "$dir/kprof-$1.err"
	kprof_stop "kprof-$1"
	touch "$open/$1/enough"
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
	local mode
	# each waits for some seconds: side by side
	for mode in deaf silent endless; do fake_begins "$mode"; done
	fake_ends deaf 'it does not answer'
	jq -e '.signals == 1' "$dir/deaf.json"
	fake_ends silent 'it does not answer'
	jq -e '.signals == 1 and (.kept | length) == 1' "$dir/silent.json"
	fake_ends endless 'Protocol error'
	jq -e '.signals == 1 and (.requests | length) == 1' "$dir/endless.json"
}

@test "one that ends while it is asked: nothing is left in its /tmp" {
	fake_starts deaf
	local asked=/tmp/.attach_pid${pid[deaf]}
	kprof_start kprof sample -p "${pid[deaf]}" -F 199 --ask-jvm -o "$dir/out.kprof"
	wait_for "$PATIENCE" "the question" test -e "$asked"
	kill -KILL "${pid[deaf]}"
	wait_for "$PATIENCE" "kprof to end" ended "${pid[kprof]}"
	[ ! -e "$asked" ]
}

@test "another process in its place is told nothing" {
	fake other 'another process'
	jq -e '.signals == 0' "$dir/other.json"
}

@test "a JDK that does not know the command" {
	fake old 'its JDK is older than 17'
	jq -e '.requests == [["1", "jcmd", "Compiler.perfmap", "", "", ""]]' "$dir/old.json"
}

@test "what answers as a JVM does names its code; another user's is asked as that user" {
	fake_starts answers setpriv --reuid 65534 --regid 65534 --clear-groups
	kprof_start kprof sample -p "${pid[answers]}" -F 199 --ask-jvm -o "$dir/out.kprof"
	wait_for "$PATIENCE" "its map" test -e "/tmp/perf-${pid[answers]}.map"
	wait_for "$PATIENCE" "its answer" eval '! pgrep -P "${pid[kprof]}" -U 65534' # the process that asks
	# it is asked again only for code that is met after that
	java=${pid[answers]} since=
	wait_for "$PATIENCE" "it to run" used 30
	kprof_stop kprof
	touch "$open/answers/enough"
	target_result answers
	target_end answers
	# when the first code was met, and at the end
	jq -e '.signals == 1 and (.requests | length) == 2' "$dir/answers.json"
	# by who has no more rights than it has itself
	jq -e '.users == [[65534, 65534], [65534, 65534]]' "$dir/answers.json"
	folded
	grep ';fake_compiled ' "$dir/out.folded"
}
