#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,long
# kprof sample against programs that know their own stacks: every sample of a phase is what the program says of itself, frame by
# frame (tests/stacks). And the target comes first, whatever happens to either. How many samples there are is in shares.bats.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/stacks.bash
source "$BATS_TEST_DIRNAME/lib/stacks.bash"

setup() {
	stacks_setup
}

teardown() {
	harness_teardown
}

# Interpreters, one a line.
cpythons() {
	local p
	for p in /usr/bin/python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
		[ -x "$p" ] && "$p" -c 'import sys; sys.exit(not (3, 8) <= sys.version_info < (3, 15))' && echo "$p"
	done
	return 0
}

# sampled HZ NAME…: targets that are READY, in one recording, one after the other; $dir/NAME.json, $dir/all.kprof
sampled() {
	local hz=$1 name pids=
	shift
	for name in "$@"; do pids+=,${pid[$name]}; done
	kprof_start kprof sample -p "${pids#,}" -F "$hz" -o "$dir/all.kprof" || return 1
	for name in "$@"; do
		target_go "$name" && target_result "$name" || return 1
	done
	kprof_stop kprof || return 1
	for name in "$@"; do
		target_end "$name" || return 1
	done
}

# one NAME CHECK…: of the recording
one() {
	local name=$1
	shift
	echo "-- $name"
	"$PYTHON" "$CHECKS/$1" "${@:2}" "$dir/all.kprof" "$dir/$name.json"
}

# native NAME…: these programs' stacks
native() {
	local program names=() bad=0 how
	for program in "$@"; do
		names+=("${program//\//-}")
		target_start "${names[-1]}" "$STACKS/$program" --cpu-ms 15 || return 1
	done
	sampled 997 "${names[@]}" || return 1
	for program in "${names[@]}"; do
		how=()
		case $program in
		*debugframe) how=(--shadow-only) ;;
		*musl*static) how=(--open-root --thread-root) ;;
		*musl*) how=(--open-root) ;;
		*stripped | known-*) how=(--no-names) ;;
		made-*) how=(--made) ;;
		esac
		one "$program" check_native.py --hz 997 "${how[@]}" || bad=1
	done
	return "$bad"
}

@test "C by gcc: recursion, alloca, realigned stacks, tail calls, signals, system calls, vDSO" {
	cd "$STACKS" && native native/gcc-*
}

@test "C by clang" {
	cd "$STACKS" && native native/clang-*
}

@test "C on musl" {
	cd "$STACKS" && native native/musl-*
}

@test "C++: exceptions on their way, caught, and destructors meanwhile" {
	cd "$STACKS" && native throws/*
}

@test "JIT code that keeps no frame pointer, and other code in its place" {
	cd "$STACKS" && native made/*
}

@test "Rust and Go" {
	cd "$STACKS" || return 1
	[ -x known-rust ] || [ -x known-go ] || skip "neither compiler is here"
	native known-*
}

@test "Python: function, file and line of every frame, shares of time, the GIL, on every CPython" {
	local python names=() name bad=0
	while read -r python; do
		name=$("$python" -c 'import sys; print("py%d.%d.%d" % sys.version_info[:3])')
		[[ " ${names[*]} " != *" $name "* ]] || continue
		names+=("$name")
		target_start "$name" "$python" "$CHECKS/known.py" --cpu-ms 40 || return 1
	done < <(cpythons)
	sampled 499 "${names[@]}" || return 1
	for name in "${names[@]}"; do
		one "$name" check_python.py --hz 499 || bad=1
		thread_names "$name" || bad=1
	done
	[ "$bad" = 0 ]
}

# thread_names NAME: of all threads that had a phase, what report calls them is what threading does
thread_names() {
	"$KPROF" report --by thread --limit 0 --json "$dir/all.kprof" >"$dir/by-thread.json" || return 1
	tail -n 1 "$dir/$1.json" | jq -e --slurpfile report "$dir/by-thread.json" -f "$LIB/thread_names.jq"
}

# gil_sampled OPTION…: samples of either thread, "holder released"
gil_sampled() {
	target_start gil "$PYTHON" "$WORKLOADS/gil_threads.py" --cpu-ms 600
	kprof_start kprof sample -p "${pid[gil]}" -F 499 "$@" -o "$dir/gil.kprof"
	target_go gil && target_result gil && kprof_stop kprof && target_end gil || return 1
	"$KPROF" report --by thread --limit 0 --json "$dir/gil.kprof" >"$dir/gil-report.json" || return 1
	jq -r '[.rows[] | {key: (.name | split(" ")[1]), value: .samples}] | from_entries | "\(.holder // 0) \(.released // 0)"' \
		"$dir/gil-report.json"
}

@test "sample --gil: only of who holds the interpreter's lock; how many others there were is said" {
	local holder released all
	read -r holder released < <(gil_sampled)
	echo "all: $holder $released"
	all=$released
	[ "$holder" -gt 60 ] && [ "$released" -gt 60 ]
	read -r holder released < <(gil_sampled --gil)
	echo "--gil: $holder $released"
	[ "$holder" -gt 60 ] && [ "$released" -lt $((all / 5)) ]
	jq -e '[.rows[] | select(.samples > 0) | .gil_ns == .total_ns] | all' "$dir/gil-report.json"
	"$KPROF" export "$dir/gil.kprof" -o "$dir/gil.json"
	jq -e '.kprof.meta.stacks | .without_gil > 60' "$dir/gil.json"
}

# ---- where things do not stay as they are -------------------------------------------------------------

# in_function FUNCTION: some sample of the recording is in it, whole
in_function() {
	"$STACKS/stackdump" "$dir/all.kprof" | jq -se --arg f "$1" \
		'[.[] | select(.end == 1) | .frames[] | select(.function == $f)] | length > 0' >/dev/null
}

@test "a program that has ended, and whose file is gone, still has names" {
	cp "$STACKS/native/gcc-O2-omit" "$dir/gone"
	target_start gone "$dir/gone" --cpu-ms 20
	kprof_start kprof sample -p "${pid[gone]}" -F 499 -o "$dir/all.kprof"
	rm "$dir/gone"
	target_go gone && target_result gone && target_end gone
	kprof_stop kprof
	in_function many_leaves
}

@test "a file that is gone before the recording, and one in a memfd" {
	cp "$STACKS/native/gcc-O2-omit" "$dir/gone"
	target_start gone "$dir/gone" --cpu-ms 20
	rm "$dir/gone"
	sampled 499 gone
	in_function many_leaves
	target_start memfd "$PYTHON" "$WORKLOADS/exec_memfd.py" "$STACKS/native/gcc-O2-omit"
	sampled 499 memfd
	in_function many_leaves
}

@test "a program that only its own mount namespace has" {
	mkdir "$dir/mnt"
	# shellcheck disable=SC2016 # the inner shell's
	target_start inside "${own_mounts[@]}" sh -c \
		'mount -t tmpfs none "$1" && cp "$2" "$1/program" && exec "$1/program" --cpu-ms 20' sh "$dir/mnt" \
		"$STACKS/native/gcc-O2-omit"
	[ ! -e "$dir/mnt/program" ]
	sampled 499 inside
	in_function many_leaves
}

@test "names that only the debug file has, of a container that has ended" {
	local inside
	mkdir "$dir/mnt"
	objcopy --only-keep-debug "$STACKS/native/gcc-O2-static" "$dir/program.debug"
	objcopy --strip-all --add-gnu-debuglink="$dir/program.debug" "$STACKS/native/gcc-O2-static" "$dir/program"
	# shellcheck disable=SC2016 # the inner shell's
	target_start inside "${own_mounts[@]}" sh -c \
		'mount -t tmpfs none "$1/mnt" && mv "$1/program" "$1/mnt" && exec chroot "$1/mnt" /program --cpu-ms 20' sh "$dir"
	# Beside the program, by the path that others see: of a root that is not its namespace's first mount it is a longer one.
	inside=$(awk '$6 ~ /program$/ { print $6; exit }' "/proc/${pid[inside]}/maps")
	mkdir -p "/proc/${pid[inside]}/root${inside%/*}/.debug"
	mv "$dir/program.debug" "/proc/${pid[inside]}/root${inside%/*}/.debug"
	kprof_start kprof sample -p "${pid[inside]}" -F 499 -o "$dir/all.kprof"
	target_go inside && target_result inside && target_end inside
	kprof_stop kprof
	in_function many_leaves
}

@test "a command, from its start to its end" {
	echo go >"$dir/go"
	"$KPROF" sample -F 499 -o "$dir/all.kprof" -- "$STACKS/native/gcc-O2-omit" --cpu-ms 60 <"$dir/go" >"$dir/command.out" \
		2>"$dir/command.err"
	grep '^{' "$dir/command.out" >"$dir/command.json"
	one command check_native.py --hz 499 --starting
}

@test "a command that is Python: its thread's name, wherever the interpreter lies, until it is another program" {
	local python shared name bosses=()
	shared=$(while read -r python; do ! ldd "$python" | grep -q libpython || echo "$python"; done < <(cpythons) | head -n 1)
	# Side by side, since they wait for most of their time.
	for python in "$PYTHON" $shared; do
		bosses+=("boss${#bosses[@]}")
		spawn "${bosses[-1]}" "$KPROF" sample -F 199 -o "$dir/${bosses[-1]}.kprof" -- "$python" "$WORKLOADS/named_thread.py"
	done
	echo go >"$dir/other.in"
	spawn other "$KPROF" sample -F 199 -o "$dir/other.kprof" -- "$PYTHON" "$WORKLOADS/named_thread.py" \
		"$STACKS/native/gcc-O2-omit" --cpu-ms 20
	for name in "${bosses[@]}" other; do
		wait_for "$PATIENCE" "$name to end" ended "${pid[$name]}"
		wait "${pid[$name]}"
		unset "pid[$name]"
	done
	for name in "${bosses[@]}"; do
		"$KPROF" report --by thread --json "$dir/$name.kprof" | jq -e '[.rows[].name | endswith(" boss")] == [true]'
	done
	"$KPROF" report --by thread --json "$dir/other.kprof" | jq -e '[.rows[].name | contains("boss")] | length > 0 and (any | not)'
}

@test "processes that come and go, and libraries too" {
	target_start churn "$PYTHON" "$WORKLOADS/churn.py"
	sampled 999 churn
	[ "$(jq -c '[.ended, .status]' "$dir/churn.json")" = '[0,7]' ]
	[ "$(jq .opened "$dir/churn.json")" -gt 0 ]
	"$KPROF" report "$dir/all.kprof" --json | jq -e '[.sources[] | .fired == .captured + .dropped] | all'
}

# What describes the frames of this library's functions is noise.
@test "a library with a hostile description of its frames" {
	cp "$(ldconfig -p | awk '/libm.so.6.*x86-64/ { print $NF; exit }')" "$dir/libhostile.so"
	for seed in 1 2 3; do
		"$PYTHON" "$CHECKS/frame_noise.py" "$dir/libhostile.so" "$seed"
		target_start "calls$seed" "$PYTHON" "$WORKLOADS/libm_calls.py" "$dir/libhostile.so"
		sampled 999 "calls$seed"
		[ "$(jq .total "$dir/calls$seed.json")" = 1 ]
		"$STACKS/stackdump" "$dir/all.kprof" >"$dir/samples"
		[ -s "$dir/samples" ]
	done
}

# Its functions were met; when their names are looked up, most of the file is gone.
@test "a library that the target cuts short" {
	cp "$(ldconfig -p | awk '/libm.so.6.*x86-64/ { print $NF; exit }')" "$dir/libcut.so"
	target_start cut "$PYTHON" "$WORKLOADS/libm_cut.py" "$dir/libcut.so"
	sampled 999 cut
	grep "libcut.so was cut short" "$dir/kprof.err"
	"$STACKS/stackdump" "$dir/all.kprof" >"$dir/samples"
	[ -s "$dir/samples" ]
}

@test "kprof is killed at any moment: the target does not notice, nothing stays" {
	local i begin_us took_us us
	target_start native "$STACKS/native/gcc-O2-omit" --cpu-ms 50
	target_go native
	begin_us=${EPOCHREALTIME/[.,]/}
	for i in 0 1 2 3 4 5 6 7 8; do
		spawn "kprof$i" "$KPROF" sample -v -p "${pid[native]}" -F 1999 -o "$dir/killed.kprof"
		if [ "$i" = 0 ]; then # once it records; that long it takes here
			wait_for "$PATIENCE" "kprof to record" kprof_recording kprof0
			took_us=$((${EPOCHREALTIME/[.,]/} - begin_us))
		else
			us=$((took_us * (RANDOM % 200) / 100))
			sleep "$(printf '%d.%06d' $((us / 1000000)) $((us % 1000000)))"
		fi
		note_maps "${pid[kprof$i]}"
		kill -KILL "${pid[kprof$i]}" 2>/dev/null || : # it may have ended by itself
		wait "${pid[kprof$i]}" || :
		unset "pid[kprof$i]"
	done
	target_result native
	target_end native
	jq -e '.phases | length > 20' "$dir/native.json"
	wait_for "$PATIENCE" "the programs to go" maps_gone
}

# ---- said, not done --------------------------------------------------------------------------------------

refused() { # STATUS TEXT ARGUMENT…
	local status=0
	"$KPROF" sample "${@:3}" >"$dir/refused" 2>&1 || status=$?
	cat "$dir/refused"
	[ "$status" = "$1" ] && grep -q -- "$2" "$dir/refused" && grep -q '^hint: ' "$dir/refused"
}

sleeps() { # PID: it has executed sleep(1), and that is in clock_nanosleep(2)
	grep -qE '^(35|230) ' "/proc/$1/syscall"
}

@test "what cannot be: a cause and a way out" {
	refused 2 "no frequency" -p $$ -F 0
	refused 2 "no frequency" -p $$ -F 99x
	refused 2 "not both" -p $$ -o "$dir/x.kprof" -- true
	refused 2 "neither" -o "$dir/x.kprof"
	refused 1 "no process" -p 4194304 -o "$dir/x.kprof"
	[ ! -e "$dir/x.kprof" ]
	# Who sleeps is not seen: no file, the hidden one neither. A command's own status is its own.
	spawn sleeper sleep 600
	wait_for "$PATIENCE" "the sleeper to sleep" sleeps "${pid[sleeper]}"
	mkdir "$dir/empty"
	refused 1 "no thread was on a CPU" -p "${pid[sleeper]}" -d 300ms -o "$dir/empty/x.svg"
	refused 7 "no thread was on a CPU" -F 1 -o "$dir/empty/x.svg" -- sh -c 'exit 7'
	[ -z "$(ls -A "$dir/empty")" ]
}

@test "without privileges: status 3, and what is needed" {
	local status=0
	cp "$KPROF" "$dir/kprof"
	chmod 755 "$dir" "$dir/kprof"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/kprof" sample -p $$ -o /tmp/never.kprof >"$dir/out" 2>&1 || status=$?
	cat "$dir/out"
	[ "$status" = 3 ]
	grep -q '^hint: ' "$dir/out"
}

@test "with capabilities alone: files that only others may read are said" {
	local caps=+bpf,+perfmon,+sys_ptrace
	cp "$KPROF" "$dir/kprof"
	cp "$STACKS/native/gcc-O2-omit" "$dir/program"
	install -d -o 65534 "$dir/mine"
	chmod 711 "$BATS_RUN_TMPDIR"
	chmod 755 "$dir" "$dir/kprof"
	chmod 700 "$dir/program"
	target_start hidden "$dir/program" --cpu-ms 40
	# shellcheck disable=SC2086 # words
	spawn k setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=$caps --ambient-caps=$caps \
		"$dir/kprof" sample -v -p "${pid[hidden]}" -F 499 -o "$dir/mine/x.kprof"
	wait_for "$PATIENCE" "kprof to record" kprof_recording k
	target_go hidden && target_result hidden && target_end hidden
	kprof_stop k
	grep -q "^kprof: [0-9]* file.* could not be read, and stacks through .* end there: .*/program, mapped by" "$dir/k.err"
	grep -q '^hint: .*CAP_DAC_READ_SEARCH' "$dir/k.err"
}
