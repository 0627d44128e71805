#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel,long
# tests/run: that it can fail. A runner that counts wrongly hides everything else.

bats_require_minimum_version 1.5.0

program() { # NAME, its text on stdin
	{ echo '#!/bin/sh'; cat; } >"$BATS_TEST_TMPDIR/$1"
	chmod +x "$BATS_TEST_TMPDIR/$1"
}
# Of BATS in BATS. BATS 1.8 has a child that waits for a test's limit, by a `sleep` of its own. Where a test were over before it has
# set a trap for it, that one would be left, and BATS would wait until it ends: such short tests as these have no limit.
nested=(-u BATS_ROOT -u BATS_LIBEXEC BATS_TEST_TIMEOUT=)
last() { printf '%s\n' "${lines[-1]}"; }

@test "run: counts what passed, failed and was skipped, over several files" {
	program a <<<'echo "ok one"; echo "ok two # skip no GPU"; echo "3 passed, 0 failed"'
	program b <<<'echo "ok three"; echo "not ok four"; exit 1'
	run tests/run "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
	[ "$status" != 0 ]
	[ "$(last)" = "2 passed, 1 failed, 1 skipped" ]
	[[ $output == *"skipped: $BATS_TEST_TMPDIR/a: two # skip no GPU"* ]]
	[[ $output == *"failed: $BATS_TEST_TMPDIR/b: four"* ]]
	run tests/run "$BATS_TEST_TMPDIR/a"
	[ "$status" = 0 ]
	[ "$(last)" = "1 passed, 0 failed, 1 skipped" ]
}

@test "run: a program that dies without a word is a failure" {
	program dies <<<'echo "ok first"; kill -SEGV $$'
	run tests/run "$BATS_TEST_TMPDIR/dies"
	[ "$status" != 0 ]
	[ "$(last)" = "1 passed, 1 failed, 0 skipped" ]
}

@test "run: nothing run is a failure" {
	program nothing <<<'true'
	run tests/run "$BATS_TEST_TMPDIR/nothing"
	[ "$status" != 0 ]
	[ "$(last)" = "0 passed, 1 failed, 0 skipped" ]
}

@test "run: only skips is a failure, and so is a skip without a reason" {
	program skips <<<'echo "ok one # skip no GPU"'
	run tests/run "$BATS_TEST_TMPDIR/skips"
	[ "$status" != 0 ]
	program silent <<<'echo "ok one # skip"; echo "ok two"'
	run tests/run "$BATS_TEST_TMPDIR/silent"
	[ "$status" != 0 ]
	[ "$(last)" = "1 passed, 1 failed, 0 skipped" ]
}

@test "run: after scripts/setup check nothing is skipped for want of what it installs" {
	program wants <<<'echo "ok one"; echo "ok two # skip no groff here: scripts/setup check installs it"'
	run env -u KPROF_SETUP tests/run "$BATS_TEST_TMPDIR/wants"
	[ "$status" = 0 ]
	[ "$(last)" = "1 passed, 0 failed, 1 skipped" ]
	run env KPROF_SETUP=check tests/run "$BATS_TEST_TMPDIR/wants"
	[ "$status" != 0 ]
	[ "$(last)" = "1 passed, 1 failed, 0 skipped" ]
}

@test "run: a suite's test that hangs fails in bounded time" {
	printf '@test "hangs" { sleep 1000; }\n@test "goes on" { true; }\n' >"$BATS_TEST_TMPDIR/hang.bats"
	run env "${nested[@]}" BATS_TEST_TIMEOUT=10 tests/run "$BATS_TEST_TMPDIR/hang.bats"
	[ "$status" != 0 ]
	[ "$(last)" = "1 passed, 1 failed, 0 skipped" ]
}

# list FILE [ENTRY…]: a quarantine of these, each with a reason
list() {
	local file=$1
	shift
	printf '# a list\n' >"$file"
	[ $# = 0 ] || printf '%s\n\ta reason\n\tand what is done\n' "$@" >>"$file"
}

# Three tests; the first two fail the first time that they are run, the second one always.
wobbly() {
	local i
	suite=$BATS_TEST_TMPDIR/twice.bats quarantine=$BATS_TEST_TMPDIR/quarantine
	for i in 1 2 3; do
		printf '@test "%s: (first) [fails] + a.b*" {\n! mkdir "%s" && { [ -d "%s/x" ] || [ %s = 2 ]; }\n}\n' \
			"$i" "$BATS_TEST_TMPDIR/$i" "$BATS_TEST_TMPDIR/$i" "$i"
	done >"$suite"
}
tries() { run timeout 120 env "${nested[@]}" KPROF_QUARANTINE="$quarantine" tests/run "$suite"; }
entries() { printf "$suite: %s: (first) [fails] + a.b*\n" "$@"; }

@test "run: a test that is quarantined has a second try, which is told; so is what failed twice" {
	local names
	wobbly
	mapfile -t names < <(entries 1 2 3)
	list "$quarantine" "${names[@]}"
	tries
	[ "$status" != 0 ]
	[ "$(last)" = "1 passed, 2 failed, 0 skipped" ]
	[[ $output == *"passed at the second try: $suite: 2: (first) [fails] + a.b*"* ]]
	[[ $output == *$'\n'"# first try: not ok 2 2: (first) [fails] + a.b*"$'\n'* ]]
	[[ $output == *$'\n'"not ok $suite: 1: (first) [fails] + a.b*"$'\n# '* ]]
	[ "$(grep -c "^not ok $suite: " <<<"$output")" = 2 ]
	[[ $output == *$'\n'"failed: $suite: 1: (first) [fails] + a.b*"$'\n'* ]]
	rmdir "$BATS_TEST_TMPDIR/2"
	mkdir -p "$BATS_TEST_TMPDIR"/{1,3}/x
	tries
	[ "$status" = 0 ]
	[ "$(last)" = "3 passed, 0 failed, 0 skipped" ]
}

@test "run: a test that is not quarantined has no second try" {
	wobbly
	mkdir -p "$BATS_TEST_TMPDIR"/{1,3}/x
	list "$quarantine" "$(entries 1)"
	tries
	[ "$status" != 0 ]
	[ "$(last)" = "2 passed, 1 failed, 0 skipped" ]
	run ! grep -E 'second try|first try' <<<"$output"
	[ -d "$BATS_TEST_TMPDIR/2" ]
	rmdir "$BATS_TEST_TMPDIR/2"
	list "$quarantine"
	tries
	[ "$status" != 0 ]
	[ "$(last)" = "2 passed, 1 failed, 0 skipped" ]
}

@test "run: a quarantine that is wrong is a failure" {
	local good wrong
	wobbly
	mkdir -p "$BATS_TEST_TMPDIR"/{1,2,3}/x
	good=$(entries 1)
	list "$quarantine" "$good"
	tries
	[ "$status" = 0 ]
	refused() { # WHY
		tries
		[ "$status" != 0 ]
		[ "$(last)" = "3 passed, 1 failed, 0 skipped" ]
		[[ $output == *"not ok $quarantine: $1"* ]]
	}
	list "$quarantine" "$suite: no such test"
	refused "no such test: $suite: no such test"
	list "$quarantine" "$BATS_TEST_TMPDIR/gone.bats: a test"
	refused "no such test: $BATS_TEST_TMPDIR/gone.bats: a test"
	printf '%s\n' "$good" >"$quarantine"
	refused "no reason: $good"
	{ printf '%s\n' "$good"; printf '%s\n\tthis one has one\n' "$(entries 2)"; } >"$quarantine"
	refused "no reason: $good"
	# More than a handful.
	for i in 4 5 6; do printf '@test "%s: (first) [fails] + a.b*" {\ntrue\n}\n' $i; done >>"$suite"
	mapfile -t wrong < <(entries 1 2 3 4 5 6)
	list "$quarantine" "${wrong[@]}"
	tries
	[ "$status" != 0 ]
	[ "$(last)" = "6 passed, 1 failed, 0 skipped" ]
	[[ $output == *"not ok $quarantine: 6 tests: five is the most"* ]]
}

@test "run: what shows that a target survives cannot be quarantined" {
	local name
	wobbly
	mkdir -p "$BATS_TEST_TMPDIR"/{1,2,3}/x
	for name in kill kill-inject robust; do
		list "$quarantine" "tests/$name.bats: $(sed -n 's/^@test "\(.*\)" {$/\1/p' "tests/$name.bats" | head -n 1)"
		tries
		[ "$status" != 0 ]
		[ "$(last)" = "3 passed, 1 failed, 0 skipped" ]
		[[ $output == *"not ok $quarantine: tests/$name.bats has no second try: "* ]]
	done
}

@test "run: the quarantine of this tree is as it should be" {
	program passes <<<'echo "ok one"'
	run env -u KPROF_QUARANTINE tests/run "$BATS_TEST_TMPDIR/passes"
	[ "$status" = 0 ]
}

@test "run: programs, and suites that say so, run at the same time; the others alone" {
	local i
	# Each waits for the other two; the suite that is alone wants to see them gone.
	for i in a b; do
		program $i <<-END
			touch $BATS_TEST_TMPDIR/in-$i
			for i in \$(seq 300); do [ ! -e $BATS_TEST_TMPDIR/in-c ] || [ ! -e $BATS_TEST_TMPDIR/in-a ] || break; sleep 0.1; done
			[ -e $BATS_TEST_TMPDIR/in-c ] && [ -e $BATS_TEST_TMPDIR/in-a ] && echo "ok $i" || echo "not ok $i"
			sleep 0.3
			touch $BATS_TEST_TMPDIR/out-$i
		END
	done
	printf '# bats file_tags=parallel\n@test "c" { touch %s/in-c; }\n' "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/c.bats"
	printf '@test "d" { [ -e %s/out-a ] && [ -e %s/out-b ]; }\n' "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/d.bats"
	run env "${nested[@]}" KPROF_JOBS=3 tests/run "$BATS_TEST_TMPDIR"/{d.bats,a,b,c.bats}
	[ "$status" = 0 ]
	[ "$(last)" = "4 passed, 0 failed, 0 skipped" ]
}

@test "run: of the suites with PyTorch two at a time, beside others" {
	local i t=$BATS_TEST_TMPDIR
	for i in a b d; do
		cat >"$t/hold" <<-END
			mkdir $t/one 2>/dev/null && mine=$t/one || { mkdir $t/two && mine=$t/two; } || exit 1
			until [ -e $t/in-c ]; do sleep 0.1; done
			sleep 1
			rmdir \$mine
		END
		printf '# bats file_tags=parallel,torch\n@test "%s" { sh %s/hold; }\n' $i "$t" >"$t/$i.bats"
	done
	printf '# bats file_tags=parallel,long\n@test "c" { until [ -e %s/one ] && [ -e %s/two ]; do sleep 0.1; done; touch %s/in-c; }\n' \
		"$t" "$t" "$t" >"$t/c.bats"
	run env "${nested[@]}" KPROF_JOBS=4 BATS_TEST_TIMEOUT=60 tests/run "$t"/{a,b,c,d}.bats
	[ "$status" = 0 ]
	[ "$(last)" = "4 passed, 0 failed, 0 skipped" ]
}

@test "run: PyTorch is imported once for all suites that want it, and gone before others run alone" {
	local i t=$BATS_TEST_TMPDIR
	mkdir "$t/torch-9.9.dist-info"
	printf 'Metadata-Version: 2.1\nName: torch\nVersion: 9.9\n' >"$t/torch-9.9.dist-info/METADATA"
	echo "import os; print(os.getpid(), file=open('$t/imported', 'a'))" >"$t/torch.py"
	printf '#!/bin/sh\nPYTHONPATH=%s exec /usr/bin/python3 "$@"\n' "$t" >"$t/python"
	chmod +x "$t/python"
	echo 'print(f"READY {os.getpid()} of {os.getppid()}", flush=True)' >"$t/target.py"
	for i in a b; do
		sed 's/^TEST/@test/' >"$t/$i.bats" <<-END
			# bats file_tags=parallel,torch
			source "$PWD/tests/lib/harness.bash"
			setup_file() {
				torch_hosts
			}
			teardown_file() { torch_hosts_end; }
			TEST "$i" {
				harness_setup
				target_start t "$t/python" "$t/target.py"
				grep -qx "READY .* of \$(cat "$t/imported")" "\$dir/t.out"
			}
		END
	done
	printf '@test "c" { ! kill -0 "$(cat %s/imported)" || false; }\n' "$t" >"$t/c.bats"
	KPROF_TORCH_PYTHONS=$t/python run env "${nested[@]}" tests/run "$t"/{a,b,c}.bats
	[ "$status" = 0 ]
	[ "$(last)" = "3 passed, 0 failed, 0 skipped" ]
	[ "$(wc -l <"$t/imported")" = 1 ]
}

@test "run: what lies in scripts/ runs beside the others, on time that they leave, and counts" {
	local tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree/tests" "$tree/scripts"
	cp tests/run "$tree/tests"
	: >"$tree/tests/quarantine"
	# It ends only when the suite, which runs alone, has begun: each waits for the other at the FIFO. Little work, because
	# idle time is rare beside other suites, and lint and fuzzers want it too.
	mkfifo "$tree/begun"
	printf '#!/bin/sh\nread -r line <begun\nchrt -p $$ | grep -q SCHED_IDLE && echo ok idle\necho not ok lint\n' \
		>"$tree/scripts/slow"
	chmod +x "$tree/scripts/slow"
	printf '@test "alone" { echo >begun; [[ $(chrt -p $$) == *SCHED_OTHER* ]]; }\n' >"$tree/tests/alone.bats"
	run env "${nested[@]}" timeout 500 "$tree/tests/run" scripts/slow tests/alone.bats
	[ "$status" = 1 ]
	[ "$(last)" = "2 passed, 1 failed, 0 skipped" ]
}

@test "run: a trace that Perfetto has a complaint about is a failure, though the suite that left it passed" {
	[ -x "${KPROF_READERS_PYTHON:-}" ] || skip "no Python environment with the readers: scripts/setup check installs it"
	local head=$'{"schemaVersion": 1,\n  "kprof": {},\n  "traceEvents": [{"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": '
	export named="$head\"seven\"}}]}" nameless="$head\"\"}}]}"
	export other=${nameless/kprof/sofa}
	printf '@test "%s" { printf %%s "$%s" >"$BATS_TEST_TMPDIR/%s"; }\n' \
		good named a.json "no name" nameless b.json another\'s other c.json >"$BATS_TEST_TMPDIR/leaves.bats"
	run env "${nested[@]}" tests/run "$BATS_TEST_TMPDIR/leaves.bats"
	[ "$status" = 1 ]
	[[ $output == *"leaves.bats: no name: b.json: json_parser_failure 1"* ]]
	[[ $output == *"ok 2 2 traces read by Perfetto's trace processor"* ]]
	[ "$(last)" = "4 passed, 1 failed, 0 skipped" ]
}

@test "run: tests/README.md names every suite and every fuzzer once, and unit tests lie where their sources do" {
	local folder missing=
	# the third column has the suites, of the second table the second one the fuzzers, with what is said of them in brackets
	diff <(printf '%s\n' tests/*.bats tests/soak/*.bats | sed 's|^tests/||' | sort) \
		<(sed '/^## Fuzzers/,$d' tests/README.md | awk -F '|' '/^\|/ { print $4 }' | grep -o '`[^`]*\.bats`' | tr -d '`' | sort)
	diff <(printf '%s\n' tests/fuzz/fuzz_*.c | sed 's|.*/fuzz_\(.*\)\.c|\1|' | sort) \
		<(sed '1,/^## Fuzzers/d' tests/README.md | awk -F '|' '/^\|/ { print $3 }' | sed 's/([^)]*)//g' | grep -o '`[^`]*`' | tr -d '`' | sort)
	while IFS= read -r folder; do
		[ -d "user/$folder" ] || [ -d "$folder" ] || missing+=" tests/unit/$folder"
	done < <(find tests/unit -mindepth 2 -name '*.c' -printf '%P\n' | sed 's|/[^/]*$||' | sort -u)
	[ -z "$missing" ] || { echo "nowhere:$missing"; false; }
}
