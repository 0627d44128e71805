#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# share/kubernetes: the manifests are what Kubernetes takes, and what docs/kubernetes.md says of each right is so.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

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
