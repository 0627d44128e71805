#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# kprof diff: what got slower, and is it more than chance. Most captures are made of texts (tests/bench/gen_stacks.c), which are
# the judges; how often the statistics are right, tests/unit/model/diff/tests.c counts.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup() {
	harness_setup
	[ -x "$BUILD/bench/gen_stacks" ] || fail "the test programs are not built: make test-programs"
	cd "$dir" || return
}

teardown() {
	harness_teardown
}

# made NAME FOLDER COUNT…: a capture of so many samples of f, g, h and i, 10 ms each, all below main, of a build in this folder
made() {
	local name=$1 folder=$2 function
	shift 2
	{
		printf 'process\t7\tprog\tprog --fast\nthread\t7\t7\tmain\nmeta\tstacks\t{"frequency_hz": 99}\n'
		for function in f g h i; do
			# Another build has its functions at other addresses.
			[ "${1:-0}" = 0 ] || printf 'sample\t0\t%s\t10000000\t256\tN|%s/libx.so|00%s|0x1000||main||0\tN|%s/libx.so|00%s|0x%x||%s||0\n' \
				"$1" "$folder" "${#folder}" "$folder" "${#folder}" $(((${#folder} + $1) * 64)) "$function"
			shift || :
		done
	} | "$BUILD/bench/gen_stacks" "$name.kprof"
}

# says FILE NAME: verdict, and milliseconds before and after
says() {
	jq -r --arg name "$2" '.rows[] | select(.name == $name).time |
		"\(.verdict) \(.before_ns / 1e6 | round) \(.after_ns / 1e6 | round)"' "$1"
}

# differs ARGUMENT… -- NAME WORDS …: what the comparison must say of each
differs() {
	local arguments=()
	while [ "$1" != -- ]; do
		arguments+=("$1")
		shift
	done
	shift
	kprof_says 0 diff --json "${arguments[@]}"
	cp stdout d.json
	consistent d.json
	while [ $# != 0 ]; do
		[ "$(says d.json "$1")" = "$2" ] || fail "$1: '$(says d.json "$1")', not '$2'" "$(cat d.json)"
		shift 2
	done
}

# What holds of every comparison: rows of self time add up, and verdicts are what the intervals say.
consistent() { # FILE
	jq -e '
		def near($a; $b): ($a - $b | fabs) <= 1e-6 * ([($a | fabs), ($b | fabs), 1] | max);
		def fits: .verdict as $v | if $v == "untested" then true else
			.low_ns <= .change_ns and .change_ns <= .high_ns and .p >= 0 and .p <= 1 and
			near(.after_ns - .before_ns; .change_ns) and
			(if $v == "none" then .low_ns <= 0 and .high_ns >= 0
			 elif $v == "more" then .low_ns >= 0 else .high_ns <= 0 end) end;
		([.rows[].self_before_ns] | add) as $b | ([.rows[].self_after_ns] | add) as $a |
		(.per == "call" or (near($b; .whole.before_ns) and near($a; .whole.after_ns))) and
		(.whole | fits) and all(.rows[].time; fits)' "$1" >/dev/null || fail "not consistent" "$(cat "$1")"
}

@test "diff: a function that takes twice as long is found, and no other, whatever the build" {
	made before /opt/old 1000 2000 3000 0
	made after /srv/new-build 2000 2000 3000 0
	differs before.kprof after.kprof --per run -- f 'more 10000 20000' g 'none 20000 20000' h 'none 30000 30000'
	[ "$(jq -r '.rows[0].name, .by, .per, .of_samples, (.notes | length)' d.json | xargs)" = 'f function run true 0' ]
	# The other way round it is faster.
	differs after.kprof before.kprof --per run -- f 'less 20000 10000' g 'none 20000 20000'
	# Of what all time went to, the others got less.
	differs before.kprof after.kprof -- f 'more 167 286' g 'less 333 286' h 'less 500 429'
	# Totals: main calls all of them.
	differs before.kprof after.kprof --per run --total -- main 'more 60000 70000' f 'more 10000 20000' h 'none 30000 30000'
	# All of it is in one library.
	differs before.kprof after.kprof --per run --by module -- libx.so 'more 60000 70000'
	differs before.kprof after.kprof --per run --by thread -- main 'more 60000 70000'
}

@test "diff: a function that is new, and one that is gone" {
	made before /opt/x 1000 2000 0 1000
	made after /opt/x 0 2000 1000 1000
	differs before.kprof after.kprof --per run -- f 'less 10000 0' h 'more 0 10000' i 'none 10000 10000'
	kprof_says 0 diff before.kprof after.kprof --per run
	grep -qE ' new .* more .* h +libx.so$' stdout
	grep -qE ' -100.0% .* less .* f +libx.so$' stdout
}

@test "diff: no difference is an answer, with what would have been found" {
	made before /opt/x 1000 2000 3000 500
	made after /opt/x 1010 1990 3000 501
	differs before.kprof after.kprof --per run -- f 'none 10000 10100' g 'none 20000 19900' h 'none 30000 30000' i 'none 5000 5010'
	jq -e '.whole.verdict == "none" and .whole.shown_from_ns > 0 and all(.rows[].time | select(.verdict == "none"); .shown_from_ns > 0)' d.json
	kprof_says 0 diff before.kprof after.kprof --per second
	grep -qE '^no difference that the data can show; one of [0-9.]+% of the whole would have been found' stdout
	grep -q 'self sampled time per second of the recording: 1 capture before, 1 after' stdout
	# Without steps, samples are compared by what share of the time they are.
	kprof_says 0 diff before.kprof after.kprof
	grep -q 'self sampled time per second of all time counted: 1 capture before, 1 after' stdout
	grep -qx 'recorded: 65.66 s before, 65.67 s after; all time counted: 65 and 65.01 s' stdout
	# A capture and itself.
	kprof_says 0 diff before.kprof before.kprof --json --fail-above 0%
	[ "$(jq -c '[.rows[] | select(.name != "main").time | .change_ns, .verdict] | unique' stdout)" = '[0,"none"]' ]
}

@test "diff: too little is not tested, and counted" {
	made before /opt/x 1000 2000 3000 9
	made after /opt/x 1000 2000 3000 21
	differs before.kprof after.kprof --per run -- i 'untested 90 210'
	[ "$(jq -c '[.tested, .small]' d.json)" = '[3,1]' ]
	differs before.kprof after.kprof --per run --min-share 0.1% -- i 'none 90 210'
	[ "$(jq -c '[.tested, .small]' d.json)" = '[4,0]' ]
	made tiny /opt/x 3 2 1 0
	differs tiny.kprof tiny.kprof --min-share 0 -- f 'untested 500 500'
}

@test "diff: several captures of each side, in folders and one by one" {
	local i
	mkdir old new
	for i in 1 2 3 4; do
		made "old/$i" /opt/x $((1000 + i)) $((2000 - 8 * i)) $((3000 + i)) 0
		made "new/$i" /opt/x $((2000 - i)) $((1960 + 8 * i)) $((3005 - i)) 0
	done
	touch old/.unfinished.kprof old/notes.txt
	differs old new --per run -- f 'more 10025 19975' g 'none 19800 19800' h 'none 30025 30025'
	[ "$(jq -c '[.captures_before, .captures_after, .between_runs]' d.json)" = '[4,4,true]' ]
	cp d.json folders.json
	differs old/1.kprof new/1.kprof --before old/2.kprof,old/3.kprof --before old/4.kprof --after new/2.kprof \
		--after new/3.kprof,new/4.kprof --per run --
	diff folders.json d.json
	differs --before old --after new --per run --
	diff folders.json d.json
	# One against several: their spread is all that is known.
	differs old new/1.kprof --per run -- f 'more 10025 19990' g 'none 19800 19680'
	kprof_says 0 diff old new --per run
	grep -q 'self sampled time per run: 4 captures before, 4 after' stdout
	grep -q 'intervals: from the spread among captures' stdout
	mkdir empty
	kprof_says 1 diff old empty
	grep -q '^kprof: no captures in empty' stderr
}

@test "diff --fail-above: 5 if anything takes longer beyond chance, by more" {
	made before /opt/x 1000 2000 3000 0
	made after /opt/x 1200 2000 3000 0
	kprof_says 5 diff before.kprof after.kprof --per run --fail-above 10%
	grep -q '^kprof: more than 10% above' stderr
	kprof_says 0 diff before.kprof after.kprof --per run --fail-above 25%
	[ ! -s stderr ]
	# What takes less time is no failure.
	kprof_says 0 diff after.kprof before.kprof --per run --fail-above 0
	# More, but not beyond chance.
	made chance /opt/x 1040 2000 3000 0
	kprof_says 0 diff before.kprof chance.kprof --per run --fail-above 2%
	# A row that was not there before counts.
	made new /opt/x 1000 2000 3000 900
	kprof_says 5 diff before.kprof new.kprof --per run --fail-above 1000%
	# The whole, where each row is below: with spread among runs, which samples alone do not have.
	kprof_says 5 diff before.kprof after.kprof --per run --fail-above 10% --json
	jq -e . stdout >/dev/null
}

@test "diff: steps, operators, kernels and calls of a training on a device" {
	local steps
	"$BUILD/bench/gen_device" 3000 before.kprof
	"$BUILD/bench/gen_device" 6000 after.kprof
	differs before.kprof after.kprof --
	[ "$(jq -r '.by, .per, .of_samples' d.json | xargs)" = 'operator step false' ]
	# Every step but the last has its end at the next one's begin. It has 60 operators, and one at its end.
	steps=$("$KPROF" report before.kprof --limit 0 --json | jq '[.rows[] | select(.name | startswith("ProfilerStep#"))] | length')
	[ "$(jq '.units_before | round' d.json)" -le $((steps - 1)) ]
	[ "$(jq '.units_before | round' d.json)" -gt $((steps / 2)) ]
	[ "$(jq '.rows[] | select(.name == "aten::linear").calls_before' d.json)" = 20 ]
	[ "$(jq '.rows[] | select(.name == "aten::add").calls_after' d.json)" = 41 ]
	jq -e 'all(.rows[].time; .verdict == "none" or .verdict == "untested")' d.json >/dev/null
	differs before.kprof after.kprof --by kernel --per call --
	# The time of a call is that of the report.
	"$KPROF" report before.kprof --by kernel --json >r.json
	jq -e --slurpfile r r.json 'all(.rows[]; . as $row | $r[0].rows[] | select(.name == $row.name) |
		(.total_ns / .calls - $row.time.before_ns | fabs) < 1)' d.json
	kprof_says 0 diff before.kprof after.kprof --step 'ProfilerStep#*' --json
	[ "$(jq -r .per stdout)" = step ]
	kprof_says 1 diff before.kprof after.kprof --per step --step nothing
	refused 'before.kprof has 0 whole steps'
}

@test "diff: what cannot be compared is said" {
	made samples /opt/x 100 200 300 0
	"$BUILD/bench/gen_device" 3000 device.kprof
	kprof_says 1 diff samples.kprof device.kprof
	refused 'can not be compared: device.kprof has no samples'
	kprof_says 1 diff samples.kprof device.kprof --by operator
	refused 'samples.kprof has no operators, and device.kprof no samples'
	kprof_says 1 diff samples.kprof samples.kprof --by kernel
	grep -q 'can not be compared: samples.kprof has no activities of devices' stderr
	kprof_says 1 diff samples.kprof missing.kprof
	refused 'missing.kprof'
	echo nonsense >bad.kprof
	kprof_says 1 diff bad.kprof samples.kprof
	grep -q '^kprof: .*bad.kprof' stderr
	# It can be, but with doubts.
	printf 'process\t7\tother\tother --slow\nthread\t7\t7\tmain\nmeta\tstacks\t{"frequency_hz": 49}\nsample\t0\t100\t20000000\t256\tN|/x|00|0x1||f||0\n' |
		"$BUILD/bench/gen_stacks" other.kprof
	kprof_says 0 diff samples.kprof other.kprof
	grep -qx 'kprof: different commands: samples.kprof is of "prog --fast", other.kprof of "other --slow"' stderr
	grep -qx 'kprof: different rates of sampling: samples.kprof has 99 Hz, other.kprof 49' stderr
	[ "$("$KPROF" diff samples.kprof other.kprof --json 2>/dev/null | jq '.notes | length')" = 2 ]
}

@test "diff: a wrong command line is refused" {
	refuses 'captures of two sides are needed' diff
	refuses 'captures of two sides are needed' diff a.kprof
	refuses 'captures of two sides are needed' diff --before a.kprof
	refuses "'c.kprof' is too many" diff a.kprof b.kprof c.kprof
	refuses "by is operator, " diff a.kprof b.kprof --by colour
	refuses "per is step, " diff a.kprof b.kprof --per minute
	for p in x -1 5%% '' nan 0x5 '5 %'; do refuses "is no percentage" diff a.kprof b.kprof --fail-above "$p"; done
	refuses "'out.json' is no .svg" diff a.kprof b.kprof -o out.json
	refuses "either --native or --python" diff a.kprof b.kprof --native --python
	refuses "native or Python frames alone" diff a.kprof b.kprof --native --by kernel
	made a /opt/x 100 0 0 0
	kprof_says 2 diff a.kprof a.kprof --per call
	refused 'samples do not tell how often'
}

# picture FILE: each frame's class, name and last line, by an XML parser
picture() {
	"$PYTHON" - "$1" <<'END'
import sys
import xml.etree.ElementTree as tree

ns = "{http://www.w3.org/2000/svg}"
for g in tree.parse(sys.argv[1]).getroot().iter(ns + "g"):
    if g.get("class", "").startswith("f "):
        lines = g.find(ns + "title").text.split("\n")
        print(g.get("class")[2:], float(g.find(ns + "rect").get("width")), lines[0], lines[-1], sep="\t")
END
}

@test "diff -o: the flame graph is red where it takes longer, blue where less, its widths are times after" {
	made before /opt/old 1000 2000 3000 1000
	made after /srv/new 3000 2000 1000 0
	kprof_says 0 diff before.kprof after.kprof --per run -o d.svg
	grep -qx 'kprof: the flame graph is in d.svg' stderr
	picture d.svg >frames
	grep -qP '^m4\t588\.0\tf\t10\.0 s before, 30\.0 s after \(\+200\.0 %, \+28\.57 % of all\)' frames || fail "$(cat frames)"
	grep -qP '^z0\t392\.0\tg\t20\.0 s before, 20\.0 s after \(\+0\.0 %,' frames
	grep -qP '^l4\t196\.0\th\t30\.0 s before, 10\.0 s after \(-66\.7 %,' frames
	run ! grep -qP '\ti\t' frames # nothing of it is left
	kprof_says 0 diff before.kprof after.kprof --per run -o b.svg --width-before --relative
	picture b.svg >frames
	grep -qP '^l4\t168\.0\ti\t10\.0 s before, 0 ns after \(-100\.0 %' frames || fail "$(cat frames)"
	grep -qP '^m4\t168\.0\tf\t' frames
	[ "$(stat -c %a d.svg)" = 600 ]
	run ! grep -E 'href|https?://[^w]' d.svg # nothing of it comes from elsewhere
	kprof_says 1 diff before.kprof after.kprof -o /nowhere/d.svg
}

@test "diff -o: hostile names stay text" {
	"$PYTHON" "$BATS_TEST_DIRNAME/readers/gen_hostile.py" | "$BUILD/bench/gen_stacks" hostile.kprof
	made plain /opt/x 100 200 300 0
	kprof_says 0 diff hostile.kprof plain.kprof -o h.svg --width-before --json
	jq -e . stdout >/dev/null
	picture h.svg >frames
	grep -qF ']]><script>alert(1)</script>' frames
	[ "$(grep -c '<script' h.svg)" = 1 ] # its own
	kprof_says 0 diff hostile.kprof hostile.kprof --by line
	run ! grep -qP '[\x00-\x08\x0b-\x1f\x7f]' stdout
}

# work TIMES: does so much in f, the same in g, and prints how much CPU time each has taken, by the thread's own clock
work() {
	cat >work.py <<'END'
import sys
import time


def spin(rounds):
    x = 1
    for _ in range(rounds):
        x = x * 1103515245 + 12345 & 0xffffffff


def f(rounds):
    x = 1
    for _ in range(rounds):
        x = x * 1103515245 + 12345 & 0xffffffff


took = {}
for _ in range(20):
    for name, function, rounds in (("f", f, 1000000 * int(sys.argv[1])), ("spin", spin, 2000000)):
        start = time.thread_time()
        function(rounds)
        took[name] = took.get(name, 0) + time.thread_time() - start
for name, seconds in took.items():
    print(name, seconds)
END
	"$KPROF" sample -q -F 499 -o "$1.kprof" -- "$PYTHON" work.py "$1" >"$1.took"
}

@test "diff: a real program, of which one function does three times as much" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	local name before after
	work 1 && work 3
	kprof_says 0 diff 1.kprof 3.kprof --python --per run --json
	consistent stdout
	jq -e '.rows[0] | .name == "f" and .time.verdict == "more"' stdout || fail "$(cat stdout)"
	# Samples say what the program's own clock says, within what some hundreds of them can. The first ones of a program that
	# starts on a busy machine lack Python's frames.
	for name in f spin; do
		before=$(awk -v name="$name" '$1 == name { print $2 }' 1.took)
		after=$(awk -v name="$name" '$1 == name { print $2 }' 3.took)
		jq -e --arg name "$name" --argjson before "$before" --argjson after "$after" '
			def near($ns; $s): ($ns / 1e9 / $s) > 0.5 and ($ns / 1e9 / $s) < 1.5;
			.rows[] | select(.name == $name).time | near(.before_ns; $before) and near(.after_ns; $after)' stdout ||
			fail "$name took $before and $after s" "$(jq -c --arg name "$name" '.rows[] | select(.name == $name)' stdout)"
	done
}

# megabytes ARGUMENT…: kprof's peak
megabytes() {
	"$PYTHON" -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)' "$KPROF" "$@"
}

@test "diff: memory does not grow with the recordings or their number" {
	local few many i
	"$BUILD/bench/gen_samples" 10000 few.kprof
	"$BUILD/bench/gen_samples" 1000000 many.kprof
	few=$(megabytes diff few.kprof few.kprof -o few.svg)
	many=$(megabytes diff many.kprof many.kprof -o many.svg)
	[ "$many" -le $((few + 8)) ] || fail "$few MB, with a hundred times the samples $many"
	mkdir set
	for i in {1..40}; do ln few.kprof "set/$i.kprof"; done
	many=$(megabytes diff set set -o set.svg)
	[ "$many" -le $((few + 8)) ] || fail "$few MB, of forty captures a side $many"
}

# At the pipe that the picture goes to, until somebody reads it.
at_pipe() { # PID
	[ "$(cat "/proc/$1/wchan" 2>/dev/null)" = wait_for_partner ]
}

# drawn CAPTURE CAPTURE PIPE: draws a comparison into a new pipe; prints kprof's users and capabilities while it is about to
drawn() {
	mkfifo -m 0666 "$3"
	spawn kprof "$KPROF" diff "$1" "$2" -o "$3"
	wait_for "$PATIENCE" "kprof to draw" at_pipe "${pid[kprof]}"
	sed -n 's/^\(Uid\|CapPrm\):[[:space:]]*//p' "/proc/${pid[kprof]}/status" | tr '\t\n' '  '
	cat "$3" >picture.svg
	wait "${pid[kprof]}"
}

@test "diff: root's rights are given up for an owner who may read all captures, else but for files" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	local users=12345 rights
	mkdir theirs
	made theirs/a /opt/x 100 200 300 0
	made theirs/b /opt/x 100 200 300 0
	made ours /opt/x 100 200 300 0
	chown -R $users:$users theirs
	for d in "$dir" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"; do chmod a+x "$d" "$(dirname "$d")"; done
	drawn theirs/a.kprof theirs/b.kprof theirs/d.svg >rights
	[ "$(cat rights)" = "$users $users $users $users 0000000000000000 " ] || fail "$(cat rights)"
	picture picture.svg | grep -q . || fail "no picture"
	# The second one is root's own, which that user may not read.
	drawn theirs/a.kprof ours.kprof theirs/e.svg >rights
	rights=$(awk '{ print $5 }' rights)
	grep -q '^0 0 0 0 ' rights || fail "$(cat rights)"
	[ $((16#$rights & ~(1 << 0 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7))) = 0 ] || fail "$rights"
	picture picture.svg | grep -q . || fail "no picture"
	unset "pid[kprof]"
}
