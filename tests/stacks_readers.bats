#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,long
# Samples in every format, each opened by the programs that people open it with, against a text that says what was sampled:
# the flame graph in headless Chromium, speedscope's own application, Google's pprof, Perfetto's trace processor.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

READERS=$BATS_TEST_DIRNAME/readers

setup_file() {
	# shellcheck source=tests/lib/harness.bash
	source "$BATS_TEST_DIRNAME/lib/harness.bash"
	local name
	[ -x "$BUILD/bench/gen_stacks" ] || fail "the test programs are not built: make test-programs"
	cd "$BATS_FILE_TMPDIR" || return
	"$PYTHON" "$READERS/gen_training.py" 6000 >training.txt
	"$PYTHON" "$READERS/gen_hostile.py" >hostile.txt
	for name in training hostile; do
		"$BUILD/bench/gen_stacks" "$name.kprof" <"$name.txt"
		for suffix in folded speedscope.json pb.gz json svg; do
			"$KPROF" export "$name.kprof" --interpreter -o "$name.$suffix"
		done
	done
}

setup() {
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	cd "$BATS_FILE_TMPDIR" || return
	export KPROF_SPEEDSCOPE=${KPROF_SPEEDSCOPE:-${KPROF_CACHE:-/var/cache/kprof}/speedscope/node_modules/speedscope/dist/release}
	export KPROF_PPROF=${KPROF_PPROF:-${KPROF_CACHE:-/var/cache/kprof}/pprof/bin/pprof}
}

both() { # FORMAT SUFFIX
	local name
	for name in training hostile; do
		"$KPROF_READERS_PYTHON" "$READERS/check_stacks.py" "$1" "$name.$2" "$name.txt"
	done
}

need_speedscope() {
	[ -e "$KPROF_SPEEDSCOPE/index.html" ] || skip "no speedscope: scripts/setup check installs it where there is npm"
}

@test "the flame graph in a browser: every frame, search, zoom, keys, both schemes" {
	"$KPROF_READERS_PYTHON" "$READERS/check_flame.py" training.svg training.txt "$BATS_TEST_TMPDIR"
	[ -s "$BATS_TEST_TMPDIR/search.png" ]
}

@test "the flame graph of a part of the time, chosen by mouse" {
	local part_ns range
	part_ns=$(grep -o 'data-part-ns="[0-9]*"' training.svg | tr -dc 0-9)
	seconds() { awk -v ns="$(($1 * part_ns))" 'BEGIN { printf "%.9f", ns / 1e9 }'; }
	range=(--from "$(seconds 24)" --to "$(seconds 51)")
	"$KPROF" export training.kprof --interpreter "${range[@]}" -o part.folded
	"$KPROF" report training.kprof --by function "${range[@]}" --json >part.json
	"$KPROF_READERS_PYTHON" "$READERS/check_flame.py" training.svg training.txt "$BATS_TEST_TMPDIR" \
		24 50 part.folded "$(jq .samples.samples part.json)"
	# It notices another part.
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_flame.py" training.svg training.txt "$BATS_TEST_TMPDIR" \
		25 50 part.folded "$(jq .samples.samples part.json)"
}

@test "the flame graph of hostile names" {
	"$KPROF_READERS_PYTHON" "$READERS/check_flame.py" hostile.svg hostile.txt
}

@test "collapsed stacks, in speedscope too" {
	need_speedscope
	both folded folded
}

@test "speedscope's own format" {
	need_speedscope
	both speedscope speedscope.json
}

@test "a profile in Google's pprof" {
	need_speedscope
	[ -x "$KPROF_PPROF" ] || skip "no pprof: scripts/setup check installs it where there is a new enough Go"
	both pprof pb.gz
}

@test "samples and operators' stacks of a Chrome trace in Perfetto" {
	both chrome json
	"$PYTHON" "$LIB/validate_trace.py" training.json hostile.json
}

@test "each of them notices a file that says something else" {
	need_speedscope
	sed 's/^\(sample\t0\t\)[0-9]*/\12/' training.txt >other.txt
	"$BUILD/bench/gen_stacks" other.kprof <other.txt
	for suffix in folded speedscope.json json svg; do
		"$KPROF" export other.kprof -o "other.$suffix"
	done
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_stacks.py" folded other.folded training.txt
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_stacks.py" speedscope other.speedscope.json training.txt
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_stacks.py" chrome other.json training.txt
	run -1 "$KPROF_READERS_PYTHON" "$READERS/check_flame.py" other.svg training.txt
}

@test "no samples: an error with a way out, and no file" {
	printf 'process\t7\tx\tx\nthread\t7\t7\tx\n' | "$BUILD/bench/gen_stacks" none.kprof
	for suffix in folded speedscope.json pb.gz svg; do
		run -1 --separate-stderr "$KPROF" export none.kprof -o "none.$suffix"
		# shellcheck disable=SC2154 # run sets it
		[[ $stderr == *"none.kprof has no samples"* && $stderr == *"hint: "*"kprof sample"* ]]
		[ ! -e "none.$suffix" ]
	done
}

@test "%p: each process gets its own" {
	printf 'process\t%s\tx\tprogram\n' 7 8 9 >two.txt
	printf 'thread\t%s\t%s\tx%s\n' 7 7 7 8 8 8 >>two.txt
	printf 'sample\t%s\t%s\t10000000\t256\tN|/bin/x||1||%s||0\n' 0 3 first 1 5 second >>two.txt
	"$BUILD/bench/gen_stacks" two.kprof <two.txt
	"$KPROF" export two.kprof -o two-%p.folded
	[ "$(cat two-7.folded)" = "x7 (7);first 30000" ]
	[ "$(cat two-8.folded)" = "x8 (8);second 50000" ]
	[ ! -e two-9.folded ] # it has no samples
	"$KPROF" export two.kprof -o two.folded
	[ "$(cat two.folded)" = "x (7);x7 (7);first 30000
x (8);x8 (8);second 50000" ]
	"$KPROF" export two.kprof -p 8 -o two-%p.svg
	grep -q '5 samples; itself' two-8.svg
	run ! grep -q '>first' two-8.svg
}
