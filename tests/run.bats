#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# tests/run: that it can fail. A runner that counts wrongly hides everything else.

program() { # NAME, its text on stdin
	{ echo '#!/bin/sh'; cat; } >"$BATS_TEST_TMPDIR/$1"
	chmod +x "$BATS_TEST_TMPDIR/$1"
}
last() { printf '%s\n' "${lines[-1]}"; }

@test "run: counts what passed, failed and was skipped, over several files" {
	program a <<<'echo "ok one"; echo "ok two # skip no GPU"; echo "3 passed, 0 failed"'
	program b <<<'echo "ok three"; echo "not ok four"; exit 1'
	run tests/run "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
	[ "$status" != 0 ]
	[ "$(last)" = "2 passed, 1 failed, 1 skipped" ]
	[[ $output == *"skipped: $BATS_TEST_TMPDIR/a: two # skip no GPU"* ]]
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
	run env -u BATS_ROOT -u BATS_LIBEXEC BATS_TEST_TIMEOUT=10 tests/run "$BATS_TEST_TMPDIR/hang.bats"
	[ "$status" != 0 ]
	[ "$(last)" = "1 passed, 1 failed, 0 skipped" ]
}

@test "run: a suite's test that fails has a second try, which is told; so is what failed twice" {
	local i suite=$BATS_TEST_TMPDIR/twice.bats
	for i in 1 2 3; do
		printf '@test "%s: (first) [fails] + a.b*" {\n! mkdir "%s" && { [ -d "%s/x" ] || [ %s = 2 ]; }\n}\n' \
			"$i" "$BATS_TEST_TMPDIR/$i" "$BATS_TEST_TMPDIR/$i" "$i"
	done >"$suite"
	tries() { run env -u BATS_ROOT -u BATS_LIBEXEC "$@" tests/run "$suite"; }
	tries
	[ "$status" != 0 ]
	[ "$(last)" = "1 passed, 2 failed, 0 skipped" ]
	[[ $output == *"passed at the second try: $suite: 2: (first) [fails] + a.b*"* ]]
	[[ $output == *$'\n'"not ok $suite: 1: (first) [fails] + a.b*"$'\n# '* ]]
	[ "$(grep -c "^not ok $suite: " <<<"$output")" = 2 ]
	rmdir "$BATS_TEST_TMPDIR/2"
	mkdir -p "$BATS_TEST_TMPDIR"/{1,3}/x
	tries
	[ "$status" = 0 ]
	[ "$(last)" = "3 passed, 0 failed, 0 skipped" ]
	rmdir "$BATS_TEST_TMPDIR/2"
	tries TRIES_AGAIN=0
	[ "$status" != 0 ]
	[ "$(last)" = "2 passed, 1 failed, 0 skipped" ]
}
