// SPDX-License-Identifier: BSD-2-Clause
/* What captures say of themselves, before they are merged. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "merge/impl.h"
#include "util/error.h"
#include "util/order.h"

/* Where it is not recorded which boot it was: it is one if it began at the same time. */
#define SAME_BOOT_NS NSEC_PER_SEC

static int compare_pids(const void *a, const void *b)
{
	return order_u64(*(const uint32_t *)a, *(const uint32_t *)b);
}

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
		qsort(c->pids.data, c->pids.nr, sizeof(uint32_t), compare_pids);
	return 0;
}

static int read_metadata(struct merge_capture *c, struct kprof_capture *t)
{
	const char *key, *boot, *host;

	c->metadata = cJSON_CreateObject();
	for (size_t i = 0; c->metadata && (key = timeline__meta_key(t, i)); i++) {
		cJSON *value = timeline__meta_json(t, key);

		if (value && !cJSON_AddItemToObject(c->metadata, key, value)) {
			cJSON_Delete(value);
			return merge_no_memory();
		}
	}
	if (cJSON_HasObjectItem(c->metadata, "merged"))
		return error_set(-EINVAL, "merge the captures that it was made of",
				 "%s has been merged from others", c->path);
	host = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c->metadata, "host"));
	boot = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c->metadata, "boot"));
	c->host = strdup(host ? host : "");
	c->boot = strdup(boot ? boot : "");
	return c->metadata && c->host && c->boot ? 0 : merge_no_memory();
}

static int read_capture(struct merge *m, struct merge_capture *c)
{
	const struct kprof_capture_info *info;
	struct kprof_capture *t;
	int err = kprof_capture_open(c->path, &t);

	if (err)
		return err;
	info = kprof_capture_info(t);
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
	int64_t apart = booted_ns(a) - booted_ns(b);

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

static int check_same_file(const char *const *paths, size_t nr)
{
	struct stat a, b;

	for (size_t i = 0; i < nr; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(paths[i], paths[k]) ||
			    (!stat(paths[i], &a) && !stat(paths[k], &b) && a.st_dev == b.st_dev &&
			     a.st_ino == b.st_ino))
				return error_set_usage(-EINVAL, "name it once",
						       "%s and %s are the same capture", paths[k],
						       paths[i]);
	return 0;
}

int merge_read(struct merge *m, const char *const *paths, size_t nr)
{
	int err = check_same_file(paths, nr);

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
