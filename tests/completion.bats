#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Shell completion, asked as bash asks it.

setup() {
	# shellcheck source=scripts/completion/kprof.bash
	source scripts/completion/kprof.bash
}

complete_words() { # WORD…: what is offered for the last one, sorted
	COMP_WORDS=("$BUILD/kprof" "$@")
	COMP_CWORD=$#
	compopt() { :; } # only there while bash completes
	_kprof
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

@test "completion: every command that the help lists" {
	run complete_words ''
	for command in attach run sample dump report why diff merge export push memory top daemon ctl status list check help --version; do
		grep -qxF -e "$command" <<<"$output"
	done
	[ "$(complete_words re)" = report ]
}

@test "completion: a command's own options, and values of those that have a few" {
	[ "$(complete_words attach --dur)" = --duration ]
	[ "$(complete_words report --js)" = --json ]
	[ "$(complete_words report --dur)" = "" ]
	[ "$(complete_words report --by '')" = "$(printf '%s\n' api collective container flops function idle kernel line memcpy memory module op process step stream thread user wait)" ]
	[ "$(complete_words attach --types kern)" = kernel ]
	[ "$(complete_words memory st)" = "$(printf '%s\n' start status stop)" ]
	[ "$(complete_words memory start --max)" = --max-overhead ]
	[ "$(complete_words ctl st)" = "$(printf '%s\n' start status stop)" ]
	[ "$(complete_words attach --activities c)" = "$(printf '%s\n' cpu cuda)" ]
}

@test "completion: every option in the help is offered" {
	for command in attach run sample dump report why diff export memory top status list check; do
		complete_words "$command" -- >"$BATS_TEST_TMPDIR/offered"
		"$BUILD/kprof" "$command" --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -e '--[a-z-]+' | sort >"$BATS_TEST_TMPDIR/help"
		[ -s "$BATS_TEST_TMPDIR/help" ]
		diff "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/offered"
	done
}

@test "completion: captures and folders for report, nothing else" {
	cd "$BATS_TEST_TMPDIR"
	mkdir folder && touch a.kprof b.txt
	[[ $BUILD == /* ]] || BUILD=$BATS_TEST_DIRNAME/../$BUILD
	[ "$(complete_words report '')" = "$(printf 'a.kprof\nfolder')" ]
}
