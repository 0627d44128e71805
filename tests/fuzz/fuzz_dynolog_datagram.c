// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as a datagram to dynolog's socket. What is taken is within bounds, and its numbers,
 * written again, are the bytes that came. The server's registry then holds at most this process.
 */
#include <errno.h>
#include <unistd.h>

#include "dynolog/impl.h"
#include "fuzz.h"

static size_t encode(const struct datagram *d, char *to)
{
	struct datagram_head head =
		datagram_head(d->is_poll, 16 + (d->is_poll ? 4 * d->nr_pids : 0));
	int32_t nr = (int32_t)d->nr_pids;

	memcpy(to, &head, sizeof(head));
	memcpy(to + 40, d->is_poll ? (const void *)&d->takes : &d->gpu, 4);
	memcpy(to + 44, d->is_poll ? &nr : d->pids, 4);
	memcpy(to + 48, &d->job_id, 8);
	if (d->is_poll)
		memcpy(to + 56, d->pids, 4 * d->nr_pids);
	return sizeof(head) + head.bytes;
}

/* Of the type, only what is before its NUL is looked at. */
static void check_same(const struct datagram *d, const char *data, size_t bytes)
{
	char again[DATAGRAM_MOST_BYTES];

	REQUIRE(encode(d, again) == bytes);
	REQUIRE(!memcmp(again, data, 8) && !strcmp(again + 8, data + 8));
	REQUIRE(!memcmp(again + 40, data + 40, bytes - 40));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct kprof_dynolog d = {.registry = {.most = 4, .most_of_user = 4}};
	const struct ucred who = {.pid = getpid()};
	struct ipc_answer answer;
	struct datagram in;
	char *text = fuzz_text(data, bytes); /* of exactly that size, and a NUL */
	int err = datagram_decode(text, bytes, &in);

	REQUIRE(!err || err == -EBADMSG);
	if (!err) {
		REQUIRE(in.nr_pids >= 1 && in.nr_pids <= DATAGRAM_PIDS);
		check_same(&in, text, bytes);
		err = ipc_decide(&d, &in, &who, &answer);
		REQUIRE(!err || in.pids[0] != who.pid);
		in.pids[0] = who.pid;
		REQUIRE(!ipc_decide(&d, &in, &who, &answer) && !answer.e);
		REQUIRE(answer.bytes == (in.is_poll ? 0 : sizeof(int32_t)));
		REQUIRE(d.registry.nr == 1);
	}
	free(text);
	return 0;
}
