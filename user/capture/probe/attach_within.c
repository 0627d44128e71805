// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel's programs are told of what is around what is recorded (bpf/within.h). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "capture/probe/attach_impl.h"
#include "catalog/catalog.h"
#include "kprof/options.h"
#include "kprof/modules.h"
#include "kprof/within.h"
#include "util/util.h"

/* The text by which ranges end in a row of other calls; there is one such row. */
static const char *end_text(void)
{
	for (size_t i = 0; catalog_frameworks[i]; i++)
		for (size_t k = 0; k < catalog_frameworks[i]->nr_rows; k++)
			if (catalog_frameworks[i]->rows[k].range_end_text)
				return catalog_frameworks[i]->rows[k].range_end_text;
	return "";
}

int attach_within_prepare(struct attacher *a, const struct attacher_opts *opts)
{
	const char *end = end_text(), *name = opts->within;
	bool python = name && (opts->within_of == KPROF_WITHIN_FUNCTIONS ||
			       opts->within_of == KPROF_WITHIN_MODULES);
	struct bpf_map *maps[] = {a->skel->maps.within_threads, a->skel->maps.within_scratches};
	struct bpf_map *pythons[] = {a->skel->maps.within_pythons, a->skel->maps.within_others,
				     a->skel->maps.within_walks};
	int err = 0;

	a->within = name && !python;
	a->ranges = name && opts->within_of == KPROF_WITHIN_ANNOTATIONS;
	a->skel->rodata->with_within = name;
	a->skel->rodata->within_of = opts->within_of;
	if (a->within && vec_grow((void **)&a->left, &a->cap_left, 0, sizeof(*a->left)))
		return -ENOMEM;
	if (name) {
		if (strlen(name) >= KPROF_WITHIN_BYTES || strlen(end) >= KPROF_WIRE_TEXT_SHORT)
			return -E2BIG;
		strcpy((char *)a->skel->rodata->within_pattern, name);
		strcpy((char *)a->skel->rodata->within_end, end);
	}
	for (size_t i = 0; i < ARRAY_SIZE(maps) && !err; i++)
		err = bpf_map__set_autocreate(maps[i], name);
	for (size_t i = 0; i < ARRAY_SIZE(pythons) && !err; i++)
		err = bpf_map__set_autocreate(pythons[i], python);
	return err;
}

/* The time is one of before: what a thread does inside again has a later one. */
static void note_left(struct attacher *a, pid_t pid)
{
	struct attach_left left = {.since_ns = clock_mono_ns(), .pid = pid > 0 ? pid : 0};

	if (!vec_grow((void **)&a->left, &a->cap_left, a->nr_left, sizeof(*a->left))) {
		a->left[a->nr_left++] = left;
	} else { /* no memory: with those before, which had room */
		left.pid = 0;
		a->left[a->nr_left - 1] = left;
	}
}

void attach_within_leave(struct attacher *a, pid_t pid)
{
	uint32_t from = pid > 0 ? KPROF_WITHIN_ROUND(pid) : 0;
	uint32_t to = pid > 0 ? from + 1 : KPROF_WITHIN_ROUNDS;

	if (!a->within)
		return;
	note_left(a, pid);
	for (uint32_t i = from; i < to; i++)
		__atomic_fetch_add(&a->skel->bss->within_rounds[i], 1, __ATOMIC_SEQ_CST);
}

bool attacher__within_left(struct attacher *a, uint64_t until_ns, struct attach_left *out)
{
	if (!a->nr_left || a->left[0].since_ns > until_ns)
		return false;
	*out = a->left[0];
	memmove(a->left, a->left + 1, --a->nr_left * sizeof(*a->left));
	return true;
}

void attach_within_placed(struct attacher *a, enum attach_program program, pid_t pid,
			  const struct attach_point *points, size_t nr)
{
	bool ranges = program == ATTACH_MARK;

	for (size_t i = 0; i < nr && program <= ATTACH_BEGIN_BOXED; i++)
		ranges |= KPROF_COOKIE_WITHIN_ROLE(points[i].cookie) != KPROF_WITHIN_NONE;
	if (ranges && a->ranges)
		attach_within_leave(a, pid);
}

static enum kprof_within_role role_of(const struct catalog_row *row)
{
	if (row->shape == CATALOG_RANGE_BEGIN)
		return KPROF_WITHIN_BEGIN;
	if (row->range_end_text)
		return KPROF_WITHIN_END_TEXT;
	if (row->shape != CATALOG_RANGE_END)
		return KPROF_WITHIN_NONE;
	return row->heap_object ? KPROF_WITHIN_END_HEAP : KPROF_WITHIN_END;
}

uint64_t attach_within_cookie(const struct catalog_row *row, uint32_t annotations)
{
	uint32_t kind = annotations & KPROF_ONLY_NVTX ? 1 : annotations & KPROF_ONLY_ITT ? 2 : 0;
	enum kprof_within_role role = role_of(row);

	return role == KPROF_WITHIN_NONE ? 0 : KPROF_COOKIE_WITHIN(role, kind);
}

void attach_within_value(const struct catalog_row *row, struct kprof_wire_probe *to)
{
	size_t bytes = row->value_is ? strnlen(row->value_is, sizeof(to->value_is)) : 0;

	to->value_is = to->value_mask = 0;
	if (bytes)
		memcpy(&to->value_is, row->value_is, bytes);
	memset(&to->value_mask, 0xff, bytes);
}

uint64_t attacher__within_met(const struct attacher *a)
{
	return __atomic_load_n(&a->skel->bss->within_met, __ATOMIC_RELAXED);
}

uint64_t attacher__within_unread(const struct attacher *a)
{
	return __atomic_load_n(&a->skel->bss->within_unread, __ATOMIC_RELAXED);
}

uint64_t attacher__within_unknown(const struct attacher *a)
{
	return __atomic_load_n(&a->skel->bss->within_unknown, __ATOMIC_RELAXED);
}

int attacher__within_python(struct attacher *a, uint32_t pid, const struct kprof_modules *m)
{
	int fd = bpf_map__fd(a->skel->maps.within_pythons);

	if (m)
		return bpf_map_update_elem(fd, &pid, m, 0) ? -errno : 0;
	return bpf_map_delete_elem(fd, &pid) ? -errno : 0;
}
