#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# scripts/setup: where backports come from, and that a machine which has everything is left alone.

@test "setup: the backports entry keeps a one-line source's mirror and options" {
	cat >"$BATS_TEST_TMPDIR/sources.list" <<-END
		# deb http://commented.example/debian bookworm main
		deb-src http://source.example/debian bookworm main
		deb http://security.example/debian bookworm-security main
		deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib
		deb http://second.example/debian bookworm main
	END
	run scripts/backports-entry "$BATS_TEST_TMPDIR/sources.list"
	[ "$status" = 0 ]
	[ "$output" = "deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm-backports main" ]
}

@test "setup: the backports entry keeps a deb822 source's mirrors and key, and skips disabled ones" {
	cat >"$BATS_TEST_TMPDIR/a.sources" <<-END
		Types: deb
		URIs: http://security.example/debian-security
		Suites: bookworm-security
		Components: main

		Enabled: no
		Types: deb
		URIs: http://off.example/debian
		Suites: bookworm
		Components: main

		# the mirror
		Types: deb deb-src
		URIs: http://one.example/debian http://two.example/debian
		Suites: bookworm bookworm-updates
		Components: main non-free-firmware
		Signed-By:
		 -----BEGIN PGP PUBLIC KEY BLOCK-----
		 .
		 abc
	END
	run scripts/backports-entry /nonexistent.list "$BATS_TEST_TMPDIR/a.sources"
	[ "$status" = 0 ]
	[ "$output" = "Types: deb
URIs: http://one.example/debian http://two.example/debian
Suites: bookworm-backports
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc" ]
}

@test "setup: no source of bookworm gives no backports entry" {
	echo "deb http://mirror.example/debian trixie main" >"$BATS_TEST_TMPDIR/x.list"
	run scripts/backports-entry "$BATS_TEST_TMPDIR/x.list"
	[ "$status" = 0 ]
	[ -z "$output" ]
}

@test "setup: nothing is missing, so nothing is done, and no package manager is asked" {
	local tool
	mkdir "$BATS_TEST_TMPDIR/bin"
	for tool in apt-get apt npm pip pip3 curl wget git go sudo; do
		printf '#!/bin/sh\necho "$0 $*"\nexit 1\n' >"$BATS_TEST_TMPDIR/bin/$tool"
		chmod +x "$BATS_TEST_TMPDIR/bin/$tool"
	done
	PATH=$BATS_TEST_TMPDIR/bin:$PATH run scripts/setup build
	[ "$status" = 0 ]
	[ -z "$output" ]
}

@test "setup: an unknown stage is a usage error" {
	run scripts/setup everything
	[ "$status" = 2 ]
	[[ $output == *"scripts/setup build"* ]]
}

@test "setup: what a machine lacks is named" {
	run env CLANG=no-such-clang scripts/check-tools build
	[ "$status" = 1 ]
	[ "$output" = "missing: no-such-clang" ]
}
