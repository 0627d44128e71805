#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,torch
# kprof memory start, export, status, stop: what is allocated and not freed, of a process that goes on for long. The judge:
# the program's own books (tests/workloads/alive.py), and the programs that such files are for.

# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own, as is meant
# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup_file() {
	torch_hosts
}

teardown_file() {
	torch_hosts_end
}

setup() {
	harness_setup
	needs_torch
	[ "$(id -u)" = 0 ] || skip "needs root"
	python=$(newest_python)
	started=
}

teardown() {
	local p
	for p in $started; do
		"$KPROF" memory stop -q -p "$p" 2>/dev/null || true
		rm -rf "/run/kprof/memory/$p"
	done
	harness_teardown
}

# recording NAME ARGUMENT…: of the target, all stacks, whatever that costs
recording() {
	local name=$1
	shift
	started+=" ${pid[$name]}"
	"$KPROF" memory start -p "${pid[$name]}" --max-overhead 0 --stack-rate 0 "$@"
}

# told NAME COMMAND…: the target does it; its books are then $dir/NAME.json
told() {
	local name=$1 nr
	shift
	nr=$(grep -c '^{' "$dir/$name.out" || true)
	echo "$*" >&"${fd[$name]}"
	wait_for "$PATIENCE" "$name to answer" answered "$name" "$nr" || return 1
	grep '^{' "$dir/$name.out" | tail -n 1 >"$dir/$name.json"
}

answered() { # NAME HOW OFTEN BEFORE
	! ended "${pid[$1]}" || { fail "$1 ended: $(tail -n 3 "$dir/$1.err")"; exit 1; }
	[ "$(grep -c '^{' "$dir/$1.out")" -gt "$2" ] && [ -z "$(tail -c 1 "$dir/$1.out")" ]
}

export_to() { # NAME SUFFIX
	"$KPROF" memory export -p "${pid[$1]}" -o "$dir/$1.$2" >/dev/null
}

check() {
	"$PYTHON" "$LIB/check_alive.py" "$@"
}

# same_as_books NAME: the table, and each block
same_as_books() {
	"$KPROF" memory export -p "${pid[$1]}" --limit 0 --json >"$dir/$1.export.json" || return 1
	check table "$dir/$1.json" "$dir/$1.export.json" || return 1
	export_to "$1" pickle || return 1
	check pickle "$dir/$1.json" "$dir/$1.pickle"
}

recorder_of() { # PID
	"$KPROF" memory status -p "$1" --json | jq -r '.[] | select(.state == "recording").recorder'
}

library_of() { # PID NAME
	sed -nE "s|.* (/.*/$2[^ ]*)$|\1|p" "/proc/$1/maps" | head -n 1
}

@test "each block that is alive, by operator and stack, while it goes on and after stop" {
	local release
	for python in $(pythons); do
		release=$(torch_release "$python")
		echo "-- torch $release"
		target_start "t$release" "$python" -W ignore "$WORKLOADS/alive.py"
		recording "t$release"
		told "t$release" mix 300
		same_as_books "t$release"
		told "t$release" mix 100
		same_as_books "t$release"
		told "t$release" drop
		told "t$release" mix 50
		"$KPROF" memory stop -p "${pid[t$release]}"
		same_as_books "t$release"
		wait_for "$PATIENCE" "the probes to go" text_is_clean "${pid[t$release]}" "$(library_of "${pid[t$release]}" libc10)"
		wait_for "$PATIENCE" "the probes to go" text_is_clean "${pid[t$release]}" "$(library_of "${pid[t$release]}" libtorch_cpu)"
		told "t$release" mix 10 # nobody sees it
		"$KPROF" memory export -p "${pid[t$release]}" --limit 0 --json | jq -S . >"$dir/later.json"
		diff <(jq -S . "$dir/t$release.export.json") "$dir/later.json"
		target_end "t$release"
	done
}

@test "single uprobes; few stacks: operators of all blocks, stacks of some" {
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	started+=" ${pid[t]}"
	"$KPROF" memory start -p "${pid[t]}" --max-overhead 0 --stack-rate 1 --no-multi --ops 'aten::empty,aten::add,aten::mul,aten::mm,aten::cat'
	told t deep 3 # a thread's first has a stack
	told t mix 1000
	"$KPROF" memory export -p "${pid[t]}" --limit 0 --json >"$dir/export.json"
	check table "$dir/t.json" "$dir/export.json"
	jq -e '[.stacks[] | select(.frames == [])] | length == 1 and .[0].blocks > 100' "$dir/export.json"
	jq -e '[.stacks[] | select(.frames != []) | .blocks] | add | . >= 1 and . < 500' "$dir/export.json"
	"$KPROF" memory export -p "${pid[t]}" >"$dir/export.txt"
	grep -q '\[no stack: more allocations a second than --stack-rate\]' "$dir/export.txt"
}

@test "what GPUs' allocators say, and their pickle in PyTorch's memory_viz" {
	local p read
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	recording t
	told t mix 20
	export_to t pickle 2>"$dir/err"
	grep -q "the CPU's memory as PyTorch's viewer shows a GPU" "$dir/err"
	check pickle "$dir/t.json" "$dir/t.pickle"
	told t devices 400
	told t below 60
	same_as_books t
	jq -e '[.stacks[] | .frames | map(select(.function == "below")) | length] | max == 61' "$dir/t.export.json"
	[ "$("$KPROF" memory export -p "${pid[t]}" --limit 0 | grep -c '^    below ')" -le 40 ]
	for p in $(pythons); do
		"$p" -c 'import torch.cuda._memory_viz' 2>/dev/null || continue # 1.13 has another one
		[ "$(torch_release "$p" | cut -d. -f1)" -ge 2 ] || continue
		"$p" -W ignore "$LIB/check_alive.py" viz "$dir/t.pickle"
		"$p" -W ignore -m torch.cuda._memory_viz trace_plot "$dir/t.pickle" -o "$dir/t.html"
		grep -q MemoryViz.js "$dir/t.html"
		read=1
	done
	[ -n "${read:-}" ] || skip "no PyTorch 2 to read the pickle"
}

@test "bytes by function in collapsed stacks and in Google's pprof; a capture of it" {
	export KPROF_PPROF=${KPROF_PPROF:-${KPROF_CACHE:-/var/cache/kprof}/pprof/bin/pprof}
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	recording t
	told t mix 200
	export_to t folded
	export_to t pb.gz
	export_to t kprof
	check folded "$dir/t.json" "$dir/t.folded"
	# the capture has all of it, for everybody who has the file
	"$KPROF" memory export "$dir/t.kprof" --limit 0 --json >"$dir/file.json"
	check table "$dir/t.json" "$dir/file.json"
	"$KPROF" export "$dir/t.kprof" -o "$dir/again.folded"
	diff "$dir/t.folded" "$dir/again.folded"
	kprof_says 2 export "$dir/t.kprof" -o "$dir/t.json.gz"
	refused 'says what is allocated, of which a chrome file has no picture'
	kprof_says 1 export "$dir/t.kprof" -o "$dir/none/t.pickle"
	[ -x "$KPROF_PPROF" ] || skip "no pprof: scripts/setup check installs it where there is a new enough Go"
	PPROF_TMPDIR=$dir "$KPROF_PPROF" -raw "$dir/t.pb.gz" >"$dir/raw"
	check pprof "$dir/t.json" "$dir/raw"
}

costs_something() { # it is measured twice a second
	"$KPROF" memory status -p "${pid[t]}" --json | jq -e '.[0].cost_share > 0' >/dev/null
}

@test "a second start is refused, a second stop is harmless, what was never recorded is said" {
	local other
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	kprof_says 0 memory stop -p "${pid[t]}"
	grep -q "the memory of process ${pid[t]} is not being recorded" "$dir/stderr"
	kprof_says 1 memory export -p "${pid[t]}"
	refused "the memory of process ${pid[t]} was not recorded"
	recording t
	kprof_says 1 memory start -p "${pid[t]}"
	refused "the memory of process ${pid[t]} is being recorded already"
	told t mix 20
	"$KPROF" memory status >"$dir/status"
	grep -qE "^ *${pid[t]}  recording " "$dir/status" || fail "$(cat "$dir/status")"
	wait_for "$PATIENCE" "the first one to go on, and to know what it costs" costs_something || return 1
	"$KPROF" memory status -p "${pid[t]}" --json | jq -e '.[0] | .lost == 0 and .not_kept == 0'
	[ "$("$KPROF" memory status -p "${pid[t]}" --json | jq '.[0].blocks')" = "$(jq '.cpu | length' "$dir/t.json")" ]
	kprof_says 0 memory stop -p "${pid[t]}"
	kprof_says 0 memory stop -p "${pid[t]}"
	grep -q "is not being recorded" "$dir/stderr"
	"$KPROF" memory status >"$dir/status"
	grep -qE "^ *${pid[t]}  stopped " "$dir/status" || fail "$(cat "$dir/status")"
	same_as_books t
	# another process that gets the number of one that was recorded
	sleep 60 &
	other=$!
	started+=" $other"
	install -d -m 700 "/run/kprof/memory/$other"
	cp "/run/kprof/memory/${pid[t]}/last.kprof" "/run/kprof/memory/$other"
	touch -d '1 hour ago' "/run/kprof/memory/$other/last.kprof"
	kprof_says 0 memory export -p "$other"
	kill "$other"
	grep -q "the process that was recorded has ended: process $other is another one" "$dir/stderr" || fail "$(cat "$dir/stderr")"
	kprof_says 0 memory export -p "${pid[t]}"
	! grep -q 'another one' "$dir/stderr" || fail "$(cat "$dir/stderr")"
	# and again, from the beginning
	told t drop
	recording t
	"$KPROF" memory export -p "${pid[t]}" | grep -q '^nothing is allocated$'
	grep -c "recording the memory of process ${pid[t]} has begun$" "/run/kprof/memory/${pid[t]}/log" | grep -qx 2
	grep -q "recording the memory of process ${pid[t]} has ended: process [0-9]* asked for it; [0-9]* blocks" "/run/kprof/memory/${pid[t]}/log"
}

@test "what cannot be recorded is refused with attach's exit codes, and leaves nothing" {
	local other
	kprof_says 1 memory start -p 4194303
	grep -q '4194303' "$dir/stderr" || fail "$(cat "$dir/stderr")"
	started+=" 4194303"
	"$KPROF" memory status >"$dir/status"
	! grep -q 4194303 "$dir/status" || fail "$(cat "$dir/status")"
	[ ! -e /run/kprof/memory/4194303 ] || fail "$(ls -a /run/kprof/memory/4194303)"
	# a process that has no such memory: that is said at once, and again instead of "nothing is allocated"
	sleep 300 &
	other=$!
	started+=" $other"
	kprof_says 0 memory start -p "$other"
	grep -q "process $other has no allocator of PyTorch: nothing that it allocates is seen" "$dir/stderr" || fail "$(cat "$dir/stderr")"
	kprof_says 1 memory export -p "$other"
	refused "nothing was recorded: process $other has loaded no allocator of PyTorch"
	kprof_says 1 memory export -p "$other" --json
	jq -e '.allocator_seen == false and .operators == []' "$dir/stdout"
	kprof_says 0 memory stop -p "$other"
	kill "$other"
	refuses 'no process is given' memory start
	refuses 'start, stop, status or export\?' memory
	refuses "there is no 'begin'" memory begin -p 1
	refuses "-o is for export" memory stop -p 1 -o x.pickle
	refuses "'0.01%' is no share" memory start -p 1 --max-overhead 0.01%
}

@test "nobody but root asks, and folders that are another's are refused" {
	local folder
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	recording t
	folder=/run/kprof/memory/${pid[t]}
	[ "$(stat -c '%a %u' /run/kprof /run/kprof/memory "$folder" | sort -u)" = "700 0" ]
	[ "$(stat -c %a "$folder/socket")" = 700 ] || [ "$(stat -c %a "$folder/socket")" = 600 ] || fail "$(ls -l "$folder")"
	if setpriv --reuid=65534 --clear-groups "$KPROF" memory status >"$dir/out" 2>"$dir/err"; then
		fail "it asked: $(cat "$dir/out")"
	fi
	grep -q 'cannot enter /run/kprof' "$dir/err"
	# who comes to the socket with a descriptor of the folder is not answered either
	"$PYTHON" - "$folder" <<'END'
import os, socket, sys
os.chdir(sys.argv[1])
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
os.setuid(65534)
try:
    s.connect("socket")
    s.send(b'{"do":"stop"}')
    s.settimeout(10)
    assert not s.recv(100), "answered"
except (PermissionError, ConnectionError):
    pass
END
	# one that asks nothing, and what is no question, keep nobody else from asking
	"$PYTHON" - "$folder" <<'END'
import socket, sys
silent, other = (socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2))
for s in silent, other:
    s.settimeout(30)
    s.connect(sys.argv[1] + "/socket")
other.send(b"\xff{[")
assert b'"ok":false' in other.recv(8192)
END
	[ -n "$(recorder_of "${pid[t]}")" ]
	"$KPROF" memory stop -q -p "${pid[t]}"
	rm -rf "$folder"
	mkdir "$dir/elsewhere"
	ln -s "$dir/elsewhere" "$folder"
	kprof_says 3 memory start -p "${pid[t]}"
	rm "$folder"
	[ -z "$(ls -A "$dir/elsewhere")" ]
}

@test "the target ends: its last state is there, and the recorder ends" {
	local recorder target
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	target=${pid[t]}
	recording t
	told t mix 100
	recorder=$(recorder_of "$target")
	kill -KILL "$target"
	wait_for "$PATIENCE" "the recorder to end" ended "$recorder"
	"$KPROF" memory export -p "$target" --limit 0 --json >"$dir/t.export.json"
	check table "$dir/t.json" "$dir/t.export.json"
	grep -q 'has ended: the process has ended' "/run/kprof/memory/$target/log"
	kprof_says 0 memory stop -p "$target"
}

@test "kill -9 of the recorder at random moments: no probes, no harm, and it can begin again" {
	local i ms lib
	RANDOM=${KPROF_SEED:=$((SRANDOM % 32768))}
	echo "KPROF_SEED=$KPROF_SEED"
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	lib=$(library_of "${pid[t]}" libc10)
	for ((i = 0; i < ${KPROF_KILLS:-6}; i++)); do
		recording t -q
		echo "mix 300" >&"${fd[t]}"
		((i % 2)) || "$KPROF" memory export -p "${pid[t]}" -o "$dir/k.pickle" >/dev/null 2>&1 &
		ms=$((RANDOM * 600 / 32768))
		sleep "0.$(printf %03d $ms)"
		kill -KILL "$(recorder_of "${pid[t]}")"
		wait_for "$PATIENCE" "the probes of kill $i to go" text_is_clean "${pid[t]}" "$lib"
		! ended "${pid[t]}" || fail "the target died at kill $i"
	done
	kprof_says 0 memory stop -p "${pid[t]}"
	told t drop
	wait_for "$PATIENCE" "all answers" more_answers t "$i"
	recording t
	find "/run/kprof/memory/${pid[t]}" -name '.*.tmp' | wc -l | grep -qx 1 # its own, none of those that were killed
	told t drop
	told t mix 100
	"$KPROF" memory export -p "${pid[t]}" --limit 0 --json | jq -r '[.devices[] | .blocks] | add' >"$dir/blocks"
	[ "$(cat "$dir/blocks")" = "$(jq '.cpu | length' "$dir/t.json")" ]
	target_end t
}

rss() { # PID: KiB that are its own, not the files that it has mapped
	awk '/^RssAnon/ { print $2 }' "/proc/$1/status"
}

@test "for long: memory and files stay as they are, however much is allocated and freed" {
	local recorder before after i rounds=${KPROF_CHURN_ROUNDS:-4}
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	started+=" ${pid[t]}"
	"$KPROF" memory start -q -p "${pid[t]}" --max-overhead 0
	recorder=$(recorder_of "${pid[t]}")
	told t churn 50000
	export_to t kprof
	before="$(rss "$recorder")"
	bytes=$("$KPROF" memory status -p "${pid[t]}" --json | jq '.[0].written_bytes')
	for ((i = 0; i < rounds; i++)); do
		told t churn 100000
		export_to t kprof
		echo "$(rss "$recorder") KiB, $("$KPROF" memory status -p "${pid[t]}" --json | jq -c '.[0] | [.written_bytes, .lost, .blocks]')"
	done
	after="$(rss "$recorder")"
	[ "$after" -lt $((before + 4096)) ] || fail "$before KiB, later $after KiB"
	"$KPROF" memory status -p "${pid[t]}" --json | jq -e --argjson before "$bytes" '.[0] | .blocks <= 1 + .lost and .written_bytes < $before + 65536' ||
		fail "$("$KPROF" memory status -p "${pid[t]}" --json)"
}

@test "what is lost is said beside the tables, also after stop" {
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	recording t -q --ring 8K
	told t churn 20000
	"$KPROF" memory stop -q -p "${pid[t]}"
	"$KPROF" memory export -p "${pid[t]}" >"$dir/export.txt"
	grep -qE '^[0-9]+ allocations and frees were lost \(--ring\): blocks may be missing' "$dir/export.txt" || fail "$(cat "$dir/export.txt")"
	"$KPROF" memory export -p "${pid[t]}" --json | jq -e '.lost_allocations_and_frees > 0 and .lost >= .lost_allocations_and_frees'
}

@test "a bound on the cost: over it, it looks at less, and ends before it pays more" {
	local recorder
	target_start t "$python" -W ignore "$WORKLOADS/alive.py"
	started+=" ${pid[t]}"
	"$KPROF" memory start -q -p "${pid[t]}" --max-overhead 0.1%
	recorder=$(recorder_of "${pid[t]}")
	echo "churn 20000000" >&"${fd[t]}"
	wait_for "$PATIENCE" "the recorder to end" ended "$recorder"
	grep -q 'costs more than is allowed (--max-overhead)' "/run/kprof/memory/${pid[t]}/log" || fail "$(cat "/run/kprof/memory/${pid[t]}/log")"
	text_is_clean "${pid[t]}" "$(library_of "${pid[t]}" libc10)"
	"$KPROF" memory export -p "${pid[t]}" >"$dir/export.txt"
	kill -KILL "${pid[t]}"
}

more_answers() { # NAME THAN
	[ "$(grep -c '^{' "$dir/$1.out")" -gt "$2" ]
}
