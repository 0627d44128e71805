#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# make install and uninstall: a C program builds against what was installed, and nothing is left behind.

@test "install: a C program builds and runs against the installed library, shared and static" {
	local dest=$BATS_TEST_TMPDIR/dest prefix=/opt/kprof-test
	make -s install DESTDIR="$dest" PREFIX="$prefix"
	export PKG_CONFIG_SYSROOT_DIR=$dest PKG_CONFIG_LIBDIR=$dest$prefix/lib/pkgconfig
	cat >"$BATS_TEST_TMPDIR/example.c" <<-END
		#include <kprof.h>
		#include <stdio.h>
		int main(void)
		{
			printf("%s\n", kprof_version());
			return 0;
		}
	END
	# shellcheck disable=SC2046
	gcc -Wall -Werror -o "$BATS_TEST_TMPDIR/shared" "$BATS_TEST_TMPDIR/example.c" $(pkg-config --cflags --libs kprof)
	run env LD_LIBRARY_PATH="$dest$prefix/lib" "$BATS_TEST_TMPDIR/shared"
	[ "$status" = 0 ]
	[ "$output" = "$(pkg-config --modversion kprof)" ]
	readelf -d "$BATS_TEST_TMPDIR/shared" | grep -q 'NEEDED.*libkprof\.so\.0'
	# shellcheck disable=SC2046
	gcc -o "$BATS_TEST_TMPDIR/static" "$BATS_TEST_TMPDIR/example.c" $(pkg-config --cflags kprof) \
		"$dest$prefix/lib/libkprof.a" $(PKG_CONFIG_SYSROOT_DIR='' pkg-config --static --libs-only-l kprof | sed 's/-lkprof//')
	run "$BATS_TEST_TMPDIR/static"
	[ "$output" = "$(pkg-config --modversion kprof)" ]
	run "$dest$prefix/bin/kprof" --version
	[ "$status" = 0 ]
}

@test "install: uninstall removes exactly what install put there" {
	local dest=$BATS_TEST_TMPDIR/dest
	mkdir -p "$dest/usr/local/lib"
	echo mine >"$dest/usr/local/lib/libother.so"
	make -s install DESTDIR="$dest"
	[ -x "$dest/usr/local/bin/kprof" ]
	[ -e "$dest/usr/local/share/man/man1/kprof.1" ]
	[ -e "$dest/usr/local/share/bash-completion/completions/kprof" ]
	make -s uninstall DESTDIR="$dest"
	run find "$dest" -type f -o -type l
	[ "$output" = "$dest/usr/local/lib/libother.so" ]
}

@test "install: the shared library exports kprof_* and nothing else" {
	run nm -D --defined-only "$BUILD/libkprof.so"
	[ "$status" = 0 ]
	[ "$(awk '$2 ~ /[TDBRVW]/ && $3 !~ /^kprof_/' <<<"$output")" = "" ]
	[[ $output == *kprof_version* ]]
}

@test "install: a second make has nothing to do" {
	run make all
	[ "$status" = 0 ]
	[[ $output == *"Nothing to be done for 'all'"* ]]
}
