#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# An option is one row of a table: whatever row there is, --help, completion, the manual page and the configuration file
# know it. The rows are those that kprof prints for programs, which no other output is made of.

# shellcheck disable=SC2030,SC2031,SC2154 # each_row sets command, name and so on for the function that it calls
# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"
# shellcheck source=tests/lib/cli.bash
source "$BATS_TEST_DIRNAME/lib/cli.bash"
# shellcheck source=scripts/completion/kprof.bash
source "$BATS_TEST_DIRNAME/../scripts/completion/kprof.bash"

setup() {
	dir=$BATS_TEST_TMPDIR
	# A character between the fields that, unlike a tab, also separates empty ones.
	"$KPROF" help --options | tr '\t' '\037' >"$dir/rows"
	[ "$(cut -d $'\037' -f1 "$dir/rows" | sort -u | wc -l)" = 17 ]
}

each_row() { # FUNCTION: called with $command, $letter, $name, $argument, $values and $help of each row
	local command letter name argument values help
	while IFS=$'\037' read -r command letter name argument values help; do
		"$1" || fail "in $command $name"
	done <"$dir/rows"
}

complete_words() { # WORD…: what is offered for the last one
	# shellcheck disable=SC2034 # bash's interface to completion
	COMP_WORDS=("$KPROF" "$@") COMP_CWORD=$#
	compopt() { :; }
	_kprof
	printf '%s\n' "${COMPREPLY[@]}"
}

@test "options: the rows are complete, and those that every recording needs are there" {
	complete_row() { [ -n "$command" ] && [[ $name == --[a-z]* ]] && [ -n "$help" ]; }
	each_row complete_row
	for name in attach:--duration attach:--no-agent run:--children sample:--gil dump:--wait report:--by export:--level list:--all check:--pid; do
		grep -q "^${name%:*}"$'\037.*\037'"${name#*:}"$'\037' "$dir/rows" || fail "$name has no row"
	done
}

@test "options: --help has a line for each row" {
	in_help() {
		local head='      '
		[ -z "$letter" ] || head="  $letter, "
		"$KPROF" "$command" --help | grep -qE -- "^$head$name${argument:+ ${argument//[\[\]]/.}}( |$)"
	}
	each_row in_help
	for command in attach run sample dump report why diff merge export push top list check; do
		[ "$("$KPROF" "$command" --help | grep -cE '^  (-[a-zA-Z],|   ) --')" = "$(grep -c "^$command"$'\037' "$dir/rows")" ]
		"$KPROF" "$command" --help | LC_ALL=C.UTF-8 awk 'length > 100 { exit 1 }' || fail "kprof $command --help is too wide"
	done
}

@test "options: completion offers each row, and the values of those that have a few" {
	offered() {
		complete_words "$command" "$name" | grep -qxF -e "$name" || return 1
		case $argument:$values in
		*:'<file>') ;;
		*:'<pid>') ;;
		?*:*) [ "$(complete_words "$command" "$name" '')" = "$(tr ' ' '\n' <<<"$values")" ] ;;
		esac
	}
	each_row offered
	[ "$(complete_words sample --children '')" = "$(printf 'auto\nfollow\nexact')" ]
	[ "$(complete_words attach --no-agent '')" = "" ]
}

@test "options: the manual page has an entry for each row in its command's list" {
	local man=$dir/lists
	# As a reader of the page gets it: one line an entry, "COMMANDS OF THE LIST|heading".
	awk '/^\.Ss Recording options/ { of = "attach run sample" }
		/^\.Ss Options of/ { of = substr($0, 16); gsub(/ and /, " ", of) }
		/^\.Sh/ { of = "" }
		of != "" && /^\.It Fl/ { print of "|" $0 }' "$BUILD/kprof.1" >"$man"
	in_manual() {
		[ "$name" = --help ] || grep -E "^[^|]*\b$command\b[^|]*\|" "$man" |
			grep -qE -- "^[^|]*\|\.It Fl ${letter:+${letter#-} , }${name#-}( Ar |$)"
	}
	each_row in_manual
}

@test "options: the manual page's own text must belong to an option" {
	sed 's/^\.It Fl -ring$/.It Fl -rings/' "$ROOT/docs/kprof.1" >"$dir/page"
	run "$ROOT/scripts/manual" "$KPROF" "$dir/page"
	[ "$status" = 1 ]
	[[ $output == *"-rings is no option of attach , run , sample"* ]]
}

@test "options: the configuration file takes the rows of recordings, but for those that name what is recorded" {
	configured() {
		[[ $command == attach || $command == run || $command == sample ]] || return 0
		printf '%s\n' "${name#--}" >"$dir/conf"
		case $name:$argument in
		--pid:* | --tid:* | --all:* | --user:* | --cgroup:* | --comm:* | --exclude-user:* | --exclude-cgroup:* | --exclude-comm:* | --config:* | --help:*) refuses "line 1: there is no such option" "$command" --config "$dir/conf" ;;
		*:?*) refuses "line 1: it needs a value" "$command" --config "$dir/conf" ;;
		*) refuses "no (process|command) is given|neither a process" "$command" --config "$dir/conf" ;;
		esac
	}
	each_row configured
}

@test "options: a value that is missing, too many, or none of the few is refused" {
	refused_values() {
		if [ -z "$argument" ]; then
			refuses "$name takes no value" "$command" "$name=x"
			return
		fi
		refuses "$name needs a value" "$command" "$name" || return 1
		case $name:$argument in
		--output:*) refuses "the output's name is empty" "$command" "$name" '' ;;
		--config:*) refuses 'cannot read' "$command" "$name" "$dir/none" ;;
		--ops:* | --exclude:*) refuses "no list of operator names" "$command" "$name" '' ;;
		*:N | *:HZ | *:PID* | *:SIZE | *:TIME) refuses "'\?' is no " "$command" "$name" '?' ;;
		*) [[ -z $values || $values == '<file>' ]] || refuses "'\?'" "$command" "$name" '?' ;;
		esac
	}
	each_row refused_values
}
