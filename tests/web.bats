#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# The daemon's HTTP, of which tests/workloads/webdaemon.c is the other side: /metrics, read by Prometheus itself, and by
# another reader of OpenMetrics; the page in a browser; clients that mean no good; and what the process may do that serves them.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/prometheus.bash
source "$BATS_TEST_DIRNAME/lib/prometheus.bash"

READERS=$BATS_TEST_DIRNAME/readers
GOLDEN=$BATS_TEST_DIRNAME/golden/h100/train.kprof

setup() {
	harness_setup
	[ -x "$BUILD/workloads/webdaemon" ] || fail "the test programs are not built: make test-programs"
}

teardown() {
	harness_teardown
}

# web_start OPTION…: sets $port, of its first address, and $child
web_start() {
	target_start web "$BUILD/workloads/webdaemon" "$@" || return 1
	port_of 0
	child=$(sed -n 's/^READY //p' "$dir/web.out" | jq .child)
}

port_of() { # NUMBER: of the address
	port=$(sed -n 's/^READY //p' "$dir/web.out" | jq ".ports[$1]")
}

# tell LINE: to the other side; it has obeyed when this returns
tell() {
	local before
	before=$(wc -l <"$dir/web.out")
	echo "$1" >&"${fd[web]}"
	wait_for "$PATIENCE" "webdaemon's answer" more_lines "$dir/web.out" "$before"
}

more_lines() { # FILE NUMBER
	[ "$(wc -l <"$1")" -gt "$2" ]
}

ask() { # PATH FILE [HEADER…]: prints the status
	"$PYTHON" "$LIB/http_ask.py" "http://127.0.0.1:$port$1" "$dir/$2" "${@:3}"
}

has_header() { # FILE LINE
	grep -qixF "$2" "$dir/$1.headers" || fail "no $2" "$(cat "$dir/$1.headers")"
}

# A reader that scripts/setup installs
reader() {
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	"$KPROF_READERS_PYTHON" "$READERS/$1" "${@:2}"
}

@test "metrics: both texts are valid, have the same numbers, and the families that docs/metrics.md has" {
	web_start --listen 127.0.0.1:0
	[ "$(ask /metrics text)" = 200 ]
	has_header text "Content-Type: text/plain; version=0.0.4; charset=utf-8"
	[ "$(ask /metrics open 'Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5')" = 200 ]
	has_header open "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"
	command -v promtool >/dev/null || fail "no promtool: scripts/setup check installs it"
	run --separate-stderr promtool check metrics <"$dir/text"
	[ "$status" = 0 ]
	[ -z "$output$stderr" ] || fail "$output$stderr"
	reader check_openmetrics.py "$dir/open" "$dir/text" "$ROOT/docs/metrics.md"
	target_end web
}

@test "metrics: promtool and the other reader notice a text that is wrong" {
	web_start --listen 127.0.0.1:0
	ask /metrics text
	ask /metrics open 'Accept: application/openmetrics-text'
	sed 's/^kprof_samples_total{process="python3"} .*/&x/' "$dir/text" >"$dir/wrong"
	run promtool check metrics <"$dir/wrong"
	[ "$status" != 0 ]
	grep -v '^# EOF' "$dir/open" >"$dir/cut"
	run -1 reader check_openmetrics.py "$dir/cut" "$dir/text" "$ROOT/docs/metrics.md"
	sed 's/le="0.25"} 5/le="0.25"} 7/' "$dir/open" >"$dir/wrong"
	run -1 reader check_openmetrics.py "$dir/wrong" "$dir/text" "$ROOT/docs/metrics.md"
	target_end web
}

@test "metrics: Prometheus scrapes them, with the token, and has the right numbers" {
	web_start --listen 0.0.0.0:0 --token "$dir/token"
	cat >"$dir/prometheus.yml" <<-END
		global: {scrape_interval: 1s}
		scrape_configs:
		  - job_name: kprof
		    authorization: {credentials_file: $dir/token}
		    static_configs: [{targets: ['127.0.0.1:$port']}]
		  - job_name: nobody
		    static_configs: [{targets: ['127.0.0.1:$port']}]
	END
	prometheus_start
	prometheus_says 'kprof_samples_total{process="python3"}' '.data.result[0].value[1] == "1000"'
	tell "samples 500"
	prometheus_says 'kprof_samples_total{process="python3"}' '.data.result[0].value[1] == "1500"'
	prometheus_says 'increase(kprof_samples_total{process="python3"}[1m])' '.data.result[0].value[1] | tonumber > 0'
	prometheus_says 'sum(kprof_overhead_ratio)' '.data.result[0].value[1] == "0.004"'
	prometheus_says 'kprof_step_seconds_bucket{le="0.25"}' '.data.result[0].value[1] == "5"'
	prometheus_says 'kprof_build_info' '.data.result[0].metric.kernel == "6.1.0-made-up"'
	prometheus_says 'up{job="kprof"}' '.data.result[0].value[1] == "1"'
	prometheus_says 'up{job="nobody"}' '.data.result[0].value[1] == "0"'
	target_end web
}

@test "metrics: the alerts in docs/metrics.md are rules that Prometheus takes" {
	sed -n '/^groups:/,/^```/p' "$ROOT/docs/metrics.md" | grep -v '^```' >"$dir/rules.yml"
	promtool check rules "$dir/rules.yml"
	grep -q 'alert: KprofOverBudget' "$dir/rules.yml"
}

@test "metrics: 5,000 names are some hundred series" {
	web_start --listen 127.0.0.1:0
	tell "names 5000"
	ask /metrics text
	[ "$(grep -c '^kprof_samples_total' "$dir/text")" = 101 ]
	grep -qx 'kprof_samples_total{process="other"} 4902' "$dir/text"
	target_end web
}

@test "page: in a browser, and a trace goes from it to Perfetto" {
	[ -x "$BUILD/bench/gen_stacks" ] || fail "the test programs are not built: make test-programs"
	"$PYTHON" "$READERS/gen_hostile.py" | "$BUILD/bench/gen_stacks" "$dir/hostile.kprof"
	"$KPROF" export "$dir/hostile.kprof" -o "$dir/flame.svg"
	"$KPROF" export "$GOLDEN" -o "$dir/train.pftrace"
	reader check_web.py "$BUILD/workloads/webdaemon" "$dir/flame.svg" "$dir/train.pftrace" "$GOLDEN"
}

@test "page: what is asked for, and what browsers must not do with it" {
	echo '<svg xmlns="http://www.w3.org/2000/svg"/>' >"$dir/flame.svg"
	"$KPROF" export "$GOLDEN" -o "$dir/slow.pftrace"
	gzip -c "$dir/slow.pftrace" >"$dir/slow.pftrace.gz"
	web_start --listen 127.0.0.1:0 --page yes --page-anyone yes --flame "$dir/flame.svg" --dump "slow=$GOLDEN" \
		--trace "slow=$dir/slow.pftrace.gz"
	[ "$(ask /dump/slow dump)" = 200 ]
	cmp "$dir/dump" "$GOLDEN"
	has_header dump 'Content-Disposition: attachment; filename="slow.kprof"'
	has_header dump 'Content-Type: application/octet-stream'
	[ "$(ask /trace/slow trace)" = 200 ]
	cmp "$dir/trace" "$dir/slow.pftrace.gz"
	has_header trace 'Content-Disposition: attachment; filename="slow.pftrace.gz"'
	[ "$(ask /flame flame)" = 200 ]
	cmp "$dir/flame" "$dir/flame.svg"
	grep -qi '^Content-Security-Policy: .*sandbox allow-scripts' "$dir/flame.headers"
	[ "$(ask / page)" = 200 ]
	[ "$(ask / page2)" = 200 ]
	run ! cmp -s "$dir/page" "$dir/page2" # the number that scripts are known by is another each time
	run ! grep -qE '@(NONCE|PERFETTO)@' "$dir/page"
	local file
	for file in dump trace flame page; do
		has_header "$file" "X-Content-Type-Options: nosniff"
		has_header "$file" "Cross-Origin-Resource-Policy: same-origin"
		has_header "$file" "Cache-Control: no-store"
		run ! grep -qi '^Access-Control' "$dir/$file.headers"
		grep -qi "^Content-Security-Policy: default-src 'none'" "$dir/$file.headers"
	done
	[ "$(ask /dump/none none)" = 404 ]
	[ "$(ask /api/status none)" = 404 ] # as the daemon says
	target_end web
}

@test "page: only where it is asked for" {
	web_start --listen 127.0.0.1:0
	for path in / /api/status /api/processes /api/dumps /flame /dump/slow /trace/slow; do
		[ "$(ask "$path" answer)" = 404 ]
	done
	[ "$(ask /metrics answer)" = 200 ]
	target_end web
}

refused() { # REGEX OPTION…: it does not start, and says why
	run -1 --separate-stderr "$BUILD/workloads/webdaemon" "${@:2}" </dev/null
	[[ $stderr =~ $1 ]] || fail "not /$1/:" "$stderr"
	[[ $stderr == *$'\n'hint:\ ?* ]] || fail "no hint" "$stderr"
}

@test "access: what would be open to others is refused, with a way out" {
	refused 'other machines could read' --listen 0.0.0.0:0
	refused 'other machines could read' --listen '[::]:0'
	refused 'other machines could read' --listen 127.0.0.1:0 --listen '[::]:0'
	refused 'the page shows' --listen 127.0.0.1:0 --page yes
	refused 'the page shows' --listen 0.0.0.0:0 --page yes --page-anyone yes --metrics-anyone yes
	refused 'no address' --listen localhost:80
	refused 'no address' --listen 127.0.0.1
	refused 'no address' --listen 127.0.0.1:65536
	refused 'no address' --listen '[::1:0'
	refused 'no address' --listen '[::1]'
	refused 'no address' --listen fd00::1
	refused 'no origin' --listen 127.0.0.1:0 --perfetto 'https://x"><script>'
	printf 'secret-secret-secret\n' >"$dir/token"
	chmod 644 "$dir/token"
	refused 'read by others' --listen 127.0.0.1:0 --token "$dir/token"
	printf 'short\n' >"$dir/token"
	chmod 600 "$dir/token"
	refused 'has no token' --listen 127.0.0.1:0 --token "$dir/token"
	web_start --listen 127.0.0.1:0
	refused "cannot listen on 127.0.0.1:$port: Address already in use" --listen "127.0.0.1:$port"
	target_end web
}

@test "access: the token, as Bearer and as a password, for all but /metrics on loopback" {
	local token basic
	web_start --listen 127.0.0.1:0 --page yes --token "$dir/token"
	[ "$(stat -c %a "$dir/token")" = 600 ]
	token=$(cat "$dir/token")
	[[ $token =~ ^[0-9a-f]{32}$ ]]
	basic=$(printf 'anyone:%s' "$token" | base64 -w 0)
	[ "$(ask /metrics answer)" = 200 ]
	for path in / /api/status /flame /dump/slow; do
		[ "$(ask "$path" answer)" = 401 ]
		has_header answer 'WWW-Authenticate: Bearer realm="kprof"'
	done
	[ "$(ask / answer "Authorization: Bearer $token")" = 200 ]
	[ "$(ask / answer "Authorization: Basic $basic")" = 200 ]
	[ "$(ask / answer "Authorization: Bearer ${token%?}")" = 401 ]
	[ "$(ask / answer "Authorization: Bearer ${token}0")" = 401 ]
	[ "$(ask / answer "Authorization: Basic $token")" = 401 ]
	[ "$(ask / answer "Authorization: Bearer")" = 401 ]
	target_end web
	web_start --listen 0.0.0.0:0 --page yes --page-anyone yes --token "$dir/token"
	[ "$(cat "$dir/token")" = "$token" ]
	[ "$(ask /metrics answer)" = 401 ]
	[ "$(ask / answer)" = 401 ]
	[ "$(ask /metrics answer "Authorization: Bearer $token")" = 200 ]
	target_end web
	web_start --listen 0.0.0.0:0 --metrics-anyone yes
	[ "$(ask /metrics answer)" = 200 ]
	target_end web
}

@test "access: IPv6, and several addresses" {
	grep -qs . /proc/net/if_inet6 || skip "this machine has no IPv6"
	web_start --listen '[::1]:0' --listen 127.0.0.1:0
	[ "$("$PYTHON" "$LIB/http_ask.py" "http://[::1]:$port/metrics" "$dir/answer")" = 200 ]
	port_of 1
	[ "$(ask /metrics answer)" = 200 ]
	target_end web
	# as a pod's address comes, whatever its kind
	web_start --listen '::1:0'
	[ "$("$PYTHON" "$LIB/http_ask.py" "http://[::1]:$port/metrics" "$dir/answer")" = 200 ]
	target_end web
}

@test "the process that serves: nobody, without rights, files and children" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	web_start --listen 127.0.0.1:0 --page yes --page-anyone yes
	ask /metrics answer
	local status
	status=$(cat "/proc/$child/status")
	[[ $status == *$'\nUid:\t65534\t65534\t65534\t65534\n'* ]]
	[[ $status == *$'\nGid:\t65534\t65534\t65534\t65534\n'* ]]
	[[ $status =~ $'\nGroups:\t'[[:space:]]*$'\n' ]]
	for set in CapInh CapPrm CapEff CapBnd CapAmb; do
		[[ $status == *$'\n'$set:$'\t0000000000000000\n'* ]]
	done
	[[ $status == *$'\nNoNewPrivs:\t1\n'* ]]
	[[ $status == *$'\nSeccomp:\t2\n'* ]]
	[[ $status == *$'\nThreads:\t1\n'* ]]
	# Sockets, what waits for them, the last answer, and nothing else to read or write.
	find "/proc/$child/fd" -mindepth 1 -printf '%l\n' >"$dir/descriptors"
	grep -q '^socket:' "$dir/descriptors"
	run ! grep -vE '^(socket:|anon_inode:|/memfd:kprof-web |/dev/null$)' "$dir/descriptors"
	grep -qE '^Max core file size +0 ' "/proc/$child/limits"
	grep -qE '^Max file size +0 ' "/proc/$child/limits"
	target_end web
	wait_for "$PATIENCE" "the child to end with the daemon" ended "$child"
}

@test "the process that serves ends with a daemon that is killed" {
	web_start --listen 127.0.0.1:0
	kill -KILL "${pid[web]}"
	wait_for "$PATIENCE" "the child to end" ended "$child"
	wait "${pid[web]}" 2>/dev/null || :
	unset "pid[web]"
}

@test "a daemon that does not answer: 503, and all is well again when it does" {
	local before
	web_start --listen 127.0.0.1:0 --page yes --page-anyone yes --answer-ms 200
	[ "$(ask /metrics answer)" = 200 ]
	tell silent
	before=$(awk '/^VmRSS/ { print $2 }' "/proc/$child/status")
	for ((i = 0; i < 20; i++)); do
		[[ $("$PYTHON" "$LIB/http_ask.py" -n 30 "http://127.0.0.1:$port/api/status" "$dir/answer") =~ ^(503 ?){30}$ ]]
	done
	grep -qx 'the daemon does not answer' "$dir/answer"
	has_header answer 'Content-Type: text/plain; charset=utf-8'
	[ "$(awk '/^VmRSS/ { print $2 }' "/proc/$child/status")" -lt $((before + 8192)) ]
	tell answer # what was asked long ago, too: nobody waits for that any more
	[ "$(ask /metrics answer)" = 200 ]
	[ "$(ask / answer)" = 200 ]
	target_end web
}

@test "many who ask the same are one question" {
	web_start --listen 127.0.0.1:0
	tell silent
	"$PYTHON" "$LIB/http_ask.py" -n 40 "http://127.0.0.1:$port/metrics" "$dir/answer" >"$dir/statuses" &
	local asking=$!
	wait_for "$PATIENCE" "a question" asked_more 0
	tell answer
	wait "$asking"
	[[ $(cat "$dir/statuses") =~ ^(200 ?){40}$ ]] || fail "$(cat "$dir/statuses")"
	tell asked
	[ "$(tail -n 1 "$dir/web.out")" -lt 10 ] || fail "40 requests were $(tail -n 1 "$dir/web.out") questions"
	target_end web
}

asked_more() { # NUMBER
	tell asked && [ "$(tail -n 1 "$dir/web.out")" -gt "$1" ]
}

hostile() { # KIND
	truncate -s 200M "$dir/large.bin"
	web_start --listen 127.0.0.1:0 --page yes --page-anyone yes --host node-7.cluster --dump "large=$dir/large.bin" \
		--dump "slow-step.1=$GOLDEN"
	"$PYTHON" "$LIB/http_hostile.py" "$1" "$port" "$child"
	target_end web
}

@test "hostile: another site's name leads to this server (DNS rebinding)" { hostile names; }
@test "hostile: other methods, and bodies" { hostile methods; }
@test "hostile: paths out of the folder" { hostile paths; }
@test "hostile: a line, headers, and their number without end" { hostile huge; }
@test "hostile: no HTTP, and many requests at once" { hostile garbage; }
@test "hostile: 100 clients that send a letter now and then" { hostile slow; }
@test "hostile: 200 connections" { hostile many; }
@test "hostile: who asks for a large file and does not read it" { hostile unread; }
