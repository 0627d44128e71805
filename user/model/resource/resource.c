// SPDX-License-Identifier: BSD-2-Clause
#include "model/resource/resource.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/util.h"

#define MAX_KEY 128
#define MAX_VALUE 1024

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for the labels of a process");
}

/* The label of this key, which is added if there is none. NULL: no memory, or no room. */
static struct resource_label *label(struct resource *r, const char *key, size_t len)
{
	struct resource_label *l = r->labels;

	for (; l < r->labels + r->nr; l++)
		if (strlen(l->key) == len && !strncmp(l->key, key, len))
			return l;
	if (r->nr == ARRAY_SIZE(r->labels))
		return NULL;
	l->key = strndup(key, len);
	if (!l->key)
		return NULL;
	r->nr++;
	return l;
}

static int set_text(struct resource *r, const char *key, size_t len, const char *text)
{
	struct resource_label *l = label(r, key, len);
	char *copy = l ? strdup(text) : NULL;

	if (!copy)
		return no_memory();
	free(l->text);
	l->text = copy;
	return 0;
}

/* A label that is not known is not there: an empty one would say something else. */
static int set_known(struct resource *r, const char *key, const char *text)
{
	return text && *text ? set_text(r, key, strlen(key), text) : 0;
}

static int set_number(struct resource *r, const char *key, int64_t number)
{
	struct resource_label *l = label(r, key, strlen(key));

	if (!l)
		return no_memory();
	l->number = number;
	return 0;
}

/* The rank that the process had in a training on several GPUs, if the capture knows it. */
static int set_rank(struct resource *r, const struct kprof_capture *t, pid_t pid)
{
	char key[32];
	cJSON *json;
	const cJSON *rank;
	int err = 0;

	snprintf(key, sizeof(key), "distributed.%d", pid);
	json = timeline__meta_json(t, key);
	rank = cJSON_GetObjectItemCaseSensitive(json, "rank");
	if (cJSON_IsNumber(rank) && rank->valuedouble >= 0 && rank->valuedouble <= INT32_MAX)
		err = set_number(r, "rank", (int64_t)rank->valuedouble);
	cJSON_Delete(json);
	return err;
}

static int set_host(struct resource *r, const struct kprof_capture *t, const struct tl_process *p)
{
	char *host;
	int err;

	if (p && *p->host)
		return set_known(r, "host.name", p->host);
	host = timeline__meta_text(t, "host");
	err = set_known(r, "host.name", host);
	free(host);
	return err;
}

/* Of a container of this node's: elsewhere, there is no link with its id. */
static int set_pod_names(struct resource *r, const char *id, struct pod_names_list *pods)
{
	const struct pod_names *n = pods ? pod_names_list__find(pods, POD_NAMES_FOLDER, id) : NULL;
	int err;

	if (!n)
		return 0;
	err = set_known(r, "k8s.namespace.name", n->space);
	if (!err)
		err = set_known(r, "k8s.pod.name", n->pod);
	return err ? err : set_known(r, "k8s.container.name", n->container);
}

static int set_container(struct resource *r, const char *cgroup, struct pod_names_list *pods)
{
	char id[CONTAINER_ID_BYTES], pod[CONTAINER_ID_BYTES];
	bool has_id = container_id(cgroup, id);
	int err = has_id ? set_known(r, "container.id", id) : 0;

	if (err || !container_pod(cgroup, pod))
		return err;
	err = set_known(r, "k8s.pod.uid", pod);
	return !err && has_id ? set_pod_names(r, id, pods) : err;
}

static int set_users(struct resource *r, const struct resource_opts *opts)
{
	int err = 0;

	for (size_t i = 0; i < opts->nr_labels && !err; i++) {
		size_t len = strcspn(opts->labels[i], "=");

		err = set_text(r, opts->labels[i], len, opts->labels[i] + len + 1);
	}
	return err;
}

int resource__fill(struct resource *r, const struct kprof_capture *t, const struct tl_process *p,
		   pid_t pid, bool with_pid, const struct resource_opts *opts)
{
	const char *comm = p && *p->comm ? p->comm : "unknown";
	int err;

	*r = (struct resource){0};
	err = set_known(r, "service.name", opts->service && *opts->service ? opts->service : comm);
	if (!err && with_pid)
		err = set_number(r, "process.pid", p && p->host_pid ? p->host_pid : pid);
	if (!err)
		err = set_known(r, "process.executable.name", comm);
	if (!err && p)
		err = set_known(r, "process.executable.path", p->exe);
	if (!err)
		err = set_host(r, t, p);
	if (!err && p)
		err = set_container(r, p->cgroup, opts->pods);
	if (!err)
		err = set_rank(r, t, pid);
	if (!err)
		err = set_users(r, opts);
	if (err)
		resource__free(r);
	return err;
}

void resource__free(struct resource *r)
{
	for (size_t i = 0; i < r->nr; i++) {
		free(r->labels[i].key);
		free(r->labels[i].text);
	}
	r->nr = 0;
}

const char *resource__text(const struct resource *r, const char *key)
{
	for (size_t i = 0; i < r->nr; i++)
		if (!strcmp(r->labels[i].key, key))
			return r->labels[i].text;
	return NULL;
}

int resource_check(const struct resource_opts *opts)
{
	if (opts->nr_labels > RESOURCE_MAX_LABELS)
		return error_set_usage(-EINVAL, NULL, "%zu labels are too many: at most %d",
				       opts->nr_labels, RESOURCE_MAX_LABELS);
	for (size_t i = 0; i < opts->nr_labels; i++) {
		const char *text = opts->labels[i];
		size_t len = strcspn(text, "=");

		if (!len || !text[len] || !text[len + 1] || len > MAX_KEY ||
		    strlen(text + len + 1) > MAX_VALUE)
			return error_set_usage(-EINVAL, "for example team=vision",
					       "'%.64s' is no label KEY=VALUE", text);
		for (size_t k = 0; k < len; k++)
			if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.-/",
				    text[k]))
				return error_set_usage(
					-EINVAL, "letters, digits, '_', '.', '-' and '/'",
					"'%.64s': a label's key cannot have '%c'", text, text[k]);
	}
	return 0;
}
