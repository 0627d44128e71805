#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# make deb: packages of what is built, Debian's own judge of them, and what dpkg makes of them in a root of its own. The
# maintainer scripts run there without a chroot, as dpkg has it for roots of other machines.

bats_require_minimum_version 1.5.0

setup_file() {
	export DEB_OUT=$BATS_FILE_TMPDIR/deb DEB_OBJECTS=$BUILD
	make -s deb >"$BATS_FILE_TMPDIR/packages"
}

setup() {
	mapfile -t packages <"$BATS_FILE_TMPDIR/packages"
	kprof=${packages[0]}
}

# An empty root, with what maintainer scripts ask of a machine. Its group kprof is one that others' files have already.
new_root() { # DIRECTORY
	root=$1
	mkdir -p "$root"/{etc,run,var/lib/dpkg/{updates,info},usr/bin}
	touch "$root/var/lib/dpkg/status"
	printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\n' >"$root/etc/group"
}

# What they depend on is not there; dpkg says so, and goes on.
in_root() { # OPTION…: of dpkg
	DEBIAN_FRONTEND=noninteractive dpkg --root="$root" --force-script-chrootless --force-depends --force-not-root --log=/dev/null "$@" </dev/null
}

files() { find "$root" -mindepth 1 -not -type d -printf '%P\n' | sort; }

@test "deb: three packages, and lintian finds neither errors nor warnings, but for the one that has its reason" {
	[ "${#packages[@]}" = 3 ]
	run lintian --allow-root --no-cfg --fail-on error,warning "${packages[@]}"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"1 hint overridden"* ]] || [ -z "$output" ]
	[ "$(grep -c '^kprof: ' share/deb/kprof.lintian-overrides)" = 1 ]
	# What the override says is so.
	run ! grep NEEDED <(readelf -d "$BUILD/libkprof_mark.so")
	nm -D --undefined-only "$BUILD/libkprof_mark.so" | awk '$1 != "w"' >"$BATS_TEST_TMPDIR/needs"
	[ ! -s "$BATS_TEST_TMPDIR/needs" ]
}

@test "deb: the same commit gives the same bytes, whenever and wherever it is packed" {
	local package
	umask 077
	TMPDIR=$BATS_TEST_TMPDIR TZ=Asia/Kolkata LANG=C DEB_OUT=$BATS_TEST_TMPDIR/again scripts/deb
	for package in "${packages[@]}"; do
		cmp "$package" "$BATS_TEST_TMPDIR/again/$(basename "$package")"
	done
	[ "$(dpkg-deb --fsys-tarfile "$kprof" | tar -tv --full-time --utc | awk '{ print $4 "T" $5 }' | sort -u)" = "$(TZ=UTC0 git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%S)" ]
}

@test "deb: what the programs need is what the package depends on, and its version is the header's" {
	local version
	version=$("$BUILD/kprof" --version | cut -d ' ' -f 2)
	[ "$(dpkg-deb -f "$kprof" Version)" = "$version" ]
	[[ $(dpkg-deb -f "$kprof" Depends) == *"libbpf1 (>= "* ]]
	[[ $(dpkg-deb -f "$kprof" Depends) == *"libc6 (>= "* ]]
	[ "$(dpkg-deb -f "${packages[2]}" Depends)" = "libkprof0 (= $version)" ]
	# kprof has the library inside; who links with it depends on its package by name.
	dpkg-deb --info "${packages[1]}" shlibs | grep -qx "libkprof 0 libkprof0 (>= $version)"
}

@test "deb: installed, every file is its package's; the program finds its agent; the service is not enabled" {
	new_root "$BATS_TEST_TMPDIR/root"
	in_root -i "${packages[@]}"
	run in_root -V
	[ "$status" = 0 ]
	[ -z "$output" ]
	grep -q '^kprof:' "$root/etc/group"
	run "$root/usr/bin/kprof" check
	[[ $output == *"ok       agent             $root/usr/lib/kprof/libkprof_agent.so"* ]]
	[ -z "$(find "$root/etc/systemd" -name 'kprof.service' 2>/dev/null)" ]
	# Who profiles with the library finds the agent of the other package.
	gcc -I"$root/usr/include" -o "$BATS_TEST_TMPDIR/example" docs/example.c -L"$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" -lkprof
	ldd "$BATS_TEST_TMPDIR/example" | grep -q 'libkprof\.so\.0'
	LD_LIBRARY_PATH=$(echo "$root"/usr/lib/*-linux-gnu) run "$BATS_TEST_TMPDIR/example"
	[[ $output != *"error while loading"* ]]
}

@test "deb: an upgrade keeps a changed configuration, and a service that is enabled" {
	new_root "$BATS_TEST_TMPDIR/root"
	in_root -i "$kprof"
	echo 'ring = 64M' >>"$root/etc/kprof.conf"
	systemctl --root="$root" enable kprof
	[ -L "$root/etc/systemd/system/multi-user.target.wants/kprof.service" ]
	# Another version, whose own configuration is another, too.
	dpkg-deb -R "$kprof" "$BATS_TEST_TMPDIR/next"
	sed -i 's/^Version: .*/&+next/' "$BATS_TEST_TMPDIR/next/DEBIAN/control"
	echo '# of the next version' >>"$BATS_TEST_TMPDIR/next/etc/kprof.conf"
	sed -i '/etc.kprof.conf/d' "$BATS_TEST_TMPDIR/next/DEBIAN/md5sums"
	dpkg-deb --root-owner-group -b "$BATS_TEST_TMPDIR/next" "$BATS_TEST_TMPDIR/next.deb"
	in_root --force-confold -i "$BATS_TEST_TMPDIR/next.deb"
	[[ $(dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Version} ${db:Status-Status}' kprof) == *"+next installed" ]]
	[ "$(tail -n 1 "$root/etc/kprof.conf")" = 'ring = 64M' ]
	grep -qx '# of the next version' "$root/etc/kprof.conf.dpkg-dist"
	[ -L "$root/etc/systemd/system/multi-user.target.wants/kprof.service" ]
}

@test "deb: remove keeps configuration and recordings, purge leaves nothing" {
	local before
	new_root "$BATS_TEST_TMPDIR/root"
	before=$(files)
	in_root -i "$kprof"
	systemctl --root="$root" enable kprof
	mkdir -p "$root/var/lib/kprof/flight/job" "$root/var/cache/kprof/symbols"
	touch "$root/var/lib/kprof/flight/job/1.kprof" "$root/var/cache/kprof/symbols/a"
	in_root -r kprof
	[ ! -e "$root/usr/bin/kprof" ]
	[ -e "$root/etc/kprof.conf" ]
	[ -e "$root/var/lib/kprof/flight/job/1.kprof" ]
	in_root -P kprof
	# dpkg's own notes, and the group, whose number files elsewhere may still have.
	diff <(echo "$before") <(files | grep -vE '^var/lib/dpkg/|^etc/(g?shadow|group|passwd)-?$|^etc/\.pwd\.lock$' |
		cat - <(grep -E '^(var/lib/dpkg/status|etc/(group|passwd))$' <<<"$before") | sort)
	[ ! -e "$root/var/lib/kprof" ]
	[ ! -e "$root/var/cache/kprof" ]
}

@test "deb: the configuration is all comments, and every option in it is one that the file may set" {
	local conf=$BATS_TEST_TMPDIR/kprof.conf one=$BATS_TEST_TMPDIR/one name part
	dpkg-deb --fsys-tarfile "$kprof" | tar -xO ./etc/kprof.conf >"$conf"
	# But for the line that begins the daemon's part.
	run ! grep -vE '^(#|$|\[daemon\]$)' "$conf"
	[ "$(grep -c '^#[a-z]' "$conf")" -ge 5 ]
	for part in sample daemon; do
		sed -n "$([ "$part" = daemon ] && echo '/^\[daemon\]/,$p' || echo '/^\[daemon\]/q; p')" "$conf" | sed -nE 's/^#([a-z-]+)( = .*)?$/\1/p' |
			while read -r name; do
				# The command line is wrong, so nothing begins; the file is read before it.
				{ [ "$part" = sample ] || echo '[daemon]'; echo "$name"; } >"$one"
				run "$BUILD/kprof" "$part" --config "$one" --frequency nothing
				[ "$status" = 2 ]
				[[ $output != *"there is no such option"* ]] || { echo "$name: $output"; false; }
			done
	done
}
