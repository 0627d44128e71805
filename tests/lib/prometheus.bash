# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # dir, pid: harness.bash
# A Prometheus of the test's own, on top of harness.bash. What it scrapes is in $dir/prometheus.yml.

# prometheus_says QUERY JQ: what it answers to a query, once it has one that this is true of
prometheus_says() {
	wait_for "$PATIENCE" "Prometheus to say $2 of $1" prometheus_answers "$1" "$2"
}

prometheus_answers() {
	"$PYTHON" "$LIB/http_ask.py" "http://127.0.0.1:$prometheus/api/v1/query?query=$1" "$dir/answer" >/dev/null 2>&1 &&
		jq -e "$2" "$dir/answer" >/dev/null 2>&1
}

# It says the port only to who asks for it: a free one is taken, and if another program was faster, another one.
prometheus_start() {
	local try
	command -v prometheus >/dev/null || fail "no prometheus: scripts/setup check installs it" || return 1
	for try in 1 2 3 4 5; do
		prometheus=$("$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
		spawn "prometheus$try" prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" \
			--web.listen-address="127.0.0.1:$prometheus" --log.level=warn
		wait_for "$PATIENCE" "Prometheus" prometheus_up_or_over "prometheus$try" || return 1
		ended "${pid[prometheus$try]}" || return 0
	done
	fail "Prometheus ends: $(tail -n 3 "$dir/prometheus$try.err")"
}

prometheus_up_or_over() {
	! ended "${pid[$1]}" || return 0
	# who has the port instead may never answer
	[ "$(timeout 20 "$PYTHON" "$LIB/http_ask.py" "http://127.0.0.1:$prometheus/-/ready" "$dir/ready" 2>/dev/null)" = 200 ]
}
