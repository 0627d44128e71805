// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any options, one a line, as the request of a process's owner, or (first byte) of root. Either
 * they are refused, with a reason, or an owner's recording is of its own processes alone, ends when
 * they execute programs, and has nothing that tells of others, of the kernel, or that root has set.
 * The file is included: what is to be checked is its own.
 */
#include "cmd/daemon/record/demand.c"
#include "fuzz.h"

static size_t nr_refused;

/* ---- the daemon, and the process's other parts ---- */

void link_send(int fd, cJSON *m)
{
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItem(m, "error"));

	REQUIRE(cJSON_GetObjectItem(m, "state"));
	REQUIRE(!error || *error);
	nr_refused++;
	cJSON_Delete(m);
}

cJSON *link_take(int fd, int timeout_ms, bool *closed)
{
	return NULL;
}

void link_log(int fd)
{
}

void link_fail(int fd)
{
}

int trace_write(const struct demand_job *job, const char *capture)
{
	return 0;
}

int process_check_owner(pid_t pid, uid_t uid, uint64_t space, pid_t asker)
{
	return pid % 2 ? 0 : -EPERM;
}

uint64_t folder_free(const char *path)
{
	return UINT64_MAX;
}

static void said(void *ctx, const char *cause, const char *hint)
{
	REQUIRE(cause && *cause);
}

/* ---- */

static void check_owners(const struct demand *d)
{
	const struct kprof_session_opts *s = &d->opts.session;

	REQUIRE(d->opts.pids.nr);
	for (size_t i = 0; i < d->opts.pids.nr; i++)
		REQUIRE(d->opts.pids.items[i] % 2);
	REQUIRE(s->until_exec && s->children == KPROF_CHILDREN_NONE);
	REQUIRE(!s->all_processes && !s->samples_only && !s->sample_hz && !s->waits);
	REQUIRE(!s->trust_files && !s->ask_jvm && !s->alive && !s->counters && !s->metrics);
	REQUIRE(!s->agent_library && !s->no_multi && !s->ring_bytes && !s->observe);
	REQUIRE(!d->opts.meta.nr && !d->opts.output && !d->opts.config.nr && !d->opts.argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static char words[32][256];
	const char *options[32];
	struct demand_job job = {.options = options, .path = "/x/y.kprof", .uid = 20001};
	struct demand d = {.job = &job};
	FILE *out = stdout;
	int argc = 0, err;
	char **argv, *text, *at;

	if (!bytes)
		return 0;
	job.any_process = data[0] & 1;
	job.pid = data[0] & 2 ? 4711 : 0;
	at = text = fuzz_text(data + 1, bytes - 1);
	for (char *word; job.nr_options < 32 && (word = strsep(&at, "\n")); job.nr_options++)
		options[job.nr_options] =
			memcpy(words[job.nr_options], word, strnlen(word, 255) + 1);
	for (size_t i = 0; i < job.nr_options; i++)
		words[i][255] = '\0';
	message_redirect(said, NULL);
	stdout = fopen("/dev/null", "we");
	nr_refused = 0;
	argv = make_arguments(&job, &argc);
	REQUIRE(argv);
	err = parse(&d, argc, argv);
	REQUIRE(err ? nr_refused == 1 : !nr_refused);
	if (!err)
		REQUIRE(d.start_at_ns <= now_ns(CLOCK_REALTIME) + FURTHEST_START_NS);
	if (!err && !job.any_process)
		check_owners(&d);
	fclose(stdout);
	stdout = out;
	options_free(&cmd_ctl, &d.opts);
	chosen_free(&d.opts.chosen);
	free(argv);
	free(text);
	return 0;
}
