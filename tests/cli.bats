#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# The command line: what it takes and refuses, exit statuses, hints, where the files go.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"

setup() {
	harness_setup
	own_targets
	use_kind gcc
	public=
}

teardown() {
	[ -z "$public" ] || rm -rf "$public"
	harness_teardown
}

# ---- asked wrongly ----

@test "junk in an option is refused with exit status 2, a cause and a hint" {
	refuses "neither a process .-p PID. nor all .-a. is given" attach
	refuses "file of samples, and none are taken \(--stacks\)" attach -p 1 -o a.svg
	refuses "file of samples" run -o a.speedscope.json -- true
	refuses "'x' is no process number" attach -p x
	refuses "'0' is no process number" attach -p 0
	refuses "'-1' is no process number" attach -p -1
	refuses "'1,,2' is no process number" attach -p 1,,2
	refuses "'99999999999' is no process number" attach -p 99999999999
	refuses "'1e3' is no process number" attach -p 1e3
	refuses "--pid needs a value" attach --pid
	refuses "no option --bogus" attach -p 1 --bogus
	refuses "no option -z" attach -p 1 -z
	refuses "--quiet takes no value" attach -p 1 --quiet=yes
	refuses "'stray' is no option" attach -p 1 stray
	refuses "'sleep': attach takes no command" attach -p 1 -- sleep 1
	grep -qx 'hint: kprof run -- COMMAND' "$dir/stderr"
	for d in x 0 -3 5x inf nan 0x10 ' 5' 1e3s '' 99999d 1.2.3s; do refuses "is no duration" attach -p 1 -d "$d"; done
	for s in x 0 -1 1.5M 64X 64MM 1K 99999999999999999999 ''; do refuses "is no size" attach -p 1 --ring "$s"; done
	for g in '' ',' 'a,' ',a'; do refuses "is no list" attach -p 1 --ops "$g"; done
	refuses "is no list" attach -p 1 --exclude ''
	refuses "auto, follow or exact" attach -p 1 --children some
	refuses "is no number of probes" attach -p 1 --max-probes none
	refuses "'gpu' is no set of activities" attach -p 1 --activities cpu,gpu
	refuses "'' is no set of activities" attach -p 1 --activities ''
	refuses "'kernels' is no type of activity" attach -p 1 --types kernels
	for m in x '' lr 'lr:0.1'; do refuses "is no KEY=JSON" attach -p 1 --meta "$m"; done
	for m in =1 kprof=1 traceEvents=[] 'trace_id="x"' $'a\nb=1'; do refuses "can't be a key of metadata" attach -p 1 --meta "$m"; done
	for m in lr= lr=.1 lr=text 'lr={' 'lr=1 2' $'lr="\xff"'; do refuses "the value of 'lr' is not JSON" attach -p 1 --meta "$m"; done
	refuses "a trace's id can't be empty" run --trace-id '' -- true
	refuses "a trace's id can't be so long" run --trace-id "$(printf '%0300d' 0)" -- true
	refuses "a trace's name can't have byte 0x0a at its place 2" sample -p 1 --trace-name $'a\nb'
	for g in x '' 'nvtx,' 'nvtx,aten,mark'; do refuses "is no kind of annotation" attach -p 1 --only "$g"; done
	for o in '--ops a' --stacks '-F 9' --with-stack --sched --cuda-sync --cuda-memory '--types kernel' '--activities cpu' --agent; do
		# shellcheck disable=SC2086 # words
		refuses 'contradict' attach -p 1 --only nvtx,mark $o
	done
	refuses "no option --only" sample -p 1 --only nvtx
	refuses "no format has the suffix" attach -p 1 -o trace.txt
	awk 'length > 180 { exit 1 }' "$dir/stderr" || fail "a line too long to read"
	refuses "output's name is empty" attach -p 1 -o ''
	refuses "no command is given" run
	refuses "no command is given" run -q --
	refuses "no option -p" run -p 1 -- true
	refuses "no capture is given" report
	refuses "too many" report a.kprof b.kprof
	refuses "module, collective or flops" report a.kprof --by colour
	refuses "--native takes no value" report a.kprof --native=1
	refuses "either --native or --python" report a.kprof --native --python
	refuses "either --native or --python" report a.kprof --python --native
	refuses "self, total, count" report a.kprof --sort size
	refuses "no number of rows" report a.kprof --limit -1
	refuses "no output is given" export a.kprof
	refuses "1 \(fast\) to 9" export a.kprof -o a.json --level 10
	refuses "'everything' is too many: list takes options only" list everything
	refuses "'1' is too many: check takes options only" check 1
	refuses "is no process number" check -p me
}

@test "types of activity are listed" {
	kprof_says 0 attach --types list
	grep -qx kernel "$dir/stdout"
	grep -qx cuda_runtime "$dir/stdout"
	[ ! -s "$dir/stderr" ]
}

@test "a configuration file gives defaults, and the command line counts more" {
	conf() { # TEXT, then what the command line says
		printf '%b' "$1" >"$dir/conf"
		shift
	}
	conf '# all of it\n\n  no-agent # said\nring = 64M\n'
	refuses "neither a process .-p PID. nor all .-a. is given" attach --config "$dir/conf"
	conf 'ring = x\n'
	refuses "'x' is no size" attach --config "$dir/conf" -p 1
	grep -q "this stands in $dir/conf" "$dir/stderr"
	conf 'children = exact\nstrict\n'
	refuses "'y' is no size" attach --config "$dir/conf" -p 1 --ring y
	[ "$(grep -c 'this stands in' "$dir/stderr")" = 0 ]
	conf 'quiet\nbogus\n'
	refuses "conf, line 2: there is no such option" attach --config "$dir/conf" -p 1
	conf 'pid = 1\n'
	refuses "line 1: there is no such option" attach --config "$dir/conf" -p 1
	conf 'quiet = yes\n'
	refuses "line 1: it takes no value" attach --config "$dir/conf" -p 1
	conf 'ring\n'
	refuses "line 1: it needs a value" attach --config "$dir/conf" -p 1
	conf 'types = list\n'
	refuses "line 1: what prints a list and ends" attach --config "$dir/conf" -p 1
	refuses "cannot read .*none" attach --config "$dir/none" -p 1
	refuses "cannot read .*directory" attach --config "$dir" -p 1
}

@test "an unknown command suggests the nearest" {
	refuses "no command 'atach'" atach
	grep -q 'did you mean attach?' "$dir/stderr"
	refuses "no command 'reprot'" help reprot
	grep -q 'did you mean report?' "$dir/stderr"
	refuses "no command 'frobnicate'" frobnicate
	grep -q 'kprof help lists' "$dir/stderr"
	refuses "no option '--frob'" --frob
	kprof_says 2
	grep -q '^Usage: kprof COMMAND' "$dir/stderr"
	[ ! -s "$dir/stdout" ]
}

@test "--help everywhere, on stdout, and every option of it is in the manual page" {
	kprof_says 0 --version
	grep -qxE 'kprof [0-9]+\.[0-9]+\.[0-9]+' "$dir/stdout"
	for c in attach run sample report why diff export status list check; do
		kprof_says 0 "$c" --help
		cp "$dir/stdout" "$dir/help"
		grep -q "^Usage: kprof $c" "$dir/help"
		[ ! -s "$dir/stderr" ]
		kprof_says 0 help "$c"
		diff "$dir/stdout" "$dir/help"
		grep -oE -- '--[a-z-]+' "$dir/help" | sort -u | while read -r option; do
			grep -qE -- "^\.(It )?Fl (. , )?-${option#--}\b" "$BUILD/kprof.1" || fail "$option is not in kprof.1"
		done
	done
	for c in attach run sample report why diff export status list check; do
		"$KPROF" --help | grep -q "^  $c "
	done
}

@test "the manual page has no errors" {
	command -v groff >/dev/null || skip "no groff here: scripts/setup check installs it"
	[ -z "$(groff -mandoc -Tutf8 -ww -z "$BUILD/kprof.1" 2>&1)" ]
}

# ---- what is not there, what is not allowed ----

@test "a process that is not there, a thread, a kernel thread" {
	local gone
	sh -c : &
	gone=$!
	wait "$gone"
	kprof_says 1 attach -p "$gone" -o "$dir/x.kprof"
	refused "no process $gone"
	kprof_says 1 check -p "$gone"
	grep -q "no process $gone" "$dir/stderr"
	if grep -q '^Kthread:.*1\|kthreadd' /proc/2/status 2>/dev/null; then
		kprof_says 1 attach -p 2 -o "$dir/x.kprof"
		refused "kernel"
	fi
	target_start threads "$driver" threads --threads 2 --n 10 --linger
	target_go threads
	target_result threads
	target_end threads
	only_files "$dir" stdout stderr threads.in threads.out threads.err threads.json
}

@test "without rights: exit status 3, and which capabilities are missing" {
	[ "$(id -u)" = 0 ] || skip "needs root, to give it up"
	public_copy
	local status=0
	nobody "$public/kprof" attach -p $$ -o /tmp/never.kprof >"$dir/stdout" 2>"$dir/stderr" || status=$?
	[ "$status" = 3 ]
	refused "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE"
	grep -q 'hint: run it with sudo' "$dir/stderr"
	status=0
	nobody "$public/kprof" check >"$dir/stdout" 2>"$dir/stderr" || status=$?
	[ "$status" = 3 ]
	grep -q '^MISSING  CAP_PERFMON' "$dir/stdout"
	nobody "$public/kprof" list >"$dir/stdout" 2>"$dir/stderr"
	grep -qE '^kprof: [0-9]+ process(es)? could not be looked into' "$dir/stderr"
}

@test "check: every line ok here, and what would be recorded of a process" {
	kprof_says 0 check
	grep -q '^ok  ' "$dir/stdout"
	! grep -q '^MISSING' "$dir/stdout" || fail "$(cat "$dir/stdout")"
	target_start one "$driver" count --n 1
	kprof_says 0 check -v -p "${pid[one]}"
	grep -qE '^ok .*probes' "$dir/stdout"
	target_go one
	target_result one
	target_end one
}

@test "list: a process with a framework, all of them with -a" {
	target_start one "$driver" count --n 1
	kprof_says 0 list
	grep -qE "^ *PID +USER" "$dir/stdout"
	grep -qE "^ *${pid[one]} .*pytorch.* count --n 1$" "$dir/stdout"
	! grep -qE "^ *$$ " "$dir/stdout" || fail "this shell has no framework"
	kprof_says 0 list -a
	grep -qE "^ *$$ " "$dir/stdout"
	target_go one
	target_result one
	target_end one
}

# ---- where the files go ----

# attach_out ARGUMENT…: records 100 calls with these options; in $dir/out, which is then the current directory
attach_out() {
	mkdir -p "$dir/out"
	cd "$dir/out" || return 1
	target_start t "$driver" count --n 100 --linger &&
		kprof_start k attach -p "${pid[t]}" "$@" &&
		target_go t && target_result t && kprof_stop k && target_pid=${pid[t]} && target_end t
}

@test "stdout has the path and nothing else, no other file is left, mode 0600" {
	attach_out -o out.json.gz
	[ "$(cat "$dir/k.out")" = out.json.gz ]
	only_files . out.json.gz
	[ "$(stat -c %a out.json.gz)" = 600 ]
	gzip -dc out.json.gz | jq -e '.traceEvents | length > 100' >/dev/null
	grep -q ' events of 1 process' "$dir/k.err"
	! grep -q $'\033' "$dir/k.err" || fail "control characters where there is no terminal"
}

@test "the default name, a capture, one file per process" {
	attach_out
	[ "$(cat "$dir/k.out")" = "$(echo *)" ]
	[[ $(echo *) =~ ^[^/]+_${target_pid}\.[0-9]{16,}\.pt\.trace\.json\.gz$ ]]
	rm ./*
	attach_out -q -o out.kprof
	[ "$(cat "$dir/k.out")" = out.kprof ]
	only_files . out.kprof
	# What the suites ask for, with -v; other suites' programs have the same libraries.
	run grep -vxE "kprof: (recording|process [0-9]+ maps .*, too: its probes are placed in the targets only)" "$dir/k.err"
	[ "$status" = 1 ]
	rm ./*
	attach_out -o '%p.json'
	[ "$(cat "$dir/k.out")" = "$target_pid.json" ]
	only_files . "$target_pid.json"
}

@test "under sudo the files belong to the caller, and a command runs as the caller" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	export SUDO_UID=65534 SUDO_GID=65534
	attach_out -o out.json
	[ "$(stat -c %u:%g out.json)" = 65534:65534 ]
	kprof_says 0 run -q -o ran.kprof -- id -u
	grep -qx 65534 "$dir/stdout"
	[ "$(stat -c %u:%g ran.kprof)" = 65534:65534 ]
	kprof_says 0 export ran.kprof -o ran.json
	[ "$(stat -c %u:%g ran.json)" = 65534:65534 ]
}

@test "an output that cannot be written is refused before anything is recorded" {
	kprof_says 1 run -o "$dir/no/such/place.json" -- touch "$dir/ran"
	refused "cannot write .*place.json"
	kprof_says 1 run -o "$dir/no/such/place.kprof" -- touch "$dir/ran"
	refused "cannot write .*place.kprof"
	mkdir "$dir/d.json"
	kprof_says 1 run -o "$dir/d.json" -- touch "$dir/ran"
	refused "is a directory"
	mkdir "$dir/d"
	for o in "$dir/d" "$dir/d/"; do
		kprof_says 1 run -o "$o" -- touch "$dir/ran"
		refused "$o is a directory"
	done
	[ ! -e "$dir/ran" ]
}

@test "when the trace cannot be written the capture is kept, and it is said where" {
	mkdir -p "$dir/out"
	chmod 1777 "$dir/out"
	touch "$dir/precious"
	ln -s "$dir/precious" "$dir/out/x.json"
	kprof_says 1 run -o "$dir/out/x.json" -- true
	grep -q 'symbolic link' "$dir/stderr"
	[ ! -s "$dir/precious" ]
	kept=$(sed -n 's/^kprof: what was recorded is kept in //p' "$dir/stderr")
	[ -f "$kept" ]
	grep -qF "hint: kprof export $kept -o " "$dir/stderr"
	kprof_says 0 export "$kept" -o "$dir/y.json"
	jq -e .traceEvents "$dir/y.json" >/dev/null
}

@test "a full device is an error" {
	sample_capture
	local status=0
	"$KPROF" report "$sample" >/dev/full 2>"$dir/stderr" || status=$?
	[ "$status" = 1 ]
	grep -q 'cannot write to standard output: No space left' "$dir/stderr"
	"$KPROF" report "$sample" | true
	[ "${PIPESTATUS[0]}" = 0 ]
}

# ---- how it ends ----

@test "-d, the target's end, Ctrl-C and SIGTERM all end with a written file" {
	kprof_says 0 run -q -d 100ms -o "$dir/d.kprof" -- sleep 0.5
	kprof_says 0 run -q -o "$dir/e.kprof" -- true
	for signal in INT TERM HUP; do
		target_start "t$signal" "$driver" count --n 10
		kprof_start "k$signal" attach -q -p "${pid[t$signal]}" -o "$dir/$signal.kprof"
		kill -"$signal" "${pid[k$signal]}"
		wait_for "$PATIENCE" "kprof to stop" ended "${pid[k$signal]}"
		wait "${pid[k$signal]}"
		unset "pid[k$signal]"
		[ -f "$dir/$signal.kprof" ]
		target_go "t$signal"
		target_result "t$signal"
		target_end "t$signal"
	done
	target_start t "$driver" count --n 10
	kprof_start k attach -q -p "${pid[t]}" -o "$dir/t.kprof"
	target_go t
	target_result t
	target_end t
	wait_for "$PATIENCE" "kprof to end with its target" ended "${pid[k]}"
	wait "${pid[k]}"
	unset "pid[k]"
	[ "$("$KPROF" report "$dir/t.kprof" --json | jq '[.rows[].calls] | add')" -ge 10 ]
}

@test "a second Ctrl-C keeps the capture and writes no trace" {
	local status=0 kept
	target_start t "$driver" count --n 100 --linger
	kprof_start k attach -p "${pid[t]}" -o "$dir/out.json"
	# Both before it goes on, however fast it is; and two kinds, as two of one that wait are one.
	pause_process "${pid[k]}"
	kill -INT "${pid[k]}"
	kill -TERM "${pid[k]}"
	kill -CONT "${pid[k]}"
	wait_for "$PATIENCE" "kprof to give up" ended "${pid[k]}"
	wait "${pid[k]}" || status=$?
	unset "pid[k]"
	[ "$status" = 1 ]
	[ ! -e "$dir/out.json" ]
	[ ! -s "$dir/k.out" ]
	kept=$(sed -n 's/^kprof: what was recorded is kept in //p' "$dir/k.err")
	kprof_says 0 report "$kept" --json
	jq -e .complete "$dir/stdout"
	target_go t
	target_result t
	target_end t
}

waits_to_write() { # PID: in write(2), which does not return
	local call state
	read -r call _ <"/proc/$1/syscall"
	read -r _ _ state _ <"/proc/$1/stat"
	[ "$call" = 1 ] && [ "$state" = S ]
}

nothing_pending() { # PID
	ended "$1" || ! grep -qE '^(SigPnd|ShdPnd):.*[^0[:space:]]' "/proc/$1/status"
}

@test "a third Ctrl-C ends at once, even while a reader does not read" {
	local status=0
	sample_capture
	mkfifo "$dir/slow.json"
	export TMPDIR=$dir
	exec {reader}<>"$dir/slow.json"
	target_start t "$driver" count --n 20000 --linger
	kprof_start k attach -q -p "${pid[t]}" -o "$dir/slow.json"
	target_go t
	target_result t
	kill -INT "${pid[k]}"
	wait_for "$PATIENCE" "kprof to fill the pipe" waits_to_write "${pid[k]}"
	kill -INT "${pid[k]}"
	wait_for "$PATIENCE" "kprof to take the second" nothing_pending "${pid[k]}"
	! ended "${pid[k]}" || fail "the second was enough"
	kill -INT "${pid[k]}"
	wait_for "$PATIENCE" "kprof to end" ended "${pid[k]}"
	wait "${pid[k]}" || status=$?
	unset "pid[k]"
	exec {reader}>&-
	[ "$status" = 130 ]
	grep -q "what was recorded so far is in $dir/kprof" "$dir/k.err"
	kprof_says 0 report "$dir"/kprof.*.kprof
	target_end t
}

@test "run: the command's exit status, signal, output and arguments" {
	kprof_says 7 run -q -o "$dir/a.kprof" -- sh -c 'echo "$1"; exit 7' sh 'two words'
	grep -qx 'two words' "$dir/stdout"
	grep -q 'sh ended with exit status 7' "$dir/stderr"
	# shellcheck disable=SC2016
	kprof_says 137 run -q -o "$dir/a.kprof" -- sh -c 'kill -KILL $$'
	grep -q 'killed by signal 9' "$dir/stderr"
	kprof_says 1 run -o "$dir/b.kprof" -- "$dir/not-there"
	refused "cannot run $dir/not-there"
	[ ! -e "$dir/b.kprof" ]
}

@test "run: a signal reaches the command, and kprof ends with it" {
	local status=0
	spawn k "$KPROF" run -q -o "$dir/a.kprof" -- sh -c 'trap "echo told; exit 5" TERM; echo ready; while :; do sleep 0.05; done'
	wait_for "$PATIENCE" "the command" grep -q ready "$dir/k.out"
	kill -TERM "${pid[k]}"
	wait_for "$PATIENCE" "kprof to end" ended "${pid[k]}"
	wait "${pid[k]}" || status=$?
	unset "pid[k]"
	[ "$status" = 5 ]
	grep -qx told "$dir/k.out"
	[ -f "$dir/a.kprof" ]
}

@test "--strict: exit status 4 when events were lost, and a hint to a bigger ring" {
	# Nobody empties the ring while the target calls, so that what does not fit is lost on the fastest machine too.
	lossy() { # EXPECTED STATUS, OPTION…
		local expected=$1
		shift
		rm -f "$dir/t.in"
		target_start t "$driver" count --n 20000 --linger &&
			kprof_start k attach -p "${pid[t]}" -o "$dir/a.kprof" "$@" &&
			pause_process "${pid[k]}" && target_go t && target_result t && kill -CONT "${pid[k]}" &&
			kprof_stop k "$expected" && target_end t
	}
	lossy 4 --strict --ring 4096
	grep -q 'events were dropped' "$dir/k.err"
	grep -q 'hint: a bigger --ring' "$dir/k.err"
	grep -q 'events were lost (--strict)' "$dir/k.err"
	[ "$(cat "$dir/k.out")" = "$dir/a.kprof" ]
	lossy 0 --ring 4096
	grep -q 'events were dropped' "$dir/k.err"
	lossy 0 --strict --ring 256M
}

@test "on a terminal a line of progress, gone at the end" {
	command -v script >/dev/null || skip "no script(1) here: scripts/setup check installs it"
	target_start t "$driver" count --n 100 --linger
	on_terminal ' dropped ' attach -p "${pid[t]}" -o "$dir/out.json"
	target_go t
	target_result t
	target_end t
	grep -qE '[0-9]\.[0-9] s   [0-9]+ events   [0-9]+ dropped' "$dir/screen"
	# What stands after the last erasure is no progress.
	! sed 's/.*\x1b\[K//' "$dir/screen" | grep -q ' dropped   ' || fail "$(cat -v "$dir/screen")"
	[ -s "$dir/out.json" ]
}

# ---- report and export ----

@test "report: table and JSON agree, sorted and limited" {
	sample_capture
	kprof_says 0 report "$sample" --json
	jq -e '.by == "op" and .complete and .window_ns > 0 and (.sources | length > 0) and (.gaps | type == "array")' "$dir/stdout"
	jq -e '([.rows[].self_ns] | . == (sort | reverse)) and ([.rows[].self_ns] | add) == .self_total_ns' "$dir/stdout"
	jq -e '[.rows[] | .calls > 0 and .min_ns <= .avg_ns and .avg_ns <= .max_ns and .self_ns <= .total_ns] | all' "$dir/stdout"
	rows=$(jq '.rows | length' "$dir/stdout")
	first=$(jq -r '.rows[0].name' "$dir/stdout")
	kprof_says 0 report "$sample"
	[ "$(sed -n 4p "$dir/stdout" | cut -d' ' -f1)" = "$first" ]
	[ "$(grep -v '^kprof cost ' "$dir/stdout" | grep -c '%')" = $((rows + 1)) ]
	grep -qE '^kprof cost [0-9.]+ % of the recorded processes. CPU time: traps ' "$dir/stdout"
	kprof_says 0 report "$sample" --limit 1
	grep -q "^$((rows - 1)) more rows: --limit 0 shows all" "$dir/stdout"
	kprof_says 0 report "$sample" --sort name --json --limit 2
	jq -e '(.rows | length) == 2 and ([.rows[].name] | . == sort)' "$dir/stdout"
	kprof_says 0 report "$sample" --by thread --json
	jq -e '.rows[0] | .pid > 0 and .tid > 0' "$dir/stdout"
}

@test "report and export refuse what is no capture and warn of one cut short" {
	sample_capture
	for what in report export; do
		out=()
		[ "$what" = report ] || out=(-o "$dir/x.json")
		kprof_says 1 "$what" "$dir/none.kprof" "${out[@]}"
		grep -q 'none.kprof' "$dir/stderr"
		kprof_says 1 "$what" "$KPROF" "${out[@]}"
		refused "not a kprof capture"
		grep -q 'hint: .*sample.* write with -o NAME.kprof' "$dir/stderr"
		kprof_says 1 "$what" "$dir" "${out[@]}"
		refused "$dir is a directory"
		[ ! -e "$dir/x.json" ]
	done
	head -c $(($(stat -c %s "$sample") - 30)) "$sample" >"$dir/cut.kprof"
	kprof_says 0 report "$dir/cut.kprof" --json
	grep -q 'cut short: its last .* cannot be read' "$dir/stderr"
	grep -q 'hint: what was read is shown; the rest cannot be had back' "$dir/stderr"
	jq -e '.complete == false' "$dir/stdout"
	cp "$dir/stderr" "$dir/cut.said"
	kprof_says 0 export "$dir/cut.kprof" -o "$dir/cut.json"
	diff "$dir/cut.said" "$dir/stderr"
	jq -e .traceEvents "$dir/cut.json" >/dev/null
}

@test "export: formats by suffix, to standard output, no root" {
	sample_capture
	kprof_says 0 export "$sample" -o "$dir/a.json.gz" --level 1
	[ "$(cat "$dir/stdout")" = "$dir/a.json.gz" ]
	kprof_says 0 export "$sample" -o -
	diff <(jq -S '.traceEvents | length' "$dir/stdout") <(gzip -dc "$dir/a.json.gz" | jq -S '.traceEvents | length')
	kprof_says 0 export "$sample" -o "$dir/b.kprof"
	diff <("$KPROF" report "$sample" --json) <("$KPROF" report "$dir/b.kprof" --json)
	refuses "not in the capture" export "$sample" -o "$dir/c.json" -p 1
	if [ "$(id -u)" = 0 ]; then
		public_copy
		cp "$sample" "$public/s.kprof"
		chmod 644 "$public/s.kprof"
		nobody "$public/kprof" export "$public/s.kprof" -o - | jq -e .traceEvents >/dev/null
	fi
}
