#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# scripts/lint and its checks: that each of them can fail. Run on a small tree with one fault each.

setup() {
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree"/{user/util,user/store,user/model/report,user/capture/record,user/cmd,bpf,include/kprof,tests}
	cp -r scripts .clang-format .clang-tidy .shellcheckrc "$tree"
	licence='/* SPDX-License-Identifier: BSD-2-Clause */'
	printf '%s\nint f(void);\n' "$licence" >"$tree/user/util/good.h"
	cd "$tree" || return 1
}

@test "lint: a good tree passes" {
	run scripts/lint format columns layers spdx length return_probes
	[ "$status" = 0 ]
	[ "$(grep -c '^ok ' <<<"$output")" = 6 ]
}

@test "lint: includes that run against the data fail, the others pass" {
	printf '%s\n#include "store/store.h"\n#include "util/util.h"\n#include <bpf/libbpf.h>\n' "$licence" >user/capture/record/a.c
	printf '%s\n#include "store/store.h"\n' "$licence" >user/model/report/a.c
	printf '%s\n' "$licence" | tee user/store/store.h user/store/inner.h user/util/util.h >user/capture/record/record.h
	run scripts/check-layers
	[ "$status" = 0 ]
	printf '%s\n#include "capture/record/record.h"\n' "$licence" >user/store/b.c
	run scripts/check-layers
	[ "$status" = 1 ]
	[[ $output == 'user/store/b.c: may not include "capture/record/record.h"'* ]]
	rm user/store/b.c
	# Past a room's door.
	printf '%s\n#include "store/inner.h"\n' "$licence" >user/model/report/c.c
	run scripts/check-layers
	[ "$status" = 1 ]
	[[ $output == *'"store/inner.h", which is no door of user/store'* ]]
	rm user/model/report/c.c
	# A folder that the table does not know.
	mkdir user/other
	printf '%s\n#include "util/util.h"\n' "$licence" >user/other/a.c
	run scripts/check-layers
	[ "$status" = 1 ]
	rm -r user/other
	printf '%s\n#include "util/util.h"\n' "$licence" >user/cmd/c.c
	run scripts/check-layers
	[ "$status" = 1 ]
	rm user/cmd/c.c
	printf '%s\n#include <bpf/bpf.h>\n' "$licence" >user/model/report/d.c
	run scripts/check-layers
	[ "$status" = 1 ]
	rm user/model/report/d.c
	# However it is written: the compiler finds it all the same.
	for include in '<capture/record/record.h>' '"../capture/record/record.h"'; do
		printf '%s\n#include%s\n' "$licence" "$include" >user/store/b.c
		run scripts/check-layers
		[ "$status" = 1 ]
		[[ $output == "user/store/b.c: may not include"* ]]
	done
}

@test "lint: rooms that name one below, as part of a group or not, fail; so does a name of none" {
	for word in capture capture/record stor; do
		cp "$BATS_TEST_DIRNAME/../scripts/check-layers" scripts/check-layers
		sed -i "/'user.store':/s|util|util $word|" scripts/check-layers
		run scripts/check-layers
		[ "$status" = 1 ]
		[[ $output == "user/store: its line names "*"$word"* ]]
	done
}

@test "lint: files that call each other in a circle fail, one after the other they pass" {
	printf '%s\nvoid g(void);\nvoid f(void);\nvoid f(void)\n{\n\tg();\n}\n' "$licence" >user/util/a.c
	printf '%s\nvoid g(void);\nvoid g(void)\n{\n}\n' "$licence" >user/util/b.c
	mkdir -p build/obj/user/util
	objects() { local f; for f in a b; do gcc -c "user/util/$f.c" -o "build/obj/user/util/$f.o"; done; }
	objects
	run scripts/check-circles build
	[ "$status" = 0 ]
	printf '%s\nvoid f(void);\nvoid g(void);\nvoid g(void)\n{\n\tf();\n}\n' "$licence" >user/util/b.c
	objects
	run scripts/check-circles build
	[ "$status" = 1 ]
	[[ $output == *'user/util/b.c uses f of user/util/a.c'* ]]
	# Also where the symbol is a weak one.
	printf '%s\nextern void f(void) __attribute__((weak));\nvoid g(void);\nvoid g(void)\n{\n\tif (f)\n\t\tf();\n}\n' "$licence" >user/util/b.c
	objects
	run scripts/check-circles build
	[ "$status" = 1 ]
	# What was not compiled is not passed over.
	rm build/obj/user/util/b.o
	run scripts/check-circles build
	[ "$status" = 1 ]
	[[ $output == *'user/util/b.c: it was not compiled'* ]]
}

@test "lint: headers that include each other in a circle fail" {
	printf '%s\n#include "two.h"\n' "$licence" >bpf/one.h
	printf '%s\n#include "one.h"\n' "$licence" >bpf/two.h
	run scripts/check-circles build
	[ "$status" = 1 ]
	[[ $output == *'bpf/one.h uses an #include of bpf/two.h'* ]]
	rm bpf/*.h
	mkdir -p gpu/base gpu/cupti
	printf '%s\n#include "gpu/cupti/two.h"\n' "$licence" >gpu/base/one.h
	printf '%s\n#include "gpu/base/one.h"\n' "$licence" >gpu/cupti/two.h
	run scripts/check-circles build
	[ "$status" = 1 ]
	[[ $output == *'gpu/base/one.h uses an #include of gpu/cupti/two.h'* ]]
}

@test "lint: a comment of more than 100 columns fails" {
	printf '%s\n/* %095d */\n' "$licence" 0 >user/util/wide.h
	run scripts/lint columns
	[ "$status" = 1 ]
	[[ $output == *'user/util/wide.h:2: 101 columns'* ]]
}

@test "lint: a missing or wrong licence fails" {
	echo 'int x;' >user/util/none.c
	run scripts/check-spdx
	[ "$status" = 1 ]
	[[ $output == user/util/none.c:* ]]
	rm user/util/none.c
	printf '%s\nint x;\n' "$licence" >bpf/wrong.bpf.c
	run scripts/check-spdx
	[ "$status" = 1 ]
	[[ $output == bpf/wrong.bpf.c:* ]]
}

@test "lint: format, length, return probes and bad scripts fail" {
	printf '%s\nint  x;\n' "$licence" >user/util/format.c
	run scripts/lint format
	[ "$status" = 1 ]
	seq 601 >user/util/long.c
	run scripts/lint length
	[ "$status" = 1 ]
	[[ $output == *'user/util/long.c: 601 lines'* ]]
	echo 'SEC("uretprobe.multi")' >bpf/x.bpf.c
	run scripts/lint return_probes
	[ "$status" = 1 ]
	printf '#!/bin/bash\nrm $1/*\n' >scripts/bad
	run scripts/lint shell
	[ "$status" = 1 ]
	echo 'def f(:' >tests/bad.py
	run scripts/lint python
	[ "$status" = 1 ]
}

# compiled FILE: as make does, which notes what the compiler read
compiled() {
	mkdir -p "build/obj/${1%/*}"
	gcc -Iuser -MMD -MP -c "$1.c" -o "build/obj/$1.o"
}

@test "lint: static analysis finds a use after free" {
	export BUILD=build
	# What scripts/analyzer.h includes.
	cp "$BATS_TEST_DIRNAME/../user/util/error.h" user/util/
	cp "$BATS_TEST_DIRNAME/../include/kprof.h" include/
	cp "$BATS_TEST_DIRNAME"/../include/kprof/{dump,machine,options,rights}.h include/kprof/
	cat >user/util/uaf.c <<-END
		#include <stdlib.h>
		#include "util/good.h"
		int main(void)
		{
			char *p = malloc(3);
			free(p);
			return p[0];
		}
	END

	for _ in 1 2; do
		run scripts/lint tidy
		[ "$status" = 1 ]
		[[ $output == *'Use of memory after it is freed'* ]]
	done
	# What it found nothing in is not looked at again: a program in its place that finds nothing but faults isn't called …
	sed -i 's/p\[0\];/p[0]; \/\/ NOLINT/' user/util/uaf.c
	compiled user/util/uaf
	scripts/lint tidy
	printf '#!/bin/sh\ncase $1 in --version) exec clang-tidy-14 --version ;; *) exit 1 ;; esac\n' >faulty
	chmod +x faulty
	CLANG_TIDY=./faulty scripts/lint tidy
	# … until something is different: a header, the checks, how much it follows, or the file, compiled since or not.
	KPROF_LINT_NODES=75001 CLANG_TIDY=./faulty run scripts/lint tidy
	[ "$status" = 1 ]
	for changed in .clang-tidy user/util/good.h; do
		echo >>"$changed"
		CLANG_TIDY=./faulty run scripts/lint tidy
		[ "$status" = 1 ]
		scripts/lint tidy
	done
	# A header has changed, and may include others now: of those the compiler has yet to say.
	CLANG_TIDY=./faulty run scripts/lint tidy
	[ "$status" = 1 ]
	compiled user/util/uaf
	scripts/lint tidy
	CLANG_TIDY=./faulty scripts/lint tidy
	sed -i 's/ NOLINT//' user/util/uaf.c
	for _ in 1 2; do
		run scripts/lint tidy
		[ "$status" = 1 ]
		compiled user/util/uaf
	done
}
