# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Completion of kprof for bash. Commands, options and values come from kprof's own tables (kprof help --options).

_kprof_commands() {
	"$1" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p'
}

_kprof_options() { # KPROF COMMAND
	"$1" help --options 2>/dev/null | awk -F '\t' -v c="$2" '$1 == c { print $3 }'
}

_kprof_values() { # KPROF COMMAND OPTION: "=" and what may follow the option; nothing: it takes no value
	"$1" help --options 2>/dev/null |
		awk -F '\t' -v c="$2" -v o="$3" '$1 == c && ($2 == o || $3 == o) && $4 != "" { print "=" $5 }'
}

_kprof() {
	local kprof=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} values='' i
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_kprof_commands "$kprof") --help --version" -- "$word")
		return
	fi
	if [[ $command == run || $command == sample ]]; then
		for ((i = 2; i < COMP_CWORD; i++)); do
			if [ "${COMP_WORDS[i]}" = -- ]; then
				compopt -o default # the program's own words
				return
			fi
		done
	fi
	[[ $previous != -* ]] || values=$(_kprof_values "$kprof" "$command" "$previous")
	case $values in
	'=<file>') compopt -o default ;;
	'=<pid>') mapfile -t COMPREPLY < <(compgen -W "$("$kprof" list 2>/dev/null | grep -oE '^ *[0-9]+' | tr -d ' ')" -- "$word") ;;
	=*) mapfile -t COMPREPLY < <(compgen -W "${values#=}" -- "$word") ;;
	*)
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_kprof_options "$kprof" "$command")" -- "$word")
		elif [[ $command == memory && $COMP_CWORD == 2 ]]; then
			mapfile -t COMPREPLY < <(compgen -W "start stop status export" -- "$word")
		elif [[ $command == ctl && $COMP_CWORD == 2 ]]; then
			mapfile -t COMPREPLY < <(compgen -W "prepare start stop status list get cancel dump processes" -- "$word")
		elif [[ $command == @(report|why|diff|merge|export|push) ]]; then
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -f -X '!*.kprof' -- "$word"; compgen -d -- "$word")
		elif [ "$command" = help ]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_kprof_commands "$kprof")" -- "$word")
		fi
		;;
	esac
}

complete -F _kprof kprof
