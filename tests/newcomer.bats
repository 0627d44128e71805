#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# The five things that CONTRIBUTING.md says how to add ("Five things that are often added"), each added to a copy of the
# tree: tests/newcomer/TASK.patch touches the files that are listed there and no others, what it makes builds and passes the
# unit tests that it brings, and the thing is there. A patch begins with lines that say what to look for:
#   Adds: NAME        of the thing, as the program shows it (an option with its dashes)
#   Command: NAME     of an option: the subcommand that takes it
#   Library: NAME     of a runtime: the library by which it is known

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	scratch=$dir/tree
}

teardown() {
	harness_teardown
}

# says KEY: of the patch's first lines
says() {
	local text
	text=$(sed -n "/^--- /q; s/^$1: //p" "$patch")
	[ -n "$text" ] || fail "$patch has no line '$1: …'" || return 1
	printf '%s\n' "$text"
}

# touched: the files of the patch, one a line
touched() {
	sed -n 's/^+++ b\///p' "$patch" | sort
}

# listed TASK: what CONTRIBUTING.md lists for it, as globs: words in capitals stand for the thing's name
listed() {
	awk -v patch="tests/newcomer/$1.patch" '/^#/ { on = /^### / && index($0, patch) } on && /^- `/' "$ROOT/CONTRIBUTING.md" |
		sed -E 's/^- `([^`]*)`.*/\1/; s/(^|[^a-z.])[A-Z]{3,}/\1*/g'
}

# as_listed TASK: each touched file matches one line of the list, and each line of the list some file
as_listed() {
	local globs file glob bad='' found
	mapfile -t globs < <(listed "$1")
	[ ${#globs[@]} -gt 0 ] || fail "CONTRIBUTING.md has no list with tests/newcomer/$1.patch in its heading" || return 1
	while IFS= read -r file; do
		found=
		for glob in "${globs[@]}"; do
			# shellcheck disable=SC2053 # a glob
			[[ $file != $glob ]] || found=1
		done
		[ -n "$found" ] || bad+=" $file (touched, not listed)"
	done < <(touched)
	for glob in "${globs[@]}"; do
		found=
		while IFS= read -r file; do
			# shellcheck disable=SC2053
			[[ $file != $glob ]] || found=1
		done < <(touched)
		[ -n "$found" ] || bad+=" $glob (listed, not touched)"
	done
	[ -z "$bad" ] || fail "CONTRIBUTING.md and $patch differ:$bad"
}

# unit_tests: those in the patch, and those that include what is in it; one a line
unit_tests() {
	local file
	while IFS= read -r file; do
		case $file in
		tests/unit/*.c) echo "$file" ;;
		tests/*.h) (cd "$scratch" && grep -lr --include='*.c' "^#include \"${file##*/}\"" tests/unit) ;;
		esac
	done < <(touched) | sort -u
}

# made ARGUMENT…: in the copy, with nothing of what this was called with. What is compiled anew is so in half of the time; the
# warnings, which are errors, are the same.
made() {
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u BUILD make -C "$scratch" --no-print-directory CFLAGS=-O1 "$@"
}

# added TASK: a copy of the tree with the patch in it, built; the objects of this build are taken along, with their times, so
# that only what the patch changes is compiled. Sets patch and adds.
added() {
	local test program programs=()
	patch=$ROOT/tests/newcomer/$1.patch
	[ -e "$patch" ] || fail "there is no $patch" || return 1
	adds=$(says Adds) || return 1
	as_listed "$1" || return 1
	mkdir -p "$scratch/build"
	tar -C "$ROOT" --exclude=./build --exclude='./build-*' --exclude=./.git --exclude=./shared -cf - . | tar -C "$scratch" -xf -
	(cd "$BUILD" && cp -a --reflink=auto .tools obj gen bpf ./*.o ./*.a ./*.so kprof "$scratch/build/") || return 1
	patch -d "$scratch" -p1 --no-backup-if-mismatch <"$patch" || fail "$patch does not apply" || return 1
	made all >"$dir/make" 2>&1 || fail "$(tail -n 30 "$dir/make")" || return 1
	(cd "$scratch" && scripts/lint layers spdx length &&
		touched | grep '\.[ch]$' | xargs -r "${CLANG_FORMAT:-clang-format-14}" --dry-run -Werror) || return 1
	while IFS= read -r test; do
		program=${test#tests/}
		programs+=("build/${program%.c}")
	done < <(unit_tests)
	[ ${#programs[@]} -gt 0 ] || return 0
	made "${programs[@]}" >"$dir/make" 2>&1 || fail "$(tail -n 30 "$dir/make")" || return 1
	(cd "$scratch" && tests/run "${programs[@]}") || return 1
}

@test "newcomer: a probe" {
	added probe
	[ -n "$(unit_tests)" ]
	grep -qF -- "$adds" "$scratch"/user/catalog/*.c
	! grep -qF -- "$adds" "$ROOT"/user/catalog/*.c || fail "$adds was there before"
}

@test "newcomer: a device runtime" {
	local library
	added runtime
	library=$dir/$(says Library)
	echo 'int there_is_nothing_in_it;' | gcc -shared -fPIC -o "$library" -x c -
	LD_PRELOAD=$library spawn target sleep 1000
	mapped() { grep -qF "$library" "/proc/${pid[target]}/maps"; }
	wait_for "$PATIENCE" "the library to be loaded" mapped
	runtime_of() { "$1" list | awk -v pid="${pid[target]}" '$1 == pid'; }
	runtime_of "$scratch/build/kprof" | tee "$dir/with"
	grep -qwi -- "$adds" "$dir/with"
	! runtime_of "$KPROF" | grep -wi -- "$adds" || fail "$adds was there before"
}

@test "newcomer: a kind of record" {
	added record
	[ -n "$(unit_tests)" ]
	# The page follows from the code.
	cp "$scratch/docs/capture-format.md" "$dir/page.md"
	made format-page
	diff "$dir/page.md" "$scratch/docs/capture-format.md"
	grep -qwF -- "$adds" "$scratch/docs/capture-format.md"
	! grep -qwF -- "$adds" "$ROOT/docs/capture-format.md" || fail "$adds was there before"
}

@test "newcomer: an output format" {
	added output
	"$BUILD/bench/gen_capture" 1000 7 2 "$dir/small.kprof"
	"$scratch/build/kprof" export "$dir/small.kprof" -o "$dir/small.$adds"
	"$scratch/build/kprof" export "$dir/small.kprof" -o "$dir/small.json"
	"$PYTHON" "$BATS_TEST_DIRNAME/newcomer/check_csv.py" "$dir/small.$adds" "$dir/small.json"
	run "$KPROF" export "$dir/small.kprof" -o "$dir/other.$adds"
	[ "$status" = 2 ]
	[[ $output == *"no format has the suffix"* ]]
}

@test "newcomer: an option" {
	local command
	added option
	command=$(says Command)
	"$scratch/build/kprof" help "$command" >"$dir/help"
	grep -qE -- "(^|[ ,])$adds([ =,]|\$)" "$dir/help"
	"$KPROF" help "$command" >"$dir/before"
	! grep -E -- "(^|[ ,])$adds([ =,]|\$)" "$dir/before" || fail "$adds was there before"
}

# ---- that the comparison can fail ----

@test "newcomer: a file that is not listed is noticed, and one that is listed and not touched" {
	local copy=$dir/root
	mkdir -p "$copy/tests/newcomer"
	printf '### An output format (`tests/newcomer/output.patch`)\n\n- `user/NAME.c`: it\n- `docs/a.md`: its page\n\n## More\n\n- `no.c`\n' \
		>"$copy/CONTRIBUTING.md"
	patch=$dir/a.patch
	ROOT=$copy
	printf -- '--- /dev/null\n+++ b/%s\n' user/csv.c docs/a.md >"$patch"
	as_listed output
	printf -- '--- /dev/null\n+++ b/%s\n' user/csv.c >"$patch"
	run as_listed output
	[[ $status != 0 && $output == *"docs/a.md (listed, not touched)"* ]]
	printf -- '--- /dev/null\n+++ b/%s\n' user/csv.c docs/a.md no.c >"$patch"
	run as_listed output
	[[ $status != 0 && $output == *"no.c (touched, not listed)"* ]]
	run as_listed probe
	[[ $status != 0 && $output == *"has no list"* ]]
}
