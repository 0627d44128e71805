#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# scripts/lint and its checks: that each of them can fail. Run on a small tree with one fault each.

setup() {
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree"/{user/util,user/store,user/model,user/capture,user/cmd,bpf,include/kprof,tests}
	cp -r scripts .clang-format .clang-tidy .shellcheckrc "$tree"
	licence='/* SPDX-License-Identifier: BSD-2-Clause */'
	printf '%s\nint f(void);\n' "$licence" >"$tree/user/util/good.h"
	cd "$tree" || return 1
}

@test "lint: a good tree passes" {
	run scripts/lint format layers spdx length return_probes
	[ "$status" = 0 ]
	[ "$(grep -c '^ok ' <<<"$output")" = 5 ]
}

@test "lint: includes that run against the data fail, the others pass" {
	printf '%s\n#include "store/store.h"\n#include "util/util.h"\n#include <bpf/libbpf.h>\n' "$licence" >user/capture/a.c
	printf '%s\n#include "store/store.h"\n' "$licence" >user/model/a.c
	run scripts/check-layers
	[ "$status" = 0 ]
	printf '%s\n#include "capture/session/session.h"\n' "$licence" >user/store/b.c
	run scripts/check-layers
	[ "$status" = 1 ]
	[[ $output == 'user/store/b.c: may not include "capture/session/session.h"'* ]]
	rm user/store/b.c
	printf '%s\n#include "util/util.h"\n' "$licence" >user/cmd/c.c
	run scripts/check-layers
	[ "$status" = 1 ]
	rm user/cmd/c.c
	printf '%s\n#include <bpf/bpf.h>\n' "$licence" >user/model/d.c
	run scripts/check-layers
	[ "$status" = 1 ]
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

@test "lint: static analysis finds a use after free" {
	# What scripts/analyzer.h includes.
	cp "$BATS_TEST_DIRNAME/../user/util/error.h" user/util/
	cp "$BATS_TEST_DIRNAME/../include/kprof.h" include/
	cat >user/util/uaf.c <<-END
		#include <stdlib.h>
		int main(void)
		{
			char *p = malloc(3);
			free(p);
			return p[0];
		}
	END
	run scripts/lint tidy
	[ "$status" = 1 ]
	[[ $output == *'Use of memory after it is freed'* ]]
}
