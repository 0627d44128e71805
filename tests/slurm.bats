#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# scripts/slurm/kprof-job: two nodes with a daemon each, which are namespaces of this machine, and a job with two ranks on each,
# of a user without rights. srun, scontrol and squeue are scripts that know of that job only, and print what SLURM's do.

# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own, as is meant
# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"
# shellcheck source=tests/lib/nodes.bash
source "$BATS_TEST_DIRNAME/lib/nodes.bash"

setup() {
	local node n enter
	harness_setup
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	place=$(mktemp -d /tmp/kprof-slurm.XXXXXX)
	mkdir "$place/bin"
	mkdir -m 1777 "$place/shared"
	cp "$driver" "$library" "$KPROF" "$ROOT"/scripts/slurm/kprof-{job,node} "$place"
	chmod -R a+rX "$place"
	node_sockets=$place
	nodes_up
	for node in "${nodes[@]}"; do
		node_daemon "$node" --allow-owner
		{
			printf 'PID      JOBID    STEPID   LOCALID GLOBALID\n'
			for n in 0 1; do
				enter "$node" "${as_user[@]}" "$place/opdriver" spin --pace 20 --now
				spawn "rank-$node-$n" "${enter[@]}"
				printf '%-8d 4711     0        %d       %d\n' "${pid[rank-$node-$n]}" "$n" $((node_number[$node] * 2 + n))
			done
			printf '%-8d 4711     0        -       -\n' $$ # slurmstepd's, which has no number
		} >"$place/bin/pids-$node"
		for n in 0 1; do wait_for "$PATIENCE" "rank $n of $node" works "${pid[rank-$node-$n]}"; done
	done
	slurm
}

# It is the program itself by now, and has its library.
works() { # PID
	grep -q 'fakeops\|libtorch_cpu' "/proc/$1/maps"
}

teardown() {
	harness_teardown
	[ -z "${place:-}" ] || rm -rf "$place"
}

as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)

# Makes what a job's script finds in its PATH.
slurm() {
	cat >"$place/bin/squeue" <<-'end'
		#!/bin/sh
		[ "$*" = "--noheader --jobs=4711 --format=%N" ] && echo 'node-[a-b]'
	end
	cat >"$place/bin/scontrol" <<-'end'
		#!/bin/sh
		case "$*" in
		"show hostnames node-[a-b]") printf 'node-a\nnode-b\n' ;;
		"listpids 4711") cat "$(dirname "$0")/pids-$(hostname)" ;;
		*) exit 1 ;;
		esac
	end
	# Each node's task is the user's, and what one says may come in the middle of what another says.
	cat >"$place/bin/srun" <<-end
		#!/bin/bash
		while [[ \$1 == --* ]]; do options+=("\$1") && shift; done
		[[ "\${options[*]}" == *"--jobid=4711 --overlap --nodes=2 --ntasks=2 --ntasks-per-node=1"* ]] || exit 1
		for node in ${pid[node-a]} ${pid[node-b]}; do
			nsenter --net=/proc/\$node/ns/net --uts=/proc/\$node/ns/uts ${as_user[*]} "\$@" & tasks+=(\$!)
		done
		for task in \${tasks[@]}; do wait \$task || status=1; done
		exit \${status:-0}
	end
	# Each node has its own daemon at the usual place.
	cat >"$place/bin/kprof" <<-end
		#!/bin/bash
		[ "\$1" != ctl ] || set -- ctl "\$2" --socket "$place/run-\$(hostname)/socket" "\${@:3}"
		[ "\$1" != status ] || set -- status --socket "$place/run-\$(hostname)/socket" "\${@:2}"
		exec "$place/kprof" "\$@"
	end
	chmod 755 "$place"/bin/*
}

# In how many seconds a job's nodes begin: where one could not be told so early, another time.
ahead=(7 25 60)

# job STATUS ARGUMENT…: kprof-job; $dir/said, $dir/told, and the merged capture's name in merged
job() {
	local expected=$1 status seconds
	shift
	for seconds in "${ahead[@]}"; do
		status=0
		PATH=$place/bin:$PATH "$place/kprof-job" -j 4711 -o "$place/shared" -i "$seconds" "$@" >"$dir/said" 2>"$dir/told" || status=$?
		grep -q 'it is too late to begin' "$dir/told" || break
		find "$place/shared" -type f -delete
	done
	[ "$status" = "$expected" ] || fail "exit status $status, not $expected" "$(cat "$dir/told")"
	merged=$(tail -n 1 "$dir/said")
}

# ranks_in CAPTURE: its processes
ranks_in() {
	"$KPROF" report "$1" --by process --json | jq -r '.rows[].name' | grep -o '^[0-9]*' | sort -n
}

pids_of() { # NODE…
	local node
	for node; do printf '%s\n' "${pid[rank-$node-0]}" "${pid[rank-$node-1]}"; done | sort -n
}

@test "both nodes begin in the second that was chosen, and all ranks are in one capture" {
	local at node
	job 0 -d 1500ms -- --with-stack
	[[ $merged =~ ^"$place"/shared/all-([0-9]+)\.kprof$ ]] || fail "$(cat "$dir/said" "$dir/told")"
	at=${BASH_REMATCH[1]}
	only_files "$place/shared" "all-$at.kprof" "node-a-$at.kprof" "node-b-$at.kprof"
	for node in "${nodes[@]}"; do
		"$KPROF" export "$place/shared/$node-$at.kprof" -o "$dir/$node.json"
		"$PYTHON" "$LIB/validate_trace.py" "$dir/$node.json"
		diff <(ranks_in "$place/shared/$node-$at.kprof") <(pids_of "$node")
		# a thousand calls each 20 ms
		"$KPROF" report "$place/shared/$node-$at.kprof" --json | jq -e '.window_ns >= 1.5e9 and ([.rows[].calls] | add) > 2000'
	done
	starts_near "$at" 1000 "$dir"/node-?.json
	diff <(ranks_in "$merged") <(pids_of "${nodes[@]}")
	# the nodes' daemons have nothing left that goes on
	for node in "${nodes[@]}"; do node_ctl "$node" list --json | jq -e '[.recordings[].state] == ["done"]'; done
}

@test "a rank that is a script: the program that it has started is recorded; what is not the user's is left out" {
	local program sleeps n enter
	enter node-a "${as_user[@]}" bash -c '"$0" spin --pace 20 --now; :' "$place/opdriver"
	spawn script "${enter[@]}"
	cp "$(command -v sleep)" "$place/sleep" && chown 65533 "$place/sleep" && chmod 4755 "$place/sleep"
	enter node-b "${as_user[@]}" bash -c '"$0" 1000 & "$1" spin --pace 20 --now; :' "$place/sleep" "$place/opdriver"
	spawn others "${enter[@]}"
	for n in script others; do
		wait_for "$PATIENCE" "the script's program" started "${pid[$n]}" opdriver
		wait_for "$PATIENCE" "the script's program" works "$(started "${pid[$n]}" opdriver)"
	done
	wait_for "$PATIENCE" "another user's program" started "${pid[others]}" sleep
	sleeps=$(started "${pid[others]}" sleep)
	sed -i "s/^${pid[rank-node-a-1]} /${pid[script]} /" "$place/bin/pids-node-a"
	sed -i "s/^${pid[rank-node-b-1]} /${pid[others]} /" "$place/bin/pids-node-b"
	job 0 -d 1s
	for n in script others; do
		program=$(started "${pid[$n]}" opdriver)
		ranks_in "$merged" | grep -qx "$program" || fail "not the program $program" "$(ranks_in "$merged")" "$(cat "$dir/told")"
	done
	grep -qx "kprof-node: node-b: not yours to record, and left out: $sleeps" "$dir/told" || fail "$(cat "$dir/told")"
	kill "$(started "${pid[script]}" opdriver)" "$(started "${pid[others]}" opdriver)" "$sleeps"
}

# started PID NAME: the child of this name
started() {
	pgrep -P "$1" -x "$2"
}

@test "a node that fails is named, with the reason, and the other one's capture is there" {
	# its daemon is gone
	kill -TERM "${pid[daemon-node-b]}"
	wait_for "$PATIENCE" "the daemon to end" ended "${pid[daemon-node-b]}"
	job 1 -d 500ms
	grep -q '^kprof-node: node-b: the daemon does not record' "$dir/told" || fail "$(cat "$dir/told")"
	grep -q '^kprof: .*daemon' "$dir/told"
	grep -qx 'kprof-job: 1 of 2 nodes have recorded: see above' "$dir/told"
	diff <(ranks_in "$merged") <(pids_of node-a)
	# none of the job's ranks is there any more
	sed -i 2,3d "$place/bin/pids-node-b"
	job 1 -d 500ms
	grep -qx 'kprof-node: node-b: no rank of job 4711 is here' "$dir/told" || fail "$(cat "$dir/told")"
	diff <(ranks_in "$merged") <(pids_of node-a)
	# nobody has time enough
	ahead=(0)
	job 1
	grep -q '^kprof-node: node-a: it is too late to begin' "$dir/told"
	grep -qx 'kprof-job: no node has recorded anything' "$dir/told"
	# what kprof refuses
	ahead=(7 25 60)
	job 1 -- --kernel-stacks
	grep -q '^kprof: there is no option --kernel-stacks' "$dir/told"
	grep -q '^kprof-node: node-a: the daemon does not record' "$dir/told"
}

@test "a job of somebody else's is not recorded, and wrong arguments are said to be" {
	as_user=(setpriv --reuid 65533 --regid 65533 --clear-groups)
	slurm
	job 1 -d 500ms
	grep -q 'is not yours to record' "$dir/told" || fail "$(cat "$dir/told")"
	grep -qx 'kprof-job: no node has recorded anything' "$dir/told"
	job 2 -i soon
	grep -q '^Records all ranks of a running SLURM job' "$dir/told"
}
