// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a capture becomes. For OTLP one request, or several where it would be too large for
 * receivers' limits: it has all processes, each with its labels. Pyroscope and Parca take the
 * labels beside the profile (pprof): so there is a request for each group of processes that have
 * the same ones, and for samples and waits.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "push/impl.h"
#include "store/store.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

/* Receivers' usual limit is 20 MB, unpacked. */
#define MOST_REQUEST_BYTES (12u << 20)
#define MOST_PPROF_BYTES (64ull << 20)

/* Processes whose profiles have the same labels. */
struct group {
	struct resource labels;
	uint64_t hash;
	struct vec pids;         /* pid_t */
	uint64_t samples, waits; /* how many there are */
};

struct making {
	const struct push_make *m;
	struct resource_opts resource; /* the same with names of pods */
	struct pod_names_list pods;
	struct kprof_capture *c;
	const char *folder;
	unsigned int requests;
	struct vec groups;      /* struct group */
	struct map64 by_pid;    /* group + 1 */
	struct map64 by_thread; /* group + 1, by the thread's index */
	bool waits;             /* what is counted now */
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for what is to be pushed");
}

void push_hash(const struct kprof_capture *c, char hash[PUSH_HASH_BYTES])
{
	const struct kprof_capture_info *info = kprof_capture_info(c);
	const char *host = kprof_capture_meta(c, "host");
	uint64_t h = hash64_text(hash64(info->start_real_ns), host ?: "");

	h = hash64(h ^ info->start_mono_ns) ^ info->end_mono_ns;
	h = hash64(h) ^ info->size_bytes;
	snprintf(hash, PUSH_HASH_BYTES, "%016" PRIx64, hash64(h ^ info->nr_samples));
}

/* ---- groups ---- */

static uint64_t hash_of(const struct resource *r)
{
	uint64_t h = 0;

	for (size_t i = 0; i < r->nr; i++) {
		h = hash64_text(h, r->labels[i].key);
		h = hash64_text(h ^ (uint64_t)r->labels[i].number, r->labels[i].text ?: "");
	}
	return h;
}

/* The group with the labels of a process + 1; 0 with the error set. */
static uint64_t group_of(struct making *g, const struct tl_thread *th)
{
	const struct tl_process *p = timeline__process_at(g->c, th->pid, th->start_ns);
	struct resource labels;
	struct group *group = g->groups.data;
	uint64_t hash;

	if (resource__fill(&labels, g->c, p, th->pid, false, &g->resource))
		return 0;
	hash = hash_of(&labels);
	for (size_t i = 0; i < g->groups.nr; i++) {
		if (group[i].hash != hash)
			continue;
		resource__free(&labels);
		return i + 1;
	}
	group = vec_push(&g->groups, sizeof(*group));
	if (!group) {
		resource__free(&labels);
		no_memory();
		return 0;
	}
	group->labels = labels;
	group->hash = hash;
	return g->groups.nr;
}

/*
 * The group of a PID + 1. If two processes had it one after the other, the first one's labels stand
 * for both: profiles are made by PIDs, and nothing may be in two of them.
 */
static uint64_t group_of_pid(struct making *g, const struct tl_thread *th)
{
	uint64_t *known = map64__at(&g->by_pid, (uint64_t)(uint32_t)th->pid), group;
	pid_t *to;

	if (known && *known)
		return *known;
	group = known ? group_of(g, th) : 0;
	to = group ? vec_push(&((struct group *)g->groups.data + group - 1)->pids, sizeof(*to))
		   : NULL;
	if (!to) {
		no_memory();
		return 0;
	}
	*to = th->pid;
	return *known = group;
}

static int count(void *ctx, const struct store_record *r)
{
	struct making *g = ctx;
	const struct tl_thread *th = timeline__thread(g->c, r->sample.thread);
	uint64_t *known = map64__at(&g->by_thread, r->sample.thread);
	struct group *group;
	int err = known ? 0 : no_memory();

	if (!err && !*known) {
		*known = group_of_pid(g, th);
		err = *known ? 0 : -ENOMEM;
	}
	if (err)
		return err;
	group = (struct group *)g->groups.data + *known - 1;
	*(g->waits ? &group->waits : &group->samples) += 1;
	return 0;
}

static int find_groups(struct making *g)
{
	int err = timeline__samples(g->c, 0, count, g);

	timeline__show_waits(g->c, true);
	g->waits = timeline__shows_waits(g->c);
	if (!err && g->waits)
		err = timeline__samples(g->c, 0, count, g);
	timeline__show_waits(g->c, false);
	if (!err && !g->groups.nr)
		err = error_set(-ENODATA, "`kprof sample` takes them, and `--off-cpu` waits, too",
				"%s has neither samples nor waits", timeline__path(g->c));
	return err;
}

static void free_groups(struct making *g)
{
	struct group *group = g->groups.data;

	for (size_t i = 0; i < g->groups.nr; i++) {
		resource__free(&group[i].labels);
		free(group[i].pids.data);
	}
	free(group);
	pod_names_list__free(&g->pods);
	map64__free(&g->by_pid);
	map64__free(&g->by_thread);
}

/* ---- files ---- */

/* Takes over the JSON object. */
static int put_head(const struct making *g, cJSON *head)
{
	char *path = xasprintf("%s/%u" PUSH_HEAD_SUFFIX, g->folder, g->requests);
	char *text = head ? cJSON_PrintUnformatted(head) : NULL;
	int fd = -1, err = 0;

	if (!path || !text) {
		err = no_memory();
	} else {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 || !write_all(fd, text, strlen(text)) || fsync(fd))
			err = error_set(-errno, NULL, "cannot write %s: %s", path, strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	free(path);
	cJSON_free(text);
	cJSON_Delete(head);
	return err;
}

static cJSON *new_head(const struct making *g, const char *target, const char *type, bool gzip)
{
	cJSON *head = cJSON_CreateObject();

	if (cJSON_AddStringToObject(head, "kind", kprof_push_kind_name(g->m->url->kind)) &&
	    cJSON_AddStringToObject(head, "target", target) &&
	    cJSON_AddStringToObject(head, "type", type) &&
	    cJSON_AddBoolToObject(head, "gzip", gzip))
		return head;
	cJSON_Delete(head);
	return NULL;
}

bool push_head_parse(const char *json, struct push_head *to)
{
	cJSON *head = cJSON_Parse(json);
	const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(head, "kind"));
	const char *target = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(head, "target"));
	const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(head, "type"));
	bool fine = kind && target && type && *target == '/' && strlen(kind) < sizeof(to->kind) &&
		    strlen(target) < sizeof(to->target) && strlen(type) < sizeof(to->type);

	for (const char *c = fine ? target : ""; *c; c++)
		fine &= *c > ' ' && *c < 0x7f;
	for (const char *c = fine ? type : ""; *c; c++)
		fine &= *c >= ' ' && *c < 0x7f;
	if (fine) {
		strcpy(to->kind, kind);
		strcpy(to->target, target);
		strcpy(to->type, type);
		to->gzip = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(head, "gzip"));
	}
	cJSON_Delete(head);
	return fine;
}

/* The size of what a gzip file holds, by its last four bytes. */
static uint64_t unpacked_bytes(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t tail[4] = {0};
	struct stat st;

	if (fd >= 0) {
		if (!fstat(fd, &st) && st.st_size > 4 && pread(fd, tail, 4, st.st_size - 4) != 4)
			memset(tail, 0, sizeof(tail));
		close(fd);
	}
	return tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24;
}

static char *body_path(const struct making *g)
{
	return xasprintf("%s/%u" PUSH_BODY_SUFFIX, g->folder, g->requests);
}

static int export(const struct making *g, struct kprof_export_opts *opts)
{
	opts->sz = sizeof(*opts);
	opts->no_command = true;
	opts->service = g->m->resource.service;
	opts->labels = g->m->resource.labels;
	opts->nr_labels = g->m->resource.nr_labels;
	return kprof_capture_export(g->c, opts);
}

/* ---- OTLP ---- */

/* A request with these processes; several where it gets too large. */
static int make_otlp(struct making *g, const pid_t *pids, size_t nr)
{
	char *path = body_path(g), *gz = path ? xasprintf("%s.gz", path) : NULL;
	struct kprof_export_opts opts = {.path = gz, .format = "otlp", .pids = pids, .nr_pids = nr};
	bool split = false;
	int err = gz ? export(g, &opts) : no_memory();

	if (!err && gz)
		split = nr > 1 && unpacked_bytes(gz) > MOST_REQUEST_BYTES;
	if (!err && split)
		unlink(gz);
	else if (!err && gz && path && rename(gz, path))
		err = error_set(-errno, NULL, "cannot rename %s: %s", gz, strerror(errno));
	free(path);
	free(gz);
	if (err)
		return err;
	if (split) {
		err = make_otlp(g, pids, nr / 2);
		return err ? err : make_otlp(g, pids + nr / 2, nr - nr / 2);
	}
	err = put_head(g, new_head(g, "/v1development/profiles", "application/x-protobuf", true));
	g->requests++;
	return err;
}

static int make_all_otlp(struct making *g)
{
	const struct group *group = g->groups.data;
	struct vec pids = {0};
	int err = 0;

	for (size_t i = 0; i < g->groups.nr && !err; i++) {
		for (size_t k = 0; k < group[i].pids.nr && !err; k++) {
			pid_t *to = vec_push(&pids, sizeof(*to));

			if (to)
				*to = ((pid_t *)group[i].pids.data)[k];
			else
				err = no_memory();
		}
	}
	if (!err)
		err = make_otlp(g, pids.data, pids.nr);
	free(pids.data);
	return err;
}

/* ---- Pyroscope ---- */

/* Letters, digits and some signs; what else there is becomes "_", since it would mean something. */
static void put_plain(char *out, size_t room, const char *text, const char *signs)
{
	size_t at = strlen(out);

	for (; *text && at + 1 < room; text++) {
		bool fine = (*text >= '0' && *text <= '9') ||
			    ((*text | 0x20) >= 'a' && (*text | 0x20) <= 'z');

		out[at++] = fine || strchr(signs, *text) ? *text : '_';
	}
	out[at] = '\0';
}

/* A label's name as Prometheus has them: no dots, and no digit first. */
static void label_name(const char *key, char *out, size_t room)
{
	snprintf(out, room, "%s", *key >= '0' && *key <= '9' ? "_" : "");
	put_plain(out, room, key, "_");
}

static const char *label_text(const struct resource_label *l, char number[24])
{
	snprintf(number, 24, "%" PRId64, l->number);
	return l->text ?: number;
}

static void put_encoded(char *out, size_t room, const char *text)
{
	size_t at = strlen(out);

	for (; *text && at + 4 < room; text++) {
		if (strchr("-_.~", *text) || (*text >= '0' && *text <= '9') ||
		    ((*text | 0x20) >= 'a' && (*text | 0x20) <= 'z'))
			out[at++] = *text;
		else
			at += (size_t)snprintf(out + at, room - at, "%%%02X", (unsigned char)*text);
	}
	out[at] = '\0';
}

/* Whether a label before the i-th gets the same name: "a.b" and "a_b". The first one stays. */
static bool is_repeated(const struct resource *r, size_t i)
{
	char name[136], other[136];

	label_name(r->labels[i].key, name, sizeof(name));
	for (size_t k = 0; k < i; k++) {
		label_name(r->labels[k].key, other, sizeof(other));
		if (!strcmp(name, other))
			return true;
	}
	return false;
}

/* service{label=value,…} */
static void app_name(const struct group *group, char *out, size_t room)
{
	const char *between = "{";

	out[0] = '\0';
	put_plain(out, room, resource__text(&group->labels, "service.name") ?: "unknown", "_-./");
	for (size_t i = 0; i < group->labels.nr; i++) {
		const struct resource_label *l = &group->labels.labels[i];
		char name[136], number[24];
		size_t at = strlen(out);

		if (!strcmp(l->key, "service.name") || is_repeated(&group->labels, i))
			continue;
		label_name(l->key, name, sizeof(name));
		snprintf(out + at, room - at, "%s%s=", between, name);
		put_plain(out, room, label_text(l, number), "_-./:@+ ");
		between = ",";
	}
	if (*between == ',' && strlen(out) + 1 < room)
		strcat(out, "}");
}

/* Unix seconds of the recording, which has at least one. */
static void times_of(const struct kprof_capture *c, uint64_t *from, uint64_t *until)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);

	*from = info->start_real_ns / NSEC_PER_SEC;
	*until = (info->start_real_ns + info->end_mono_ns - info->start_mono_ns) / NSEC_PER_SEC;
	if (*until <= *from)
		*until = *from + 1;
}

static cJSON *pyroscope_head(const struct making *g, const struct group *group)
{
	static char name[PUSH_HEAD_BYTES / 4], target[PUSH_HEAD_BYTES];
	uint64_t from, until;
	size_t at;

	app_name(group, name, sizeof(name));
	snprintf(target, sizeof(target), "/ingest?name=");
	put_encoded(target, sizeof(target) - 128, name);
	times_of(g->c, &from, &until);
	at = strlen(target);
	snprintf(target + at, sizeof(target) - at,
		 "&from=%" PRIu64 "&until=%" PRIu64 "&format=pprof&spyName=kprof", from, until);
	return new_head(g, target, "application/octet-stream", false);
}

/* ---- Parca ---- */

static char *base64(const uint8_t *bytes, size_t nr)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = malloc((nr + 2) / 3 * 4 + 1), *to = out;

	for (size_t i = 0; out && i < nr; i += 3) {
		uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < nr ? bytes[i + 1] << 8 : 0) |
				 (i + 2 < nr ? bytes[i + 2] : 0);

		*to++ = digits[three >> 18];
		*to++ = digits[three >> 12 & 63];
		*to++ = i + 1 < nr ? digits[three >> 6 & 63] : '=';
		*to++ = i + 2 < nr ? digits[three & 63] : '=';
	}
	if (out)
		*to = '\0';
	return out;
}

static bool add_label(cJSON *labels, const char *name, const char *value)
{
	cJSON *pair = cJSON_CreateObject();

	return cJSON_AddStringToObject(pair, "name", name) &&
	       cJSON_AddStringToObject(pair, "value", value) && cJSON_AddItemToArray(labels, pair);
}

static bool has_label(const cJSON *labels, const char *name)
{
	const cJSON *pair;

	cJSON_ArrayForEach(
		pair, labels) if (!strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(pair, "name")),
					  name)) return true;
	return false;
}

/* JSON has only UTF-8: other bytes are replaced, as in names. */
static void plain_value(char *to, size_t room, const char *text)
{
	to[0] = '\0';
	put_plain(to, room, text, "_-./:@+ ,;=()[]#%");
}

static bool add_labels(cJSON *labels, const struct group *group, bool off_cpu)
{
	const char *host = resource__text(&group->labels, "host.name");
	bool fine = add_label(labels, "__name__", off_cpu ? "off_cpu" : "process_cpu");
	char name[136], value[1100], number[24];

	for (size_t i = 0; i < group->labels.nr && fine; i++) {
		const struct resource_label *l = &group->labels.labels[i];

		label_name(l->key, name, sizeof(name));
		plain_value(value, sizeof(value), label_text(l, number));
		if (!has_label(labels, name))
			fine = add_label(labels, name, value);
	}
	if (fine && host &&
	    !has_label(labels, "node")) { /* by which Parca's page tells agents apart */
		plain_value(value, sizeof(value), host);
		fine = add_label(labels, "node", value);
	}
	return fine;
}

/* The profile in a series with these labels, as JSON. NULL: no memory. */
static char *parca_json(const struct group *group, bool off_cpu, const char *profile)
{
	cJSON *body = cJSON_CreateObject(), *series, *labels, *sample;
	char *text = NULL;

	series = cJSON_AddArrayToObject(body, "series");
	cJSON_AddItemToArray(series, cJSON_CreateObject());
	series = cJSON_GetArrayItem(series, 0);
	labels = cJSON_AddArrayToObject(cJSON_AddObjectToObject(series, "labels"), "labels");
	sample = cJSON_AddArrayToObject(series, "samples");
	cJSON_AddItemToArray(sample, cJSON_CreateObject());
	sample = cJSON_GetArrayItem(sample, 0);
	/* Addresses are those of the files. */
	if (add_labels(labels, group, off_cpu) &&
	    cJSON_AddStringToObject(sample, "rawProfile", profile) &&
	    cJSON_AddBoolToObject(body, "normalized", true))
		text = cJSON_PrintUnformatted(body);
	cJSON_Delete(body);
	return text;
}

/* Replaces the profile in the file by the JSON that has it. */
static int wrap_for_parca(const struct group *group, bool off_cpu, const char *from, const char *to)
{
	char *bytes = NULL, *profile = NULL, *json = NULL;
	size_t nr;
	int fd = -1, err = read_file(from, MOST_PPROF_BYTES, &bytes, &nr);

	if (err)
		return error_set(err, NULL, "cannot read %s: %s", from, strerror(-err));
	profile = base64((uint8_t *)bytes, nr);
	json = profile ? parca_json(group, off_cpu, profile) : NULL;
	if (!json)
		err = no_memory();
	if (!err)
		fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (!err && (fd < 0 || !write_all(fd, json, strlen(json)) || fsync(fd)))
		err = error_set(-errno, NULL, "cannot write %s: %s", to, strerror(errno));
	if (fd >= 0)
		close(fd);
	unlink(from);
	free(bytes);
	free(profile);
	cJSON_free(json);
	return err;
}

/* ---- both ---- */

static int make_pprof(struct making *g, const struct group *group, bool off_cpu)
{
	bool parca = g->m->url->kind == KPROF_PUSH_PARCA;
	char *path = body_path(g), *raw = path ? xasprintf("%s.pb", path) : NULL;
	struct kprof_export_opts opts = {.path = raw,
					 .format = "pprof",
					 .off_cpu = off_cpu,
					 .pids = group->pids.data,
					 .nr_pids = group->pids.nr};
	int err = raw ? export(g, &opts) : no_memory();

	if (!err && raw && path && parca)
		err = wrap_for_parca(group, off_cpu, raw, path);
	else if (!err && raw && path && rename(raw, path))
		err = error_set(-errno, NULL, "cannot rename %s: %s", raw, strerror(errno));
	if (!err)
		err = put_head(
			g, parca ? new_head(g, "/api/profiles/writeraw", "application/json", false)
				 : pyroscope_head(g, group));
	g->requests++;
	free(path);
	free(raw);
	return err;
}

int push_make_requests(const struct push_make *m, struct kprof_capture *c, const char *folder)
{
	struct making g = {.m = m, .resource = m->resource, .c = c, .folder = folder};
	int err;

	if (m->url->kind != KPROF_PUSH_OTLP) /* whose export finds labels itself */
		g.resource.pods = &g.pods;
	err = find_groups(&g);
	if (!err && m->url->kind == KPROF_PUSH_OTLP)
		err = make_all_otlp(&g);
	else
		for (size_t i = 0; i < g.groups.nr && !err; i++) {
			const struct group *group = (struct group *)g.groups.data + i;

			if (group->samples)
				err = make_pprof(&g, group, false);
			if (!err && group->waits)
				err = make_pprof(&g, group, true);
		}
	free_groups(&g);
	return err;
}
