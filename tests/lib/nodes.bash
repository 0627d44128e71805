# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # some names are for the suites alone; dir, pid: harness.bash
# Two nodes of a cluster on one machine, for suites on top of harness.bash: each has a network with a host name and an address of
# its own, and a daemon. Processes, files and clocks are the machine's.
#
#   nodes_up              makes them; their names are in the array nodes, addresses in node_address[NAME]
#   on_node NAME COMMAND… runs it there
#   node_daemon NAME ARGUMENT…   begins its daemon, $dir/daemon-NAME.err, whose socket is run-NAME/socket in $dir, or $node_sockets
#   node_ctl NAME VERB ARGUMENT…

nodes=(node-a node-b)
declare -gA node_address=([node-a]=10.77.0.1 [node-b]=10.77.0.2) node_number=([node-a]=0 [node-b]=1)

# enter NAME: sets the array enter to the words before a command that is to run there
enter() {
	enter=(nsenter "--net=/proc/${pid[$1]}/ns/net" "--uts=/proc/${pid[$1]}/ns/uts" "${@:2}")
}

on_node() {
	local enter
	enter "$@"
	"${enter[@]}"
}

nodes_up() {
	local node
	for node in "${nodes[@]}"; do
		# shellcheck disable=SC2016 # the inner shell's
		spawn "$node" unshare --net --uts sh -c 'hostname "$0" && ip link set lo up && echo up && exec sleep 3600' "$node"
	done
	for node in "${nodes[@]}"; do
		wait_for "$PATIENCE" "$node" target_said "$node" '^up$' || return 1
	done
	on_node node-a ip link add eth0 type veth peer name eth0 netns "${pid[node-b]}" || return 1
	for node in "${nodes[@]}"; do
		on_node "$node" ip address add "${node_address[$node]}/24" dev eth0 && on_node "$node" ip link set eth0 up || return 1
	done
}

node_daemon() {
	local node=$1 enter
	shift
	chmod 755 "$dir"
	enter "$node" "$KPROF" daemon --state "$dir/state-$node" --socket "${node_sockets:-$dir}/run-$node/socket" --min-free 1M --no-sampling "$@"
	spawn "daemon-$node" "${enter[@]}"
	wait_for "$PATIENCE" "the daemon of $node" node_logged "$node" '.event == "begun"'
}

# node_logged NAME JQ: a line of its daemon's log for which that is true
node_logged() {
	! ended "${pid[daemon-$1]}" || { fail "the daemon of $1 ended: $(cat "$dir/daemon-$1.err")"; exit 1; }
	jq -es "any(.[]; $2)" "$dir/daemon-$1.err" >/dev/null 2>&1
}

node_ctl() {
	local node=$1 verb=$2
	shift 2
	"$KPROF" ctl "$verb" --socket "${node_sockets:-$dir}/run-$node/socket" "$@"
}

# waiters_start SECONDS: eight processes that only wait for that time, and say how many ms they came late. So late is the machine.
waiters_start() {
	local n
	for n in {1..8}; do
		spawn "waiter$n" "$PYTHON" -c 'import sys, time
at = float(sys.argv[1])
while (left := at - time.time()) > 0:
    time.sleep(left)
print((time.time() - at) * 1000)' "$1"
	done
}

# begun_at SECONDS TRACE…: within 5 ms; where one of those that only waited came late itself, by a millisecond, within a second.
begun_at() {
	starts_near "$1" 5 "${@:2}" && return
	echo "# who only waited came late, too: $(cat "$dir"/waiter?.out | paste -sd ' ')" >&2
	awk '$1 > 1 { late = 1 } END { exit !late }' "$dir"/waiter?.out && starts_near "$1" 1000 "${@:2}"
}

# starts_near SECONDS MS TRACE…: each recording began at that time (since 1970), and not so many ms later. By the clock that all
# share.
starts_near() {
	local at=$1 most=$2
	shift 2
	jq -es --argjson at "$at" --argjson most "$most" 'map((.kprof.clock.start_real_ns / 1e6) - $at * 1e3) | all(. > -1 and . < $most)' \
		<(jq -c '{kprof: {clock: .kprof.clock}}' "$@") >/dev/null || {
		jq -c '[.kprof.clock.start_real_ns, input_filename]' "$@" >&2
		return 1
	}
}
