// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as what comes on a connection to dynolog's port, in pieces of a size that the first
 * byte says. An answer is JSON that dyno can read: processesMatched is an array, which has nobody
 * that the request does not name, and no more are told than it allows. The second byte puts the
 * bytes into a frame, so that most inputs get further.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <unistd.h>

#include "dynolog/impl.h"
#include "fuzz.h"
#include "util/json_valid.h"

#define PROCESSES 3

static uint32_t nr_done;

static void done(void *ctx, const struct kprof_dynolog_request *r,
		 const struct kprof_dynolog_result *result)
{
	nr_done++;
	REQUIRE(result->triggered <= r->process_limit && result->triggered <= result->matched);
	REQUIRE(result->matched <= PROCESSES && !result->failed);
	REQUIRE(!result->error || !result->matched);
	for (size_t i = 1; i < r->nr_pids; i++)
		REQUIRE(r->pids[i - 1] <= r->pids[i]);
	if (!result->error)
		REQUIRE(kprof_dynolog_path_allowed(r->config->log_file, NULL, 0));
}

static void check_answer(const char *json)
{
	cJSON *root = cJSON_Parse(json);

	REQUIRE(json_valid(json) && cJSON_IsObject(root));
	if (!cJSON_GetObjectItem(root, "version") && cJSON_GetArraySize(root) > 1)
		REQUIRE(cJSON_IsArray(cJSON_GetObjectItem(root, "processesMatched")) &&
			cJSON_IsArray(cJSON_GetObjectItem(root, "activityProfilersTriggered")) &&
			cJSON_IsNumber(cJSON_GetObjectItem(root, "activityProfilersBusy")));
	cJSON_Delete(root);
}

/* Of this process, whose start is known, so that it counts as alive: three names of it. */
static void fill(struct kprof_dynolog *d)
{
	struct entry e, *out;

	REQUIRE(!identity_read(getpid(), &e));
	e.polled = e.p.registered = true;
	e.takes = TAKES_ACTIVITIES;
	e.p.seen_ns = clock_mono_ns();
	for (int i = 0; i < PROCESSES; i++) {
		e.p.own_pid = e.own[0] = i + 1;
		e.p.job_id = i == 2;
		REQUIRE(!registry__add(&d->registry, &e, &out));
	}
}

static int feed(struct frame *f, const uint8_t *data, size_t bytes, size_t piece)
{
	int state = 0;

	for (size_t at = 0; !state && at < bytes; at += piece)
		state = frame__feed(f, data + at, piece < bytes - at ? piece : bytes - at);
	return state;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct kprof_dynolog d = {.registry = {.most = PROCESSES, .most_of_user = PROCESSES},
				  .o = {.done = done}};
	struct fuzz_input in = {data, bytes};
	size_t piece = 1 + fuzz_number(&in, 1);
	bool framed = fuzz_number(&in, 1) & 1;
	int32_t length = (int32_t)in.left;
	struct frame f = {0};
	char *answer = NULL;
	int state = framed ? frame__feed(&f, &length, sizeof(length)) : 0;

	if (!state)
		state = feed(&f, in.at, in.left, piece);
	REQUIRE(state == 0 || state == 1 || state == -EBADMSG);
	REQUIRE(f.cap <= 2 * (f.have + 1) + 1024);
	if (state > 0) {
		REQUIRE(f.have == f.length && f.data[f.have] == '\0');
		fill(&d);
		state = request_answer(&d, f.data, f.length, "fuzz", true, &answer);
		REQUIRE(state == (answer ? 0 : -EBADMSG));
		if (answer)
			check_answer(answer);
		free(answer);
	}
	frame__free(&f);
	registry__free(&d.registry);
	return 0;
}
