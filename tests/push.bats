#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# kprof push: what arrives at receivers that refuse what the real ones refuse (tests/lib/receiver.py), over connections and
# with answers that are not as they should be; what is kept when kprof is killed. tests/soak/backends.bats has the real collector.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"
# shellcheck source=tests/lib/processes_text.bash
source "$BATS_TEST_DIRNAME/lib/processes_text.bash"

setup_file() {
	[ -x "${KPROF_READERS_PYTHON:-}" ] || return 0
	cd "$BATS_FILE_TMPDIR" || return
	processes_text >two.txt
	"$BUILD/bench/gen_stacks" two.kprof <two.txt
}

setup() {
	harness_setup
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	[ -x "$BUILD/bench/gen_stacks" ] || fail "the test programs are not built: make test-programs"
	two=$BATS_FILE_TMPDIR/two.kprof to=$dir/receiver queue=$dir/queue
	unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
}

teardown() {
	local name
	for name in "${!port[@]}"; do stop "$name"; done
	harness_teardown
}

# receiver NAME ARGUMENT…: listens; its folder is $dir/NAME, its port ${port[NAME]}
declare -gA port # bats sources this file in a function
receiver() {
	local name=$1
	shift
	mkdir -p "$dir/$name"
	rm -f "$dir/$name/port"
	"$KPROF_READERS_PYTHON" "$BATS_TEST_DIRNAME/lib/receiver.py" "$dir/$name" "$@" >"$dir/$name/out" 2>&1 3>&- &
	pid[$name]=$!
	wait_for "$PATIENCE" "the receiver to listen" test -e "$dir/$name/port"
	port[$name]=$(cat "$dir/$name/port")
}

stop() {
	kill "${pid[$1]}" 2>/dev/null || return 0
	wait "${pid[$1]}" || :
}

faults() { printf '%s\n' "$@" >"$to/faults"; }
seen() { cut -d' ' -f1 "$to/seen" 2>/dev/null | xargs; }
taken() { jq -c 'select(.path)' "$to/log" 2>/dev/null | wc -l; }
push() { kprof_says "$1" push "${@:3}" --to "$2+http://127.0.0.1:${port[receiver]}"; }
said() { grep -qE -- "$1" "$dir/stderr" || fail "no '$1' in:" "$(cat "$dir/stderr")"; }

@test "OTLP: one request has all processes with their labels, each function's samples and waits" {
	receiver receiver
	push 0 otlp "$two" --label team=vision --header 'X-Scope-OrgID: 7'
	grep -qE '^1 requests, [0-9]+ bytes$' "$dir/stdout"
	[ ! -s "$dir/stderr" ]
	mkdir "$dir/tmp"
	TMPDIR=$dir/tmp push 0 otlp "$two" && [ -z "$(ls -A "$dir/tmp")" ] # nothing is left of a queue that was not named
	jq -se --arg id "$(printf '%064d' 7)" '.[0] | .path == "/v1development/profiles" and .tenant == "7" and
		.own == {samples: {add: 7, step: 11, sys_read: 5}, off_cpu: {step: 20000000, poll: 21000000}} and
		(.resources | map(.["service.name"]) == ["python3", "trainer"] and all(.team == "vision" and .["host.name"] == "node7")) and
		.resources[1]["container.id"] == $id and .resources[1]["k8s.pod.uid"] == "0a1b2c3d-1111-2222-3333-444455556666" and
		.resources[1].rank == 3 and .resources[0]["process.pid"] == 7' "$to/log"
	[ "$(seen)" = "taken taken" ]
}

@test "names of pods: those of kubelet's links on the node; without them, or with a name that cannot be, numbers alone" {
	[ "$(id -u)" = 0 ] || skip "needs root, for a mount"
	local id name
	id=$(printf '%064d' 7)
	receiver receiver
	# on_node COMMAND…: where the link has the name in $name
	cat >"$dir/on_node" <<-'end'
		#!/bin/sh
		mount -t tmpfs none /var/log && mkdir -m 755 /var/log/containers && cd /var/log/containers && ln -s /gone "$name" && exec "$@"
	end
	chmod 755 "$dir/on_node"
	for name in "train-0_ml-team_pytorch-$id.log" "train-0_ml-team_Py torch-$id.log"; do
		name=$name "${own_mounts[@]}" "$dir/on_node" "$KPROF" push "$two" --to "otlp+http://127.0.0.1:${port[receiver]}" \
			--label k8s.node.name=gpu-7
	done
	push 0 parca "$two"
	jq -se '.[0].resources[1] | .["k8s.pod.name"] == "train-0" and .["k8s.namespace.name"] == "ml-team" and
		.["k8s.container.name"] == "pytorch" and .["k8s.node.name"] == "gpu-7"' "$to/log"
	jq -se '.[0].resources[0] | has("k8s.pod.name") | not' "$to/log"
	jq -se '.[1].resources[1] | has("k8s.pod.uid") and (has("k8s.pod.name") or has("k8s.container.name") | not)' "$to/log"
	jq -se '.[2:] | all(.labels | has("k8s_pod_name") | not)' "$to/log"
}

# Twenty processes, each in a pod of its own.
pods_text() {
	local i frame='N|/bin/prog|c0ffee|0x10||main|main.c|3'
	printf 'meta\t%s\t%s\n' waits '{}' host '"node7"' stacks '{"frequency_hz": 99}'
	for i in {0..19}; do
		printf 'process\t%d\tp%d\nowner\t%d\t/kubepods-pod0a1b2c3d_1111_2222_3333_4444555566%02d.slice/cri-containerd-%064d.scope\n' \
			$((100 + i)) "$i" $((100 + i)) "$i" "$i"
		printf 'thread\t%d\t%d\tmain\nsample\t%d\t1\t10101010\t256\t%s\n' $((100 + i)) $((100 + i)) "$i" "$frame"
	done
}

@test "names of pods: kubelet's folder is read once for a capture, however many pods are in it" {
	local kind
	command -v strace >/dev/null || skip "no strace here: scripts/setup check installs it"
	pods_text | "$BUILD/bench/gen_stacks" "$dir/pods.kprof"
	receiver receiver
	for kind in otlp pyroscope; do
		rm -f "$to/log"
		strace -f -qq -e trace=openat -o "$dir/trace" "$KPROF" push "$dir/pods.kprof" --to "$kind+http://127.0.0.1:${port[receiver]}"
		[ "$(grep -c '"/var/log/containers"' "$dir/trace")" = 1 ] || fail "$kind: $(grep -c '"/var/log/containers"' "$dir/trace") times"
		jq -se '[if .[0].resources then .[0].resources[]["k8s.pod.uid"] else .[].labels.k8s_pod_uid end] | unique | length == 20' "$to/log"
	done
}

@test "a recording of all processes: each function's samples and waits arrive, at each kind of receiver" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	local kind
	receiver receiver
	cp "$(readlink -e /bin/sh)" "$dir/shell"
	spawn busy "$dir/shell" -c 'while :; do :; done'
	# one that executes another program meanwhile
	spawn changes "$dir/shell" -c 'until [ -e "$0/go" ]; do :; done; exec sh -c "while :; do :; done"' "$dir"
	spawn going sh -c 'until grep -qs "^kprof: recording" "$0/stderr"; do sleep 0.05; done; sleep 0.7; : >"$0/go"' "$dir"
	kprof_says 0 sample -a -v -d 2s --off-cpu -o "$dir/all.kprof"
	for kind in otlp pyroscope parca; do
		rm -f "$to/log"
		push 0 "$kind" "$dir/all.kprof"
		jq -s '[.[] | (.resources // [{"service.name": (.service // .labels.service_name),
			"process.executable.path": .labels.process_executable_path}])[] |
			[."service.name", ."process.executable.path"]] | unique' "$to/log" >"$dir/$kind.programs"
		jq -e --arg shell "$dir/shell" --arg sh "$(readlink -e /bin/sh)" \
			'index([["shell", $shell]]) and index([["sh", $sh]]) and (index([["sh", $shell]]) | not)' "$dir/$kind.programs" ||
			fail "$kind: $(cat "$dir/$kind.programs")"
		jq -s 'map(.own.samples // {} | to_entries[]) as $all | (map(select(.own | has("off_cpu") | not)) // []) as $pprof |
			(if $pprof == [] then $all else [$pprof[].own.samples | to_entries[]] end) |
			group_by(.key) | map({key: .[0].key, value: (map(.value) | add)}) | from_entries' "$to/log" >"$dir/$kind.samples"
		jq -s '[.[].own.off_cpu // {} | to_entries[]] | group_by(.key) | map({key: .[0].key, value: (map(.value) | add)}) |
			from_entries' "$to/log" >"$dir/$kind.waits"
	done
	"$KPROF" report "$dir/all.kprof" --by function --json --limit 0 >"$dir/report"
	"$KPROF" report "$dir/all.kprof" --by function --off-cpu --json --limit 0 >"$dir/waits"
	own() { # FILE KEY: of functions that have a name, by name
		jq -S --arg key "$2" '[.rows[] | select(.[$key] > 0 and (.name | startswith("[") | not))] | group_by(.name) |
			map({key: .[0].name, value: (map(.[$key]) | add)}) | from_entries' "$1"
	}
	[ "$(own "$dir/report" self_samples | jq length)" -gt 0 ]
	for kind in otlp pyroscope parca; do
		named() { jq -S 'with_entries(select(.key | test("^\\[|\\+0x") | not))' "$1"; }
		diff <(own "$dir/report" self_samples) <(named "$dir/$kind.samples") || fail "$kind: samples"
		diff <(own "$dir/waits" self_ns) <(named "$dir/$kind.waits") || fail "$kind: waits"
	done
}

@test "Pyroscope: a request for each group of processes with the same labels, and one for their waits" {
	receiver receiver
	push 0 pyroscope "$two" --label team=vision
	jq -se --arg id "$(printf '%064d' 7)" 'map(.path) == ["/ingest", "/ingest", "/ingest"] and
		map(.service) == ["python3", "trainer", "trainer"] and map(.pids) == [[7], [8], [8]] and
		map(.own | keys) == [["cpu", "samples"], ["cpu", "samples"], ["off_cpu", "samples"]] and
		.[0].own.samples == {add: 7} and .[1].own.samples == {step: 11, sys_read: 5} and
		.[1].own.cpu == {step: (11 * 10101010), sys_read: (5 * 10101010)} and .[2].own.off_cpu == {step: 20000000, poll: 21000000} and
		(.[1].labels | .host_name == "node7" and .rank == "3" and .container_id == $id and .team == "vision" and
			.k8s_pod_uid == "0a1b2c3d-1111-2222-3333-444455556666") and (.[0].labels | has("container_id") | not)' "$to/log"
	push 0 pyroscope "$two" --service shop
	# Processes of one service that differ in their labels stay apart.
	jq -se '.[3:] | map(.service) == ["shop", "shop", "shop"] and map(.pids) == [[7], [8], [8]]' "$to/log"
}

@test "Parca: base64 in JSON, ids 1, 2, 3 …, the labels beside it" {
	receiver receiver
	push 0 parca "$two"
	jq -se 'map(.path) == ["/api/profiles/writeraw", "/api/profiles/writeraw", "/api/profiles/writeraw"] and
		map(.labels.__name__) == ["process_cpu", "process_cpu", "off_cpu"] and map(.labels.service_name) == ["python3", "trainer", "trainer"] and
		all(.labels.node == "node7") and .[1].labels.rank == "3" and
		map(.own.samples) == [{add: 7}, {step: 11, sys_read: 5}, {poll: 3, step: 4}]' "$to/log"
}

@test "what a receiver asks for again is sent again, after as long a pause as it asks for" {
	receiver receiver
	for fault in 429:2 502 503 504 408; do
		faults "$fault"
		rm -f "$to/seen"
		push 0 otlp "$two" --timeout 30s
		[ "$(seen)" = "$fault taken" ]
		[ "$fault" != 429:2 ] || awk '{ t[NR] = $2 } END { exit !(t[2] - t[1] >= 2) }' "$to/seen"
	done
	[ "$(taken)" = 5 ]
	# Several of them: one after the other until all were taken, those that failed last.
	faults 503 200
	rm "$to/seen" "$to/log"
	push 0 pyroscope "$two"
	[ "$(seen)" = "503 200 taken taken" ]
	jq -se 'map(.service) == ["trainer", "python3"]' "$to/log"
}

@test "connections that break, and answers that are none: sent again" {
	receiver receiver
	for fault in reset garbage headers; do
		faults "$fault"
		rm -f "$to/seen"
		push 0 otlp "$two" --timeout 30s
		[[ "$(seen)" =~ ^$fault\ taken$ ]] || fail "$(seen)"
	done
	[ "$(taken)" = 3 ]
	# Nobody listens.
	stop receiver
	push 1 otlp "$two" --timeout 1s
	said '^hint: does a receiver listen there'
	said '1 requests were not sent$'
	kprof_says 1 push "$two" --to otlp+http://name.invalid --timeout 1s
	said 'name.invalid:4318: '
}

@test "what a receiver refuses is not sent again: the reason is told, without what would move a cursor" {
	receiver receiver
	for status in 400 401 403 404 413 422 500 501; do
		faults "$status"
		rm -f "$to/seen"
		push 1 otlp "$two"
		[ "$(seen)" = "$status" ]
		said "answers $status: \]0;not now$"
		said '1 requests were refused'
		run ! grep -q $'[\x1b\x07]' "$dir/stderr"
	done
	faults 401
	push 1 otlp "$two"
	said '^hint: a secret is needed'
	faults 404
	push 1 otlp "$two"
	said '^hint: .*service.profilesSupport'
}

@test "a receiver that takes a part: the rest is counted, and why" {
	receiver receiver
	faults partial
	push 1 otlp "$two"
	said 'left out 3 profiles: bad \[31mprofile!$'
	said '3 profiles were left out'
}

@test "no redirect is followed" {
	receiver receiver
	receiver elsewhere
	faults "redirect:http://127.0.0.1:${port[elsewhere]}/v1development/profiles"
	printf 'a-secret\n' >"$dir/token"
	push 1 otlp "$two" --token-file "$dir/token"
	said "^hint: it points to http://127.0.0.1:${port[elsewhere]}/"
	[ ! -e "$dir/elsewhere/seen" ]
	faults redirect:file:///etc/passwd
	push 1 otlp "$two"
	[ ! -e "$dir/elsewhere/seen" ]
}

@test "an answer without an end: it counts as it begins, and is read no further" {
	receiver receiver
	faults huge
	(
		ulimit -v 400000
		push 0 otlp "$two"
	)
	[ "$(seen)" = huge ]
	faults slow
	push 0 otlp "$two" --timeout 30s
	faults hang
	push 1 otlp "$two" --timeout 1s
	said 'not sent'
}

@test "a queue: what is too much for it, or too old, is dropped and counted" {
	local left
	pods_text | "$BUILD/bench/gen_stacks" "$dir/pods.kprof"
	receiver receiver
	stop receiver
	push 1 pyroscope "$dir/pods.kprof" --timeout 1s --queue "$queue" --queue-bytes 6K # of some 10
	left=$(find "$queue" -name '*.head' | wc -l)
	[ "$left" -ge 1 ] && [ "$left" -lt 20 ]
	said "$((20 - left)) requests were dropped from the queue"
	push 1 pyroscope --timeout 1s --queue "$queue"
	said "$left requests were not sent"
	push 1 pyroscope --timeout 1s --queue "$queue" --queue-age 1ms
	said "$left requests were dropped from the queue"
	only_files "$queue" lock
}

@test "a queue: what was not sent stays, and is sent the next time, once" {
	receiver receiver
	stop receiver
	push 1 parca "$two" --timeout 1s --queue "$queue"
	said '3 requests were not sent; they stay in the queue'
	[ "$(stat -c %a "$queue")" = 700 ]
	push 1 parca "$two" --timeout 1s --queue "$queue" # the same capture
	said '3 requests were not sent'
	[ "$(find "$queue" -name '*.head' | wc -l)" = 3 ]
	receiver receiver
	push 0 parca --queue "$queue"
	grep -q '^3 requests' "$dir/stdout"
	[ "$(taken)" = 3 ]
	only_files "$queue" lock
	push 0 parca --queue "$queue"
	[ "$(taken)" = 3 ]
	# One that is for another kind of receiver is not sent.
	push 0 parca --queue "$queue"
	stop receiver
	push 1 parca "$two" --timeout 1s --queue "$queue"
	receiver receiver
	push 1 otlp --queue "$queue"
	said '3 requests in the queue could not be read'
	only_files "$queue" lock
}

@test "kill -9 at any moment: each request is delivered, and once, if no answer was on its way" {
	receiver receiver
	# The second of three has no answer when kprof is killed.
	faults 200 hang
	"$KPROF" push "$two" --to "parca+http://127.0.0.1:${port[receiver]}" --queue "$queue" >/dev/null 2>&1 3>&- &
	pid[kprof]=$!
	wait_for "$PATIENCE" "the second request" grep -q hang "$to/seen"
	kill -9 "${pid[kprof]}"
	wait "${pid[kprof]}" || :
	[ "$(find "$queue" -name '*.head' | wc -l)" = 2 ]
	# Another was killed while it made an entry.
	mkdir "$queue/.new-abcdef" && touch "$queue/.new-abcdef/0.head"
	push 0 parca --queue "$queue"
	[ "$(seen)" = "200 hang taken taken" ]
	jq -se 'map(.labels.service_name + " " + .labels.__name__) == ["trainer process_cpu", "trainer off_cpu"]' "$to/log"
	only_files "$queue" lock
}

@test "killed again and again while it makes and sends: nothing is lost, nothing half made is sent" {
	receiver receiver
	local i
	for i in $(seq 20); do
		"$KPROF" push "$two" --to "parca+http://127.0.0.1:${port[receiver]}" --queue "$queue" >/dev/null 2>&1 3>&- &
		pid[kprof]=$!
		sleep "0.0$((i * 37 % 10))$((i * 7 % 10))" # some in the middle of each part
		kill -9 "${pid[kprof]}" 2>/dev/null || :
		wait "${pid[kprof]}" || :
	done
	push 0 parca "$two" --queue "$queue"
	only_files "$queue" lock
	jq -se 'all(.refused | not) and (map(.labels.service_name + " " + .labels.__name__) | unique ==
		["python3 process_cpu", "trainer off_cpu", "trainer process_cpu"])' "$to/log"
}

# authority NAME: makes $dir/NAME.pem, and NAME-server.pem and NAME-client.pem for 127.0.0.1
authority() {
	local role
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
		-keyout "$dir/$1.key" -out "$dir/$1.pem" 2>/dev/null
	for role in server client; do
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$role" \
			-keyout "$dir/$1-$role.key" -out "$dir/request" 2>/dev/null
		openssl x509 -req -in "$dir/request" -CA "$dir/$1.pem" -CAkey "$dir/$1.key" -CAcreateserial -days 2 \
			-extfile <(printf 'subjectAltName=IP:127.0.0.1\n') -out "$dir/$1-$role.pem" 2>/dev/null
	done
}

@test "TLS: only a certificate of a trusted authority, and for that host" {
	authority mine
	authority other
	receiver receiver --tls "$dir/mine-server.pem" "$dir/mine-server.key"
	local url=otlp+https://127.0.0.1:${port[receiver]}
	kprof_says 0 push "$two" --to "$url" --ca "$dir/mine.pem"
	[ "$(taken)" = 1 ]
	# Neither the system's authorities nor another one know it: it is given up at once.
	for ca in '' "--ca $dir/other.pem"; do
		# shellcheck disable=SC2086 # words
		kprof_says 1 push "$two" --to "$url" --timeout 600s $ca
		said '^hint: --ca FILE'
	done
	# The certificate is for 127.0.0.1.
	kprof_says 1 push "$two" --to "otlp+https://localhost:${port[receiver]}" --ca "$dir/mine.pem"
	# A receiver that talks without TLS gets nothing.
	receiver plain
	kprof_says 1 push "$two" --to "otlp+https://127.0.0.1:${port[plain]}" --ca "$dir/mine.pem" --timeout 1s
	[ ! -e "$dir/plain/log" ]
	[ "$(taken)" = 1 ]
}

@test "TLS: a client's certificate" {
	authority mine
	receiver receiver --tls "$dir/mine-server.pem" "$dir/mine-server.key" "$dir/mine.pem"
	local url=otlp+https://127.0.0.1:${port[receiver]}
	kprof_says 0 push "$two" --to "$url" --ca "$dir/mine.pem" --cert "$dir/mine-client.pem" --key "$dir/mine-client.key"
	[ "$(taken)" = 1 ]
	cat "$dir/mine-client.pem" "$dir/mine-client.key" >"$dir/both.pem"
	kprof_says 0 push "$two" --to "$url" --ca "$dir/mine.pem" --cert "$dir/both.pem"
	kprof_says 1 push "$two" --to "$url" --ca "$dir/mine.pem" --timeout 1s
	[ "$(taken)" = 2 ]
}

@test "secrets: from files, renewed, in no message, not in the queue, and not without TLS to others" {
	receiver receiver --token s3cr3t-token
	printf 's3cr3t-token\n' >"$dir/token"
	printf 'wrong-t0ken\n' >"$dir/wrong"
	push 0 otlp "$two" --token-file "$dir/token" --queue "$queue"
	push 1 otlp "$two" --token-file "$dir/wrong" --queue "$queue"
	said 'answers 401: who are you'
	push 1 otlp "$two"
	# Renewed while kprof waits with a request that was put off.
	faults 503:1
	cp "$dir/wrong" "$dir/renewed"
	"$KPROF" push "$two" --to "otlp+http://127.0.0.1:${port[receiver]}" --token-file "$dir/renewed" >"$dir/stdout" 2>"$dir/stderr" 3>&- &
	pid[kprof]=$!
	wait_for "$PATIENCE" "the first request" grep -q '^503' "$to/seen"
	tr '\0' ' ' <"/proc/${pid[kprof]}/cmdline" >"$dir/cmdline"
	cp "$dir/token" "$dir/renewed"
	wait "${pid[kprof]}"
	run ! grep -rqE 's3cr3t|wrong-t0ken' "$queue" "$dir/stderr" "$dir/stdout" "$dir/cmdline"

	stop receiver
	receiver receiver --basic 'me:pass:word'
	printf 'me:pass:word' >"$dir/basic"
	push 0 otlp "$two" --basic-file "$dir/basic"
	for option in "--token-file $dir/token" "--basic-file $dir/basic"; do
		# shellcheck disable=SC2086 # words
		refuses "without TLS everybody on the way would read" push "$two" --to otlp+http://203.0.113.7 $option
	done
}

@test "asked wrongly: exit status 2, a cause and a hint" {
	refuses 'no destination is given' push "$two"
	refuses 'no captures are given' push --to otlp+http://localhost
	refuses 'is no destination' push "$two" --to http://localhost
	refuses 'cannot name a user' push "$two" --to otlp+http://me:word@localhost
	run ! grep -q word "$dir/stderr"
	refuses 'is no header' push "$two" --to otlp+http://localhost --header X
	refuses 'secret on the command line' push "$two" --to otlp+http://localhost --header 'Authorization: Bearer x'
	refuses 'is no label' push "$two" --to otlp+http://localhost --label team
	refuses 'cannot have' push "$two" --to otlp+http://localhost --label 'te am=x'
	refuses 'No such file' push "$two" --to otlp+http://localhost --token-file "$dir/none"
	refuses 'No such file' push "$two" --to otlp+http://localhost --ca "$dir/none"
	: >"$dir/empty"
	refuses 'has no line that can be sent' push "$two" --to otlp+http://localhost --token-file "$dir/empty"
	kprof_says 1 push "$dir/empty" --to otlp+http://localhost
	refused 'no kprof capture|is empty|not a'
	printf 'process\t7\tx\tx\nthread\t7\t7\tx\n' | "$BUILD/bench/gen_stacks" "$dir/none.kprof"
	kprof_says 1 push "$dir/none.kprof" --to otlp+http://localhost
	refused 'neither samples nor waits'
	mkdir -m 777 "$dir/open" && chmod 777 "$dir/open"
	kprof_says 3 push "$two" --to otlp+http://localhost --queue "$dir/open"
	refused 'others can write to'
}

@test "root is given up: what talks to the network has no rights" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	public_copy
	cp "$two" "$public" && chmod 644 "$public/two.kprof" && chown 65534 "$public/two.kprof"
	receiver receiver
	faults hang
	"$KPROF" push "$public/two.kprof" --to "otlp+http://127.0.0.1:${port[receiver]}" >/dev/null 2>&1 3>&- &
	pid[kprof]=$!
	wait_for "$PATIENCE" "the request" grep -q hang "$to/seen"
	grep -qE $'^Uid:\t65534\t65534\t65534\t65534$' "/proc/${pid[kprof]}/status"
	grep -qE $'^CapEff:\t0000000000000000$' "/proc/${pid[kprof]}/status"
	grep -qE $'^NoNewPrivs:\t1$' "/proc/${pid[kprof]}/status"
	kill -9 "${pid[kprof]}"
	rm -rf "$public"
}
