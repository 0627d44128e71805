#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# What `make deb` and share/container/Dockerfile make from the source on, compiler and all. The Dockerfile is followed step by
# step without Docker: Debian by debootstrap, packages from its mirror. Minutes, and a network: in `make soak`.

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/../lib/harness.bash"

setup() {
	harness_setup
	python=${KPROF_MANIFESTS:-${KPROF_CACHE:-/var/cache/kprof}/manifests}/bin/python
}

teardown() {
	[ -z "${dir:-}" ] || rm -rf --one-file-system "$dir/stages" "$dir/one" "$dir/other"
	harness_teardown
}

@test "soak: the image of the Dockerfile, from Debian's packages alone, is small and records" {
	local root
	[ "$(id -u)" = 0 ] || skip "needs root"
	[ -x "$python" ] || skip "no dockerfile-parse: scripts/setup check installs it"
	command -v debootstrap >/dev/null || skip "no debootstrap here"
	"$python" "$LIB/run_dockerfile.py" share/container/Dockerfile . "$dir/stages" >"$dir/image.json" 2>"$dir/build.log" ||
		{ tail -n 20 "$dir/build.log"; false; }
	root=$(jq -r .root "$dir/image.json")
	du -sh --apparent-size "$root"
	[ "$(du -sk --apparent-size "$root" | cut -f 1)" -lt 30000 ]
	jq -e '.entrypoint == ["/usr/bin/kprof", "daemon"]' "$dir/image.json"
	[ "$(chroot "$root" /usr/bin/kprof --version)" = "$("$KPROF" --version)" ]
	spawn busy "$PYTHON" -c 'while True: pass'
	"${own_mounts[@]}" sh -e -c 'for m in dev proc sys; do mount --rbind /$m "$1/$m"; done
		exec chroot "$1" /usr/bin/kprof sample -d 1s -o /tmp/busy.folded -p "$2"' soak "$root" "${pid[busy]}"
	grep -q '<module>' "$root/tmp/busy.folded"
}

@test "soak: packages that are compiled in two folders are the same to the byte, and hardened" {
	local copy package
	for copy in one other; do
		git clone -q "$ROOT" "$dir/$copy/$copy"
		make -s -C "$dir/$copy/$copy" BUILD=build DEB_OUT="$dir/$copy.packages" deb >"$dir/$copy.log" 2>&1 || { tail -n 20 "$dir/$copy.log"; false; }
	done
	for package in "$dir/one.packages"/*.deb; do
		cmp "$package" "$dir/other.packages/${package##*/}"
	done
	[ "$(find "$dir/one.packages" -name '*.deb' | wc -l)" = 3 ]
	lintian --allow-root --no-cfg --fail-on error,warning "$dir/one.packages"/*.deb
	dpkg-deb -x "$dir/one.packages"/kprof_*.deb "$dir/root"
	readelf -dW "$dir/root/usr/bin/kprof" | grep -q 'NOW'
	readelf --dyn-syms -W "$dir/root/usr/bin/kprof" | grep -q '__memcpy_chk\|__snprintf_chk'
}
