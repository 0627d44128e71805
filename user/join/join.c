// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "join/impl.h"
#include "model/timeline/timeline.h"
#include "store/store.h"

/* ---- what the captures say of themselves ---- */

/* Of which recording it is a part; "" where it does not say. */
static char *part_of(const struct kprof_capture *t)
{
	cJSON *part = timeline__meta_json(t, "part");
	const cJSON *of = cJSON_GetObjectItemCaseSensitive(part, "of");
	char *text = strdup(cJSON_IsString(of) ? of->valuestring : "");

	cJSON_Delete(part);
	return text;
}

static int read_counts(struct chunk *c, const struct kprof_capture *t)
{
	const struct kprof_source *s;

	for (size_t i = 0; (s = kprof_capture_source(t, i)); i++) {
		struct kprof_source *to = vec_push(&c->counts, sizeof(*to));

		if (!to)
			return join_no_memory();
		*to = *s;
	}
	return 0;
}

static int read_chunk(struct chunk *c)
{
	const struct kprof_capture_info *info;
	struct kprof_capture *t;
	char *boot;
	int err = kprof_capture_open(c->path, &t);

	if (err)
		return err;
	info = kprof_capture_info(t);
	c->start_ns = info->start_mono_ns;
	c->end_ns = info->end_mono_ns;
	c->complete = info->complete;
	boot = timeline__meta_text(t, "boot");
	c->boot = boot ? boot : strdup("");
	c->of = part_of(t);
	if (!c->boot || !c->of)
		err = join_no_memory();
	else if (kprof_capture_meta(t, "merged"))
		err = error_set(-EINVAL, "join the captures that it was made of",
				"%s has been merged from others", c->path);
	else if (!c->complete)
		err = read_counts(c, t);
	kprof_capture_close(t);
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

static void forget(struct chunk *c)
{
	free(c->boot);
	free(c->of);
	free(c->sources.data);
	free(c->counts.data);
	free(c->times.data);
	cJSON_Delete(c->metadata);
	kprof_copy__free(c->copy);
}

/* Those with a part in the time that is asked for stay. */
static void select_chunks(struct join *j)
{
	const struct kprof_join_opts *o = j->opts;
	size_t kept = 0;

	for (size_t i = 0; i < j->nr; i++) {
		struct chunk *c = &j->chunks[i];

		if ((o->from_mono_ns && c->end_ns <= o->from_mono_ns) ||
		    (o->to_mono_ns && c->start_ns >= o->to_mono_ns)) {
			forget(c);
			continue;
		}
		j->chunks[kept++] = *c;
	}
	j->nr = kept;
}

/* Numbers the recordings, and finds where one takes over from another. */
static int arrange(struct join *j)
{
	for (size_t i = 0; i < j->nr; i++) {
		struct chunk *c = &j->chunks[i];

		c->session = i + 1;
		c->until_ns = c->end_ns;
		for (size_t k = 0; k < i && *c->of; k++)
			if (!strcmp(c->of, j->chunks[k].of))
				c->session = j->chunks[k].session;
		if (i && strcmp(c->boot, j->chunks[0].boot))
			return error_set(-EINVAL, "`kprof merge` puts those of several together",
					 "%s and %s are not of one boot of one machine",
					 j->chunks[0].path, c->path);
		if (i && j->chunks[i - 1].until_ns > c->start_ns)
			j->chunks[i - 1].until_ns = c->start_ns;
		j->info.incomplete += !c->complete;
	}
	return 0;
}

/* It was removed meanwhile, as is no matter to who asks. */
static bool is_gone(const struct join *j, int err)
{
	return err == -ENOENT && j->opts->skip_gone;
}

static int all_are_gone(void)
{
	return error_set(-ENOENT, NULL, "the captures were removed before they were read");
}

static int read_all(struct join *j, const char *const *paths, size_t nr)
{
	int err = 0;

	j->chunks = calloc(nr + 1, sizeof(*j->chunks));
	if (!j->chunks)
		return join_no_memory();
	for (size_t i = 0; i < nr && !err; i++) {
		struct chunk *c = &j->chunks[j->nr++];

		c->path = paths[i];
		err = read_chunk(c);
		if (!is_gone(j, err))
			continue;
		err = 0;
		j->nr--;
		j->info.gone++;
	}
	if (err)
		return err;
	if (!j->nr)
		return all_are_gone();
	select_chunks(j);
	if (!j->nr)
		return error_set(-EINVAL, NULL, "none of the captures is of that time");
	qsort(j->chunks, j->nr, sizeof(*j->chunks), by_start);
	return arrange(j);
}

/* ---- the whole ---- */

static int copy_one(struct join *j, size_t i)
{
	struct chunk *c = &j->chunks[i], *before = i ? c - 1 : NULL;
	const struct kprof_join_opts *o = j->opts;
	int err;

	err = join_open(j, c);
	if (err)
		return err;
	if (!before)
		j->info.start_mono_ns = c->start_ns;
	j->border_ns = before && before->until_ns < c->start_ns ? before->until_ns : c->start_ns;
	if (before)
		err = join_missing(j, before, c);
	if (!err)
		err = join_copy(j, c);
	if (!err)
		err = join_metadata(j);
	if (!err && o->progress && o->progress(o->ctx, i + 1, j->nr))
		err = error_set(-ECANCELED, NULL, "joining was stopped");
	return err;
}

static void leave_out(struct join *j, size_t i)
{
	struct chunk *c = &j->chunks[i];

	j->info.incomplete -= !c->complete;
	j->info.gone++;
	forget(c);
	memmove(c, c + 1, (--j->nr - i) * sizeof(*c));
}

static int copy_all(struct join *j)
{
	size_t i = 0;
	int err = 0;

	while (i < j->nr && !err) {
		err = copy_one(j, i);
		if (is_gone(j, err)) {
			err = 0;
			leave_out(j, i);
		} else {
			i++;
		}
	}
	return err || j->nr ? err : all_are_gone();
}

static int put_sources(struct join *j)
{
	const struct store_record *sums = j->sources.data;
	int err = 0;

	for (size_t i = 0; i < j->sources.nr && !err; i++)
		err = store_writer__put(j->out, &sums[i]);
	return err;
}

static int write_output(struct join *j)
{
	const struct kprof_join_opts *o = j->opts;
	const struct outfile_opts owner = {o->set_owner, o->uid, o->gid};
	struct store_writer *out;
	int err;

	err = store_writer__open(o->output, &owner, &j->out);
	if (!err)
		err = copy_all(j);
	j->info.end_mono_ns = j->nr ? j->chunks[j->nr - 1].end_ns : 0;
	j->info.joined = j->nr;
	if (!err)
		err = join_put_times(j);
	if (!err)
		err = put_sources(j);
	if (!err)
		err = join_put_metadata(j);
	out = j->out;
	j->out = NULL;
	if (!err)
		return store_writer__finish_whole(out, j->info.end_mono_ns);
	store_writer__discard(out);
	return err;
}

static void free_all(struct join *j)
{
	struct join_thread *threads = j->threads.data;
	struct map64 *maps[] = {&j->known, &j->said,     &j->named,          &j->alive,
				&j->what,  &j->last_gap, &j->source_by_name, &j->source_of};

	for (size_t i = 0; i < j->nr; i++)
		forget(&j->chunks[i]);
	for (size_t i = 0; i < j->threads.nr; i++)
		free(threads[i].open);
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		map64__free(maps[i]);
	free(j->chunks);
	free(j->threads.data);
	free(j->gaps.data);
	free(j->sources.data);
	cJSON_Delete(j->metadata);
}

int kprof_join(const char *const *captures, size_t nr, const struct kprof_join_opts *opts,
	       struct kprof_join_info *info)
{
	struct join j = {.opts = opts, .numbers = KPROF_COPY_NUMBERS};
	int err;

	error_clear();
	if (opts->sz != sizeof(*opts) || !opts->output || !nr)
		return error_set_usage(-EINVAL, "set .sz and .output, and name the captures",
				       "the options are not filled in");
	if (getrandom(&j.seed, sizeof(j.seed), 0) != (ssize_t)sizeof(j.seed))
		return error_set(-errno, NULL, "no random numbers: %s", strerror(errno));
	j.metadata = cJSON_CreateObject();
	err = j.metadata ? read_all(&j, captures, nr) : join_no_memory();
	if (!err)
		err = write_output(&j);
	if (!err && info)
		*info = j.info;
	free_all(&j);
	return err;
}
