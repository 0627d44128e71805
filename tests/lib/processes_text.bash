# SPDX-License-Identifier: BSD-2-Clause
# A text for tests/bench/gen_stacks: 7 and 16 samples of two processes on node7, of which one is a pod's, has rank 3, and
# waited for 41 ms.

processes_text() {
	local main='N|/bin/prog|c0ffee|0x10||main|main.c|3' step='P|||||step|/app/train.py|12'
	printf 'meta\t%s\t%s\n' waits '{}' host '"node7"' stacks '{"frequency_hz": 99}' distributed.8 '{"rank":3,"world_size":4}'
	printf 'process\t%s\t%s\tpython3 train.py --password secret\n' 7 python3 8 trainer
	printf 'owner\t8\t/kubepods.slice/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-%064d.scope\n' 7
	printf 'thread\t%s\t%s\t%s\n' 7 7 main 8 8 main 8 18 worker
	printf 'sample\t0\t7\t10101010\t256\t%s\t%s\n' "$main" 'N|/lib/libx.so|beef|0x40|aten::add|add|add.cc|5'
	printf 'sample\t1\t11\t10101010\t256\t%s\t%s\n' "$main" "$step"
	printf 'sample\t2\t5\t10101010\t256\t%s\t%s\t%s\n' "$main" "$step" 'K|[kernel]||0xffffffff81000000||sys_read||0'
	printf 'wait\t1\t4\t5000000\t0\t%s\t%s\n' "$main" "$step"
	printf 'wait\t2\t3\t7000000\t202\t%s\t%s\n' "$main" 'N|/lib/libc.so.6|aa|0x50||poll||0'
}
