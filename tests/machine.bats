#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# kprof sample -a: all processes of the machine, those that start meanwhile, those that are over at once, those in containers.
# What the programs count themselves is the judge.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/stacks.bash
source "$BATS_TEST_DIRNAME/lib/stacks.bash"

bats_require_minimum_version 1.5.0

setup() {
	stacks_setup
}

teardown() {
	harness_teardown
	[ ! -e "$dir/cgroups/kprof-test" ] || cgroups_end "$dir/cgroups/kprof-test" # of a test that failed
	umount -l "$dir/cgroups" 2>/dev/null || true
}

# all_started HZ OPTION…
all_started() {
	local hz=$1
	shift
	# however much that costs: the judges want the rate that was asked for
	kprof_start kprof sample -a -F "$hz" --max-overhead 0 -o "$dir/all.kprof" "$@"
}

# ran NAME…: one after the other
ran() {
	local name
	for name in "$@"; do
		target_go "$name" && target_result "$name" || return 1
	done
}

ended_all() {
	local name
	for name in "$@"; do target_end "$name" || return 1; done
}

# meta: what the capture says of all processes
meta() {
	"$KPROF" export "$dir/all.kprof" -o "$dir/all.json" >/dev/null && jq .kprof.meta.all_processes "$dir/all.json"
}

# sampled: the processes that have samples, a name a line; with short-lived ones once
sampled() {
	"$KPROF" export "$dir/all.kprof" -o "$dir/all.folded" >/dev/null && sed -E 's/^([^;]*) \([^()]*\);.*/\1/' "$dir/all.folded" | sort -u
}

# spinning NAME [COMMAND…]: a copy of a program, under a name of its own, that uses a CPU until it is ended
spinning() {
	cp "$(command -v gzip)" "$dir/$1"
	spawn "$1" "${@:2}" "$dir/$1" -c /dev/zero
}

# met NAME…: all of them have used a CPU for three tenths of a second since
met() {
	local name ticks
	for name in "$@"; do
		ticks=$(awk '{ print $14 + $15 }' "/proc/$(comm_pid "$name")/stat")
		wait_for "$PATIENCE" "$name to run" ran_since "$name" $((ticks + 30)) || return 1
	done
}

ran_since() { # NAME TICKS
	[ "$(awk '{ print $14 + $15 }' "/proc/$(comm_pid "$1")/stat")" -ge "$2" ]
}

comm_pid() {
	pgrep -x "$1" | head -n 1
}

@test "programs that know their stacks, started before the recording and during it" {
	target_start before-c "$STACKS/native/gcc-O2-omit" --cpu-ms 25
	target_start before-py "$PYTHON" "$CHECKS/known.py" --cpu-ms 60
	# What these processes are, one after the other; without others, whose tables would come first where there is much of the like.
	all_started 499 --comm 'gcc-O2-omit,clang-O2-omit,python3,bash,env'
	target_start after-c "$STACKS/native/clang-O2-omit" --cpu-ms 25
	target_start after-py "$PYTHON" "$CHECKS/known.py" --cpu-ms 60
	ran before-c before-py after-c after-py
	kprof_stop kprof
	ended_all before-c before-py after-c after-py
	for name in before-c after-c; do
		"$PYTHON" "$CHECKS/check_native.py" --copies --hz 499 "$dir/all.kprof" "$dir/$name.json"
	done
	for name in before-py after-py; do
		"$PYTHON" "$CHECKS/check_python.py" --copies --hz 499 "$dir/all.kprof" "$dir/$name.json"
	done
}

# The thousand programs live a millisecond each: too short for most to be sampled at all.
@test "programs that are over at once: how many of which name, and their CPU time, as their parent counts" {
	cp /bin/true "$dir/kp_short"
	target_start short "$PYTHON" "$WORKLOADS/short_lived.py" "$dir/kp_short" 1000
	all_started 199
	target_go short
	target_result short
	kprof_stop kprof
	target_end short
	meta | jq -c '.ended[] | select(.name == "kp_short")' >"$dir/ended"
	cat "$dir/ended" "$dir/short.json"
	# A process's CPU time is known when the kernel gives its memory back, which takes some moments, or seconds if it is busy.
	jq -se '.[0].processes == .[1].processes and (.[0].cpu_unknown // 0) <= 100' "$dir/ended" "$dir/short.json"
	jq -se '(.[0].cpu_unknown // 0) as $late | .[0].cpu_ns / .[1].cpu_ns / (1 - $late / 1000) - 1 | fabs < 0.03' "$dir/ended" "$dir/short.json"
	# They are one in pictures, and as the kernel tells what they map, their code is known though they are gone.
	sampled >/dev/null
	grep '^kp_short (short-lived);' "$dir/all.folded" | awk '{ all += $NF } /\[unknown\]/ { unknown += $NF } END { print unknown + 0, all; exit unknown > all / 4 }'
	run ! grep '^kp_short ([0-9]' "$dir/all.folded"
	"$KPROF" report --by process --json "$dir/all.kprof" |
		jq -e '[.rows[] | select(.name | test("kp_short"))] | length == 1 and .[0].name == "kp_short (short-lived)" and .[0].processes > 10'
}

@test "only some: by name, user and cgroup; the others' samples are counted" {
	local id cgroups=$dir/cgroups
	id=$(printf '%064d' 7)
	mkdir "$cgroups"
	spinning kp_one
	spinning kp_two setpriv --reuid 65534 --clear-groups
	spinning kp_three
	wait_for "$PATIENCE" "programs" pgrep -x kp_three
	all_started 199 --comm 'kp_*,nothing' --exclude-comm 'kp_thr*'
	met kp_one kp_two kp_three
	kprof_stop kprof
	[ "$(sampled)" = $'kp_one\nkp_two' ]
	meta | jq -e '.samples_left_out > 10'
	all_started 199 --user 65534 --comm 'kp_*'
	met kp_two
	kprof_stop kprof
	[ "$(sampled)" = kp_two ]
	all_started 199 --exclude-user 65534,4711 --comm 'kp_*'
	met kp_one kp_two kp_three
	kprof_stop kprof
	[ "$(sampled)" = $'kp_one\nkp_three' ]
	mount -t cgroup2 none "$cgroups" || skip "no cgroups (version 2)"
	mkdir -p "$cgroups/kprof-test/docker-$id.scope"
	comm_pid kp_three >"$cgroups/kprof-test/docker-$id.scope/cgroup.procs"
	all_started 199 --cgroup "$id,/no/such"
	met kp_three
	kprof_stop kprof
	[ "$(sampled)" = kp_three ]
	all_started 199 --cgroup '*kprof-test*'
	met kp_three
	kprof_stop kprof
	[ "$(sampled)" = kp_three ]
	all_started 199 --comm 'kp_*' --exclude-cgroup "$id"
	met kp_one kp_two kp_three
	kprof_stop kprof
	[ "$(sampled)" = $'kp_one\nkp_two' ]
	all_started 199 --comm 'kp_*'
	met kp_one kp_three
	kprof_stop kprof
	"$KPROF" report --by container --json "$dir/all.kprof" >"$dir/containers"
	jq -c '.rows[]' "$dir/containers"
	jq -e --arg id "${id:0:12}" '[.rows[] | select(.name == $id)] | length == 1 and .[0].processes == 1 and .[0].cpu_ns > 0 and
		(.[0].cgroup | endswith("/docker-'"$id"'.scope"))' "$dir/containers"
	jq -e '[.rows[] | select(.name != "'"${id:0:12}"'").processes] | add == 2' "$dir/containers"
	for name in kp_one kp_two kp_three; do kill "$(comm_pid "$name")"; done
	wait_for "$PATIENCE" "them to end" eval "! pgrep -x 'kp_one|kp_two|kp_three'"
}

@test "in a container, with files that nobody else sees" {
	mkdir -p "$dir/root/proc"
	cp "$STACKS/native/gcc-O2-static" "$dir/root/program"
	# All that this process is, one after the other.
	all_started 499 --comm 'bash,env,unshare,sh,mount,chroot,program'
	# shellcheck disable=SC2016 # the inner shell's
	target_start inside "${own_mounts[@]}" -pf sh -c 'mount -t proc proc "$0/proc"; exec chroot "$0" /program --cpu-ms 25' "$dir/root"
	target_go inside
	target_result inside
	kprof_stop kprof
	target_end inside
	umount -l "$dir/root/proc" 2>/dev/null || true # where mounts are shared
	# the program has the number that it has for itself
	host=$("$STACKS/stackdump" "$dir/all.kprof" | jq -s '[.[] | select(.thread == "program") | .pid] | group_by(.) | max_by(length)[0]')
	jq -c --argjson pid "$host" '.pid = $pid' "$dir/inside.json" >"$dir/host.json"
	"$PYTHON" - "$dir/host.json" "$dir/all.kprof" <<-'END'
		import json, subprocess, sys, os
		r = json.load(open(sys.argv[1]))
		dump = subprocess.run([os.environ["BUILD"] + "/stacks/stackdump", sys.argv[2]], stdout=subprocess.PIPE, check=True)
		mine = [s for s in map(json.loads, dump.stdout.splitlines()) if s["pid"] == r["pid"]]
		late = [s for s in mine if s["time_ns"] > (min(p["begin_ns"] for p in r["phases"]) + max(p["end_ns"] for p in r["phases"])) / 2]
		whole = [s for s in late if s["end"] == 1]
		named = [s for s in whole if any(f["function"] == "phase_run" for f in s["frames"])]
		print(len(mine), len(late), len(whole), len(named))
		sys.exit(not (len(late) > 50 and len(whole) > 0.9 * len(late) and len(named) > 0.6 * len(whole)))
	END
}

# executed_others NR stopped|running: NR processes that are met as one program and are recorded as another; what kprof is meanwhile
executed_others() {
	ln -s "$(readlink -f "$PYTHON")" "$dir/kp_other"
	target_start other "$PYTHON" "$WORKLOADS/other_name.py" "$1" "$dir/kp_other" 10
	all_started 999 --comm kp_other
	if [ "$2" = stopped ]; then pause_process "${pid[kprof]}"; fi
	ran other
	kill -CONT "${pid[kprof]}"
	kprof_stop kprof
	ended_all other
	[ "$("$STACKS/stackdump" "$dir/all.kprof" | jq -s '[.[].pid] | unique | length')" = "$1" ]
}

@test "a process that executes a program which is chosen, just after it was met as another one" {
	executed_others 40 running
}

@test "the same where all have ended before kprof reads of them" {
	executed_others 10 stopped
}

@test "a process that takes a chosen name while it runs, as servers do: its samples from then on, and no others" {
	target_start taker "$PYTHON" "$WORKLOADS/takes_name.py" kp_taken
	all_started 499 --comm kp_taken
	ran taker
	for _ in {1..5}; do met kp_taken; done # it is looked after new names once a second
	kprof_stop kprof
	ended_all taker
	[ "$(sampled)" = kp_taken ]
	"$STACKS/stackdump" "$dir/all.kprof" | jq -es --slurpfile taker "$dir/taker.json" 'all(.pid == $taker[0].pid and .time_ns >= $taker[0].taken_ns)'
	"$KPROF" export "$dir/all.kprof" -o "$dir/all.json" >/dev/null
	jq -e '[.traceEvents[] | select(.ph == "M" and .name == "process_name").args.name] == ["kp_taken"]' "$dir/all.json"
}

@test "a process that takes another name while it is recorded: its first thread has that name, too" {
	# shellcheck disable=SC2016 # the other shell's
	target_start taker bash -c 'burn() { local i; for ((i = 0; i < $1; i++)); do :; done; }
		echo "READY $$"; read -r; burn 100000; printf kp_named >/proc/self/comm; echo "{\"pid\": $$}"; while read -r -t 0.001; (($? > 128)); do burn 1000; done'
	all_started 499
	ran taker
	for _ in {1..5}; do met kp_named; done
	ended_all taker # the recording's end would look once more
	kprof_stop kprof
	"$KPROF" export "$dir/all.kprof" -o "$dir/all.json" >/dev/null
	jq -e --slurpfile taker "$dir/taker.json" '[.traceEvents[] | select(.ph == "M" and .pid == $taker[0].pid and .name == ("process_name", "thread_name")).args.name] |
		length == 2 and all(contains("kp_named"))' "$dir/all.json"
}

@test "little memory: what is not used is forgotten, and comes back" {
	target_start before-c "$STACKS/native/gcc-O2-omit" --cpu-ms 25
	target_start children "$PYTHON" "$WORKLOADS/many_children.py" 100
	all_started 499 --kernel-memory 4M --own-memory 4M
	ran children before-c
	kprof_stop kprof
	ended_all children before-c
	meta >"$dir/meta"
	cat "$dir/meta"
	jq -e '.processes_forgotten > 0' "$dir/meta"
	jq -c .kprof.meta.stacks "$dir/all.json"
	jq -e '.kprof.meta.stacks.kernel_bytes <= 4 * 1048576' "$dir/all.json"
	# each of the children is there, once
	[ "$("$STACKS/stackdump" "$dir/all.kprof" | jq -s --slurpfile r "$dir/children.json" '[.[].pid] | unique - (. - $r[0].pids) | length')" = 100 ]
	jq -e --slurpfile r "$dir/children.json" '[.traceEvents[] | select(.name == "process_name" and (.pid | IN($r[0].pids[]))) | .pid] | length == 100' "$dir/all.json"
	"$PYTHON" "$CHECKS/check_native.py" --copies --hz 499 "$dir/all.kprof" "$dir/before-c.json"
}

# compiled COMPILER: twice more, from beginning to end
compiled() {
	local had
	had=$(grep -cx "$1" "$dir/driver.out" || true)
	wait_for "$PATIENCE" "$1 to compile" eval "[ \$(grep -cx '$1' '$dir/driver.out') -ge $((had + 3)) ]"
}

made_room() { # FILE
	grep -q "make room for that of .*/$1\$" "$dir/kprof.err"
}

# The two compilers' tables do not fit beside each other. Five seconds after one was needed last, it makes room for another.
@test "little memory of the kernel: tables that no stack needs make room, and come back" {
	type -P clang-14 >/dev/null || skip "no clang-14"
	mkfifo "$dir/holder.in"
	spawn holder clang-14 -x c - -S -o /dev/null # it waits for its input: its tables come first
	exec {new}>"$dir/holder.in"
	fd[holder]=$new
	for i in {1..300}; do echo "int f$i(int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i] / $i; return s; }"; done >"$dir/go.c"
	# shellcheck disable=SC2016 # the inner shell's
	spawn driver bash -c 'for compiler in gcc clang-14; do
		until [ -e "$0-$compiler" ]; do sleep 0.1; done
		until [ -e "$0-$compiler-enough" ]; do "$compiler" -O2 -S -o /dev/null "$0.c" && echo "$compiler"; done
	done' "$dir/go"
	wait_for "$PATIENCE" "clang to map its library" grep -q libLLVM "/proc/${pid[holder]}/maps"
	kprof_start kprof sample -p "${pid[holder]},${pid[driver]}" -F 199 --kernel-memory 11M -o "$dir/all.kprof"
	touch "$dir/go-gcc"
	wait_for "$PATIENCE" "clang's tables to make room" made_room cc1
	compiled gcc
	touch "$dir/go-clang-14" "$dir/go-gcc-enough"
	sleep 6
	compiled clang-14
	touch "$dir/go-clang-14-enough"
	wait_for "$PATIENCE" "the compilers to end" ended "${pid[driver]}"
	kprof_stop kprof
	meta >/dev/null
	jq -c .kprof.meta.stacks "$dir/all.json"
	jq -e '.kprof.meta.stacks | .tables_evicted > 0 and .kernel_bytes <= 11 * 1048576' "$dir/all.json"
	# Where tables lack, walks end: at last they are there, those of clang again.
	for compiler in cc1 clang; do
		"$STACKS/stackdump" "$dir/all.kprof" | jq -sce --arg name "$compiler" '[.[] | select(.thread | startswith($name))][-60:] |
			[length, (map(select(.end == 1)) | length)] | ., (.[0] == 60 and .[1] >= 48)'
	done
}

# The long forms of the next two are in soak/machine.bats.
@test "two thousand threads" {
	cc -O2 -pthread -o "$dir/kp_threads" "$WORKLOADS/many_threads.c"
	target_start threads "$dir/kp_threads" "${KPROF_THREADS:-2000}" "${KPROF_THREAD_MS:-4}"
	all_started 499 --comm kp_threads
	target_go threads
	target_result threads
	kprof_stop kprof
	target_end threads
	cat "$dir/threads.json"
	"$KPROF" report --by thread --json --limit 0 "$dir/all.kprof" >"$dir/by_thread"
	# A sample is taken each 2 ms on each CPU: of 4 ms hardly a thread has none.
	jq -c '[.rows[].tid] | unique | length' "$dir/by_thread"
	jq -c '.samples | [.samples, .lost, .weight_ns]' "$dir/by_thread"
	jq -e '.samples.lost == 0' "$dir/by_thread"
	jq -e --slurpfile t "$dir/threads.json" '[.rows[].tid] | unique | length >= 0.85 * $t[0].threads' "$dir/by_thread"
	jq -e --slurpfile t "$dir/threads.json" '.samples | .weight_ns / $t[0].cpu_ns - 1 | fabs < 0.1' "$dir/by_thread"
	jq -e '.samples | .whole >= 0.95 * .walked' "$dir/by_thread"
}

@test "file systems that come and go, with the programs in them" {
	target_start storm "${own_mounts[@]}" "$PYTHON" "$WORKLOADS/mount_storm.py" "$dir" "$(command -v gzip)" "${KPROF_MOUNTS:-100}"
	target_start known "$STACKS/native/gcc-O2-omit" --cpu-ms 25
	all_started 499 --comm 'kp_storm,gcc-O2-omit,python3,unshare,bash,env'
	target_go storm
	ran known
	target_result storm
	kprof_stop kprof
	ended_all storm known
	"$PYTHON" "$CHECKS/check_native.py" --copies --hz 499 "$dir/all.kprof" "$dir/known.json"
	meta | jq -c '.ended[] | select(.name == "kp_storm")' >"$dir/ended"
	cat "$dir/ended" "$dir/storm.json"
	jq -se '.[0].processes == .[1].mounts' "$dir/ended" "$dir/storm.json"
}

# They have been linked, and wait, before they are met: a process whose first sample comes while it is being linked,
# or before it executes its program, is rightly read again. One that has used a whole tick is known from the start,
# so a shell starts them that is small to copy.
@test "the mappings of a process that is met are read once" {
	command -v strace >/dev/null || skip "no strace here: scripts/setup check installs it"
	local i read readings=0 tracer reader
	mkfifo "$dir"/input{1..8}
	spawn workers sh -c 'cd "$1" && for i in 1 2 3 4 5 6 7 8; do "$0" --cpu-ms 30 <>"input$i" >"worker$i.out" & done; wait' \
		"$STACKS/native/clang-O2-omit" "$dir"
	for i in {1..8}; do wait_for "$PATIENCE" "worker $i" grep -qs "^READY " "$dir/worker$i.out"; done
	all_started 99
	reader=$(pgrep -P "${pid[kprof]}" kprof-reader)
	strace -qq -o "$dir/trace" -e trace=openat -p "$reader" &
	tracer=$!
	wait_for "$PATIENCE" "the reader to be traced" grep -q "^TracerPid:.*$tracer\$" "/proc/$reader/status"
	for i in {1..8}; do echo go >"$dir/input$i"; done
	for i in {1..8}; do wait_for "$PATIENCE" "worker $i's result" grep -q "^{" "$dir/worker$i.out"; done
	kprof_stop kprof
	wait "$tracer"
	for i in {1..8}; do
		read=$(grep -c "\"/proc/$(awk '/^READY/ { print $2 }' "$dir/worker$i.out")/maps\"" "$dir/trace" || true)
		echo "worker $i: $read readings"
		[ "$read" -le 1 ]
		readings=$((readings + read))
	done
	[ "$readings" -ge 1 ]
}

@test "what cannot be asked for together" {
	run -2 "$KPROF" sample -a -p 1
	[[ $output == *"all processes (-a), or some"* ]]
	run -2 "$KPROF" sample -a -- true
	[[ $output == *"all processes (-a), or some"* ]]
	run -2 "$KPROF" sample --comm x -p 1
	[[ $output == *"choose among all processes (-a)"* ]]
	run -2 "$KPROF" sample -a --user nobody-of-this-name
	[[ $output == *"there is no user 'nobody-of-this-name'"* ]]
}
