# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034 # some names are for the suites alone
# Helpers for the suites that attach kprof to something. Source it, and call harness_setup and harness_teardown from
# setup and teardown. A target speaks the protocol of tests/workloads/protocol.py: nothing here waits for time to
# pass, everything for something to happen.
#
#   target_start NAME COMMAND…    runs it; returns once it says READY. Its number is then ${pid[NAME]}
#   kprof_start NAME ARGUMENT…    kprof in the background; returns once its probes stand, and its unwind tables
#   target_go NAME                lets the measured part begin
#   target_result NAME            waits for its line of JSON, $dir/NAME.json
#   kprof_stop NAME               Ctrl-C, and the exit status
#   target_end NAME               lets it end; fails unless its exit status is 0

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${BUILD:-build}
[[ $BUILD == /* ]] || BUILD=$ROOT/$BUILD
KPROF=${KPROF:-$BUILD/kprof}
LIB=$ROOT/tests/lib
WORKLOADS=$ROOT/tests/workloads
PYTHON=/usr/bin/python3
export PYTHONDONTWRITEBYTECODE=1

# unshare(1) with mounts of one's own. It wants to make them all private, which a chroot whose root is no mount cannot.
own_mounts=(unshare --mount)
unshare --mount true 2>/dev/null || own_mounts+=(--propagation unchanged)

# Executes a command in a time namespace, whose clocks are ahead by $time_shift seconds: what compares them with those of the
# machine finds nothing, or waits for ever. Fails where the kernel has none that exec enters, which came with Linux 6.1.
time_shift=3600000
shifted=(unshare --time --monotonic "$time_shift" --boottime "$time_shift" --)
may_shift() {
	[ "$(unshare --time -- readlink /proc/self/ns/time)" != "$(readlink /proc/self/ns/time)" ]
}

# Seconds for things that take a moment; an emulated machine is twenty times slower.
PATIENCE=${KPROF_PATIENCE:-120}

declare -gA pid fd hosted

harness_setup() {
	dir=$BATS_TEST_TMPDIR
	pid=() fd=() hosted=()
	[ -x "$KPROF" ] || fail "$KPROF is not built"
}

# cgroups_end FOLDER: this cgroup, which the test has made, and those below it are no more, nor what the test left in them.
# Who was killed is still there for a moment.
cgroups_end() {
	wait_for "$PATIENCE" "cgroup $1 to go" cgroups_gone "$1"
}

cgroups_gone() {
	local cgroup
	while read -r cgroup; do
		xargs -r kill -KILL <"$cgroup/cgroup.procs"
		rmdir "$cgroup"
	done < <(find "$1" -depth -type d) 2>/dev/null
	[ ! -e "$1" ]
}

# own_targets, after harness_setup: BUILD is then a folder whose programs and libraries to attach to are copies. In the real
# ones, a kprof of another suite has its probes too, and other suites' targets are other processes that may use them so much
# that kprof places its probes anew, which is a gap.
own_targets() {
	local shared=$BUILD part
	BUILD=$BATS_FILE_TMPDIR/build
	[ ! -e "$BUILD" ] || return 0
	mkdir "$BUILD" && ln -s "$shared"/* "$shared"/.tools "$BUILD" || return 1
	for part in sim workloads; do
		rm "$BUILD/$part" && cp -a "$shared/$part" "$BUILD" || return 1
	done
}

# left_running NAME: it is there still, and its number has not become another's: one that has ended is waited for at once, here or in
# its host.
left_running() {
	local parent
	if [ -n "${hosted[$1]-}" ]; then
		[ ! -s "$dir/$1.status" ] && kill -0 "${pid[$1]}" 2>/dev/null
	else
		{ read -r parent <"/proc/${pid[$1]}/stat"; } 2>/dev/null || return 1
		parent=${parent##*) ? }
		[ "${parent%% *}" = "$BASHPID" ]
	fi
}

# Whatever the test left running goes, and only that.
harness_teardown() {
	local name left=
	for name in "${!pid[@]}"; do
		if left_running "$name"; then
			left+=" $name"
			pkill -KILL -P "${pid[$name]}" 2>/dev/null
			kill -KILL "${pid[$name]}" 2>/dev/null
		fi
	done
	[ -n "${BATS_TEST_COMPLETED:-}" ] || tail -n 5 "$dir"/*.err 2>/dev/null
	[ -z "$left" ] || echo "# killed:$left"
}

# With -e, jq 1.6 says that all is well of an input that is empty: a program that failed, a file that nothing was written to.
jq() {
	local argument out status=0
	for argument; do
		[[ $argument =~ ^-[a-zA-Z]*e[a-zA-Z]*$ ]] || continue
		out=$(command jq "$@") || status=$?
		[ -z "$out" ] || printf '%s\n' "$out"
		[ -n "$out" ] || [ "$status" != 0 ] || return 4
		return "$status"
	done
	command jq "$@"
}

fail() {
	printf '%s\n' "$@" >&2
	return 1
}

# wait_for SECONDS WHAT COMMAND…
# Every command that BATS traces costs it a tenth of a millisecond, and a process costs more than a file that is read: what
# waits is not traced, and its pause, and most of what it asks for, need no process.
wait_for() {
	local -
	set +o functrace
	wait_untraced "$@"
}

wait_untraced() {
	local seconds=$1 what=$2 end=$((SECONDS + $1 + 1)) pause=0.02 round=0 never=${BATS_FILE_TMPDIR:-$dir}/never
	shift 2
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || { fail "waited $seconds s for $what"; return 1; }
		[ -p "$never" ] || mkfifo "$never" 2>/dev/null || [ -p "$never" ] || return 1
		[ $((round += 1)) -le 50 ] || pause=0.1
		read -rt "$pause" <>"$never" || :
	done
}

# pause_process PID: stopped (SIGSTOP), all of it. The signal that is sent takes until the main thread gets a CPU; until then
# the other threads go on.
pause_process() {
	kill -STOP "$1" && wait_for "$PATIENCE" "process $1 to be stopped" is_paused "$1"
}

is_paused() {
	[ -z "$(grep -hs '^State:' "/proc/$1/task/"*/status | grep -v '[TtZX] (')" ]
}

# file_says FILE REGEX: it has a match, which begins a line where the expression begins with ^, and ends one where it ends with $.
file_says() {
	local said regex=${2/#^/$'\n'}
	IFS= read -rd '' said <"$1" || :
	[[ $'\n'$said =~ ${regex/%\$/$'\n'} ]]
}

ended() { # PID: gone, or a zombie
	local state
	{ read -r _ _ state _ <"/proc/$1/stat"; } 2>/dev/null || return 0
	[ "$state" = Z ]
}

# spawn NAME COMMAND…: in the background, with none of our descriptors, and no signal ignored as the shell, or nohup, has it.
spawn() {
	local name=$1 in=$dir/$1.in
	shift
	[ -e "$in" ] || in=/dev/null
	# Now, not when the shell below comes to it: what an earlier one of this name said is not this one's.
	: >"$dir/$name.out"
	: >"$dir/$name.err"
	(
		for f in "${fd[@]}" 3; do eval "exec $f>&-"; done
		exec env --default-signal=HUP,INT,QUIT,TERM "$@"
	) <"$in" >"$dir/$name.out" 2>"$dir/$name.err" &
	pid[$name]=$!
}

# ---- targets ----

target_start() {
	local name=$1
	rm -f "$dir/$name.in"
	mkfifo "$dir/$name.in"
	fork_in_host "$@" || spawn "$@"
	# Opened only now, for writing: the target sees the end of file when this shell is gone.
	exec {new}>"$dir/$name.in"
	fd[$name]=$new
	wait_for "$PATIENCE" "$name to be READY" target_said "$name" '^READY ' || return 1
}

target_said() { # NAME REGEX
	local over=
	! ended "${pid[$1]}" || over=1 # first: what it said last is then there to be read
	file_says "$dir/$1.out" "$2" && return
	[ -z "$over" ] || { fail "$1 ended: $(tail -n 3 "$dir/$1.err")"; exit 1; }
	return 1
}

target_go() {
	echo go >&"${fd[$1]}"
}

# A long line comes in pieces: it is all there when it has its end.
result_said() { # NAME
	target_said "$1" '^\{[^'$'\n'']*$'
}

target_result() {
	wait_for "$PATIENCE" "$1's result" result_said "$1" || return 1
	grep '^{' "$dir/$1.out" >"$dir/$1.json"
}

target_end() {
	local f=${fd[$1]} status=0
	exec {f}>&-
	unset "fd[$1]"
	wait_for "$PATIENCE" "$1 to end" ended "${pid[$1]}" || return 1
	if [ -n "${hosted[$1]:-}" ]; then
		wait_for "$PATIENCE" "$1's exit status" [ -e "$dir/$1.status" ] || return 1
		status=$(cat "$dir/$1.status")
	else
		wait "${pid[$1]}" || status=$?
	fi
	unset "pid[$1]" "hosted[$1]"
	[ "$status" = 0 ] || fail "$1: exit status $status"
}

# ---- PyTorch, started once for a file of tests ----

# torch_hosts, in setup_file: for each PyTorch, or those that the command in hosts_of lists, a process that has imported it.
# From then on target_start forks workloads from these, instead of starting another interpreter, which takes some seconds.
# Where tests/run has such processes, for all suites that call this (KPROF_TORCH_HOSTS), these are taken.
torch_hosts() {
	local python host which=${hosts_of:-pythons}
	for python in $($which); do
		host=$(torch_host "$python")
		if [ -d "${KPROF_TORCH_HOSTS:-}/${host##*/}" ]; then
			ln -s "$KPROF_TORCH_HOSTS/${host##*/}" "$host"
		else
			torch_host_begin "$python" "$host" &
		fi
	done
	for python in $($which); do
		host=$(torch_host "$python")
		wait_for "$PATIENCE" "$python to import torch" [ -s "$host/pid" ] || fail "$(cat "$host/log")" || return 1
	done
}

# torch_host_begin PYTHON FOLDER, in a subshell: becomes that process
torch_host_begin() {
	local f
	mkdir -p "$2"
	mkfifo "$2/requests"
	exec </dev/null >"$2/log" 2>&1
	for f in 3 4; do eval "exec $f>&-"; done
	exec env --default-signal=HUP,INT,QUIT,TERM "$1" "$WORKLOADS/torch_host.py" "$2"
}

# torch_hosts_end, in teardown_file: of those that it began itself
torch_hosts_end() {
	local host
	for host in "$BATS_FILE_TMPDIR"/host-*; do
		[ -L "$host" ] || [ ! -s "$host/pid" ] || kill "$(cat "$host/pid")"
	done
}

torch_host() { # PYTHON: where it is asked
	echo "${BATS_FILE_TMPDIR:-$dir}/host-${1//\//_}"
}

# fork_in_host NAME PYTHON ARGUMENT…: like spawn; fails where there is no host of that interpreter
fork_in_host() {
	local name=$1 host
	host=$(torch_host "$2")
	[ -s "$host/pid" ] || return 1
	rm -f "$dir/$name.pid" "$dir/$name.status"
	: >"$dir/$name.out"
	: >"$dir/$name.err"
	printf '%s\0' "${@:3}" >"$dir/$name.args"
	env -0 >"$dir/$name.env"
	printf '%s\n' "$dir/$name" >"$host/requests"
	wait_for "$PATIENCE" "a process for $name" [ -s "$dir/$name.pid" ] || exit 1
	pid[$name]=$(cat "$dir/$name.pid") hosted[$name]=1
}

# unprofiled NAME COMMAND…: the whole run, on its own; $dir/NAME.json
unprofiled() {
	target_start "$@" && target_go "$1" && target_result "$1" && target_end "$1"
}

# setup for suites that inject: needs this program of tests/inject
inject_setup() { # PROGRAM
	harness_setup
	inject=$BUILD/inject agent=$BUILD/inject/libkprof_agent.so
	[ -x "$inject/$1" ] || fail "the test programs are not built: make inject-programs"
	[ "$(id -u)" = 0 ] || skip "needs root"
}

# ---- kprof ----

# With -v it says when every probe stands.
kprof_recording() { # NAME
	local over=
	! ended "${pid[$1]}" || over=1
	file_says "$dir/$1.err" '^kprof: recording$' && return
	[ -z "$over" ] || { fail "kprof ended: $(cat "$dir/$1.err")"; exit 1; }
	return 1
}

# own_cache FOLDER: sets own, the words before a kprof that keeps what it learns there instead of the machine's place
own_cache() {
	mkdir -p -m 700 "$1" /var/cache/kprof/symbols
	# shellcheck disable=SC2016 # the inner shell's
	own=("${own_mounts[@]}" sh -c 'mount --bind "$0" /var/cache/kprof/symbols && exec "$@"' "$1")
}

# Set by the caller, if need be: cache, such a folder.
kprof_start() { # NAME SUBCOMMAND ARGUMENT…
	local name=$1 command=$2 own=()
	shift 2
	[ -z "${cache:-}" ] || own_cache "$cache"
	spawn "$name" "${own[@]}" "$KPROF" "$command" -v "$@"
	wait_for "$PATIENCE" "kprof to record" kprof_recording "$name" &&
		wait_for "$PATIENCE" "the unwind tables" tables_ready "$name"
}

# A recording begins without unwind tables that take long; walks are whole once they are there.
tables_ready() { # NAME
	! file_says "$dir/$1.err" '^kprof: unwind tables are still being built' ||
		file_says "$dir/$1.err" '^kprof: the unwind tables are ready$'
}

kprof_stop() { # NAME [EXPECTED STATUS]
	local p=${pid[$1]} status=0
	kill -INT "$p" 2>/dev/null || true # it may have ended with its target
	wait_for "$PATIENCE" "kprof to stop" ended "$p" || return 1
	wait "$p" || status=$?
	unset "pid[$1]"
	[ "$status" = "${2:-0}" ] || fail "kprof: exit status $status, not ${2:-0}" "$(cat "$dir/$1.err")"
}

# With -v it says so whenever the probes stand in a library that has come while it records: so often, in PyTorch's.
has_placed() { # NAME OF THE KPROF, TIMES
	[ "$(grep -c '^kprof: probes stand in libtorch_cpu\.so[^ ]* of process' "$dir/$1.err")" -ge "$2" ]
}

# go_on NAME TIMES: an opdriver with --until-file $dir/NAME.probed goes on when NAME-kprof has placed probes so often
go_on() {
	wait_for "$PATIENCE" "probes in $1" has_placed "$1-kprof" "$2" && touch "$dir/$1.probed"
}

# profiled NAME "ATTACH ARGUMENTS" COMMAND…: one target from READY to its end under kprof; leaves $dir/NAME.kprof,
# NAME.trace.json (validated) and NAME.json. Set by the caller, if need be: expect, kprof's exit status (0); library,
# whose code in the target must be the file's again when kprof has detached; stalled, so that kprof is stopped
# (SIGSTOP) while the target works and a small ring overflows on any machine; meanwhile, a command while the target works.
profiled() {
	local name=$1 arguments
	read -ra arguments <<<"$2"
	shift 2
	target_start "$name" "$@" --linger || return 1
	kprof_start "$name-kprof" attach -p "${pid[$name]}" -o "$dir/$name.kprof" "${arguments[@]}" || return 1
	[ -z "${stalled:-}" ] || pause_process "${pid[$name-kprof]}" || return 1
	target_go "$name" || return 1
	[ -z "${meanwhile:-}" ] || $meanwhile || return 1
	target_result "$name" || return 1
	[ -z "${stalled:-}" ] || kill -CONT "${pid[$name-kprof]}"
	kprof_stop "$name-kprof" "${expect:-0}" || return 1
	# Not at once: a kprof of another suite that runs meanwhile may have its probes in every process that maps the file.
	[ -z "${library:-}" ] ||
		wait_for "$PATIENCE" "the probes in $library to go" text_is_clean "${pid[$name]}" "$library" || return 1
	target_end "$name" && exported "$name"
}

# exported NAME: trace and report from NAME.kprof, held against each other and the contract
exported() {
	"$KPROF" export "$dir/$1.kprof" -o "$dir/$1.trace.json" || return 1
	"$KPROF" report "$dir/$1.kprof" --json >"$dir/$1.report.json" || return 1
	"$PYTHON" "$LIB/validate_trace.py" --report "$dir/$1.report.json" "$dir/$1.trace.json"
}

# same_result A B: two runs gave the same, process numbers and times aside
same_result() {
	local f='del(.. | .pid?, .ppid?, .begin_real_ns?, .end_real_ns?, .other_tids?)
		| .children? |= (. // [] | [.[]] | sort) | .made? |= (. // [] | [.[]] | sort)'
	diff <(jq -S "$f" "$dir/$1.json") <(jq -S "$f" "$dir/$2.json") || fail "$1 and $2 gave different results"
}

# account NAME [OPTION…]: every call is captured, dropped, missed or in a declared gap
account() {
	local name=$1
	shift
	"$PYTHON" "$LIB/account.py" "$@" "$dir/$name.trace.json" "$dir/$name.json"
}

# Nothing of a profiler is left in the target: its code is what the file says.
clean_text() { # PID LIBRARY
	"$PYTHON" "$LIB/text_diff.py" "$1" "$2"
}

text_is_clean() { # the same, silent
	clean_text "$@" >/dev/null
}

probed() {
	! text_is_clean "$@"
}

# Numbers of the BPF maps that a kprof has now, to be asked for when it is gone: nothing of its programs is left in the kernel
# when nothing of their maps is. Programs by their name may be another kprof's.
note_maps() { # PID
	sed -n 's/^map_id:[[:space:]]*//p' "/proc/$1"/fdinfo/* >>"$dir/maps" 2>/dev/null || true
}

maps_gone() {
	[ -s "$dir/maps" ] || fail "no maps were noted" || exit 1
	! bpftool map list -j | jq '.[].id' | grep -qxFf "$dir/maps"
}

# Links of uprobes on a file, by whomever.
links_on() { # FILE
	bpftool link list 2>/dev/null | grep -cF "$1"
}

# ---- what there is to test with ----

kinds=(gcc gcc-O0 clang) # of compiling the C++ targets

# use_kind KIND: sets driver, driver_dl and library
use_kind() {
	library=$BUILD/workloads/$1/libtorch_cpu.so
	driver=$BUILD/workloads/$1/opdriver
	driver_dl=$BUILD/workloads/$1/opdriver-dl
	[ -x "$driver_dl" ] || fail "the test programs are not built: make workloads"
}

# Python interpreters that have torch, one a line, the newest release last: $KPROF_TORCH_PYTHONS, or those that
# scripts/setup makes. Found once a file.
pythons() {
	local list=${BATS_FILE_TMPDIR:-$dir}/pythons p
	if [ ! -e "$list" ]; then
		for p in ${KPROF_TORCH_PYTHONS:-"$PYTHON" "${KPROF_CACHE:-/var/cache/kprof}"/torch-*/bin/python}; do
			[ ! -x "$p" ] || echo "$(torch_release "$p" 2>/dev/null) $p"
		done | grep '^[0-9]' | sort -V | cut -d' ' -f2- >"$list"
	fi
	cat "$list"
}

# needs_torch: skips the test where there is none
needs_torch() {
	[ -n "$(pythons)" ] || skip "no Python with torch here: scripts/setup check installs it"
}

newest_python() {
	pythons | tail -n 1
}

torch_release() { # PYTHON
	"$1" -c 'import importlib.metadata as m; print(m.version("torch").partition("+")[0])'
}

torch_folder() { # PYTHON
	"$1" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])'
}
