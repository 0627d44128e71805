// SPDX-License-Identifier: BSD-2-Clause
/*
 * What Kineto sends: a head with the number of the bytes that follow, and the type; then numbers in
 * the machine's own order of bytes.
 */
#include <errno.h>
#include <stdio.h>

#include "dynolog/impl.h"

#define POLL "req"
#define CONTEXT "ctxt"

static int32_t next_int(const char **at)
{
	int32_t n;

	memcpy(&n, *at, sizeof(n));
	*at += sizeof(n);
	return n;
}

static int64_t next_long(const char **at)
{
	int64_t n;

	memcpy(&n, *at, sizeof(n));
	*at += sizeof(n);
	return n;
}

/* int32 takes, int32 n, int64 job id, int32 pids[n] */
static int decode_poll(const char *at, size_t bytes, struct datagram *out)
{
	int32_t nr;

	if (bytes < 16)
		return -EBADMSG;
	out->takes = (uint32_t)next_int(&at);
	nr = next_int(&at);
	out->job_id = next_long(&at);
	if (nr < 1 || nr > DATAGRAM_PIDS || bytes != 16 + (size_t)nr * sizeof(int32_t))
		return -EBADMSG;
	out->nr_pids = (size_t)nr;
	for (int32_t i = 0; i < nr; i++) {
		out->pids[i] = next_int(&at);
		if (out->pids[i] < 1)
			return -EBADMSG;
	}
	return 0;
}

/* int32 gpu, int32 pid, int64 job id */
static int decode_context(const char *at, size_t bytes, struct datagram *out)
{
	if (bytes != 16)
		return -EBADMSG;
	out->gpu = next_int(&at);
	out->pids[0] = next_int(&at);
	out->nr_pids = 1;
	out->job_id = next_long(&at);
	return out->pids[0] < 1 ? -EBADMSG : 0;
}

int datagram_decode(const void *data, size_t bytes, struct datagram *out)
{
	struct datagram_head head;
	const char *rest = (const char *)data + sizeof(head);

	*out = (struct datagram){0};
	if (bytes < sizeof(head) || bytes > DATAGRAM_MOST_BYTES)
		return -EBADMSG;
	memcpy(&head, data, sizeof(head));
	bytes -= sizeof(head);
	if (head.bytes != bytes || !memchr(head.type, '\0', sizeof(head.type)))
		return -EBADMSG;
	out->is_poll = !strcmp(head.type, POLL);
	if (out->is_poll)
		return decode_poll(rest, bytes, out);
	return strcmp(head.type, CONTEXT) ? -EBADMSG : decode_context(rest, bytes, out);
}

struct datagram_head datagram_head(bool is_poll, size_t bytes)
{
	struct datagram_head head = {.bytes = bytes};

	snprintf(head.type, sizeof(head.type), "%s", is_poll ? POLL : CONTEXT);
	return head;
}
