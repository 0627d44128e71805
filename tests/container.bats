#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# bats file_tags=parallel
# share/container: the image's root, made of what is built here, and that kprof works in it alone. The Dockerfile itself is
# followed, compiler and all, by `make soak` (soak/packages.bats).

bats_require_minimum_version 1.5.0

# shellcheck source=tests/lib/harness.bash
source "$BATS_TEST_DIRNAME/lib/harness.bash"

setup() {
	harness_setup
	own_targets
	image=$dir/image
	share/container/collect "$BUILD" "$image"
}

teardown() {
	harness_teardown
}

@test "container: the image has no shell, no setuid file, all libraries that its programs need, and their licences" {
	local file
	[ "$(du -sk --apparent-size "$image" | cut -f 1)" -lt 30000 ]
	du -sh --apparent-size "$image"
	[ -z "$(find "$image" -name '*sh' -perm /111 -not -path '*/share/*')" ]
	[ -z "$(find "$image" -perm /6000)" ]
	[ -z "$(find "$image" -xtype l)" ]
	for file in usr/bin/kprof usr/lib/kprof/libkprof_agent.so; do
		# As its own loader finds them.
		run chroot "$image" /lib64/ld-linux-x86-64.so.2 --list "/$file"
		echo "$output"
		[ "$status" = 0 ]
		[[ $output != *"not found"* ]]
	done
	[ -s "$image/usr/share/doc/libc6/copyright" ]
	grep -qx 'Package: libbpf1' "$image/var/lib/dpkg/status.d/libbpf1"
	grep -q '^nobody:x:65534:' "$image/etc/passwd"
	[ "$(chroot "$image" /usr/bin/kprof --version)" = "$("$KPROF" --version)" ]
	run chroot "$image" /usr/bin/kprof export /nowhere.kprof -o /tmp/x.json
	[[ $output == *"cannot open /nowhere.kprof"* ]]
}

@test "container: in the image alone kprof samples with names, and counts every call" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	use_kind gcc
	target_start here "$driver" count --n 2000
	spawn busy "$PYTHON" -c 'while True: pass'
	# /dev, /proc and /sys, as a runtime mounts them, and a folder for what is recorded.
	cat >"$dir/inside" <<-END
		set -e
		for m in dev proc sys; do mount --rbind /\$m "$image/\$m"; done
		mount -o remount,bind,ro,nosuid,noexec,nodev "$image/sys" || :
		mkdir -p "$image/out" && mount --bind "$dir" "$image/out"
		exec chroot "$image" /usr/bin/kprof "\$@"
	END
	local inside=("${own_mounts[@]}" bash "$dir/inside")
	"${inside[@]}" sample -p "${pid[busy]}" -d 1s -o /out/busy.folded
	grep -q 'python3.*;<module> ' "$dir/busy.folded" || { head -n 5 "$dir/busy.folded"; false; }
	spawn kprof "${inside[@]}" attach -v -p "${pid[here]}" -o /out/here.kprof
	wait_for "$PATIENCE" "kprof to record" kprof_recording kprof
	target_go here && target_result here && target_end here
	wait_for "$PATIENCE" "kprof to end" ended "${pid[kprof]}"
	exported here
	account here --only --complete
}

@test "container: the Dockerfile is one of two stages, of which the last has kprof and nothing to run a shell" {
	local version
	version=$("$KPROF" --version | cut -d ' ' -f 2)
	[ "$(grep -c '^FROM ' share/container/Dockerfile)" = 2 ]
	sed -n '/^FROM scratch$/,$p' share/container/Dockerfile >"$dir/last"
	grep -qx 'COPY --from=build /image/ /' "$dir/last"
	run ! grep -E '^(RUN|CMD|USER|SHELL)' "$dir/last"
	[ "$(sed -n 's/^ENTRYPOINT //p' "$dir/last" | jq -c .)" = '["/usr/bin/kprof","daemon"]' ]
	grep -q "image.version=\"${version//./\\.}\"" "$dir/last"
	# What is copied is there.
	sed -n 's/^COPY \([^-][^ ]*\) .*/\1/p' share/container/Dockerfile | while read -r path; do [ -e "$path" ]; done
}
