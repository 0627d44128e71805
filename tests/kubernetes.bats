#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# share/kubernetes: the manifests are what Kubernetes takes, and what docs/kubernetes.md says of each right is so.

# shellcheck disable=SC2030,SC2031,SC2034 # bats runs each test in a shell of its own, as is meant; daemon.bash reads names
# shellcheck source=tests/lib/daemon.bash
source "$BATS_TEST_DIRNAME/lib/daemon.bash"

manifest=share/kubernetes/daemonset.yaml

setup() {
	harness_setup
	own_targets
	manifests=${KPROF_MANIFESTS:-${KPROF_CACHE:-/var/cache/kprof}/manifests}
}

teardown() {
	harness_teardown
}

needs_validator() {
	[ -x "$manifests/bin/kubernetes-validate" ] || skip "no kubernetes-validate: scripts/setup check installs it"
}

# The rows of the page's table, without what it says each is for.
documented_rows() {
	sed -n '/^| capability | for what/,/^$/p' docs/kubernetes.md | grep '^| `' | awk -F ' [|] ' '{ print $1 " | " $3 " | " $4 }'
}

documented_capabilities() {
	documented_rows | sed -nE 's/^\| `(CAP_[A-Z_]+)`.*/\1/p'
}

@test "kubernetes: the manifests are valid, of the oldest release that has their fields and of the newest, and the judge can say no" {
	needs_validator
	local release
	for release in 1.30 1.37; do
		run "$manifests/bin/kubernetes-validate" --strict -k "$release" "$manifest"
		echo "$output"
		[ "$status" = 0 ]
		[ "$(grep -c ' passed for resource ' <<<"$output")" = 3 ]
	done
	sed 's/readOnlyRootFilesystem/readOnlyRootFileSystem/' "$manifest" >"$dir/wrong.yaml"
	run "$manifests/bin/kubernetes-validate" --strict -k 1.37 "$dir/wrong.yaml"
	[ "$status" != 0 ]
}

@test "kubernetes: rights, folders and probes are those that the documents explain" {
	needs_validator
	"$manifests/bin/python" tests/readers/check_daemonset.py "$manifest" "$("$KPROF" --version | cut -d ' ' -f 2)"
}

# What the manifest has: of it is made, by an expression, what is wanted.
of_manifest() { # EXPRESSION of documents, container
	"$manifests/bin/python" - "$manifest" "$1" <<-'END'
		import sys
		import yaml
		with open(sys.argv[1], encoding="utf-8") as file:
		    documents = {d["kind"]: d for d in yaml.safe_load_all(file)}
		container, = documents["DaemonSet"]["spec"]["template"]["spec"]["containers"]
		out = eval(sys.argv[2])
		print(out if isinstance(out, str) else "\n".join(out))
	END
}

@test "kubernetes: the daemon reads each line of its configuration, and takes it" {
	needs_validator
	local line lines
	of_manifest 'documents["ConfigMap"]["data"]["kprof.conf"]' >"$dir/kprof.conf"
	# the last word is wrong, so that none begins: of the file nothing is said before
	run "$KPROF" daemon --config "$dir/kprof.conf" --frequency nothing
	[ "$status" = 2 ]
	[[ $output == *"'nothing' is no frequency"* ]]
	lines=$(grep -nvE '^ *(#|\[|$)' "$dir/kprof.conf" | cut -d : -f 1)
	[ -n "$lines" ]
	for line in $lines; do
		sed "${line}s/.*/no-such-option = 1/" "$dir/kprof.conf" >"$dir/wrong.conf"
		run "$KPROF" daemon --config "$dir/wrong.conf" --frequency nothing
		[ "$status" = 2 ]
		[[ $output == *"wrong.conf, line $line: there is no such option"* ]]
	done
}

@test "kubernetes: with the rights of the table nothing is lost, and without each what the table says, and kprof says why" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	mkdir "$dir/work"
	# shellcheck disable=SC2046 # words
	"$PYTHON" "$LIB/capabilities.py" "$KPROF" "$BUILD/workloads/gcc/opdriver" "$dir/work" $(documented_capabilities) >"$dir/rows"
	head -n 1 "$dir/rows"
	[ "$(head -n 1 "$dir/rows")" = "| none | nothing | nothing |" ]
	diff <(documented_rows) <(tail -n +2 "$dir/rows" | sed 's/ |$//' | sed 's/$/ |/')
}

@test "kubernetes: in a root like the container's, kprof samples and counts every call" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	local container=("${own_mounts[@]}" "$LIB/in_container" "$(documented_capabilities | paste -sd,)" "$dir")
	run "${container[@]}" touch /etc/kprof-was-here
	[ "$status" != 0 ]
	[ ! -e /etc/kprof-was-here ]
	target_start here "$driver" count --n 2000
	spawn busy "$PYTHON" -c 'while True: pass'
	"${container[@]}" "$KPROF" sample -p "${pid[busy]}" -d 1s -o "$dir/busy.kprof"
	[ "$("$KPROF" report --json "$dir/busy.kprof" | jq .samples.samples)" -gt 0 ]
	spawn kprof "${container[@]}" "$KPROF" attach -v -p "${pid[here]}" -o "$dir/here.kprof"
	wait_for "$PATIENCE" "kprof to record" kprof_recording kprof
	target_go here && target_result here && target_end here
	wait_for "$PATIENCE" "kprof to end" ended "${pid[kprof]}"
	exported here
	account here --only --complete
}

# pod_up: a network as a pod has it, which a process in it keeps; $address is the pod's
pod_up() {
	address=10.77.0.7
	# shellcheck disable=SC2016 # the inner shell's
	spawn pod unshare --net sh -c 'ip link set lo up && ip address add "$0/32" dev lo && echo up && exec sleep 3600' "$address"
	wait_for "$PATIENCE" "the pod's network" target_said pod '^up$'
	inside=(nsenter "--net=/proc/${pid[pod]}/ns/net")
}

# The daemon as the manifest begins it, in a root like the container's, with its capabilities and its configuration.
daemon_of_manifest() { # ARGUMENT…: besides
	local arguments=() argument
	config=$dir/kprof.conf
	of_manifest 'documents["ConfigMap"]["data"]["kprof.conf"]' >"$config"
	while read -r argument; do
		argument=${argument//'$(NODE_NAME)'/node-7}
		arguments+=("${argument//'$(POD_IP)'/$address}")
	done < <(of_manifest 'container["args"]')
	[ "${arguments[-2]}" = --config ] # which daemon_start gives
	[[ ${arguments[*]} != *'$('* ]]
	daemon_web=("${arguments[@]::${#arguments[@]}-2}")
	before_daemon=("${inside[@]}" "${own_mounts[@]}" "$LIB/in_container"
		"$(of_manifest '",".join("CAP_" + c for c in container["securityContext"]["capabilities"]["add"])')" "$dir")
	daemon_start "$@"
}

pod_ask() { # PATH FILE [HEADER…]: prints the status
	"${inside[@]}" "$PYTHON" "$LIB/http_ask.py" "http://$address:11778$1" "$dir/$2" "${@:3}" 2>/dev/null
}

scraped() { # REGEX: the pod's address serves such a line of /metrics to anyone
	[ "$(pod_ask /metrics metrics)" = 200 ] && grep -qE "$1" "$dir/metrics"
}

flame_says() { # REGEX
	[ "$(daemon_ask /flame flame "Authorization: Bearer $token" 2>/dev/null)" = 200 ] && grep -q "$1" "$dir/flame"
}

trace_is_there() { # ID
	[ "$(daemon_ask "/trace/$1" "$1.trace" "Authorization: Bearer $token" 2>/dev/null)" = 200 ]
}

pushed_of() { # NAME: a process's samples have arrived, with the node's name
	jq -es --arg n "$1" 'any(.[] | .resources // [] | .[]; ."service.name" == $n and ."k8s.node.name" == "node-7")' "$dir/receiver/log" >/dev/null
}

@test "kubernetes: the daemon, with the manifest's rights and configuration, does all that it does elsewhere" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	needs_validator
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
	local address token name=pod-$$ id out=$dir/traces
	use_kind gcc
	pod_up
	mkdir -m 1777 "$out"
	mkdir -p "$dir/receiver" "$dir/own" && cp "$driver" "$library" "$dir/own" && cp "$(command -v yes)" "$dir/own/$name" && chmod -R a+rX "$dir"
	spawn receiver "${inside[@]}" "$KPROF_READERS_PYTHON" "$LIB/receiver.py" "$dir/receiver"
	wait_for "$PATIENCE" "the receiver to listen" test -s "$dir/receiver/port"
	spawn busy setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'exec "$0" >/dev/null' "$dir/own/$name"
	daemon_of_manifest --chunk 2s --max-overhead 50% --web --web-token-file "$dir/token" --dynolog --trace-folder "$out" --allow-owner \
		--to "otlp+http://127.0.0.1:$(cat "$dir/receiver/port")"
	token=$(cat "$dir/token")
	# Prometheus, at the pod's address, without the token, which the page wants
	wait_for "$PATIENCE" "its samples" scraped "^kprof_samples_total\\{process=\"$name\"\\} [1-9]"
	[ "$(pod_ask / page)" = 401 ]
	wait_for "$PATIENCE" "a flame graph" flame_says "$name"
	wait_for "$PATIENCE" "what is pushed" pushed_of "$name"
	! grep refused "$dir/receiver/log" || false
	# root on the node asks, and so does a user
	target_start target setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/own/opdriver" count --n 100 --linger
	ctl start -p "${pid[target]}" --stacks
	id=$(cat "$dir/stdout")
	target_go target
	target_result target
	ctl stop "$id"
	ctl get "$id" -o "$dir/got.kprof"
	[ "$(calls_of "$dir/got.kprof")" = "$(jq '[.counts[]] | add' "$dir/target.json")" ]
	wait_for "$PATIENCE" "its trace" trace_is_there "$id"
	id=$(setpriv --reuid 65534 --regid 65534 --clear-groups "$KPROF" ctl start --socket "$socket" -p "${pid[target]}" -d 100ms)
	wait_for "$PATIENCE" "its end" is_done "$id"
	[ "$(stat -c %u:%a "$state/recordings/$id.kprof")" = 65534:600 ]
	# dyno, whose trace is the process's user's
	"${inside[@]}" "$LIB/dyno.py" gputrace --pids "${pid[target]}" --duration-ms 100 --log-file "$out/trace.json" >"$dir/said"
	wait_for "$PATIENCE" "the trace" [ -s "$out/trace_${pid[target]}.json" ]
	[ "$(stat -c %u:%a "$out/trace_${pid[target]}.json")" = 65534:600 ]
	target_end target
	daemon_stop
	# a recorder says what a busy machine has cost it, too: that is not for want of a right
	jq -c 'select(.level == "error" or (.level == "warning" and (.event != "recorder" or (.message | test("permi|CAP_|cannot|could not|missing")))))' \
		"$dir/daemon.err" >"$dir/bad"
	[ ! -s "$dir/bad" ] || fail "$(cat "$dir/bad")"
	rm -r "$state/samples" # many, of all of the machine: tests/run would have each read as a trace
}
