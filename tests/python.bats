#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# Python frames from outside, on every CPython that is here: function, file and line of every frame of threads with known
# stacks, walked in user space and in the kernel, are what sys._current_frames() says. Where the frames lie among native
# ones is held against libdwfl.
#
# KPROF_PYTHONS: further interpreters, separated by colons. KPROF_PYTHON_ROOTS: directories to chroot into (a Debian
# of another release), whose python3.N are tested, too.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

PYSTACKS=$BUILD/python/pystacks
HERE=$ROOT/tests/python

setup() {
	harness_setup
	[ -x "$PYSTACKS" ] || fail "$PYSTACKS is not built: make test-programs"
}

# Interpreters, one a line, the newest of a minor release last.
pythons() {
	local p
	IFS=: read -ra more <<<"${KPROF_PYTHONS-}"
	for p in /usr/bin/python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 "${more[@]}"; do
		[ -x "$p" ] && "$p" -c 'import sys; sys.exit(not (3, 8) <= sys.version_info < (3, 15))' && echo "$p"
	done
	return 0
}

check() { # MODE… -- INTERPRETER…
	timeout 200 "$PYTHON" "$HERE/check.py" "$PYSTACKS" "$@"
}

# every COMMAND…: for each interpreter, which stands at the end
every() {
	local p nr=0
	while read -r p <&3; do
		echo "# $p"
		"$@" "$p"
		nr=$((nr + 1))
	done 3< <(pythons)
	[ "$nr" -gt 0 ]
}

@test "frames are the interpreter's own: user space, kernel, sub-interpreters, native frames" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	every check sub bpf native --
}

@test "who holds the GIL, who waits for it" {
	every check spin --
}

layout_of() { # PYTHON
	local include
	include=$("$1" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
	if [ ! -d "$include/internal" ]; then
		echo "# no headers: $1"
		return 0
	fi
	# Their headers are not ours to be warned of.
	"${CC:-gcc}" -w -I"$include" -I"$include/internal" -o "$dir/layout" "$HERE/layout.c"
	check "layout=$dir/layout" -- "$1"
}

@test "the tables are what the headers say" {
	every layout_of
}

venv_of() {
	local kind
	"$1" -c 'import venv' 2>/dev/null || {
		echo "# no venv: $1"
		return 0
	}
	for kind in symlinks copies; do
		rm -rf "$dir/venv"
		"$1" -m venv --without-pip "--$kind" "$dir/venv"
		check -- "$dir/venv/bin/python"
	done
}

@test "virtual environments, by link and by copy" {
	every venv_of
}

embedded_in() {
	local library prefix
	library=$("$1" -c 'import sysconfig as s; print(s.get_config_var("LIBDIR") + "/" + s.get_config_var("INSTSONAME"))')
	prefix=$("$1" -c 'import sys; print(sys.base_prefix)')
	case $library in
	*.so.*) ;;
	*)
		echo "# no shared library: $1"
		return 0
		;;
	esac
	[ -e "$library" ] || return 0
	check native -- env PYTHONHOME="$prefix" "$BUILD/python/embed" "$library"
}

@test "a program that opens libpython late, and runs it on a thread of its own" {
	every embedded_in
}

@test "CPython of another Debian, in a chroot" {
	local root p nr=0
	[ -n "${KPROF_PYTHON_ROOTS-}" ] || skip "KPROF_PYTHON_ROOTS names none (debootstrap sid has 3.14)"
	[ "$(id -u)" = 0 ] || skip "needs root"
	IFS=: read -ra roots <<<"$KPROF_PYTHON_ROOTS"
	for root in "${roots[@]}"; do
		install -m 644 "$HERE/stacks.py" "$root/tmp/kprof-stacks.py"
		for p in "$root"/usr/bin/python3.?? "$root"/usr/bin/python3.??t; do
			[ -x "$p" ] || continue
			echo "# $p"
			PYSTACKS_SCRIPT=/tmp/kprof-stacks.py check sub bpf native -- chroot "$root" "/usr/bin/${p##*/}"
			PYSTACKS_SCRIPT=/tmp/kprof-stacks.py check spin -- chroot "$root" "/usr/bin/${p##*/}"
			nr=$((nr + 1))
		done
		rm -f "$root/tmp/kprof-stacks.py"
	done
	[ "$nr" -gt 0 ]
}

@test "what is no Python, and a release that is not known, is said" {
	sleep 60 &
	run "$PYSTACKS" $!
	kill $!
	[ "$status" = 1 ]
	[[ $output == *"no interpreter"* ]]
}

@test "which releases were there" {
	local p have name='import sys, sysconfig
print("3.%d%s" % (sys.version_info[1], "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))'
	have=$({
		while read -r p; do "$p" -c "$name"; done < <(pythons)
		IFS=: read -ra roots <<<"${KPROF_PYTHON_ROOTS-}"
		for p in "${roots[@]}"; do (cd "$p/usr/bin" && printf '%s\n' python3.?? python3.??t | sed -n 's/^python\(3[0-9t.]*\)$/\1/p'); done
	} | sort -uV | tr '\n' ' ')
	for p in 3.8 3.9 3.10 3.11 3.12 3.13 3.13t 3.14 3.14t; do
		[[ " $have" == *" $p "* ]] || missing+="$p "
	done
	[ -z "${missing-}" ] || skip "not tested here: $missing(tested: $have)"
}
