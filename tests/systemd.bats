#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# The unit of kprof daemon: what systemd says of it, and that under what it forbids all that is recorded elsewhere is recorded.
# systemd does not run this machine, perhaps; so a manager of root's own runs for the test, with mounts and a /run of its
# own, which applies the same restrictions by the same code.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	own_targets
	unit=$dir/kprof.service
	sed "s,@BINDIR@/kprof,$KPROF," share/systemd/kprof.service.in >"$unit"
}

teardown() {
	harness_teardown
}

# The capabilities of a recording, as docs/security.md has them, each once.
documented() {
	sed -n '/^## Which rights each phase needs/,$p' docs/security.md | grep '^| recording' | grep -oE 'CAP_[A-Z_]+' | sort -u
}

@test "systemd: the unit, its group and its folders are as systemd wants them" {
	run systemd-analyze verify --man=no "$unit"
	echo "$output"
	[ "$status" = 0 ]
	[ -z "$output" ]
	# Outside of kprof's use is forbidden: 10 is a service without any limits, 9.6 one without a unit's care.
	run systemd-analyze security --offline=true --threshold=50 "$unit"
	echo "$output"
	[ "$status" = 0 ]
	mkdir -p "$dir/root/etc"
	systemd-sysusers --root="$dir/root" "$PWD/share/systemd/sysusers.conf"
	grep -q '^kprof:' "$dir/root/etc/group"
	systemd-tmpfiles --root="$dir/root" --create "$PWD/share/systemd/tmpfiles.conf"
	[ "$(stat -c %a "$dir/root/run/kprof")" = 700 ]
}

@test "systemd: the rights are those of docs/security.md's table, no more and no less" {
	[ "$(documented | wc -l)" -ge 12 ]
	diff <(documented) <(sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr ' ' '\n' | sort -u)
}

# What the unit's program does here: it says what it may, and records.
inside() {
	cat >"$dir/inside" <<-END
		#!/bin/bash
		grep -E '^(CapBnd|CapEff|NoNewPrivs|Seccomp):' /proc/self/status
		for d in /etc /usr /home /var/lib; do [ ! -d \$d ] || ! touch \$d/kprof-was-here 2>/dev/null || echo "wrote to \$d"; done
		unshare --net true 2>/dev/null && echo "made a namespace"
		$PYTHON -c 'import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)' 2>/dev/null && echo "memory to write and execute"
		"$KPROF" dump -p ${pid[here]} >"$dir/dump.txt"
		"$KPROF" sample -p ${pid[busy]} -d 1s -o "$dir/busy.kprof"
		exec "$KPROF" attach -v -p ${pid[here]} -o "$dir/here.kprof" 2>"$dir/kprof.err"
	END
	chmod +x "$dir/inside"
}

@test "systemd: under the unit's limits kprof dumps, samples and counts every call, and can do little else" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	target_start here "$driver" count --n 2000
	spawn busy "$PYTHON" -c 'while True: pass'
	inside
	: >"$dir/kprof.err"
	spawn unit "${own_mounts[@]}" "$LIB/under_unit" "$unit" "$dir" "$dir/inside"
	wait_for "$PATIENCE" "kprof to record" recording_or_over || { cat "$dir"/unit.err "$dir/manager.log" "$dir/unit.out"; false; }
	if ended "${pid[unit]}"; then
		wait "${pid[unit]}" || [ $? != 77 ] || skip "no systemd of one's own here: $(tail -n 1 "$dir/unit.err")"
		fail "$(cat "$dir/unit.err" "$dir/unit.out" "$dir/kprof.err")"
	fi
	target_go here && target_result here && target_end here
	wait_for "$PATIENCE" "the unit to end" ended "${pid[unit]}"
	cat "$dir/unit.out" "$dir/kprof.err"
	wait "${pid[unit]}"
	exported here
	account here --only --complete
	grep -q 'Thread .*opdriver' "$dir/dump.txt"
	[ "$("$KPROF" report --json "$dir/busy.kprof" | jq .samples.samples)" -gt 0 ]
	# What was forbidden, was.
	run cat "$dir/unit.out"
	[[ $output == *'NoNewPrivs:	1'*'Seccomp:	2'* ]]
	[[ $output != *"wrote to"* && $output != *"made a namespace"* && $output != *"memory to write and execute"* ]]
	[ "$(sed -n 's/^CapBnd:\t*//p' "$dir/unit.out")" = "$(capability_bits)" ]
}

# managed NAME ARGUMENT…: what systemd would do for a daemon with these arguments; its notes are $dir/NAME.notes
managed() {
	local name=$1
	shift
	target_start "$name" "$PYTHON" "$LIB/service_manager.py" "$dir/$name.notes" "$dir/run/socket" \
		"$(sed -n 's/^FileDescriptorStoreMax=//p' "$unit")" "$KPROF" daemon --socket "$dir/run/socket" --config "$dir/kprof.conf" \
		--min-free 1M --no-listen "$@"
}

order() { echo "$2" >&"${fd[$1]}"; }

# noted NAME JQ: there is such a note
noted() {
	jq -es "map(select($2)) | length > 0" "$dir/$1.notes" >/dev/null 2>&1
}

# A client that has connected, and waits for its answer.
asker() {
	target_start "$1" "$PYTHON" -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"{\"do\": \"status\"}\n")
print("READY 1", flush=True)
print(s.makefile().readline(), end="")' "$dir/run/socket"
}

@test "systemd: the daemon is ready when it listens, says what it does; who asks while it restarts waits, and is answered" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	local run how
	chmod 755 "$dir"
	printf '%s\n' "[daemon]" no-sampling >"$dir/kprof.conf"
	managed service --state "$dir/state"
	order service start
	wait_for "$PATIENCE" "it to be ready" noted service '.said == "READY"'
	jq -es 'map(select(.said)) | all(.main) and (map(select(.said == "READY"))[0].connects) and
		(map(.said) | index("FDSTORE") < index("READY") and (index("STOPPING") or index("RELOADING") | not)) and
		map(select(.said == "FDSTORE"))[0].files == 1 and map(select(.said == "FDNAME"))[0].value == "clients"' "$dir/service.notes"
	noted service '.said == "STATUS" and (.value | test("samples nothing; 0 recordings"))'
	wait_for "$PATIENCE" "a sign of life" noted service '.said == "WATCHDOG" and .value == "1"'
	# another one cannot listen there, and is never ready
	managed other --state "$dir/other"
	order other start
	wait_for "$PATIENCE" "its end" noted other '.ended'
	noted other '.ended > 0' && ! noted other '.said == "READY" or .said == "FDSTORE"' || false
	# options are read anew: it says since when, and when it is done
	spawn target sleep 1000
	"$KPROF" ctl start --socket "$dir/run/socket" -p "${pid[target]}"
	wait_for "$PATIENCE" "another status" noted service '.said == "STATUS" and (.value | test("1 recordings"))'
	order service hup
	wait_for "$PATIENCE" "the change" noted service '.said == "RELOADING"'
	wait_for "$PATIENCE" "its end" eval 'jq -es "map(select(.said == \"READY\")) | length == 2" "$dir/service.notes" >/dev/null'
	jq -es '(map(.said) | .[index("RELOADING"):] | index("MONOTONIC_USEC") < index("READY")) and
		(map(select(.said == "READY")) as $r | map(select(.said == "MONOTONIC_USEC"))[0] |
			(.value | tonumber) > $r[0].usec and (.value | tonumber) <= .usec)' "$dir/service.notes"
	run=1
	for how in stop kill; do
		order service "$how"
		wait_for "$PATIENCE" "its end" noted service ".run == $run and has(\"ended\")"
		asker "waits$run"
		run=$((run + 1))
		order service start
		target_result "waits$((run - 1))"
		jq -e '.ok and .version' "$dir/waits$((run - 1)).json"
		"$KPROF" ctl status --socket "$dir/run/socket"
		wait_for "$PATIENCE" "it to be ready" noted service ".run == $run and .said == \"READY\""
		! noted service ".run == $run and (.said | test(\"FDSTORE\"))" || false # systemd has it still
	done
	noted service '.run == 1 and .said == "STOPPING"' && noted service '.run == 1 and .ended == 0'
	# what was kept is no use when nobody gets to it
	order service stop
	wait_for "$PATIENCE" "its end" noted service '.run == 3 and .ended == 0'
	rm "$dir/run/socket"
	order service start
	wait_for "$PATIENCE" "it to be ready" noted service '.run == 4 and .said == "READY" and .connects'
	noted service '.run == 4 and .said == "FDSTOREREMOVE"' && noted service '.run == 4 and .said == "FDSTORE" and .files == 1'
	"$KPROF" ctl status --socket "$dir/run/socket"
	order service stop
	wait_for "$PATIENCE" "its end" noted service '.run == 4 and .ended == 0'
	kill "${pid[target]}"
	target_end service
	target_end other
}

recording_or_over() {
	ended "${pid[unit]}" || file_says "$dir/kprof.err" '^kprof: recording$'
}

# The set as the kernel prints it, less what this machine's root has not.
capability_bits() {
	local name bits=0 own
	own=$((0x$(sed -n 's/^CapBnd:\t*//p' /proc/self/status)))
	for name in $(documented); do
		bits=$((bits | 1 << $(sed -nE "s/^#define ${name}[[:space:]]+([0-9]+)$/\1/p" /usr/include/linux/capability.h)))
	done
	printf '%016x' $((bits & own))
}
