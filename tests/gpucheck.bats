#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,long
# scripts/gpu-check, as far as a machine without a GPU can try it: on the simulated CUDA.

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	own_targets
	[ -x "$BUILD/sim/13/gpuops" ] || fail "the test programs are not built: make test-programs"
}

teardown() {
	harness_teardown
}

# check REPORT OPTION…: on the simulated device; its exit status is in $status
check() {
	local report=$dir/$1
	shift
	run "$ROOT/scripts/gpu-check" --simulated --build "$BUILD" -o "$report" "$@"
}

@test "gpu-check: holds on the simulated device, and says that it was one" {
	# The other parts are below, where they fail.
	check report.md --only simulated,attaches,launches,deaths,synchronizations,metrics
	[ "$status" = 0 ] || fail "$output" "$(cat "$dir/report.md")"
	grep -q 'SIMULATED DEVICE: this says nothing about a real GPU' "$dir/report.md"
	[ "$(grep -c '^- PASS' "$dir/report.md")" -ge 40 ]
	run ! grep -qE 'FAIL|left out|skipped' "$dir/report.md"
}

@test "gpu-check: what is lost fails it" {
	KPROF_SIM_CUPTI_DROP=7 check drops.md --only cuda_program,threads
	[ "$status" = 1 ]
	for what in "attach: the program's results are right" '100 threads: of [0-9]* kernels, copies and sets'; do
		grep -q "PASS:.*$what" "$dir/drops.md" || fail "$(cat "$dir/drops.md")"
	done
	for what in 'program, attach: nothing dropped' 'attach: kernels' 'attach: copies' 'run: .* launches of a graph' '100 threads: kernels'; do
		grep -q "FAIL:.*$what" "$dir/drops.md" || fail "no failure of $what" "$(cat "$dir/drops.md")"
	done
	# Of a buffer's records of calls, those after the first cannot be read.
	KPROF_SIM_CUPTI_BAD_RECORD=4 check names.md --only names_of_calls
	[ "$status" = 1 ]
	grep -q 'FAIL:.*functions; .*cuLaunchKernel: 80, not [0-9]' "$dir/names.md" || fail "$(cat "$dir/names.md")"
}

@test "gpu-check: the agent without BPF: every answer of CUPTI's, records by kind and size, the clock" {
	KPROF_SIM_CUPTI_DROP=7 KPROF_SIM_CUPTI_TAKEN_OVER=2 check drops.md --only agent_alone
	[ "$status" = 1 ]
	grep -qE 'FAIL:.*injection: 160 kernels, CUPTI has records of [0-9]+$' "$dir/drops.md" || fail "$(cat "$dir/drops.md")"
	grep -q 'FAIL:.*dlopen: nothing lost' "$dir/drops.md"
	grep -q "FAIL:.*dlopen: CUPTI's clock is one that the agent knows; .*'other'" "$dir/drops.md"
	grep -q 'FAIL:.*dlopen: the agent records, to the end; reason 4 another tool' "$dir/drops.md"
	KPROF_SIM_CUPTI_DENIED=1 check denied.md --only agent_alone
	[ "$status" = 1 ]
	grep -q 'FAIL:.*dlopen: the agent records, to the end; reason 5' "$dir/denied.md"
	grep -q '^  cuptiActivityEnable(1): .* failed, the last with 35 .*PRIVILEGES' "$dir/denied.md"
	# What fails while CUDA starts, and works later, is told, and is no failure. Nor is a clock that the agent copes with.
	KPROF_SIM_CUPTI_LATE_START=100 KPROF_SIM_CUPTI_CLOCK_LOST=2 check late.md --only agent_alone
	[ "$status" = 0 ] || fail "$(cat "$dir/late.md")"
	grep -q '^  cuptiSubscribe(): .* failed, the last with 15 ' "$dir/late.md"
	grep -qE '^  kind 10, [0-9]+ bytes: 160$' "$dir/late.md"
	grep -q 'dlopen: .*CUPTI has changed its clock' "$dir/late.md"
	# The agent's thread sees what it is to do before cuInit() goes on, and waits for it.
	LD_PRELOAD="$BUILD/gpucheck/late_return.so" KPROF_SIM_CUPTI_LATE_START=100 check first.md --only agent_alone
	[ "$status" = 0 ] || fail "$(cat "$dir/first.md")"
}

@test "gpu-check: where kprof cannot attach, the agent is tried all the same" {
	mkdir "$dir/built"
	ln -s "$BUILD"/{sim,gpucheck,libkprof_agent.so} "$dir/built/"
	printf '#!/bin/sh\necho no BPF here\nexit 3\n' >"$dir/built/kprof"
	chmod +x "$dir/built/kprof"
	run "$ROOT/scripts/gpu-check" --simulated --build "$dir/built" -o "$dir/report.md"
	[ "$status" = 3 ]
	grep -q 'FAIL:.*kprof check' "$dir/report.md"
	grep -q 'PASS: injection: the agent records' "$dir/report.md"
	grep -q "left out, since kprof can't attach: cuda_program" "$dir/report.md"
}

@test "gpu-check: cut short, it leaves what it has found; out of time, it says what is left out" {
	"$ROOT/scripts/gpu-check" --simulated --only simulated --keep "$dir/kept" --build "$BUILD" -o "$dir/cut.md" >"$dir/cut.out" 2>&1 &
	wait_for "$PATIENCE" "the first results" grep -qs '^- PASS: training loop' "$dir/cut.md"
	kill -KILL $!
	wait $! || true
	grep -q 'cut short' "$dir/cut.md"
	grep -q '^Agent: state recorded, cupti_version [0-9]' "$dir/cut.md"
	check none.md --budget 0
	[ "$status" = 0 ] || fail "$output"
	grep -q '^- left out, for want of time (--budget 0): simulated' "$dir/none.md"
	run ! grep -q 'cut short' "$dir/none.md"
	check wrong.md --only simulted
	[ "$status" = 2 ]
	[[ $output == *"no part is called simulted"*"hint: "*simulated* ]]
}

@test "gpu-check: without a GPU it says so, and fails" {
	[ ! -e /proc/driver/nvidia/version ] || skip "there is a GPU here"
	run "$ROOT/scripts/gpu-check" --build "$BUILD" --repeats 1 --python "$PYTHON" --only pytorch,cuda_program,overhead -o "$dir/none.md"
	[ "$status" = 1 ]
	grep -q 'FAIL:.*cuda_program' "$dir/none.md"
	grep -q '^- skipped: .*no PyTorch that can use a GPU' "$dir/none.md"
}

@test "gpu-check: what is packed finds its own libraries, wherever it lies" {
	# What is not needed isn't read: the fuzzers, which may run beside this, write to the build folder too.
	mkdir "$dir/build"
	ln -s "$BUILD"/* "$BUILD"/.tools "$dir/build"
	ln -s gone "$dir/build/replaced"
	"$ROOT/scripts/gpu-check" --pack "$dir/packed" --build "$dir/build" >"$dir/pack.out"
	mv "$dir/packed" "$dir/elsewhere"
	[ "$("$dir/elsewhere/kprof" --version)" = "$("$KPROF" --version)" ]
	ldd "$dir/elsewhere/kprof" >"$dir/ldd"
	# All but the C library.
	run ! grep -vE "$dir/elsewhere/lib|lib[cm]\.so|ld-linux|linux-vdso" "$dir/ldd"
	"$dir/elsewhere/scripts/gpu-check" --help >/dev/null
	# Its programs are there: without a device they say what they lack.
	[ ! -e /proc/driver/nvidia/version ] || return 0
	KPROF_CUPTI_PATH=$dir/none run "$dir/elsewhere/scripts/gpu-check" --only agent_alone,cuda_program -o "$dir/packed.md"
	[ "$status" = 1 ]
	[ "$(grep -c 'FAIL:.* ended: gpucheck: libcuda.so.1: cannot open' "$dir/packed.md")" = 3 ] || fail "$(cat "$dir/packed.md")"
	# What PyTorch does on the CPU it holds against torch.profiler there, too, with the judges that were packed.
	needs_torch
	run "$dir/elsewhere/scripts/gpu-check" --only details,observer --device cpu --python "$(newest_python)" -o "$dir/cpu.md"
	[ "$status" = 0 ] || fail "$output" "$(cat "$dir/cpu.md")"
	grep -q 'In part on the CPU' "$dir/cpu.md"
	run ! grep -qE 'On a real GPU|FAIL|left out|cut short|skipped' "$dir/cpu.md"
	for what in inputs 'sequence numbers and arrows' 'allocations and frees' '10 modules' '--steps 3: 3 steps' 'calls, and who called whom'; do
		grep -qe "PASS:.*$what" "$dir/cpu.md" || fail "no $what" "$(cat "$dir/cpu.md")"
	done
}

# A kprof that forgets what it was asked for, and records a step more.
@test "gpu-check: what operators do not say, modules that are not there, other operators and steps fail it" {
	needs_torch
	mkdir "$dir/built"
	cat >"$dir/built/kprof" <<-END
		#!/usr/bin/env bash
		words=()
		for word; do
			case "\$before \$word" in
			*--shapes | *--flow | *--memory | *--modules | *--observer) ;;
			*page-faults) words+=(context-switches) ;;
			"--steps "*) words+=(4) ;;
			*) words+=("\$word") ;;
			esac
			before=\$word
		done
		exec "$KPROF" "\${words[@]}"
	END
	chmod +x "$dir/built/kprof"
	run "$ROOT/scripts/gpu-check" --build "$dir/built" --only details,observer --device cpu --python "$(newest_python)" -o "$dir/less.md"
	[ "$status" = 1 ]
	for what in 'details: inputs, by' 'details: sequence numbers' 'details: allocations' 'details: 10 modules' 'report --by module' \
		'details: of [1-9][0-9]* operators 0 have their page-faults' 'autograd nodes' '--steps 3: 4 steps' \
		'observer: calls, and who' 'observer: 0 calls observed'; do
		grep -qe "FAIL:.*$what" "$dir/less.md" || fail "no failure of $what" "$(cat "$dir/less.md")"
	done
}

# allocations NAME TOTAL: one device row in kprof's trace of NAME with that total, none without one, and in torch.profiler's with 4096
allocations() {
	"$PYTHON" - "$dir/$1" "${2:-}" <<-'END'
		import json, sys
		path, total = sys.argv[1:]
		marks = [(f"kprof test: window {what}", at) for what, at in (("begin", 1000), ("end", 90000))]
		cpu = [(2000 + i, 7 + i // 2, 64 if i % 2 == 0 else -64) for i in range(60)]
		keys = "Device Type", "Device Id", "Addr", "Bytes", "Total Allocated", "Total Reserved"
		rows = [{"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 1, "args": {}} for name, at in marks]
		said = [(at, (0, -1, addr, size, 0, 0)) for at, addr, size in cpu] + ([(3000, (1, 0, 99, 512, int(total), 1 << 21))] if total else [])
		rows += [{"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": at, "args": dict(zip(keys, args))} for at, args in said]
		with open(path + ".trace.json", "w") as f:
		    json.dump({"traceEvents": rows}, f)
		row = {"index": None, "allocated": 5, "reserved": 0, "device": "cpu"}
		memory = [{**row, "start_ns": at * 1000, "addr": addr, "bytes": size} for at, addr, size in cpu]
		memory.append({"start_ns": 3000000, "device": "cuda", "index": 0, "addr": 99, "bytes": 512, "allocated": 4096, "reserved": 1 << 21})
		events = [{"name": n, "scope": "USER_SCOPE", "start_ns": at * 1000, "dur_ns": 1000, "thread": 1, "parent": -1} for n, at in marks]
		with open(path + ".torch.tree.json", "w") as f:
		    json.dump({"pid": 1, "events": events, "memory": memory}, f)
	END
	run "$PYTHON" "$LIB/compare_allocations.py" "$dir/$1.trace.json" "$dir/$1.torch.json"
}

@test "gpu-check: a device's memory that is not recorded, or counted otherwise, is told" {
	allocations same 4096
	[ "$status" = 0 ] || fail "$output"
	allocations none
	[ "$status" = 1 ]
	[[ $output == *"DIFFERS devices: kprof has 0 rows, torch.profiler 1"* ]] || fail "$output"
	allocations other 8192
	[ "$status" = 1 ]
	[[ $output == *"DIFFERS devices: number 0: "*"'Total Allocated': 8192"* ]] || fail "$output"
}
