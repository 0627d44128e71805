#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# kprof daemon among users who mean it, or each other, harm: what they may ask for, and what they cannot do to what others
# have. The judges: the files that are there, the owners of processes, clients that are answered.

# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own, as is meant
# shellcheck source=tests/lib/daemon.bash
source "$BATS_TEST_DIRNAME/lib/daemon.bash"

setup() {
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	comm=w$BATS_TEST_NUMBER-$$
}

teardown() {
	harness_teardown
	if [ -d "${pods:-}" ]; then cgroups_end "$pods"; fi
	if mountpoint -q "$dir/cgroups"; then umount "$dir/cgroups"; fi
}

# A process of a user whom nobody else is.
sleeper_of() { # NAME UID
	spawn "$1" setpriv --reuid "$2" --regid "$2" --clear-groups sleep 1000
}

as_user() { # UID VERB ARGUMENT…: prints the id
	local uid=$1 verb=$2
	shift 2
	setpriv --reuid "$uid" --regid "$uid" --clear-groups "$dir/bin/kprof" ctl "$verb" --socket "$socket" "$@"
}

own_copy() {
	chmod 755 "$dir" && mkdir -p "$dir/bin" && cp "$KPROF" "$dir/bin" && chmod 755 "$dir/bin" "$dir/bin/kprof"
}

recorded() { # ID_FILE COMMAND…: a recording that has ended
	"${@:2}" -d 100ms >"$dir/$1"
	wait_for "$PATIENCE" "its end" is_in "$(cat "$dir/$1")" "done"
}

window_of() { # CAPTURE: how long it recorded, to the nanosecond
	"$KPROF" report "$1" --json | jq -e .window_ns
}

is_in() { # ID STATE
	[ "$(state_of "$1")" = "$2" ]
}

# processes_of UID ARGUMENT…: what the daemon tells this user of processes, in $dir/processes
processes_of() {
	local uid=$1
	shift
	as_user "$uid" processes --json "$@" >"$dir/processes"
}

listed() { # JQ: of the process $p, "null" if it is not there
	jq -e --argjson p "$1" "(.processes | map(select(.pid == \$p)) | first) as \$it | \$it | $2" "$dir/processes" >/dev/null ||
		fail "process $1: not $2" "$(jq -c '.processes[]' "$dir/processes")"
}

@test "ctl processes: root and the group see all, a user their own; what runs in them, and what is done with them" {
	own_copy
	local copy=$dir/other id theirs
	cp "$(command -v sleep)" "$dir/bin/$comm"
	cp "$(command -v sleep)" "$copy" && chown 20002 "$copy" && chmod 4755 "$copy"
	daemon_start --no-sampling --watch "$comm" --group daemon --allow-owner
	sleeper_of theirs 20001
	sleeper_of others 20002
	spawn suid setpriv --reuid 20001 --regid 20001 --clear-groups "$copy" 1000
	spawn watched setpriv --reuid 20001 --regid 20001 --clear-groups "$dir/bin/$comm" 1000
	spawn agent env LD_PRELOAD="$BUILD/libkprof_agent.so" sleep 1000
	spawn python "$PYTHON" -c 'import time; time.sleep(1000)'
	target_start torch "$driver" count --n 1
	wait_for "$PATIENCE" "their programs" programs_run
	ctl start -p "${pid[theirs]}"
	theirs=$(cat "$dir/stdout")
	"$KPROF" ctl processes --socket "$socket" --json >"$dir/processes" # what kprof has to do with, of all
	listed "${pid[theirs]}" ".recording == \"$theirs\" and .uid == 20001 and .name == \"sleep\" and .may and (.watched or .agent or .kineto | not)"
	listed "${pid[watched]}" ".watched and .name == \"$comm\""
	listed "${pid[agent]}" '.agent and (.watched | not)'
	listed "${pid[python]}" ".python == \"$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')\" and (has(\"frameworks\") | not)"
	listed "${pid[torch]}" '(.frameworks | startswith("pytorch")) and (has("recording") or has("python") | not)'
	listed "${pid[others]}" '. == null'
	"$KPROF" ctl processes --socket "$socket" --json -p "${pid[suid]},${pid[others]}" >"$dir/processes" # these, whatever they are
	listed "${pid[suid]}" '.uid == 20002'
	listed "${pid[others]}" '.uid == 20002 and .may'
	jq -e '.processes | length == 2' "$dir/processes"
	ctl processes
	grep -qE "^ *PID +USER +NAME +PYTHON +FRAMEWORK +RUNTIME +CONTAINER +STATE" "$dir/stdout"
	grep -qE "^ *${pid[theirs]} +20001 +sleep +- +- +- +- +recorded $theirs\$" "$dir/stdout"
	# a member of the group, an owner, and who is neither; a program that runs as another user is not its starter's
	setpriv --reuid 20003 --regid 20003 --groups "$(getent group daemon | cut -d: -f3)" "$dir/bin/kprof" ctl processes --socket "$socket" \
		--json >"$dir/processes"
	listed "${pid[theirs]}" ".recording == \"$theirs\" and .may"
	id=$(as_user 20001 start -p "${pid[watched]}")
	processes_of 20001
	jq -e '.processes | all(.uid == 20001)' "$dir/processes"
	listed "${pid[theirs]}" '. == null' # root records it, which is not told
	listed "${pid[watched]}" ".recording == \"$id\" and .may and .watched"
	processes_of 20001 -p "${pid[theirs]},${pid[others]},${pid[suid]},$$"
	jq -e '.processes | map(.pid) == ['"${pid[theirs]}"'] and all(has("recording") | not)' "$dir/processes"
	processes_of 20003 -p "${pid[theirs]},${pid[others]},${pid[suid]},$$"
	jq -e '.processes == []' "$dir/processes"
	kprof_says 2 ctl processes 7
	daemon_stop
}

programs_run() {
	pgrep -x "$comm" >/dev/null && grep -q libkprof_agent "/proc/${pid[agent]}/maps" && [ "$(cat "/proc/${pid[suid]}/comm")" = other ] &&
		[ "$(stat -c %u "/proc/${pid[theirs]}")" = 20001 ] && [ "$(stat -c %u "/proc/${pid[others]}")" = 20002 ] &&
		[ "$(cat "/proc/${pid[theirs]}/comm" "/proc/${pid[python]}/comm" | xargs)" = "sleep python3" ]
}

@test "ctl processes: who does not read a list gets no other, and costs a few KB; one that is cut off says so" {
	local members
	members=$(getent group daemon | cut -d: -f3)
	daemon_start --no-sampling --group daemon
	setpriv --reuid 20001 --regid 20001 --clear-groups "$PYTHON" - "$socket" "${pid[daemon]}" owner <"$LIB/list_readers.py"
	setpriv --reuid 20002 --regid 20002 --groups "$members" "$PYTHON" - "$socket" "${pid[daemon]}" group <"$LIB/list_readers.py"
	ctl processes
	daemon_stop
	# by others that listen there
	local list='[{"pid":1,"name":"\u001b[2Ja\u009bb"}'
	list_said 1 "$list,"$'\n{"pid":2' --json
	grep -q "list has no end" "$dir/stderr"
	list_said 1 $'[1 2]\n' --json
	grep -q "list is not understood" "$dir/stderr"
	list_said 0 "$list"$']\n' --json -p 1
	jq -e '.processes[0].name == "?[2Ja??b"' "$dir/stdout"
}

# list_said STATUS LIST ARGUMENT…: what ctl makes of it
list_said() {
	printf %s "$2" >"$dir/other.in"
	rm -f "$dir/other.socket"
	spawn other "$PYTHON" "$LIB/say_list.py" "$dir/other.socket"
	wait_for "$PATIENCE" "it to listen" said other
	kprof_says "$1" ctl processes --socket "$dir/other.socket" "${@:3}"
}

@test "ctl processes: the container that a process is in, and the names of its pod on this node" {
	local id
	id=$(printf '%064d' 7)
	mkdir "$dir/cgroups"
	mount -t cgroup2 none "$dir/cgroups" || skip "no cgroups (version 2)"
	pods=$dir/cgroups/kprof-$$
	mkdir -p "$pods/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-$id.scope"
	spawn named sleep 1000
	spawn unnamed sleep 1000
	echo "${pid[named]}" >"$pods/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-$id.scope/cgroup.procs"
	cat >"$dir/on_node" <<-end
		#!/bin/sh
		mount -t tmpfs none /var/log && mkdir -m 755 /var/log/containers && ln -s /gone "/var/log/containers/train-0_ml-team_pytorch-$id.log" && exec "\$@"
	end
	chmod 755 "$dir/on_node"
	before_daemon=("${own_mounts[@]}" "$dir/on_node")
	daemon_start --no-sampling
	ctl processes --json -p "${pid[named]},${pid[unnamed]}"
	cp "$dir/stdout" "$dir/processes"
	listed "${pid[named]}" ".container == \"$id\" and .pod == \"ml-team/train-0/pytorch\""
	listed "${pid[unnamed]}" 'has("container") or has("pod") | not'
	daemon_stop
	before_daemon=()
	daemon_start --no-sampling # elsewhere
	ctl processes -p "${pid[named]}"
	grep -qE ' 0a1b2c3d-1111-2222-3333-444455556666 ' "$dir/stdout"
	daemon_stop
}

gone() {
	[ ! -e "$1" ]
}

@test "no user can have recordings of others removed: by holes, by a time in the future, by what it has recorded itself" {
	own_copy
	daemon_start --no-sampling --allow-owner
	sleeper_of theirs 20001
	spawn ours sleep 1000
	recorded old "$KPROF" ctl start --socket "$socket" -p "${pid[ours]}"
	wait_for "$PATIENCE" "it to sleep" runs "${pid[theirs]}" sleep
	recorded future as_user 20001 start -p "${pid[theirs]}"
	recorded ours "$KPROF" ctl start --socket "$socket" -p "${pid[ours]}"
	recorded hole as_user 20001 start -p "${pid[theirs]}"
	recorded large as_user 20001 start -p "${pid[theirs]}"
	daemon_stop
	local old ours theirs=$state/recordings
	old=$theirs/$(cat "$dir/old")
	ours=$theirs/$(cat "$dir/ours")
	# a recording is its owner's file
	setpriv --reuid 20001 --regid 20001 --clear-groups sh -c 'touch -d 2099-01-01 "$1" && truncate -s 1T "$2" && head -c 30M /dev/zero >>"$3"' sh \
		"$theirs/$(cat "$dir/future").kprof" "$theirs/$(cat "$dir/hole").kprof" "$theirs/$(cat "$dir/large").kprof"
	touch -d 2000-01-01 "$old.kprof"
	daemon_start --no-sampling --allow-owner --recordings-bytes 100M --keep-recordings 1h
	wait_for "$PATIENCE" "what is old to go" gone "$old.kprof"
	wait_for "$PATIENCE" "what is more than a user's share to go" gone "$theirs/$(cat "$dir/large").kprof"
	[ ! -e "$theirs/$(cat "$dir/large").json" ]
	[ -e "$ours.kprof" ]
	[ -e "$ours.json" ]
	ctl get "$(cat "$dir/ours")" -o "$dir/ours.kprof"
	daemon_stop
}

@test "an owner's processes are those that it could look into itself: none that have, had or hide more" {
	own_copy
	daemon_start --no-sampling --allow-owner
	spawn hides "$PYTHON" "$LIB/other_rights.py" 20001 hides
	spawn had "$PYTHON" "$LIB/other_rights.py" 20001 had
	local name user=(setpriv --reuid 20001 --regid 20001 --clear-groups)
	spawn has "${user[@]}" --inh-caps +net_raw --ambient-caps +net_raw sleep 1000
	wait_for "$PATIENCE" "the process to hide" said hides
	wait_for "$PATIENCE" "the process to give up root" said had
	wait_for "$PATIENCE" "it to sleep" runs "${pid[has]}" sleep
	for name in hides had has; do
		[ "$(stat -c %u "/proc/${pid[$name]}")" = 20001 ] # which is not enough
		as_user 20001 start -p "${pid[$name]}" >"$dir/stdout" 2>"$dir/stderr" && fail "$name is recorded"
		grep -q "is not yours to record" "$dir/stderr" || fail "$name" "$(cat "$dir/stderr")"
		processes_of 20001 -p "${pid[$name]}"
		jq -e '.processes == []' "$dir/processes"
		"${user[@]}" "$dir/bin/kprof" status --can-capture -p "${pid[$name]}" --socket "$socket" && fail "$name could be recorded"
	done
	# root of a user namespace is no more than the user who has made it; in a chroot, none can be made
	local inside=("${user[@]}" unshare --user --map-root-user)
	if "${inside[@]}" true; then
		spawn inside "${inside[@]}" sleep 1000
		wait_for "$PATIENCE" "it to sleep" runs "${pid[inside]}" sleep
		processes_of 20001 -p "${pid[inside]}"
		listed "${pid[inside]}" '.may'
		as_user 20001 start -p "${pid[inside]}" -d 100ms
		spawn ours sleep 1000
		"${inside[@]}" "$dir/bin/kprof" ctl start --socket "$socket" -p "${pid[ours]}" >"$dir/stdout" 2>"$dir/stderr" && fail "root's process is recorded"
		grep -q "is not yours to record" "$dir/stderr"
	fi
	daemon_stop
}

# elsewhere COMMAND…: as the first process of a PID namespace of its own, as in a container
elsewhere() {
	unshare --pid --fork --kill-child "$@"
}

elsewhere_refused() { # REGEX COMMAND…
	local cause=$1 status=0
	shift
	elsewhere "$@" >"$dir/stdout" 2>"$dir/stderr" || status=$?
	{ [ "$status" = 1 ] && grep -qE "^kprof: .*$cause" "$dir/stderr"; } || fail "$*: $status" "$(cat "$dir/stdout" "$dir/stderr")"
}

inside_runs() { # NAME: the process below it, which goes to $dir/NAME.inside
	pgrep -P "${pid[$1]}" sleep >"$dir/$1.inside"
}

@test "root of another PID namespace, as in a container, is not the machine's: it sees and records what is its own there" {
	own_copy
	local ours theirs inside members name
	members=$(getent group daemon | cut -d: -f3)
	daemon_start --no-sampling --watch "$comm" --allow-owner --group daemon
	spawn ours sleep 1000
	for name in pod other; do # without capabilities: those of the container's root are not its other processes'
		spawn $name unshare --pid --fork --kill-child setpriv --inh-caps -all --bounding-set -all sleep 1000
	done
	for name in pod other; do wait_for "$PATIENCE" "it to sleep" inside_runs $name; done
	inside=$(cat "$dir/pod.inside")
	ctl start -p "${pid[ours]}"
	ours=$(cat "$dir/stdout")
	local ask=("$dir/bin/kprof" ctl) pod=(nsenter -t "$inside" --pid "$dir/bin/kprof" ctl) to=(--socket "$socket")
	# what is the machine's, or others', is not root's there
	elsewhere_refused "is not yours to record" "${ask[@]}" start "${to[@]}" -p "${pid[ours]}"
	elsewhere_refused "is not yours to record" "${ask[@]}" start "${to[@]}" -p "$inside"
	elsewhere_refused "there is no recording $ours" "${ask[@]}" stop "${to[@]}" "$ours"
	elsewhere_refused "there is no recording $ours" "${ask[@]}" get "${to[@]}" "$ours" -o "$dir/x.kprof"
	elsewhere_refused "it is root's" "${ask[@]}" dump "${to[@]}"
	elsewhere_refused "is not yours to record" setpriv --reuid 20003 --regid 20003 --groups "$members" "${ask[@]}" start "${to[@]}" -p "${pid[ours]}"
	[ "$(elsewhere "${ask[@]}" list "${to[@]}" --json | jq '.recordings | length')" = 0 ]
	elsewhere "${ask[@]}" processes "${to[@]}" --json -p "${pid[ours]},$inside" | jq -e '.processes == []'
	# its own are
	theirs=$("${pod[@]}" start "${to[@]}" -p "$inside")
	[ "$("${pod[@]}" list "${to[@]}" --json | jq -r '.recordings[].id')" = "$theirs" ]
	"${pod[@]}" processes "${to[@]}" --json -p "${pid[ours]},$inside" >"$dir/processes"
	jq -e --argjson p "$inside" --arg id "$theirs" '.processes | map([.pid, .may, .recording]) == [[$p, true, $id]]' "$dir/processes"
	# those of other containers, whose root is as much root, are not
	elsewhere_refused "there is no recording $theirs" "${ask[@]}" cancel "${to[@]}" "$theirs"
	nsenter -t "$(cat "$dir/other.inside")" --pid "${ask[@]}" list "${to[@]}" --json | jq -e '.recordings == []'
	"${pod[@]}" stop "${to[@]}" "$theirs"
	"${pod[@]}" get "${to[@]}" "$theirs" -o "$dir/theirs.kprof"
	[ "$(window_of "$dir/theirs.kprof")" = "$(window_of "$state/recordings/$theirs.kprof")" ]
	ctl get "$theirs" -o "$dir/ours.kprof" # the machine's root
	logged refusal '.elsewhere and .uid == 0 and .verb == "get"'
	daemon_stop
	# which namespace that was, the next daemon does not know
	daemon_start --no-sampling --allow-owner
	[ "$("${pod[@]}" list "${to[@]}" --json | jq '.recordings | length')" = 0 ]
	ctl get "$theirs" -o "$dir/later.kprof"
	daemon_stop
	# where owners may not, nobody there may
	daemon_start --no-sampling
	elsewhere_refused "you may not have processes recorded" "${ask[@]}" start "${to[@]}" -p "$inside"
	grep -q "^hint: from another PID namespace" "$dir/stderr"
	daemon_stop
}

said() { # NAME
	grep -q . "$dir/$1.out"
}

runs() { # PID NAME: it has become the user by then
	[ "$(cat "/proc/$1/comm")" = "$2" ]
}

@test "a recording ends when its process executes a program, which may be another user's" {
	own_copy
	local copy=$dir/other id
	cp "$(command -v sleep)" "$copy" && chown 20002 "$copy" && chmod 4755 "$copy"
	daemon_start --no-sampling --allow-owner
	mkfifo "$dir/target.in"
	exec 9<>"$dir/target.in"
	spawn target setpriv --reuid 20001 --regid 20001 --clear-groups sh -c 'read -r go; exec "$0" 1000' "$copy"
	wait_for "$PATIENCE" "it to wait" runs "${pid[target]}" sh
	id=$(as_user 20001 start -p "${pid[target]}")
	is_in "$id" recording
	echo go >&9
	exec 9>&-
	wait_for "$PATIENCE" "its end" is_in "$id" "done"
	! ended "${pid[target]}" || false # the program runs on
	daemon_stop
}

@test "what root has set for its own recordings is not done for owners of processes" {
	own_copy
	cp -a /etc "$dir/etc" && echo stacks >"$dir/etc/kprof.conf"
	state=$dir/state socket=$dir/run/socket
	spawn daemon "${own_mounts[@]}" sh -c 'mount --bind "$1" /etc && shift && exec "$@"' sh "$dir/etc" \
		"$KPROF" daemon --state "$state" --socket "$socket" --config /dev/null --min-free 1M --no-listen --no-sampling --allow-owner
	wait_for "$PATIENCE" "the daemon to listen" daemon_listens
	spawn theirs setpriv --reuid 20001 --regid 20001 --clear-groups sh -c 'while :; do :; done'
	wait_for "$PATIENCE" "it to run" runs "${pid[theirs]}" sh
	local id
	id=$(as_user 20001 start -p "${pid[theirs]}" -d 1s)
	wait_for "$PATIENCE" "its end" is_in "$id" "done"
	"$KPROF" ctl status --socket "$socket" --json "$id" | jq -e '.samples == 0'
	# for root it is
	ctl start -p "${pid[theirs]}" -d 1s
	id=$(cat "$dir/stdout")
	wait_for "$PATIENCE" "its end" is_in "$id" "done"
	"$KPROF" ctl status --socket "$socket" --json "$id" | jq -e '.samples > 0'
	kill "${pid[theirs]}"
	daemon_stop
}

@test "no recording goes on for ever: rounds together, a start far away, a disk that is nearly full" {
	daemon_start --no-sampling --longest 2s
	spawn target sleep 1000
	local id
	ctl start -p "${pid[target]}" --repeat 1000 -d 1500ms
	id=$(cat "$dir/stdout")
	wait_for "$PATIENCE" "its end" is_in "$id" "done"
	"$KPROF" ctl status --socket "$socket" --json "$id" | jq -e '.rounds < 5'
	ctl_refused "start in more than a day" start -p "${pid[target]}" --start-at 4000000000
	daemon_stop
	daemon_start --no-sampling --min-free 1000T
	ctl start -p "${pid[target]}"
	id=$(cat "$dir/stdout")
	# it is then among what is oldest, and may go
	wait_for "$PATIENCE" "its end" logged recording ".id == \"$id\" and .state == \"done\""
	logged recorder '.message | test("the recording ends early")'
	daemon_stop
}

@test "rounds: each is recording while it records, and the first alone can be fetched" {
	daemon_start --no-sampling
	spawn target sleep 1000
	local id
	ctl start -p "${pid[target]}" --repeat 3
	id=$(cat "$dir/stdout")
	ctl stop "$id"
	ctl get "$id" -o "$dir/first.kprof"
	ctl start -p "${pid[target]}" --repeat 2 -d 2s
	id=$(cat "$dir/stdout")
	wait_for "$PATIENCE" "the second round" logged recording ".id == \"$id\" and .rounds == 1 and .state == \"recording\""
	wait_for "$PATIENCE" "its end" is_in "$id" "done"
	daemon_stop
	# what is known of it goes with the last of its captures
	rm "$state/recordings/$id".*.kprof
	daemon_start --no-sampling
	ctl list
	[ "$(wc -l <"$dir/stdout")" = 2 ]
	daemon_stop
}

@test "rounds: a process that ends meanwhile leaves those that are whole, and each can be fetched" {
	own_copy
	daemon_start --no-sampling --allow-owner
	local id n
	sleeper_of target 20001
	wait_for "$PATIENCE" "it to sleep" runs "${pid[target]}" sleep
	id=$(as_user 20001 start -p "${pid[target]}" --repeat 1000 -d 100ms)
	wait_for "$PATIENCE" "the third round" logged recording ".id == \"$id\" and .rounds >= 2 and .state == \"recording\""
	kill "${pid[target]}"
	wait_for "$PATIENCE" "its end" logged recording ".id == \"$id\" and (.state == \"done\" or .state == \"failed\")"
	"$KPROF" ctl status --socket "$socket" --json "$id" >"$dir/of.json"
	jq -e '.state == "done" and .rounds >= 2 and .rounds < 1000 and (has("error") | not)' "$dir/of.json" || fail "$(cat "$dir/of.json")"
	jq -e '.early | test("^ended after [0-9]+ rounds: .*(has exited|has ended|no process)")' "$dir/of.json" || fail "$(jq .early "$dir/of.json")"
	n=$(jq .rounds "$dir/of.json")
	mkdir -m 777 "$dir/theirs"
	as_user 20001 get "$id" --round 1 -o "$dir/theirs/first.kprof" 2>"$dir/stderr"
	grep -q "ended after $n rounds" "$dir/stderr"
	as_user 20001 get "$id" -o "$dir/theirs/last.kprof"
	[ "$(window_of "$dir/theirs/first.kprof")" = "$(window_of "$state/recordings/$id.1.kprof")" ]
	[ "$(window_of "$dir/theirs/last.kprof")" = "$(window_of "$state/recordings/$id.$n.kprof")" ]
	[ "$(window_of "$dir/theirs/first.kprof")" != "$(window_of "$dir/theirs/last.kprof")" ]
	ctl_refused "has no round $((n + 1)): it has $n" get "$id" --round $((n + 1)) -o "$dir/x.kprof"
	kprof_says 2 ctl get --socket "$socket" "$id" --round 0 -o "$dir/x.kprof"
	daemon_stop
	# a daemon that begins later knows it, too
	daemon_start --no-sampling
	"$KPROF" ctl status --socket "$socket" --json "$id" | jq -e --slurpfile before "$dir/of.json" '.early == $before[0].early and .rounds == $before[0].rounds'
	daemon_stop
}

@test "many users at once cannot keep root and others out; who asks much waits" {
	own_copy
	daemon_start --no-sampling
	"$PYTHON" "$LIB/many_users.py" "$socket"
	ctl status
	daemon_stop
}

@test "a log that nobody reads stops nothing" {
	daemon_start --no-sampling
	daemon_stop
	mkfifo "$dir/log"
	exec 9<>"$dir/log"
	"$PYTHON" -c 'import fcntl; fcntl.fcntl(9, 1031, 4096); import os; os.set_blocking(9, False); os.write(9, b"x" * 4096)' # F_SETPIPE_SZ
	spawn daemon sh -c 'log=$1; shift; exec "$@" 2>"$log"' sh "$dir/log" \
		"$KPROF" daemon --state "$state" --socket "$socket" --config /dev/null --min-free 1M --no-sampling
	wait_for "$PATIENCE" "the daemon to listen" answers
	spawn target sleep 1000
	ctl start -p "${pid[target]}" -d 100ms
	ctl status
	# read again, it says how many lines were lost
	head -c 4096 <&9 >/dev/null
	ctl start -p "${pid[target]}" -d 100ms
	head -n 1 <&9 | jq -e '.lines_lost > 0'
	exec 9>&-
	kill -TERM "${pid[daemon]}"
	wait_for "$PATIENCE" "the daemon to end" ended "${pid[daemon]}"
}

answers() {
	"$KPROF" ctl status --socket "$socket" >/dev/null 2>&1
}

@test "folders: those that others could exchange are refused, and those that were there keep their mode" {
	mkdir -m 777 "$dir/open" && chmod 777 "$dir/open"
	kprof_says 1 daemon --state "$dir/open/state" --socket "$dir/run/socket" --config /dev/null --no-sampling
	grep -q "others may write to it" "$dir/stderr"
	chown 20001 "$dir/open" && chmod 755 "$dir/open"
	kprof_says 1 daemon --state "$dir/state" --socket "$dir/open/run/socket" --config /dev/null --no-sampling
	rm -r "$dir/state" && mkdir -m 700 "$dir/run" "$dir/state"
	daemon_start --no-sampling
	[ "$(stat -c %a "$dir/run" "$dir/state" | sort -u)" = 700 ]
	daemon_stop
}

@test "options are read anew while a capture is looked at" {
	mkdir "$dir/own" && cp "$driver" "$dir/own/$comm" && cp "$library" "$dir/own"
	export MALLOC_PERTURB_=165 # what is freed is another value at once
	config=$dir/kprof.conf
	printf '%s\n' "[daemon]" "no-sampling" "watch = $comm" "flight-chunk = 500ms" "trigger = runnable>99%" >"$config"
	daemon_start
	wait_for "$PATIENCE" "a look" look_stopped
	local n
	for n in 1 2 3; do
		kill -HUP "${pid[daemon]}"
		wait_for "$PATIENCE" "the options" reloads "$n"
	done
	# nobody wants to know any more what it finds
	wait_for "$PATIENCE" "its end" ended "$look"
	ctl status
	daemon_stop
}

# A look takes milliseconds: it is met by looking all the time.
look_stopped() {
	look=$("$PYTHON" "$LIB/stop_child.py" "${pid[daemon]}" kprof-look)
}

@test "the daemon itself gives up what no recording needs; where a kernel cannot do that, it says so and goes on" {
	local key value kept=0 capability
	# those of docs/security.md, by their numbers in linux/capability.h
	for capability in 0 1 2 5 6 7 8 10 19 21 23 24 28 34 38 39 40; do kept=$((kept | 1 << capability)); done
	daemon_start --no-sampling
	for key in CapPrm CapEff CapBnd; do
		value=$(status_of_daemon "$key")
		[ $((16#$value & ~kept)) = 0 ] || fail "$key: $value"
	done
	[ "$(status_of_daemon NoNewPrivs)" = 1 ]
	[ "$(status_of_daemon Seccomp)" = 2 ]
	! logged rights || false
	daemon_stop
	gcc -O2 -o "$dir/without" "$WORKLOADS/without_seccomp.c"
	before_daemon=("$dir/without")
	daemon_start --no-sampling
	logged rights '.level == "warning" and (.message | test("filters no system calls"))'
	spawn target sleep 1000
	ctl start -p "${pid[target]}" -d 100ms
	daemon_stop
}

status_of_daemon() { # KEY
	sed -n "s/^$1:[[:space:]]*//p" "/proc/${pid[daemon]}/status"
}

@test "what looks at captures, which have what processes chose, has no rights" {
	mkdir "$dir/own" && cp "$driver" "$dir/own/$comm" && cp "$library" "$dir/own"
	daemon_start --no-sampling --watch "$comm" --flight-chunk 500ms --trigger "call:none" --max-overhead 100%
	# what there is to look at takes long
	target_start target "$dir/own/$comm" count --n 1000000000
	target_go target
	wait_for "$PATIENCE" "a look without rights" look_has_no_rights
	kill "${pid[target]}"
	daemon_stop
}

# Some are met before they have given them up: these go on a little.
look_has_no_rights() {
	look_stopped || return 1
	until file_says "/proc/$look/status" $'^CapEff:\t0000000000000000$' && file_says "/proc/$look/status" $'^Seccomp:\t2$'; do
		kill -CONT "$look" && sleep 0.01 && kill -STOP "$look" && ! ended "$look" || return 1
	done 2>/dev/null
	kill -CONT "$look"
}

reloads() {
	jq -es --argjson n "$1" '[.[] | select(.event == "reload")] | length >= $n' "$dir/daemon.err"
}

# sampled_with TEXT: of all samples, the trace has it
sampled_with() {
	local capture
	for capture in "$state"/samples/*.kprof; do
		"$KPROF" export "$capture" -o "$dir/samples.json" >/dev/null 2>&1 && grep -qF "$1" "$dir/samples.json" && return 0
	done
	return 1
}

@test "what is recorded unasked: no command lines unless root says so, and nobody whom the configuration leaves out" {
	mkdir "$dir/own"
	local user name
	for name in in out user; do
		cp "$(command -v gzip)" "$dir/own/kp_$name"
		user=0
		[ "$name" != user ] || user=65533
		chmod 755 "$dir" "$dir/own"
		spawn "$name" setpriv --reuid "$user" --clear-groups "$dir/own/kp_$name" -S .password=7f3a -c /dev/zero
	done
	local always=(--chunk 1s --frequency 199 --max-overhead 50% --min-wait 0 --exclude-comm kp_o* --exclude-user 65533)
	daemon_start "${always[@]}"
	wait_for "$PATIENCE" "a sample" sampled_with kp_in
	wait_for "$PATIENCE" "the next captures" stored samples 4
	daemon_stop
	! sampled_with kp_out || fail "one is sampled whose name is left out"
	! sampled_with kp_user || fail "one is sampled whose user is left out"
	! sampled_with password=7f3a || fail "a command line is recorded"
	rm -r "$state"
	daemon_start "${always[@]}" --record-cmdline
	wait_for "$PATIENCE" "a command line" sampled_with password=7f3a
	daemon_stop
}

@test "a connection from another PID namespace is nobody's once the process that made it has ended" {
	daemon_start --no-sampling --allow-owner
	[ "$("$PYTHON" "$LIB/handed_out.py" "$socket")" = "True False" ]
	daemon_stop
}
