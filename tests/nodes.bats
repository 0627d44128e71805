#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# Eight ranks on two nodes, each with a daemon, and one request to each node for the same instant. The nodes are namespaces of
# this machine, so there is one clock to judge by.

# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own, as is meant
# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"
# shellcheck source=tests/lib/nodes.bash
source "$BATS_TEST_DIRNAME/lib/nodes.bash"

# Everything is begun once, by setup_file; each test finds it by the file "begun".
setup_file() {
	local python rank node enter
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR harness_setup
	python=$(with_kineto)
	[ "$(id -u)" = 0 ] && [ -n "$python" ] || return 0
	out=/tmp/kprof-nodes-$$ # Kineto writes to no folder but /tmp
	mkdir -m 1777 "$out"
	nodes_up
	for node in "${nodes[@]}"; do
		options kprof >"$dir/$node.conf"
		node_daemon "$node" --config "$dir/$node.conf" --dyno-address "127.0.0.1,${node_address[$node]}"
	done
	for rank in {0..7}; do
		enter "${nodes[rank / 4]}" env KINETO_USE_DAEMON=1 "RANK=$rank" WORLD_SIZE=8 "MASTER_ADDR=${node_address[node-a]}" \
			MASTER_PORT=29500 GLOO_SOCKET_IFNAME=eth0 "$python" -W ignore "$WORKLOADS/rank.py" "$dir/stop"
		spawn "rank-$rank" "${enter[@]}"
	done
	for rank in {0..7}; do wait_for "$PATIENCE" "rank $rank" target_said "rank-$rank" '^READY '; done
	declare -p pid out | sed 's/^declare -- /declare -g /; s/^declare -A/declare -gA/' >"$dir/begun"
}

teardown_file() {
	dir=$BATS_FILE_TMPDIR
	if [ -e "$dir/begun" ]; then source "$dir/begun"; fi
	[ ${#pid[@]} = 0 ] || kill -KILL "${pid[@]}" 2>/dev/null || :
	[ -z "${out:-}" ] || rm -rf "$out"
}

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	harness_setup
	dir=$BATS_FILE_TMPDIR
	[ -n "$(with_kineto)" ] || skip "no PyTorch with Kineto's client here: scripts/setup check installs it"
	# shellcheck disable=SC1091 # made above
	source "$dir/begun"
}

# The newest Python whose PyTorch has Kineto's client (Debian's has not).
with_kineto() {
	local python newest=
	for python in $(pythons); do
		! grep -qs dynoconfigclient "$(torch_folder "$python")/lib/libtorch_cpu.so" || newest=$python
	done
	echo "$newest"
}

options() { # ENGINE
	printf '[daemon]\ndynolog\nengine = %s\n' "$1"
}

# has_asked NODE SINCE: the Kinetos of its four ranks, since that time (a line of the log)
has_asked() {
	local events
	events=$(jq -s --arg since "$2" '[.[] | select(.event == "kineto" and .time >= $since) | .pid] | unique | length' "$dir/daemon-$1.err")
	[ "$events" = 4 ]
}

# dyno NODE ARGUMENT…: from the first node; the traces' names go to the array traces, too
dyno() {
	local node=$1
	shift
	on_node node-a "$LIB/dyno.py" --hostname "${node_address[$node]}" gputrace --process-limit 8 --duration-ms 1000 "$@" >"$dir/dyno-$node"
	grep -qx 'Matched 4 processes' "$dir/dyno-$node" || fail "$(cat "$dir/dyno-$node")" || return 1
	mapfile -t -O ${#traces[@]} traces < <(sed -n 's/^ \{4\}//p' "$dir/dyno-$node")
}

all_whole() { # TRACE…
	local trace
	for trace; do jq -e . "$trace" >/dev/null 2>&1 || return 1; done
}

# eight_ranks MERGED: each rank of 0 … 7 once, in collectives of eight, which none of them misses
eight_ranks() {
	"$KPROF" export "$1" -o "${1%.kprof}.trace.json"
	jq -e '[.kprof.meta | to_entries[] | select(.key | startswith("distributed.")) | .value.rank] | sort == [range(8)]' "${1%.kprof}.trace.json"
	"$PYTHON" "$LIB/validate_trace.py" "${1%.kprof}.trace.json"
	"$KPROF" report "$1" --by collective --json | jq -e '.rows | any(.ranks == 8 and .calls > 5)'
}

# In how many seconds the recordings begin: first with time enough on a quiet machine; if probes were not placed by then, or others
# had the CPUs, later.
leads=(12 30 45)

# in_time NODE AT: all probes stood before
in_time() {
	node_logged "$1" '.event == "recording" and .state == "recording"' &&
		jq -es --arg at "$(date -u -d "@$2" +%FT%T)" 'all(.[] | select(.event == "recording" and .state == "starting"); .time < $at)' \
			"$dir/daemon-$1.err" >/dev/null
}

@test "dyno on each node, for one instant: kprof begins all eight within 5 ms of it, and the traces merge" {
	local node lead at traces=() trace id
	for node in "${nodes[@]}"; do
		node_logged "$node" ".level == \"warning\" and .event == \"open\" and .address == \"${node_address[$node]}\""
		! node_logged "$node" '.event == "open" and .address == "127.0.0.1"'
		wait_for "$PATIENCE" "Kinetos of $node" has_asked "$node" 0
	done
	for lead in "${leads[@]}"; do
		at=$(($(date +%s) + lead)) traces=()
		rm -f "$out"/*
		waiters_start "$at.25"
		for node in "${nodes[@]}"; do dyno "$node" --log-file "$out/kprof.json" --profile-start-time "${at}250"; done
		[ ${#traces[@]} = 8 ]
		for trace in "${traces[@]}"; do wait_for "$PATIENCE" "$trace" [ -s "$trace" ]; done
		if in_time node-a "$at" && in_time node-b "$at" && starts_near "$at.25" 5 "${traces[@]}"; then break; fi
	done
	begun_at "$at.25" "${traces[@]}"
	for trace in "${traces[@]}"; do
		"$PYTHON" "$LIB/validate_trace.py" "$trace"
		jq -e --argjson at "$at" '.baseTimeNanoseconds as $base | [.traceEvents[] | select(.cat == "cpu_op" and .ph == "X") | .ts] |
			length > 50 and min * 1000 + $base >= ($at + 0.25) * 1e9 - 1e6' "$trace"
	done
	mkdir "$dir/eight"
	for node in "${nodes[@]}"; do
		wait_for "$PATIENCE" "the ends" all_done "$node"
		for id in $(node_ctl "$node" list --json | jq -r '[.recordings[] | select(.state == "done")][:4][].id'); do
			node_ctl "$node" get "$id" -o "$dir/eight/$node-$id.kprof"
		done
	done
	"$KPROF" merge "$dir/eight" -o "$dir/eight.kprof" --json | jq -e '[.machines[].captures] | add == 8'
	eight_ranks "$dir/eight.kprof"
}

all_done() { # NODE
	node_ctl "$1" list --json | jq -e '.recordings | all(.state == "done")'
}

@test "kprof ctl start --start-at on each node: a capture of four ranks each, of machines whose clocks differ once merged" {
	local node lead at ids rank
	for lead in "${leads[@]}"; do
		at=$(($(date +%s) + lead)) ids=()
		waiters_start "$at"
		for node in "${nodes[@]}"; do
			rank=$((node_number[$node] * 4))
			ids+=("$(node_ctl "$node" start --start-at "$at" -d 1s \
				-p "${pid[rank-$rank]},${pid[rank-$((rank + 1))]},${pid[rank-$((rank + 2))]},${pid[rank-$((rank + 3))]}")")
		done
		for node in "${nodes[@]}"; do
			wait_for "$PATIENCE" "the end on $node" all_done "$node"
			node_ctl "$node" get "${ids[node_number[$node]]}" -o "$dir/$node.kprof"
			"$KPROF" export "$dir/$node.kprof" -o "$dir/$node.json"
		done
		if starts_near "$at" 5 "$dir"/node-?.json; then break; fi
	done
	begun_at "$at" "$dir"/node-?.json
	# as if the second had been booted an hour earlier: the one that has run for longest is what others are placed by
	"$BUILD/workloads/shift_capture" "$dir/node-b.kprof" "$dir/other.kprof" node-b 3600000000000 40 0
	"$KPROF" merge "$dir/node-a.kprof" "$dir/other.kprof" -o "$dir/two.kprof" --json >"$dir/two.json"
	jq -e '[.machines[].host] == ["node-a", "node-b"] and [.machines[].clock] == ["collectives", "its own"]' "$dir/two.json" || fail "$(cat "$dir/two.json")"
	eight_ranks "$dir/two.kprof"
}

nr_recordings() {
	for node in "${nodes[@]}"; do node_ctl "$node" list --json; done | jq -s '[.[].recordings | length] | add'
}

@test "dyno on each node, for one instant: the Kinetos of all eight have a trace each, at the names that dyno prints" {
	local node at rank lead trace since before traces=()
	before=$(nr_recordings)
	since=$(date -u +%FT%T)
	for node in "${nodes[@]}"; do
		options kineto >"$dir/$node.conf"
		kill -HUP "${pid[daemon-$node]}"
	done
	for node in "${nodes[@]}"; do wait_for "$PATIENCE" "Kinetos of $node, once more" has_asked "$node" "$since"; done
	# A poll may be 5 s away, and the warm-up is one more. A Kineto that hears of it when it is over records nothing.
	for lead in "${leads[@]}"; do
		at=$(($(date +%s) + lead)) traces=()
		for node in "${nodes[@]}"; do
			dyno "$node" --log-file "$out/kineto-$lead.json" --profile-start-time "${at}000" --config ACTIVITIES_WARMUP_PERIOD_SECS=1
		done
		[ ${#traces[@]} = 8 ]
		if wait_for $((lead + 30)) "all traces" all_whole "${traces[@]}"; then break; fi
		tail -n 5 "$dir"/rank-*.err >&2
	done
	for trace in "${traces[@]}"; do
		jq -e --argjson at "$at" '(.baseTimeNanoseconds // 0) as $base | [.traceEvents[] | select(.ph == "X" and .cat == "cpu_op")] as $ops |
			($ops | map(.name) | contains(["aten::mm", "aten::tanh", "c10d::allreduce_"])) and
			($ops | map(.ts) | min) * 1000 + $base >= $at * 1e9 - 5e6' "$trace"
	done
	# each is of another process
	[ "$(jq -s '[.[] | [.traceEvents[] | select(.cat == "cpu_op") | .pid] | unique | .[]] | unique | length' "${traces[@]}")" = 8 ]
	# it was not kprof
	[ "$(nr_recordings)" = "$before" ]
	# and the training goes on, and ends when it is to
	touch "$dir/stop"
	for rank in {0..7}; do wait_for "$PATIENCE" "rank $rank to end" ended "${pid[rank-$rank]}"; done
	for node in "${nodes[@]}"; do
		kill -TERM "${pid[daemon-$node]}"
		wait_for "$PATIENCE" "the daemon of $node to end" ended "${pid[daemon-$node]}"
	done
}
