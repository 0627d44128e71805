// SPDX-License-Identifier: BSD-2-Clause
/* What captures say of themselves, before they are merged. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kprof/memory.h"
#include "merge/impl.h"
#include "util/error.h"
#include "util/json_valid.h"
#include "util/order.h"

/* Where it is not recorded which boot it was: it is one if it began at the same time. */
#define SAME_BOOT_NS NSEC_PER_SEC

static int read_pids(struct merge_capture *c, struct kprof_capture *t)
{
	const struct tl_process *p;

	for (size_t i = 0; (p = timeline__process(t, i)); i++) {
		uint32_t *pid = vec_push(&c->pids, sizeof(*pid));

		if (!pid)
			return merge_no_memory();
		*pid = (uint32_t)p->pid;
	}
	if (c->pids.nr)
		qsort(c->pids.data, c->pids.nr, sizeof(uint32_t), merge_compare_pids);
	return 0;
}

static char *text_of(struct kprof_capture *t, const char *key)
{
	char *text = timeline__meta_text(t, key);

	return text ? text : strdup("");
}

/* Each value as it is written there; what is no JSON is no metadata. */
static int read_metadata(struct merge_capture *c, struct kprof_capture *t)
{
	const char *key;

	c->host = text_of(t, "host");
	c->boot = text_of(t, "boot");
	c->metadata = cJSON_CreateObject();
	if (!c->metadata || !c->host || !c->boot)
		return merge_no_memory();
	if (kprof_capture_meta(t, "merged"))
		return error_set(-EINVAL, "merge the captures that it was made of",
				 "%s has been merged from others", c->path);
	if (kprof_capture_has_alive(t))
		return error_set(-EINVAL, "`kprof memory export FILE.kprof` shows each for itself",
				 "%s says what one process has allocated: its sums are of that one",
				 c->path);
	for (size_t i = 0; (key = timeline__meta_key(t, i)); i++) {
		const char *json = kprof_capture_meta(t, key);

		if (json_valid(json) && !cJSON_AddRawToObject(c->metadata, key, json))
			return merge_no_memory();
	}
	return 0;
}

/* What a capture that was cut short says of its sources is older than its events. */
static int read_counts(struct merge_capture *c, struct kprof_capture *t)
{
	const struct kprof_source *s;

	for (size_t i = 0; (s = kprof_capture_source(t, i)); i++) {
		struct kprof_source *to = vec_push(&c->counts, sizeof(*to));

		if (!to)
			return merge_no_memory();
		*to = *s;
	}
	return 0;
}

static int read_capture(struct merge *m, struct merge_capture *c)
{
	const struct kprof_capture_info *info;
	struct kprof_capture *t;
	int err = kprof_capture_open(c->path, &t);

	if (err)
		return err;
	info = kprof_capture_info(t);
	if (timeline__real_ns(t, 1) == 1) {
		err = error_set(-EINVAL, "leave it out",
				"%s was cut short before it had any reading of the clocks",
				c->path);
		goto out;
	}
	c->start_ns = info->start_mono_ns;
	c->end_ns = info->end_mono_ns;
	c->start_real_ns = info->start_real_ns;
	c->end_real_ns = timeline__real_ns(t, c->end_ns);
	c->bytes = info->size_bytes;
	c->complete = info->complete;
	if (!c->complete)
		log_warn(NULL, "%s was cut short: what could be read of it is merged", c->path);
	err = read_metadata(c, t);
	if (!err)
		err = read_pids(c, t);
	if (!err)
		err = merge_meet(m, c, t);
	if (!err && !c->complete)
		err = read_counts(c, t);
out:
	kprof_capture_close(t);
	return err;
}

/* ---- machines ---- */

/* Unix time when its monotonic clock was 0. */
static int64_t booted_ns(const struct merge_capture *c)
{
	return (int64_t)(c->start_real_ns - c->start_ns);
}

static bool same_machine(const struct merge_capture *a, const struct merge_capture *b)
{
	int64_t apart = (int64_t)((uint64_t)booted_ns(a) - (uint64_t)booted_ns(b));

	if (*a->boot && *b->boot)
		return !strcmp(a->boot, b->boot);
	return !strcmp(a->host, b->host) && apart < (int64_t)SAME_BOOT_NS &&
	       apart > -(int64_t)SAME_BOOT_NS;
}

static void find_machine(struct merge *m, struct merge_capture *c)
{
	struct merge_machine *machine;
	size_t i = 0;

	while (i < m->nr_machines && !same_machine(&m->captures[m->machines[i].first], c))
		i++;
	machine = &m->machines[i];
	if (i == m->nr_machines) {
		*machine = (struct merge_machine){.first = (size_t)(c - m->captures),
						  .start_ns = c->start_ns,
						  .told = {.host = c->host}};
		m->nr_machines++;
		if (booted_ns(c) < booted_ns(&m->captures[m->machines[m->reference].first]))
			m->reference = i;
	}
	c->machine = i;
	machine->told.captures++;
	if (c->start_ns < machine->start_ns)
		machine->start_ns = c->start_ns;
	if (c->end_ns > machine->end_ns)
		machine->end_ns = c->end_ns;
}

static int number_machines(struct merge *m)
{
	if (m->nr_machines > INT32_MAX / MERGE_PID_STEP)
		return error_set(-ERANGE, "merge fewer",
				 "captures of %zu machines: there are PIDs for %u", m->nr_machines,
				 INT32_MAX / MERGE_PID_STEP);
	for (size_t i = 0; i < m->nr_machines; i++)
		m->machines[i].told.first_pid = (uint32_t)i * MERGE_PID_STEP;
	return 0;
}

static int check_apart(const struct merge_capture *a, const struct merge_capture *b)
{
	const uint32_t *x = a->pids.data, *y = b->pids.data;

	if (a->machine != b->machine || a->start_ns >= b->end_ns || b->start_ns >= a->end_ns)
		return 0;
	for (size_t i = 0, k = 0; i < a->pids.nr && k < b->pids.nr;) {
		if (x[i] == y[k])
			return error_set(-EINVAL, "take one of the two",
					 "%s and %s both have process %" PRIu32 " at the same time",
					 a->path, b->path, x[i]);
		if (x[i] < y[k])
			i++;
		else
			k++;
	}
	return 0;
}

/* The output must be none of the captures, either: it would replace one that is being read. */
static int check_files(const char *const *paths, size_t nr, const char *output)
{
	struct stat *files = calloc(nr + 1, sizeof(*files));
	int err = files ? 0 : merge_no_memory();

	for (size_t i = 0; i <= nr && !err; i++) {
		const char *path = i < nr ? paths[i] : output;

		if (stat(path, &files[i])) /* one that is not there is the reader's to refuse */
			continue;
		for (size_t k = 0; k < i && !err; k++)
			if (files[k].st_ino == files[i].st_ino &&
			    files[k].st_dev == files[i].st_dev)
				err = error_set_usage(
					-EINVAL, i < nr ? "name it once" : "give another name",
					"%s and %s are the same file", paths[k], path);
	}
	free(files);
	return err;
}

int merge_read(struct merge *m, const char *const *paths, size_t nr)
{
	int err = check_files(paths, nr, m->opts->output);

	for (size_t i = 0; i < nr && !err; i++) {
		struct merge_capture *c = &m->captures[m->nr++];

		*c = (struct merge_capture){.merge = m, .path = paths[i]};
		err = read_capture(m, c);
		if (err)
			break;
		m->bytes += c->bytes;
		find_machine(m, c);
		for (size_t k = 0; k < i && !err; k++)
			err = check_apart(&m->captures[k], c);
	}
	return err ? err : number_machines(m);
}
