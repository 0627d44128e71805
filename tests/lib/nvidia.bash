# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# NVIDIA's own libraries and headers, as far as scripts/setup has brought some: CUDA 12's alone, others with PyTorch. Needs
# harness.bash.

# Folders of its packages, one a line: CUDA 12's, then beside the oldest PyTorch first.
nvidia_wheels() {
	local p w
	for w in "${KPROF_CACHE:-/var/cache/kprof}"/cuda-12/lib/python3*/site-packages/nvidia; do
		[ ! -d "$w" ] || echo "$w"
	done
	pythons | while read -r p; do
		w=$("$p" -c 'import sysconfig; print(sysconfig.get_path("purelib") + "/nvidia")')
		[ ! -d "$w" ] || echo "$w"
	done
}

# With a package installed, a file that is not found is no reason to skip.
need_nvidia() {
	[ -n "$(nvidia_wheels)" ] || skip "no package of NVIDIA's here: scripts/setup check installs it"
}

# In each of them the first file of that name.
nvidia_first() { # NAME
	local w
	nvidia_wheels | while read -r w; do find -L "$w" -name "$1" -print -quit; done
}

# All of that name, in what triton brings and KPROF_CUPTI (folders) names, too.
nvidia_files() { # NAME
	local w
	local -a folders more
	while read -r w; do
		folders+=("$w")
		[ ! -d "${w%/*}/triton" ] || folders+=("${w%/*}/triton")
	done < <(nvidia_wheels)
	read -ra more <<<"${KPROF_CUPTI-}"
	find "${folders[@]}" "${more[@]}" -name "$1"
}
