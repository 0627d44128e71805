# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Completion of kprof for bash. Commands and options are read from kprof's own help, so that there is one list of them.

_kprof_words() { # COMMAND: its options
	"$1" "$2" --help 2>/dev/null | sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z-]+).*/\2/p; s/^ +(-[a-zA-Z]), .*/\1/p'
}

_kprof() {
	local kprof=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$kprof" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p') --help --version" -- "$word")
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
	case $previous in
	-p | --pid) mapfile -t COMPREPLY < <(compgen -W "$("$kprof" list 2>/dev/null | grep -oE '^ *[0-9]+' | tr -d ' ')" -- "$word") ;;
	--children) mapfile -t COMPREPLY < <(compgen -W 'follow exact' -- "$word") ;;
	--by) mapfile -t COMPREPLY < <(compgen -W 'op thread function line kernel api stream memcpy idle' -- "$word") ;;
	--activities) mapfile -t COMPREPLY < <(compgen -W 'cpu cuda xpu hpu mtia privateuse1' -- "$word") ;;
	--types) mapfile -t COMPREPLY < <(compgen -W "$("$kprof" attach --types list 2>/dev/null)" -- "$word") ;;
	--sort) mapfile -t COMPREPLY < <(compgen -W 'self total count avg name' -- "$word") ;;
	-o | --output | --config) compopt -o default ;;
	-d | --duration | -F | --frequency | --wait | --ops | --exclude | --ring | --max-probes | --stack-rate | --limit | --level) ;;
	*)
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_kprof_words "$kprof" "$command")" -- "$word")
		elif [[ $command == report || $command == export ]]; then
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -f -X '!*.kprof' -- "$word"; compgen -d -- "$word")
		elif [ "$command" = help ]; then
			mapfile -t COMPREPLY < <(compgen -W "$("$kprof" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p')" -- "$word")
		fi
		;;
	esac
}

complete -F _kprof kprof
