#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# What is made of a capture with a device in it: the trace by every rule of the validator, and the tables against it. The
# capture is of a training loop on a device that never was (tests/bench/gen_device.c), so this needs neither GPU nor root.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/nvidia.bash
source "$BATS_TEST_DIRNAME/lib/nvidia.bash"

setup() {
	harness_setup
	[ -x "$BUILD/bench/gen_device" ] || fail "the test programs are not built: make test-programs"
}

# made NAME ARGUMENT…: a capture, its trace and its table of operators, checked against each other
made() {
	local name=$dir/$1
	shift
	"$BUILD/bench/gen_device" "$@" "$name.kprof"
	"$KPROF" export "$name.kprof" -o "$name.json"
	"$KPROF" report --json "$name.kprof" >"$name.op.json"
	"$PYTHON" "$LIB/validate_trace.py" --report "$name.op.json" "$name.json"
}

# table NAME WHAT: its rows as JSON
table() {
	"$KPROF" report "$dir/$1.kprof" --by "$2" --json
}

@test "a device's rows, arrows and counts" {
	made one 3000
	[ "$(jq '.kprof.correlation | .linked == .activities and .before_launch == 0' "$dir/one.json")" = true ]
	[ "$(jq '.deviceProperties[0].name' "$dir/one.json")" = '"Imagined A100"' ]
}

@test "many streams, several processes in one file and in files of their own" {
	made many -s 16 3000
	made three -p 3 -s 2 3000
	[ "$(jq '[.traceEvents[] | select(.cat == "kernel") | .pid] | unique | length' "$dir/three.json")" = 3 ]
	"$KPROF" export "$dir/three.kprof" -o "$dir/each-%p.json"
	for each in "$dir"/each-*.json; do
		"$PYTHON" "$LIB/validate_trace.py" "$each"
		[ "$(jq -c '[.traceEvents[] | select(.cat == "kernel") | .pid] | unique' "$each")" = '[0]' ]
	done
	[ "$(find "$dir" -name 'each-*' | wc -l)" = 3 ]
}

@test "a kernel's occupancy is what NVIDIA's own calculator says, on every device that it knows" {
	local header found=
	need_nvidia
	while read -r header; do
		echo "$header"
		# A C header, of which nearly nothing is used.
		gcc -std=gnu11 -O1 -w -o "$dir/occupancy" -isystem "${header%/*}" -I"$ROOT/user" -I"$ROOT/include" \
			"$LIB/cuda_occupancy.c" "$ROOT/user/sink/trace/occupancy.c" -lcjson
		"$dir/occupancy"
		found+=" $header"
	done < <(nvidia_first cuda_occupancy.h)
	[ -n "$found" ] || fail "no header in $(nvidia_wheels)"
}

# peak ARGUMENT…: the most memory that kprof had, in MB
peak() {
	"$PYTHON" -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)' "$KPROF" "$@"
}

@test "the memory for a device's activities does not grow with their number" {
	"$BUILD/bench/gen_device" 200000 "$dir/some.kprof"
	"$BUILD/bench/gen_device" 700000 "$dir/many.kprof"
	local some many idle
	some=$(peak export -o - "$dir/some.kprof")
	many=$(peak export -o - "$dir/many.kprof")
	idle=$(peak report --by idle "$dir/many.kprof")
	# They would take 58 MB more. Each step has a name of its own, which is kept.
	[ "$many" -lt $((some + 25)) ] || fail "$some MB, then $many MB"
	[ "$idle" -lt 60 ] || fail "$idle MB"
}

@test "report --by kernel, api, memcpy: what the trace says, by name" {
	local cats
	made one 3000
	for by in kernel api memcpy; do
		case $by in
		kernel) cats='kernel gpu_memcpy gpu_memset' ;;
		api) cats=cuda_runtime ;;
		memcpy) cats='gpu_memcpy gpu_memset' ;;
		esac
		jq --arg cats "$cats" '[.traceEvents[] | select(.ph == "X" and (.cat as $c | $cats | split(" ") | index($c)))]
			| group_by(.name) | map({name: .[0].name, calls: length,
			total_ns: (map(.dur) | add * 1000 | round)}) | sort_by(.name)' "$dir/one.json" >"$dir/trace.json"
		table one "$by" | jq '[.rows[] | {name, calls, total_ns}] | sort_by(.name)' >"$dir/table.json"
		diff -u "$dir/trace.json" "$dir/table.json"
	done
	[ "$(table one memcpy | jq '[.rows[] | .gb_per_s > 11 and .gb_per_s < 12] | all')" = true ]
}

@test "report --by flops: without inputs, too, all that devices worked for, each in one row" {
	made one 3000
	[ "$(table one flops | jq '[.rows[].device_ns] | add')" = "$(table one kernel | jq '[.rows[].total_ns] | add')" ]
	[ "$(table one flops | jq '[.rows[] | .flops == null and .where == "device"] | all')" = true ]
	run "$KPROF" report "$dir/one.kprof" --by flops
	[[ $output == *"No operations are known: kprof attach --flops"* ]] || fail "$output"
}

@test "report --by stream and idle: busy and idle are the window, and every gap has a reason" {
	local idle
	made one 3000
	[ "$(table one stream | jq '.window_ns as $w | [.rows[] | .busy_ns + .idle_ns == $w] | all')" = true ]
	idle=$(table one stream | jq '.rows[] | select(.stream == null) | .idle_ns')
	[ "$(table one idle | jq '[.rows[].total_ns] | add')" = "$idle" ]
	# The loop waits for the device once a step, and for nothing else that long.
	[ "$(table one idle | jq -r '.rows[0] | "\(.category) \(.name)"')" = "sync-bound cudaDeviceSynchronize" ]
	[ "$(table one idle | jq '.rows[0].calls')" = "$(table one api | jq '.rows[] | select(.name == "cudaDeviceSynchronize") | .calls')" ]
}

@test "the tables for people" {
	made one 1000
	for by in kernel api stream memcpy idle; do
		run --separate-stderr -0 "$KPROF" report "$dir/one.kprof" --by "$by"
		[ -z "$stderr" ]
		[[ $output == *"ecorded: "* ]]
		[ "${#lines[@]}" -gt 5 ]
	done
	[[ $output == *"launch latency"*"Idle in all: "* ]]
}

# kprof's first recording on that machine: it had seen the ends of 0.7 % of all calls.
@test "a capture of a real GPU: each activity has its call, and each kernel the operator that torch.profiler has" {
	local golden=$ROOT/tests/golden/h100
	"$KPROF" export "$golden/train.kprof" -o "$dir/h100.json"
	"$KPROF" report --json "$golden/train.kprof" > "$dir/h100.op.json"
	"$PYTHON" "$LIB/validate_trace.py" --report "$dir/h100.op.json" "$dir/h100.json"
	[ "$(jq '.deviceProperties[0].name' "$dir/h100.json")" = '"NVIDIA H100 80GB HBM3"' ]
	[ "$(jq '.kprof.exact_end_share < 0.01 and .kprof.correlation.before_launch == 0' "$dir/h100.json")" = true ]
	# 22 kernels of nll_loss_backward seem to be of the fill_ before them.
	"$PYTHON" "$LIB/check_by_operator.py" "$dir/h100.json" "$golden/train.by-operator.tsv" 22
}
