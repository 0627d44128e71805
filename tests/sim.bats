#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# The simulated CUDA itself: what its CUPTI hands out is what it says truly happened, and its interface is NVIDIA's.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/nvidia.bash
source "$BATS_TEST_DIRNAME/lib/nvidia.bash"

majors=(12 13)

setup() {
	dir=$BATS_TEST_TMPDIR
	[ -x "$BUILD/sim/13/cudadriver" ] || fail "the simulated CUDA is not built: make sim"
}

# simulated MAJOR NAME COMMAND…: with a truth file; $dir/NAME.json
simulated() {
	local major=$1 name=$2
	shift 2
	KPROF_SIM_TRUTH=$dir/truth "$BUILD/sim/$major/$1" "${@:2}" --now >"$dir/$name.json"
}

pid_of() {
	jq .pid "$dir/$1.json"
}

# lines NAME FILTER: how many lines of its truth are so
lines() {
	tr -d '\0' <"$dir/truth.$(pid_of "$1").jsonl" | jq -c "select($2)" | wc -l
}

# compared NAME: what the client of CUPTI saw is what happened
compared() {
	"$PYTHON" "$LIB/truth.py" "$dir/truth" "$(pid_of "$1")" "$dir/$1.records" --dropped "$(jq .dropped "$dir/$1.json")"
}

client() { # NAME [VARIABLE=VALUE…]
	local name=$1
	shift
	env "$@" KPROF_SIM_DEVICES=2 KPROF_SIM_TRUTH="$dir/truth" "$BUILD/sim/13/cudadriver" cupti --n 20 --now \
		--records "$dir/$name.records" >"$dir/$name.json"
}

@test "every record of CUPTI is what happened, and all that happened is recorded, of both versions" {
	local major
	for major in "${majors[@]}"; do
		KPROF_SIM_DEVICES=2 simulated "$major" "v$major" cudadriver cupti --n 20 --records "$dir/v$major.records"
		compared "v$major"
		[ "$(jq .dropped "$dir/v$major.json")" = 0 ]
	done
	[ "$(jq .cupti_version "$dir/v12.json")" = 18 ]
	[ "$(jq .cupti_version "$dir/v13.json")" = 130202 ]
}

@test "… with the records of other releases" {
	local version
	for version in 17 22 24 26 130000; do
		client "v$version" KPROF_SIM_CUPTI_VERSION=$version
		compared "v$version"
	done
}

@test "… out of order, in small buffers, late" {
	client disorder KPROF_SIM_CUPTI_SHUFFLE=7 KPROF_SIM_CUPTI_BUFFER_RECORDS=50 KPROF_SIM_CUPTI_LATE_NS=3000000
	compared disorder
	[ "$(jq .buffers "$dir/disorder.json")" -gt 50 ]
	# in disorder indeed
	[ "$(jq -s '[.[] | select(.t == "kernel").start] | . == sort' "$dir/disorder.records")" = false ]
}

@test "… and what is dropped is counted" {
	client drops KPROF_SIM_CUPTI_DROP=10
	compared drops
	[ "$(jq .dropped "$dir/drops.json")" -gt 50 ]
}

@test "… with correlation ids that begin anew, and with ids of their own for nested calls" {
	client wraps KPROF_SIM_CORRELATION=4294967000
	compared wraps
	[ "$(lines wraps '.corr > 4294966999')" -gt 0 ]
	[ "$(lines wraps '.t == "kernel" and .corr < 4294966999')" -gt 0 ]
	client own KPROF_SIM_OWN_CORRELATION=1
	compared own
}

@test "the comparison sees a difference: a device whose times are wrong" {
	client skew KPROF_SIM_CUPTI_SKEW_NS=2000
	! compared skew >"$dir/skew.out" || false
	grep -q 'no record of' "$dir/skew.out"
}

@test "how CUPTI refuses" {
	local knob
	for knob in CUPTI_BUSY:39 CUPTI_DENIED:35 NO_DEVICE:15; do
		! client refused "KPROF_SIM_${knob%:*}=1" 2>"$dir/refused.err" || false
		grep -q ": ${knob#*:} " "$dir/refused.err"
	done
	! client refused KPROF_SIM_DRIVER_VERSION=12040 2>"$dir/refused.err" || false
	grep -q ': 15 ' "$dir/refused.err"
}

@test "programs get what they should: every mode, both majors" {
	local major mode
	for major in "${majors[@]}"; do
		for mode in loop nosync graph copies errors threads ptsz idle alloc api driver events fork; do
			KPROF_SIM_DEVICES=2 simulated "$major" "$mode" cudadriver "$mode" --n 10
			[ "$(jq .ok "$dir/$mode.json")" = true ]
			"$PYTHON" "$LIB/check_truth.py" "$dir/truth" "$(pid_of "$mode")"
		done
	done
}

@test "the calls that a program counts are those of the truth" {
	local name
	simulated 13 here cudadriver copies --n 30
	for name in $(jq -r '.calls | keys[]' "$dir/here.json"); do
		[ "$(lines here ".t == \"api\" and .name == \"$name\"")" = "$(jq ".calls.$name" "$dir/here.json")" ]
	done
	[ "$(lines here '.t == "copy"')" = 150 ]
	[ "$(lines here '.t == "set"')" = 60 ]
}

@test "two runs do the same" {
	simulated 13 one cudadriver graph --n 20
	simulated 13 two cudadriver graph --n 20
	diff <(jq -S 'del(.pid)' "$dir/one.json") <(jq -S 'del(.pid)' "$dir/two.json")
	# what ran, how long, launched by which call; which of a graph's two branches is the first to end is left to the day
	ran() {
		jq -s -c 'map(select(.t == "kernel")) | sort_by(.corr, .node)[] | [.corr, .name, .end - .start, .stream, .node]' \
			"$dir/truth.$(pid_of "$1").jsonl"
	}
	[ "$(ran one | wc -l)" = 40 ]
	diff <(ran one) <(ran two)
}

@test "the truth of a process that was killed is what had happened" {
	KPROF_SIM_TRUTH=$dir/truth "$BUILD/sim/13/cudadriver" kill --now --n 300 --kernel-ns 10000000 >"$dir/killed.json" || true
	[ "$(lines killed '.t == "api" and .name == "cudaLaunchKernel"')" = 300 ]
	[ "$(lines killed '.t == "kernel"')" -gt 0 ]
	[ "$(lines killed '.t == "kernel"')" -lt 300 ]
	[ "$(lines killed '.t == "exit"')" = 0 ]
}

@test "children have devices of their own, but not of their parent's" {
	local child
	simulated 13 family cudadriver children --n 5 --children 2
	for child in $(jq '.children[]' "$dir/family.json"); do
		[ "$(jq -c 'select(.t == "kernel")' "$dir/truth.$child.jsonl" | wc -l)" = 15 ]
	done
	simulated 13 forked cudadriver fork --n 5 --children 1
	child=$(jq '.children[0]' "$dir/forked.json")
	[ "$(jq 'select(.t == "api" and .name == "cudaMalloc").result' "$dir/truth.$child.jsonl")" = 3 ]
}

@test "opened late, and linked statically" {
	echo go | "$BUILD/sim/13/cudadriver-dl" "$BUILD/sim/13/libcudadriver.so" loop --n 10 | grep '"ok": true'
	"$BUILD/sim/12/cudadriver-static" loop --n 10 --now | grep '"ok": true'
	! ldd "$BUILD/sim/12/cudadriver-static" | grep cudart || false
}

@test "what CUDA_INJECTION64_PATH names is loaded" {
	cat >"$dir/tool.c" <<-'C'
		#include <stdio.h>
		int InitializeInjection(void);
		int InitializeInjection(void) { fputs("injected\n", stderr); return 1; }
	C
	gcc -shared -fPIC -o "$dir/tool.so" "$dir/tool.c"
	CUDA_INJECTION64_PATH=$dir/tool.so simulated 13 here cudadriver loop --n 4 2>"$dir/here.err"
	[ "$(cat "$dir/here.err")" = injected ]
	[ "$(lines here '.t == "injection" and .loaded')" = 1 ]
}

@test "operators that launch kernels" {
	simulated 13 ops gpuops --n 40
	[ "$(jq .ok "$dir/ops.json")" = true ]
	[ "$(lines ops '.t == "kernel" and .name == "_Z9mm_kernelPfm"')" = 80 ]
}

# ---- against NVIDIA's files, where scripts/setup has brought some ----

@test "layouts and numbers are those of the real headers" {
	local major include found=
	need_nvidia
	mkdir -p "$dir/shim/crt"
	# What the wheels leave out, and the compiler proper needs none of.
	printf '#define %s\n' __host__ __device__ __global__ __device_builtin__ __cudart_builtin__ CUDARTAPI CUDARTAPI_CDECL \
		CUDAAPI_INLINE '__builtin_align__(n)' '__align__(n)' '__CUDA_ARCH_HAS_FEATURE__(f)' __device_builtin_texture_type__ \
		__device_builtin_surface_type__ >"$dir/shim/crt/host_defines.h"
	for major in "${majors[@]}"; do
		include=$(nvidia_wheels | while read -r w; do
			[ "$major" = 13 ] && ls -d "$w/cu13/include" 2>/dev/null
			[ "$major" = 12 ] && [ -e "$w/cuda_cupti/include/cupti.h" ] &&
				grep -q 'define CUDART_VERSION *12' "$w/cuda_runtime/include/cuda_runtime_api.h" &&
				echo "$w/cuda_cupti/include:$w/cuda_runtime/include"
		done | head -n 1)
		[ -n "$include" ] || continue
		CPATH=$include:$dir/shim gcc -c -o /dev/null -DSIM_MAJOR="$major" -iquote "$ROOT/tests/sim" "$ROOT/tests/sim/abi_check.c"
		found+=" $major"
	done
	[ -n "$found" ] || fail "no headers in $(nvidia_wheels)"
	echo "checked: $found"
}

@test "symbols and their versions are those of the real libraries" {
	local major name real found=
	need_nvidia
	for major in "${majors[@]}"; do
		for name in libcudart libcupti; do
			real=$(nvidia_first "$name.so.$major" | tail -n 1)
			[ -n "$real" ] || continue
			diff /dev/null <(comm -23 <(nm -D --defined-only "$BUILD/sim/$major/$name.so.$major" | awk '{ print $3 }' | sort) \
				<(nm -D --defined-only "$real" | awk '{ print $3 }' | sort))
			[ "$(objdump -p "$BUILD/sim/$major/$name.so.$major" | grep SONAME)" = "$(objdump -p "$real" | grep SONAME)" ]
			found+=" $name.so.$major"
		done
	done
	real=$(nvidia_first cuda.h | tail -n 1)
	if [ -n "$real" ]; then
		# Of libcuda there is no file here, but a header: names without what its macros add to them.
		diff /dev/null <(nm -D --defined-only "$BUILD/sim/13/libcuda.so.1" | awk '{ print $3 }' | sed -E 's/_pt[sd][sz]$//' |
			while read -r symbol; do grep -qwE "$symbol|${symbol%_v2}" "$real" || echo "$symbol"; done)
		found+=" cuda.h"
	fi
	[ -n "$found" ] || fail "no libraries in $(nvidia_wheels)"
	echo "checked: $found"
}
