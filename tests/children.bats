#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Children that live for a moment, and processes that are no targets but map the same files. Each test has a library of
# its own: with that of other tests, which run at the same time, it would have bystanders.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	use_kind gcc
	cp -r "$(dirname "$driver")" "$dir/own"
	driver=$dir/own/opdriver driver_dl=$dir/own/opdriver-dl library=$dir/own/libtorch_cpu.so
}

teardown() {
	harness_teardown
	umount "$dir/disk/all" "$dir/disk" 2>/dev/null || true
}

# Every process of the trace has its name, and a thread.
all_named() { # NAME
	jq -e '[.traceEvents[] | select(.ph == "M" and .name == "process_name")] as $names
		| [.traceEvents[] | select(.ph == "X" and .cat == "cpu_op").pid] | unique
		| all(. as $pid | any($names[]; .pid == $pid and (.args.name | test("opdriver|exe"))))' "$dir/$1.trace.json"
}

@test "200 forked children that live for a moment are complete, and have names" {
	profiled here "" "$driver" brood --n 10 --children 200
	account here --only --complete
	all_named here
}

@test "so are those of vfork, of a PID namespace, and of a child that ended before them" {
	local how
	for how in vfork clone3 double; do
		profiled "$how" "" "$driver" brood --n 10 --children 40 --how "$how"
		account "$how" --only --complete
		all_named "$how"
	done
}

# targets_known KPROF: how many processes the kernel's programs take for targets
targets_known() {
	local id
	sed -n 's/^map_id:[[:space:]]*//p' /proc/"$1"/fdinfo/* 2>/dev/null | sort -nu | while read -r id; do
		! bpftool map show id "$id" | grep -q ' name targets ' || bpftool -j map dump id "$id" | jq length
	done
}

one_target() { # KPROF
	[ "$(targets_known "$1")" = 1 ]
}

# capture_bytes: what has been written so far
capture_bytes() {
	stat -c %s "$dir"/.k.kprof.*
}

has_grown() { # BYTES
	[ "$(capture_bytes)" -gt "$1" ]
}

# Kprof reads of their begins when all of them have ended.
@test "children that have ended are no targets: their numbers go to others" {
	local written
	mkfifo "$dir/k.in"
	# shellcheck disable=SC2016 # the inner shell's
	spawn k "$KPROF" run -v -o "$dir/k.kprof" -- \
		sh -c 'read -r go; for i in $(seq 300); do /bin/true; done; : >"$0"; exec sleep 1000' "$dir/done"
	exec {go}>"$dir/k.in"
	wait_for "$PATIENCE" "kprof to record" kprof_recording k
	pause_process "${pid[k]}"
	written=$(capture_bytes)
	echo go >&"$go"
	wait_for "$PATIENCE" "300 children" [ -e "$dir/done" ]
	kill -CONT "${pid[k]}"
	wait_for "$PATIENCE" "their names to be written" has_grown "$written"
	wait_for "$PATIENCE" "no others to be taken for targets" one_target "${pid[k]}"
	pkill -P "${pid[k]}" sleep
	wait_for "$PATIENCE" "kprof to end" ended "${pid[k]}"
}

# kprof reads the begins of the first one's calls together with its end. Nobody else has called from these places. (Of what
# calls aten::fake_add, which only returns in its turn, each address space is told when it is met there.)
@test "where calls return to is learnt of a process that has ended, too" {
	local written
	target_start first "$driver" count --n 10
	target_start second "$driver" count --n 10 --linger
	cache=$dir/cache kprof_start k attach -p "${pid[first]},${pid[second]}" -o "$dir/k.kprof"
	pause_process "${pid[k]}"
	written=$(capture_bytes)
	target_go first
	target_result first
	target_end first
	kill -CONT "${pid[k]}"
	wait_for "$PATIENCE" "the first one's calls to be written" has_grown "$written"
	target_go second
	target_result second
	kprof_stop k
	exported k
	jq -e --argjson second "${pid[second]}" '[.traceEvents[] | select(.ph == "X" and .pid == $second and .name != "aten::fake_add")]
		| length == 20 and all(.args.end != "closed")' "$dir/k.trace.json"
	target_end second
}

# few_gaps NAME: the kernel tells whether a process that ends before it is looked at maps files without probes; since 6.7
# (bpf_iter_task_vma). It cannot while the mappings are locked, as for placing a probe: that may happen to some of them.
few_gaps() {
	! grep -q ' bpf_iter_task_vma_new$' /proc/kallsyms ||
		jq -e '[.kprof.gaps[].pid] | unique | length <= 4' "$dir/$1.trace.json"
}

@test "and those that execute a program" {
	local how
	for how in fork vfork; do
		profiled "$how" "" "$driver" brood --n 10 --children 40 --exec --how "$how"
		account "$how" --only --exact
		few_gaps "$how"
		all_named "$how"
	done
}

@test "and those whose files lie in an overlay, as a container's do" {
	grep -q ' bpf_iter_task_vma_new$' /proc/kallsyms || skip "this kernel lacks bpf_iter_task_vma"
	local disk=$dir/disk
	mkdir "$disk"
	mount -t tmpfs none "$disk" 2>/dev/null || skip "may not mount"
	mkdir "$disk"/{over,work,all} && mv "$dir/own" "$disk/below"
	mount -t overlay none -o "lowerdir=$disk/below,upperdir=$disk/over,workdir=$disk/work" "$disk/all" 2>/dev/null ||
		skip "this kernel lacks overlayfs"
	library=$disk/all/libtorch_cpu.so profiled here "" "$disk/all/opdriver" brood --n 10 --children 40 --exec
	account here --only --exact
	few_gaps here
}

# What the trace says that other processes had to pay.
foreign_hits() { # NAME
	jq '.kprof.overhead.hits_in_other_processes' "$dir/$1.trace.json"
}

@test "another process that maps the library has no probe, and children a gap" {
	target_start bystander "$driver" count --n 5000 --linger
	target_start here "$driver" brood --n 10 --children 20 --linger
	kprof_start k attach -p "${pid[here]}" -o "$dir/here.kprof"
	target_go here && target_result here
	clean_text "${pid[bystander]}" "$library"
	target_go bystander && target_result bystander
	kprof_stop k
	target_end bystander
	target_end here
	exported here
	account here --only
	jq -e '.kprof.gaps | length > 0 and all(.reason | test("another process|ended"))' "$dir/here.trace.json"
	grep -q "process [0-9]* (opdriver) uses the same libraries" "$dir/k.err"
	[ "$(foreign_hits here)" = 0 ]
}

@test "another process that begins to use the library: its hits are counted, none is recorded" {
	target_start here "$driver" brood --n 10 --children 20 --linger
	kprof_start k attach -p "${pid[here]}" -o "$dir/here.kprof"
	unprofiled bystander "$driver" count --n 500
	target_go here && target_result here
	kprof_stop k
	target_end here
	exported here
	account here --only --complete
	# Beside its 4 × 500 operators, their returns.
	[ "$(foreign_hits here)" -ge 2000 ] && [ "$(foreign_hits here)" -le 4000 ]
	grep -q "other processes ran into probes" "$dir/k.err"
}

@test "another process that begins to use the library much: its probes go, and the target has a gap" {
	target_start here "$driver" count --n 2000 --linger --until-file "$dir/go"
	kprof_start k attach -p "${pid[here]}" -o "$dir/here.kprof"
	target_go here
	target_start bystander "$driver" spin
	target_go bystander
	wait_for "$PATIENCE" "the probes to go" text_is_clean "${pid[bystander]}" "$library"
	wait_for "$PATIENCE" "new ones in the target" grep -q "probes stand in libtorch_cpu.so of process ${pid[here]}" "$dir/k.err"
	touch "$dir/go"
	target_result here
	kill -TERM "${pid[bystander]}"
	target_result bystander
	kprof_stop k
	target_end here
	target_end bystander
	exported here
	account here --only
	jq -e '.kprof.gaps | length == 1 and all(.reason | test("another process used"))' "$dir/here.trace.json"
}

@test "many targets and another process: one set of probes for them all" {
	target_start bystander "$driver" count --n 10 --linger
	target_start here "$driver" family --children 3 --n 500 --linger
	kprof_start k attach -p "${pid[here]}" -o "$dir/here.kprof"
	probed "${pid[bystander]}" "$library"
	target_go here && target_result here
	kprof_stop k
	clean_text "${pid[bystander]}" "$library"
	target_go bystander && target_result bystander
	target_end bystander
	target_end here
	exported here
	account here --only --complete
}
