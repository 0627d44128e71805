// SPDX-License-Identifier: BSD-2-Clause
/*
 * The walker as the kernel runs it, to be held against the same source in user space: each thread's
 * walk when it was last switched away from.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include "kprof/python.h"

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

struct task_struct {
	struct thread_struct thread;
} __attribute__((preserve_access_index));

/* Set before loading. */
struct kprof_python python;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32); /* tid */
	__type(value, struct kprof_python_walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kprof_python_walk);
} scratch SEC(".maps");

static int python_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	return bpf_probe_read_user(to, bytes, (const void *)address);
}

#include "../../bpf/python.h"

static long step(__u32 i, void *ctx)
{
	struct kprof_python_walk *w = *(struct kprof_python_walk **)ctx;

	return python_step(&python, w);
}

SEC("perf_event")
int on_switch(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), zero = 0;
	struct kprof_python_walk *w = bpf_map_lookup_elem(&scratch, &zero), *before;

	if (!w)
		return 0;
	w->thread = BPF_CORE_READ(task, thread.fsbase);
	w->futex = 0;
	before = bpf_map_lookup_elem(&walks, &tid);
	w->hint = before ? before->tstate : 0;
	python_begin(w);
	bpf_loop(KPROF_PYTHON_MAX_STEPS, step, &w, 0);
	bpf_map_update_elem(&walks, &tid, w, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
